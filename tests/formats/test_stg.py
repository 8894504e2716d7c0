"""STG: both ways to count, both variants, and what is wrong with a wrong text."""

import pytest

from foreplan.errors import InputError
from foreplan.formats.stg import dump_stg, parse_stg

PLAIN = """\
   2
 0 0 0
 1 5 1 0
 2 7 1 0
 3 0 2 1 2
# a comment
"""
WITH_COSTS = """\
4
0 0 0
1 5.5 1 0 3
2 7 1 0 4
3 0 2 1 5 2 6
"""


def test_the_number_may_leave_out_the_dummies() -> None:
    workflow = parse_stg(PLAIN, "small")
    assert workflow.name == "small"
    assert workflow.task_names == ("0", "1", "2", "3")
    assert workflow.base_cost.tolist() == [0, 5, 7, 0]
    assert workflow.item_producer.tolist() == [0, 0, 1, 2]
    assert workflow.use_task.tolist() == [1, 2, 3, 3]
    assert workflow.item_size.tolist() == [0, 0, 0, 0]
    assert dump_stg(workflow).splitlines() == ["2", "0 0 0", "1 5 1 0", "2 7 1 0", "3 0 2 1 2"]


def test_communication_costs_are_told_by_the_number_of_fields() -> None:
    workflow = parse_stg(WITH_COSTS)
    assert workflow.base_cost.tolist() == [0, 5.5, 7, 0]
    assert workflow.item_size.tolist() == [3, 4, 5, 6]
    assert dump_stg(workflow).splitlines()[1:] == WITH_COSTS.splitlines()[1:]


def test_a_graph_without_dummies_counts_all_its_tasks() -> None:
    workflow = parse_stg("2\n5 3 0\n9 4 1 5\n")
    assert workflow.task_names == ("5", "9")
    assert dump_stg(workflow) == "2\n0 3 0\n1 4 1 0\n"


def test_windows_line_ends() -> None:
    assert parse_stg(PLAIN.replace("\n", "\r\n")).n_tasks == 4


WRONG = [
    ("", "", "the file is empty"),
    ("# only a comment", "", "the file is empty"),
    ("0\n", "line 1", "no tasks"),
    ("1 2\n", "line 1", "the number of tasks alone"),
    ("many\n", "line 1", "must be a whole number, not 'many'"),
    ("9" * 30, "line 1", "must be a whole number"),
    ("3\n0 1 0\n", "line 2", "3 tasks are announced (or 5 with the two dummies), but 1 are there"),
    ("1\n0 1\n", "line 2", "expected: id, time"),
    ("1\n-1 1 0\n", "line 2", "the id must be a whole number, not '-1'"),
    ("1\n0 x 0\n", "line 2", "the time must be a finite number"),
    ("1\n0 -1 0\n", "line 2", "that is not negative"),
    ("1\n0 nan 0\n", "line 2", "the time must be a finite number"),
    ("1\n0 1e999 0\n", "line 2", "the time must be a finite number"),
    ("2\n0 1 0\n0 1 0\n", "line 3", "the task 0 is given twice"),
    ("2\n0 1 0\n\n1 1 2 0\n", "line 4", "2 predecessors are announced, but 1 fields follow"),
    ("2\n0 1 0\n1 1 1 7\n", "line 3", "the predecessor 7 is not a task"),
    ("2\n0 1 0\n1 1 1 1\n", "line 3", "depends on itself"),
    ("2\n0 1 0\n1 1 2 0 0\n", "line 3", "the predecessor 0 is given twice"),
    ("2\n0 1 0\n1 1 1 0 -3\n", "line 3", "a communication cost must be"),
    ("3\n0 1 0\n1 1 1 0\n2 1 1 0 4\n", "line 4", "this line and line 3 differ"),
    ("2\n0 1 1 1\n1 1 1 0\n", "", "cycle: 0 -> 1 -> 0"),
]


@pytest.mark.parametrize(("text", "place", "problem"), WRONG)
def test_wrong_text_says_what_and_where(text: str, place: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_stg(text)
    assert caught.value.place == place
    assert problem in caught.value.problem
