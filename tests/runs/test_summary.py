"""A run on one line, from whatever is left of its journal."""

from pathlib import Path
from typing import Any

import pytest

from foreplan.runs.home import RunHome
from foreplan.runs.journal import RULES, Journal
from foreplan.runs.lock import RunLock
from foreplan.runs.summary import summarise

HEADER = {
    "type": "run",
    "rules": RULES,
    "name": "etl",
    "created": "2025-06-01T12:00:00",
    "tasks": 4,
}


@pytest.fixture
def home(tmp_path: Path) -> RunHome:
    return RunHome.create(tmp_path, "etl")


def event(kind: str, which: int, time: float) -> dict[str, Any]:
    return {"t": "event", "kind": kind, "which": which, "time": time, "value": 0.0}


DONE = [event("task_finished", n, float(n)) for n in range(3)]
OTHERS: list[dict[str, Any]] = [
    event("task_failed", 7, 2.5),
    {"t": "plan", "time": 3.5, "plan": {"a": "int32"}},
    {"t": "from the future", "kind": "task_finished", "time": "yesterday"},
    {"t": "note", "text": '"t":"event","kind":"task_finished","t":"end"'},
    {"no": "type"},
]
END = {"t": "end", "status": "finished", "time": 9.5}
RESUMED = {"t": "resumed", "time": 9.75}


def begun(home: RunHome, entries: list[dict[str, Any]], **more: Any) -> None:
    with Journal.create(home.journal, {**HEADER, "id": home.id, **more}) as journal:
        journal.append(entries)


@pytest.mark.parametrize(
    ("entries", "status", "done", "seconds"),
    [
        ([], "interrupted", 0, None),
        (DONE, "interrupted", 3, 2.0),
        (DONE + OTHERS, "interrupted", 3, 3.5),
        ([*DONE, END], "finished", 4, 9.5),
        ([*DONE, {**END, "status": "failed"}], "failed", 3, 9.5),
        ([*DONE, {**END, "status": "stopped"}, *OTHERS], "stopped", 3, 3.5),
        ([*DONE, {**END, "status": "stopped"}, RESUMED], "interrupted", 3, 9.75),
        ([*DONE, {**END, "status": "stopped"}, RESUMED, *DONE, END], "finished", 4, 9.5),
        ([*DONE, {**END, "status": ["odd"], "time": "noon"}], "interrupted", 3, 2.0),
        (DONE * 2, "interrupted", 4, 2.0),
    ],
)
def test_states(
    home: RunHome, entries: list[dict[str, Any]], status: str, done: int, seconds: float | None
) -> None:
    begun(home, entries)
    summary = summarise(home)
    assert (summary.id, summary.name, summary.created) == (home.id, "etl", HEADER["created"])
    assert (summary.status, summary.done, summary.total) == (status, done, 4)
    assert summary.seconds == seconds
    assert summary.problem is None


def test_driven(home: RunHome) -> None:
    begun(home, DONE)
    with RunLock(home), home.journal.open("ab") as file:
        assert summarise(home).status == "running"
        file.write(b"a line that is being writ")
        file.flush()
        assert summarise(home).problem is None
    summary = summarise(home)
    assert (summary.status, summary.done, summary.problem) == ("interrupted", 3, "line 5 is cut")


def test_a_poor_header(home: RunHome) -> None:
    begun(home, DONE, name=None, created=5, tasks="many")
    summary = summarise(home)
    assert (summary.name, summary.created, summary.total) == (home.id, None, None)
    assert summary.done == 3


@pytest.mark.parametrize("raw", [None, b"", b"half", b"00000000 {}\n"])
def test_unreadable(home: RunHome, raw: bytes | None) -> None:
    if raw is not None:
        home.journal.write_bytes(raw)
    summary = summarise(home)
    assert summary.status == "unreadable"
    assert summary.problem
    with RunLock(home):
        assert summarise(home).status == "running"


def test_a_journal_of_other_rules(home: RunHome) -> None:
    begun(home, DONE, rules=RULES + 1)
    summary = summarise(home)
    assert (summary.status, summary.problem) == (
        "unreadable",
        "another version of foreplan wrote it",
    )
