"""Runs whose tasks are held to what they ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.executors.control_groups import NOT_WANTED

HUGE = "python3 -c 'bytearray(150 * 10**6)' && echo $FOREPLAN_CORES $FOREPLAN_MEMORY > made"


class Told:
    """A listener that keeps what is said."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def began(self, session: Any) -> None: ...

    def happened(self, session: Any, events: list[Any]) -> None: ...

    def said(self, message: str) -> None:
        self.words.append(message)

    def over(self, session: Any, outcome: Any) -> None: ...


def test_a_task_that_needs_more_memory_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try with twice as much, and the way in which it is held is said once."""
    monkeypatch.setenv(NOT_WANTED, "no")
    task = {"cores": 2, "memory": "50MB", "run": HUGE, "outputs": ["made"]}
    told = Told()
    outcome = foreplan.run(
        {"tasks": {"a": task}}, "local:cores=2,memory=1GB", dir=tmp_path, limit=True, listener=told
    )
    assert outcome.status == "finished"
    assert (tmp_path / "made").read_text() == "2 200000000\n"
    assert len(outcome.run.attempts.task) == 3
    assert len([line for line in told.words if "RLIMIT_DATA" in line]) == 1


def test_a_task_that_fits_on_no_machine_is_named_before_anything_begins(tmp_path: Path) -> None:
    task = {"memory": "2GB", "run": "true"}
    with pytest.raises(InputError, match="'a' fits on no host: it needs 1 core and 2 GB"):
        foreplan.run({"tasks": {"a": task}}, "local:cores=2,memory=1GB", dir=tmp_path)
    assert not list(tmp_path.glob(".foreplan/runs/*/journal.jsonl"))
