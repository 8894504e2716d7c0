"""Real runs of the command in a process of its own, which waits for the test and is waited for."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from .commands import MAIN, foreplan

LONG = 120.0  # seconds: then something hangs, and is killed so that the test fails


class Gate:
    """A task stops here, says so, and goes on when the test lets it."""

    def __init__(self, folder: Path) -> None:
        self._here, self._go = folder / "here", folder / "go"
        for path in (self._here, self._go):
            os.mkfifo(path)
        # both ends are kept open, so that opening never waits
        self._ends = [os.open(path, os.O_RDWR) for path in (self._here, self._go)]

    @property
    def command(self) -> str:
        """What the task runs."""
        return f"echo here > {self._here}; read answer < {self._go}"

    def wait(self) -> None:
        """Until the task is there."""
        ready, _, _ = select.select([self._ends[0]], [], [], LONG)
        assert ready, "the task never came"
        assert os.read(self._ends[0], 5) == b"here\n"

    def open(self) -> None:
        """Let the task go on."""
        os.write(self._ends[1], b"go\n")

    def close(self) -> None:
        """Let go of the files."""
        for end in self._ends:
            os.close(end)


class Command:
    """The command under way."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []  # on standard error

    def wait_for(self, text: str) -> str:
        """The line of standard error that has this text."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line.rstrip("\n"))
            if text in line:
                return line
        raise AssertionError(f"{text!r} was never said, but {self.said}")

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str]:
        """The exit code, and what it printed."""
        printed, rest = self.process.communicate()
        self.said += rest.splitlines()
        return self.process.returncode, printed


@contextmanager
def started(*arguments: str | Path, cwd: Path) -> Iterator[Command]:
    """The command, started; it does not outlive the test."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
    )
    watchdog = threading.Timer(LONG, process.kill)
    watchdog.start()
    try:
        with process:
            try:
                yield Command(process)
            finally:
                process.kill()
    finally:
        watchdog.cancel()
        watchdog.join()


def write_workflow(folder: Path, tasks: dict[str, Any], name: str = "small") -> None:
    """The tasks as wf.yaml."""
    (folder / "wf.yaml").write_text(yaml.safe_dump({"name": name, "tasks": tasks}, sort_keys=False))


def chain(folder: Path, gate: Gate | None = None) -> dict[str, Any]:
    """Three tasks in a row that note in `ran` that they ran; the second may stop at a gate."""
    note = folder / "ran"
    middle = "" if gate is None else f"{gate.command}; "
    return {
        "a": {"run": f"echo a >> {note}; echo 1 > a.txt", "outputs": ["a.txt"], "category": "x"},
        "b": {
            "run": f"echo b >> {note}; {middle}cat a.txt a.txt > b.txt",
            "inputs": ["a.txt"],
            "outputs": ["b.txt"],
            "category": "x",
        },
        "c": {
            "run": f"echo c >> {note}; cat b.txt b.txt > c.txt",
            "inputs": ["b.txt"],
            "outputs": ["c.txt"],
        },
    }


def the_id(folder: Path) -> str:
    """The id of the only run."""
    (home,) = (folder / ".foreplan" / "runs").iterdir()
    return home.name


def failed(*arguments: str | Path, cwd: Path) -> tuple[str, str]:
    """What a command prints that exits with 1: output and messages."""
    done = foreplan(*arguments, cwd=cwd)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr
