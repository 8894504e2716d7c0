"""DOT of daggen: what is read, what is tolerated, and what is wrong with a wrong text."""

import pytest

from weft.errors import InputError
from weft.formats.dot import parse_dot

DAGGEN = """\
digraph G {
  1 [size="2000000000", alpha="0.20"]
  1 -> 2 [size ="1000"]
  1 -> 3 [size ="500"]
  2 [size="500000000", alpha="0.10"]
  3 [size="0", alpha="0.00"]
}
"""


def test_what_daggen_writes() -> None:
    workflow = parse_dot(DAGGEN, "w")
    assert workflow.name == "w"
    assert workflow.task_names == ("1", "2", "3")
    assert workflow.base_cost.tolist() == [2.0, 0.5, 0.0]
    assert workflow.item_size.tolist() == [1000, 500]
    assert workflow.item_producer.tolist() == [0, 0]
    assert workflow.use_task.tolist() == [1, 2]


def test_what_is_tolerated() -> None:
    workflow = parse_dot(
        """// a comment
        # another
        strict digraph "my graph" { /* and
        another */ "a \\"b\\"" [alpha=0.2; size="1e9"];
        b[size=1000000000] "}" [size="0"]
        "a \\"b\\"" -> b -> "}" [size=7]; b -> _c
        _c [size=.5,]
        }"""
    )
    assert workflow.name == "my graph"
    assert workflow.task_names == ('a "b"', "b", "}", "_c")
    assert workflow.base_cost.tolist() == [1.0, 1.0, 0.0, 0.5e-9]
    assert workflow.item_size.tolist() == [7, 7, 0]


NODES = '1 [size="1"] 2 [size="1"]'
WRONG = [
    ("", "", "the file is empty"),
    ("// nothing\n", "", "the file is empty"),
    ("graph G { }", "line 1", "expected 'digraph', not 'graph'"),
    ("digraph G", "line 1", "expected '{', not the end of the file"),
    ("digraph G {\n}", "line 2", "no tasks"),
    ('digraph G {\n1 [size="1"]\n', "line 3", "expected a node, not the end of the file"),
    ('digraph G {\n1 [size="1"', "line 2", "expected an attribute, not the end of the file"),
    ('digraph G {\n1 [size="1', "line 2", "unexpected"),
    ("digraph G {\n1 [size]}", "line 2", "expected '=', not ']'"),
    ("digraph G {\n1 [size=]}", "line 2", "expected a number, not ']'"),
    ("digraph G {\n1 [sise=3]}", "line 2", "unknown attribute 'sise' (did you mean 'size'?)"),
    ("digraph G {\n1 [size=3, size=3]}", "line 2", "size is given twice"),
    ('digraph G {\n1 [size="fast"]}', "line 2", "must be a finite number"),
    ('digraph G {\n1 [size="-1"]}', "line 2", "that is not negative"),
    ('digraph G {\n1 [size="1e999"]}', "line 2", "must be a finite number"),
    ('digraph G {\n1 [size="nan"]}', "line 2", "must be a finite number"),
    ("digraph G {\n1 [alpha=1]}", "line 2", "the node '1' has no size"),
    ("digraph G {\n1}", "line 2", "the node '1' has no size"),
    (f"digraph G {{ {NODES}\n1 [size=1] }}", "line 2", "the node '1' is given twice"),
    (f"digraph G {{ {NODES}\n1 -> 3 }}", "line 2", "the node '3' has no size"),
    (f"digraph G {{ {NODES}\n1 -> 1 }}", "line 2", "depends on itself"),
    (f"digraph G {{ {NODES}\n1 -> 2; 1 -> 2 }}", "line 2", "'1' -> '2' is given twice"),
    (f"digraph G {{ {NODES} 1 -> 2; 2 -> 1 }}", "", "cycle: 1 -> 2 -> 1"),
    (f"digraph G {{ {NODES}\n1 -- 2 }}", "line 2", "unexpected '-- 2 }'"),
    ("digraph G {\nnode [size=1]}", "line 2", "'node' is not part of what daggen writes"),
    ("digraph G {\nsubgraph x {}}", "line 2", "'subgraph' is not part of what daggen writes"),
    ('digraph G {\n"" [size=1]}', "line 2", "expected a node, not ''"),
    (f"digraph G {{ {NODES} }}\ndigraph", "line 2", "expected nothing more, not 'digraph'"),
]


@pytest.mark.parametrize(("text", "place", "problem"), WRONG)
def test_wrong_text_says_what_and_where(text: str, place: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_dot(text)
    assert caught.value.place == place
    assert problem in caught.value.problem
