"""The foreplan workflow file: what it means, and what is wrong with a wrong one."""

import math
from typing import Any

import numpy as np
import pytest

from foreplan.errors import InputError
from foreplan.formats import load, workflow_from_dict, workflow_to_dict
from foreplan.model import EXTERNAL, Item, Workflow

DESIGN_EXAMPLE: dict[str, object] = {
    "name": "example",
    "tasks": {
        "n1": {"cost": {"r1": 14, "r2": 16, "r3": 9}},
        "n2": {"cost": 20, "category": "align"},
        "n3": {
            "run": "python split.py big.csv part.csv",
            "inputs": ["big.csv"],
            "outputs": ["part.csv"],
        },
    },
    "edges": [["n1", "n2", 18]],
    "files": {"big.csv": 200000000, "part.csv": 1000000},
}


def test_the_example_of_the_design() -> None:
    workflow = workflow_from_dict(DESIGN_EXAMPLE)
    assert workflow.name == "example"
    assert workflow.task_names == ("n1", "n2", "n3")
    assert np.array_equal(workflow.base_cost, [np.nan, 20, np.nan], equal_nan=True)
    assert {p: c[0] for p, c in workflow.processor_cost.items()} == {"r1": 14, "r2": 16, "r3": 9}
    assert np.isnan(workflow.processor_cost["r1"][1:]).all()
    assert workflow.item_names == (None, "big.csv", "part.csv")
    assert workflow.item_size.tolist() == [18, 200000000, 1000000]
    assert workflow.item_producer.tolist() == [0, EXTERNAL, 2]
    assert workflow.use_task.tolist() == [1, 2]
    assert workflow.spec(1).category == "align"
    assert workflow.spec(2).run == "python split.py big.csv part.csv"
    assert workflow_to_dict(workflow) == DESIGN_EXAMPLE


def test_a_shared_file_is_one_item() -> None:
    tasks = {"a": {"outputs": ["f"]}, "b": {"inputs": ["f"]}, "c": {"inputs": ["f"]}}
    workflow = workflow_from_dict({"tasks": tasks})
    assert workflow.n_items == 1
    assert workflow.item_size.tolist() == [0]
    assert workflow.use_task.tolist() == [1, 2]


def test_an_unused_file_is_left_out() -> None:
    assert workflow_from_dict({"tasks": {"a": None}, "files": {"f": 1}}).n_items == 0


def test_integers_are_names_too() -> None:
    workflow = workflow_from_dict({"tasks": {1: {"cost": {7: 2}}, "2": None}, "edges": [[1, 2]]})
    assert workflow.task_names == ("1", "2")
    assert list(workflow.processor_cost) == ["7"]
    assert workflow.item_size.tolist() == [0]


def test_empty_sections_are_absent_ones() -> None:
    workflow = workflow_from_dict({"tasks": {"a": {}}, "edges": None, "files": None})
    assert (workflow.n_tasks, workflow.n_items) == (1, 0)


