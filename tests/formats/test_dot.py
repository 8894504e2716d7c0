"""DOT: what daggen and Snakemake write, what the language has, and what a wrong text lacks."""

import numpy as np
import pytest

from foreplan.errors import InputError
from foreplan.formats.dot import parse_dot

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


SNAKEMAKE = """\
digraph snakemake_dag {
    graph[bgcolor=white, margin=0];
    node[shape=box, style=rounded, fontname=sans, fontsize=10, penwidth=2];
    edge[penwidth=2, color=grey];
\t0[label = "all", color = "0.50 0.6 0.85", style="rounded"];
\t1[label = "sort_bam\\nsample: s1", color = "0.00 0.6 0.85", style="rounded,dashed"];
\t2[label = "sort_bam\\nsample: s2", color = "0.00 0.6 0.85", style="rounded"];
\t1 -> 0
\t2 -> 0
}
"""


def test_what_snakemake_writes() -> None:
    workflow = parse_dot(SNAKEMAKE, "dag")
    assert workflow.task_names == ("0", "1", "2")
    assert [workflow.spec(t).category for t in range(3)] == ["all", "sort_bam", "sort_bam"]
    assert np.isnan(workflow.base_cost).all()
    assert workflow.item_producer.tolist() == [1, 2]
    assert workflow.use_task.tolist() == [0, 0]
    assert workflow.notes == ("no node has a size, so no task has a cost",)


def edges(text: str) -> list[str]:
    """The edges of a graph, as `a>b`."""
    workflow = parse_dot(f"digraph {{ {text} }}")
    names = workflow.task_names
    _, producers, consumers = workflow.dependencies()
    return [f"{names[p]}>{names[c]}" for p, c in zip(producers, consumers, strict=True)]


LANGUAGE = [
    ("a -> {b c}", ["a>b", "a>c"]),
    ("{a b} -> {c; d} -> e", ["a>c", "a>d", "b>c", "b>d", "c>e", "d>e"]),
    ("subgraph cluster_0 { label=x; a -> b } a -> c", ["a>b", "a>c"]),
    ("subgraph s { a -> {b} } -> c", ["a>b", "a>c", "b>c"]),
    ("a:out:s -> b:in:_ [label=<<b>x</b>>, weight=2][color=red]", ["a>b"]),
    ('"a" + "b" -> c; "node" -> c', ["ab>c", "node>c"]),
    ('"two\\\nlines" -> <i>', ["twolines>i"]),
    ("a -> b; a -> b", ["a>b"]),
    ("rankdir = LR, a -> b; NODE [x=1] Edge [y=2]", ["a>b"]),
    ("\u00e9t\u00e9 -> -1.5", ["\u00e9t\u00e9>-1.5"]),
]


@pytest.mark.parametrize(("text", "found"), LANGUAGE)
def test_the_language(text: str, found: list[str]) -> None:
    assert edges(text) == found


def test_defaults_hold_for_what_comes_after_them_in_their_subgraph() -> None:
    workflow = parse_dot(
        """digraph { a; edge [size=5]; node [size="2e9", label="work\\nx"]
        subgraph x { node [size="3e9"] edge[size=7] b -> c [size=9] b -> d }
        e [size="4e9"] e -> a }"""
    )
    assert dict(zip(workflow.task_names, workflow.base_cost.tolist(), strict=True)) == {
        "a": pytest.approx(np.nan, nan_ok=True), "e": 4.0, "b": 3.0, "c": 3.0, "d": 3.0
    }  # fmt: skip
    assert workflow.item_size.tolist() == [9, 7, 5]
    assert [workflow.spec(t).category for t in range(5)] == [None, *["work"] * 4]
    assert workflow.notes == ("1 of 5 nodes have no size, so these tasks have no cost",)


def test_two_edges_with_data_are_two_items() -> None:
    assert parse_dot("digraph { a -> b [size=3] a -> b [size=4]}").item_size.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("label", "category"),
    [
        ("bwa", "bwa"),
        ('"sort_bam\\lx: 1"', "sort_bam"),
        ('"two words"', None),
        ('""', None),
        ("<<table><tr><td><b><font point-size='18'>all</font></b></td></tr></table>>", "all"),
    ],
)
def test_labels_that_are_names_of_rules_are_categories(label: str, category: str | None) -> None:
    assert parse_dot(f"digraph {{ 1 [label={label}] }}").spec(0).category == category


NODES = '1 [size="1"] 2 [size="1"]'
WRONG = [
    ("", "", "the file is empty"),
    ("// nothing\n", "", "the file is empty"),
    ("\ngraph G { a -- b }", "line 2", "the graph is undirected"),
    ("flow G {}", "line 1", "expected 'digraph', not 'flow'"),
    ("digraph G", "line 1", "expected '{', not the end of the file"),
    ("digraph G {\n}", "line 2", "no tasks"),
    ('digraph G {\n1 [size="1"]\n', "line 3", "expected a node, not the end of the file"),
    ('digraph G {\n1 [size="1"', "line 2", "expected an attribute, not the end of the file"),
    ('digraph G {\n1 [size="1', "line 2", "unexpected"),
    ("digraph G {\n1 [size]}", "line 2", "expected '=', not ']'"),
    ("digraph G {\n1 [size=]}", "line 2", "expected a value, not ']'"),
    ('digraph G {\n1 [size="fast"]}', "line 2", "must be a finite number"),
    ('digraph G {\n1 [size="-1"]}', "line 2", "that is not negative"),
    ('digraph G {\n1 [size="1e999"]}', "line 2", "must be a finite number"),
    ('digraph G {\n1 [size="nan"]}', "line 2", "must be a finite number"),
    ("digraph G {\n1 -> 2 [size=x]}", "line 2", "must be a finite number"),
    ("digraph G {\nnode [size=x] 1}", "line 2", "must be a finite number"),
    (f"digraph G {{ {NODES}\n1 [size=2] }}", "line 2", "the node '1' has two sizes, 1 and 2"),
    (f"digraph G {{ {NODES}\n1 -> 1 }}", "line 2", "depends on itself"),
    (f"digraph G {{ {NODES} 1 -> 2; 2 -> 1 }}", "", "cycle: 1 -> 2 -> 1"),
    (f"digraph G {{ {NODES}\n1 -- 2 }}", "line 2", "'--' has no direction"),
    ("digraph G {\na -> edge}", "line 2", "'edge' is a keyword: a node needs quotes"),
    ("digraph G {\nsubgraph x a}", "line 2", "expected '{', not 'a'"),
    ("digraph G {\n{a} [x=1]}", "line 2", "a subgraph has no attributes"),
    ("digraph G {\na [label=<x]}", "line 2", "never closed"),
    ('digraph G {\n"a" + b}', "line 2", "expected a text in quotes, not 'b'"),
    ("digraph G {\n" + "{" * 200, "line 2", "more than 100 subgraphs"),
    ('digraph G {\n"" [size=1]}', "line 2", "expected a node, not ''"),
    (f"digraph G {{ {NODES} }}\ndigraph", "line 2", "expected nothing more, not 'digraph'"),
]


@pytest.mark.parametrize(("text", "place", "problem"), WRONG)
def test_wrong_text_says_what_and_where(text: str, place: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_dot(text)
    assert caught.value.place == place
    assert problem in caught.value.problem
