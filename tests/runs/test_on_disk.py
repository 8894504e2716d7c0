"""Nothing begins whose reasons are not on disk."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.durable import sync
from foreplan.executors.processes import kill_left_behind
from foreplan.runs.home import runs
from foreplan.runs.journal import JournalError

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
