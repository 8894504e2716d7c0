"""Inputs that were forgotten are refused when a workflow is loaded."""

from __future__ import annotations

from typing import Any

import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.model.growth import grow
from foreplan.shell import check_listed

MAKE: dict[str, Any] = {
    "run": "echo 1 > table.csv",
    "outputs": ["table.csv", "parts/1.csv", "index/"],
}


def load(command: str, **fields: Any) -> Any:
    return foreplan.load({"tasks": {"make": MAKE, "use": {"run": command, **fields}}})


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("cat table.csv", "use names table.csv, which make makes: list it under inputs"),
        ("sort <table.csv >x", "use names table.csv, which make makes"),
        ("tool --in=table.csv", "use names table.csv, which make makes"),
        ("cat './table.csv'", "use names table.csv, which make makes"),
        ("echo 'open\ncat table.csv", "use names table.csv, which make makes"),
        ("set -x\n\ncat \\\n  table.csv", "use names table.csv, which make makes"),
        ("python3 -c 'print(open(\"table.csv\").read())'", None),
        ("cat *.csv", "use names *.csv, and so table.csv, which make makes"),
        ("cat */?.csv", "use names */?.csv, and so parts/1.csv, which make makes"),
        ("cat parts/[^2].csv", "use names parts/[^2].csv, and so parts/1.csv, which make makes"),
        ("cat **/?.csv", "use names **/?.csv, and so parts/1.csv, which make makes"),
        ("cat **/t*.csv", "use names **/t*.csv, and so table.csv, which make makes"),
        ("merge parts > all", "use names parts, and so parts/1.csv, which make makes"),
        ("cat mytable.csv table.csv.gz table 'x*'", None),
        ("cat [a-s]*.csv .*.csv p*/2.csv", None),
        ("cat # table.csv", None),
        ("sort -o table.csv x; grep -o table.csv x", None),
        ("echo 2 >> index/x", "use redirects output to index/x, which make makes: write to"),
        ("echo 2 >> table.csv", "use redirects output to table.csv, which make makes: write to"),
        (
            'cat "$FOREPLAN_DIR/table.csv"',
            "use names $FOREPLAN_DIR/table.csv, and so table.csv, which make",
        ),
        (
            "cat ${FOREPLAN_DIR}/parts/1.csv",
            "use names ${FOREPLAN_DIR}/parts/1.csv, and so parts/1.csv",
        ),
    ],
)
def test_what_another_task_makes_must_be_listed(command: str, said: str | None) -> None:
    if said is None:
        load(command)
        return
    with pytest.raises(InputError) as caught:
        load(command)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        ("cat table.csv", {"inputs": ["table.csv"]}),
        ("cat table.csv", {"ignores": ["table.csv"]}),
        ("cat *.csv", {"inputs": ["table.csv"]}),
        ("cat *.csv", {"ignores": ["*.csv"]}),
        ("mkdir -p parts; echo > parts/2.csv", {"outputs": ["parts/2.csv"]}),
        ("merge parts", {"inputs": ["parts/1.csv"]}),
        ("find parts", {"ignores": ["parts"]}),
        ("echo 2 > table.csv", {"ignores": ["table.csv"]}),
        ("test 1 > 2; [[ 1 > table.csv ]]", {"inputs": ["table.csv"]}),
        ("if a > b: pass", {"inputs": ["b"], "shell": "python3"}),
    ],
)
def test_what_is_listed_or_ignored_is_no_error(command: str, fields: dict[str, Any]) -> None:
    load(command, **fields)


def test_an_edge_is_no_input() -> None:
    tasks = {"make": MAKE, "use": {"run": "cat table.csv"}}
    with pytest.raises(InputError, match="use names"):
        foreplan.load({"tasks": tasks, "edges": [["make", "use"]]})


def test_a_shell_names_files_too() -> None:
    with pytest.raises(InputError, match="use names"):
        load("true", shell="run-in table.csv sh -c")


def test_own_outputs_and_outside_files_are_no_error() -> None:
    foreplan.load(
        {"tasks": {"make": {"run": "sort raw.csv > table.csv", "outputs": ["table.csv"]}}}
    )


def test_output_is_not_redirected_to_an_input() -> None:
    with pytest.raises(InputError, match=r"use redirects output to table.csv, which is one of its"):
        load("echo 2 >> table.csv", inputs=["table.csv"])


def test_a_file_of_an_added_task_is_read_by_a_pattern() -> None:
    work = foreplan.load(
        {"tasks": {"s": {"run": "x", "expand": True}, "use": {"run": "cat g.txt"}}}
    )
    more = foreplan.load({"tasks": {"p": {"run": "x", "outputs": ["g.txt"]}}})
    advice = r'as s adds p, write `after: \[s\]` and a pattern under inputs, such as "g\*\.txt"'
    with pytest.raises(InputError, match=advice):
        check_listed(grow(work, 0, more))
