"""Nothing begins whose reasons are not on disk, although shells come up while they get there."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import weft
from weft.executors.processes import kill_left_behind
from weft.journal import durable
from weft.journal.durable import JournalError
from weft.journal.log import read
from weft.journal.places import RunHome, runs
from weft.model.check_run import check_run

LIMIT = 60.0  # seconds
CHAIN = {
    "a": {"run": "touch $WEFT_DIR/a.begun; echo 1 > a", "outputs": ["a"]},
    "b": {"run": "touch $WEFT_DIR/b.begun; cat a > b", "inputs": ["a"], "outputs": ["b"]},
}


@pytest.fixture(autouse=True)
def _own_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "history"))


def shell_waits(data: Path, attempt: int) -> bool:
    """Whether the shell of an attempt is up and waits."""
    mark = f"WEFT_ATTEMPT={attempt}".encode(), f"WEFT_DIR={os.path.realpath(data)}".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            given = Path("/proc", pid, "environ").read_bytes().split(b"\0")
            if {*mark} <= {*given}:
                return Path("/proc", pid, "wchan").read_text().endswith("pipe_read")
        except OSError:
            continue
    return False


def wait_for_shell(data: Path, attempt: int) -> None:
    end = time.monotonic() + LIMIT
    while not shell_waits(data, attempt):
        assert time.monotonic() < end, "no shell comes up"
        time.sleep(0.001)


class Slow:
    """A disk that is done only when the shell of the next attempt is up."""

    def __init__(self, data: Path, fails_at: int | None = None) -> None:
        self.data, self.fails_at, self.seen = data, fails_at, list[tuple[int, list[str]]]()

    def sync(self, descriptor: int) -> None:
        durable.sync(descriptor)
        for attempt, name in enumerate(CHAIN):
            if len(self.seen) == attempt and (attempt == 0 or (self.data / "a").exists()):
                wait_for_shell(self.data, attempt)
                begun = [task for task in CHAIN if (self.data / f"{task}.begun").exists()]
                self.seen.append((attempt, begun))
                if self.fails_at == attempt:
                    raise OSError(errno.EIO, "input/output error")
                assert name not in begun
                return


def test_commands_begin_once_their_reasons_are_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Slow(tmp_path)
    monkeypatch.setattr("weft.journal.log.sync", disk.sync)
    outcome = weft.run({"name": "t", "tasks": CHAIN}, "local:2", dir=tmp_path)
    assert outcome.ok
    check_run(outcome.run)
    assert disk.seen == [(0, []), (1, ["a"])]


def test_nothing_begins_if_they_cannot_be_put_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Slow(tmp_path, fails_at=1)
    monkeypatch.setattr("weft.journal.log.sync", disk.sync)
    with pytest.raises(JournalError, match="input/output error"):
        weft.run({"name": "t", "tasks": CHAIN}, "local:2", dir=tmp_path)
    assert disk.seen == [(0, []), (1, ["a"])]
    assert not (tmp_path / "b.begun").exists()
    assert kill_left_behind(str(runs(tmp_path)[0].path)) == []


_KILLED = """
import os, signal, sys
from pathlib import Path
import weft, weft.journal.log
sys.path.insert(0, {tests!r})
from live.test_on_disk import CHAIN, Slow

class Last(Slow):
    def sync(self, descriptor):
        super().sync(descriptor)
        if len(self.seen) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

weft.journal.log.sync = Last(Path({data!r})).sync
weft.run({{"name": "t", "tasks": CHAIN}}, "local:2", dir={data!r})
"""


def test_killed_while_a_shell_waits(tmp_path: Path) -> None:
    """The shell ends by itself, without having begun; and the run can be resumed."""
    script = _KILLED.format(tests=str(Path(__file__).parents[1]), data=str(tmp_path))
    killed = subprocess.run([sys.executable, "-c", script], timeout=LIMIT, check=False)
    assert killed.returncode == -signal.SIGKILL
    end = time.monotonic() + LIMIT
    while shell_waits(tmp_path, 1):
        assert time.monotonic() < end, "the shell waits on"
        time.sleep(0.001)
    assert not (tmp_path / "b.begun").exists()
    home = runs(tmp_path)[0]
    outcome = weft.run({"name": "t", "tasks": CHAIN}, resume=home.id, dir=tmp_path)
    assert outcome.ok
    assert (tmp_path / "b").read_text() == "1\n"
    assert read(RunHome(outcome.home).journal).damage is None