TWO: dict[str, Any] = {"a": {}, "b": {}}
WRONG: list[tuple[Any, str, str]] = [
    ([], "", "expected a mapping, not []"),
    ({}, "", "'tasks' is missing"),
    ({"tasks": {}}, "tasks", "no tasks"),
    ({"tasks": None}, "tasks", "no tasks"),
    ({"tasks": ["a"]}, "tasks", "expected a mapping, not ['a']"),
    ({"processors": {"r1": None}}, "", "this is a platform, not a workflow"),
    ({"tasks": TWO, "edge": []}, "", "unknown field 'edge' (did you mean 'edges'?)"),
    ({"tasks": {"a": {"costs": 3}}}, "tasks.a", "did you mean 'cost'?"),
    ({"tasks": {"a": {3: 3}}}, "tasks.a", "unknown field '3'"),
    ({"tasks": {"a": 3}}, "tasks.a", "expected the fields of a task, not 3"),
    ({"tasks": {True: {}}}, "tasks", "not true; if that is the name, quote it"),
    ({"tasks": {1.5: {}}}, "tasks", "not 1.5; if that is the name, quote it"),
    ({"tasks": {None: {}}}, "tasks", "not null; if that is the name, quote it"),
    ({"tasks": {"": {}}}, "tasks", "must not be empty"),
    ({"tasks": {"1": {}, 1: {}}}, "tasks", "'1' is given twice"),
    ({"tasks": {"\ud800": {}}}, "tasks", "half of a surrogate pair"),
    ({"tasks": {10**5000: {}}}, "tasks", "huge number"),
    ({"tasks": TWO, "name": 1.5}, "name", "quote it"),
    ({"tasks": {"a": {"cost": "3"}}}, "tasks.a.cost", "expected a number, not '3'"),
    ({"tasks": {"a": {"cost": True}}}, "tasks.a.cost", "expected a number, not true"),
    ({"tasks": {"a": {"cost": None}}}, "tasks.a.cost", "expected a number, not null"),
    ({"tasks": {"a": {"cost": -1}}}, "tasks.a.cost", "must not be negative, but is -1"),
    ({"tasks": {"a": {"cost": math.nan}}}, "tasks.a.cost", "expected a finite number, not nan"),
    ({"tasks": {"a": {"cost": math.inf}}}, "tasks.a.cost", "expected a finite number, not inf"),
    ({"tasks": {"a": {"cost": 10**400}}}, "tasks.a.cost", "the number is too large"),
    ({"tasks": {"a": {"cost": 10**5000}}}, "tasks.a.cost", "the number is too large"),
    ({"tasks": {"a": {"cost": {}}}}, "tasks.a.cost", "names no processor"),
    ({"tasks": {"a": {"cost": {"r1": "x"}}}}, "tasks.a.cost.r1", "expected a number, not 'x'"),
    ({"tasks": {"a": {"cost": {"1": 1, 1: 2}}}}, "tasks.a.cost", "'1' is given twice"),
    ({"tasks": {"a": {"category": 3}}}, "tasks.a.category", "expected a string, not 3"),
    ({"tasks": {"a": {"run": ["ls"]}}}, "tasks.a.run", "expected a command, not ['ls']"),
    ({"tasks": {"a": {"inputs": None}}}, "tasks.a.inputs", "not null; for none, leave it out"),
    ({"tasks": {"a": {"inputs": ["f", "f"]}}}, "tasks.a.inputs", "'f' is listed twice"),
    (
        {"tasks": {"a": {"outputs": ["f"]}, "b": {"outputs": ["f"]}}},
        "tasks.b.outputs",
        "'f' is made by both 'a' and 'b'",
    ),
    (
        {"tasks": {"a": {"inputs": ["f"], "outputs": ["f"]}}},
        "tasks.a.inputs",
        "reads its own output 'f'",
    ),
    ({"tasks": TWO, "edges": {"a": "b"}}, "edges", "expected a list"),
    ({"tasks": TWO, "edges": ["ab"]}, "edges[0]", "expected a list, not 'ab'"),
    ({"tasks": TWO, "edges": [["a"]]}, "edges[0]", "expected [from, to, volume], not ['a']"),
    ({"tasks": TWO, "edges": [["a", "b", 1, 2]]}, "edges[0]", "expected [from, to, volume]"),
    ({"tasks": TWO, "edges": [["a", "b"], ["a", "n3"]]}, "edges[1]", "unknown task 'n3'"),
    ({"tasks": TWO, "edges": [["a", None]]}, "edges[0]", "quote it"),
    ({"tasks": TWO, "edges": [["a", "a"]]}, "edges[0]", "'a' depends on itself"),
    ({"tasks": TWO, "edges": [["a", "b"], ["a", "b", 2]]}, "edges[1]", "given twice"),
    ({"tasks": TWO, "edges": [["a", "b", -2]]}, "edges[0]", "must not be negative"),
    ({"tasks": TWO, "edges": [["a", "b", math.nan]]}, "edges[0]", "expected a finite number"),
    ({"tasks": TWO, "edges": [["a", "b"], ["b", "a"]]}, "tasks.a", "cycle: a -> b -> a"),
    ({"tasks": TWO, "files": ["f"]}, "files", "expected a mapping"),
    ({"tasks": TWO, "files": {"f": -1}}, "files.f", "must not be negative"),
    ({"tasks": TWO, "files": {"f": False}}, "files.f", "expected a number, not false"),
    ({"tasks": TWO, "files": {"1": 1, 1: 1}}, "files", "'1' is given twice"),
]


@pytest.mark.parametrize(("content", "place", "problem"), WRONG)
def test_wrong_content_says_what_and_where(content: Any, place: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        workflow_from_dict(content)
    assert caught.value.place == place
    assert problem in caught.value.problem


def test_messages_stay_short() -> None:
    long = "x" * 100_000
    for content in (
        {"tasks": {"a": {long: 1}}},
        {"tasks": {long: {"cost": long}}},
        {"tasks": {"a": {}}, "edges": [["a", long]]},
        {"tasks": {"a": [[[[long] * 1000]]]}},
    ):
        with pytest.raises(InputError) as caught:
            load(content)
        assert len(str(caught.value)) < 1000


def test_control_characters_do_not_reach_the_terminal() -> None:
    with pytest.raises(InputError) as caught:
        load({"tasks": {"a\x1b[2J\n": {"cost": -1}}})
    assert str(caught.value).isprintable()


def test_too_many_processors_in_the_costs() -> None:
    tasks = {f"t{i}": {"cost": {f"r{i}": 1}} for i in range(12_000)}
    with pytest.raises(InputError, match="too many processors"):
        load({"tasks": tasks})


def test_nameless_items_that_are_no_edges_become_files() -> None:
    items = [
        Item(1.0, 0, (1,)),
        Item(2.0, 0, (1,)),  # a second one between the same tasks
        Item(3.0, 0, (1, 2)),
        Item(4.0, None, (2,)),
        Item(5.0, 0, ()),
        Item(6.0, 0, (2,), "a -> b"),  # the name that would be invented
    ]
    workflow = Workflow.from_items("", ["a", "b", "c"], [1, 1, 1], items)
    again = workflow_from_dict(workflow_to_dict(workflow))
    assert again.item_size.tolist() == workflow.item_size.tolist()
    assert again.item_producer.tolist() == workflow.item_producer.tolist()
    assert again.use_ptr.tolist() == workflow.use_ptr.tolist()
    assert again.use_task.tolist() == workflow.use_task.tolist()
    assert again.item_names is not None
    assert len(set(again.item_names)) == 6


def test_a_cost_of_both_kinds_cannot_be_written() -> None:
    both = Workflow.from_items("", ["a"], [1.0], [], {"r1": np.array([2.0])})
    with pytest.raises(InputError, match=r"tasks\.a\.cost: .* not both"):
        workflow_to_dict(both)
