"""Nothing begins whose reasons are not on disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.durable import sync
from foreplan.executors.processes import kill_left_behind
from foreplan.runs.home import runs
from foreplan.runs.journal import JournalError, JournalRemovedError

CHAIN = {
    "a": {"run": "touch $FOREPLAN_DIR/a.begun; echo 1 > a", "outputs": ["a"]},
    "b": {"run": "touch $FOREPLAN_DIR/b.begun; cat a > b", "inputs": ["a"], "outputs": ["b"]},
}


@pytest.fixture(autouse=True)
def _own_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "history"))


class Disk:
    """Notes which commands have begun when it is asked to write; may fail once `a` is made."""

    def __init__(self, data: Path, fails: bool = False) -> None:
        self.data, self.fails, self.begun = data, fails, list[list[str]]()

    def sync(self, descriptor: int) -> None:
        sync(descriptor)
        self.begun.append([task for task in CHAIN if (self.data / f"{task}.begun").exists()])
        if self.fails and (self.data / "a").exists():
            raise OSError(errno.EIO, "input/output error")


def test_commands_begin_once_their_reasons_are_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path)
    monkeypatch.setattr("foreplan.runs.journal.sync", disk.sync)
    outcome = foreplan.run({"name": "t", "tasks": CHAIN}, "local:2", dir=tmp_path)
    assert outcome.ok
    check_run(outcome.run)
    assert disk.begun[0] == []
    assert ["a"] in disk.begun


def test_nothing_begins_if_they_cannot_be_put_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path, fails=True)
    monkeypatch.setattr("foreplan.runs.journal.sync", disk.sync)
    with pytest.raises(JournalError, match="input/output error"):
        foreplan.run({"name": "t", "tasks": CHAIN}, "local:2", dir=tmp_path)
    assert disk.begun[-1] == ["a"]
    assert not (tmp_path / "b.begun").exists()
    assert kill_left_behind(str(runs(tmp_path)[0].path)) == []


@pytest.mark.parametrize("task", ["a", "b"])
def test_somebody_removes_the_home_of_a_run(tmp_path: Path, task: str) -> None:
    tasks = {name: dict(fields) for name, fields in CHAIN.items()}
    tasks[task]["run"] = f"rm -rf $FOREPLAN_DIR/.foreplan; {tasks[task]['run']}"
    with pytest.raises(JournalRemovedError, match=r"deleted the journal.*`foreplan run` does what"):
        foreplan.run({"name": "t", "tasks": tasks}, "local:2", dir=tmp_path)
    assert foreplan.run({"name": "t", "tasks": CHAIN}, "local:2", dir=tmp_path).ok


def test_a_busy_file_does_not_stop_the_cleaning_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS, where what somebody has open is renamed, and cannot be removed."""
    unlink = os.unlink

    def busy(path: str, **more: int | None) -> None:
        if ".nfs" in str(path):
            raise OSError(errno.EBUSY, "device or resource busy")
        unlink(path, **more)

    monkeypatch.setattr(os, "unlink", busy)
    attempts = "$(dirname $FOREPLAN_RUN/x)/attempts"
    tasks = {"a": {**CHAIN["a"], "run": f"touch {attempts}/.nfs01; echo 1 > a"}}
    assert foreplan.run({"name": "t", "tasks": tasks}, "local:1", dir=tmp_path).ok
    assert [*tmp_path.glob(".foreplan/runs/*/attempts/.nfs01")]
