"""Runs and terminals: closed ones, runs that begin without, looks at runs, and SIGTERM."""

from __future__ import annotations

import importlib
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import typer

import foreplan as library
from foreplan.cli.attach import attach
from foreplan.cli.shared.terminal import hear_signals
from foreplan.runs.home import RunHome, runs
from foreplan.runs.lock import driver, is_driven
from foreplan.runs.session import Session, Silent

from .commands import MAIN, foreplan, refuse
from .journals import forks, write_run
from .live_runs import LONG, Gate, chain, started, write_workflow

ON = ("--on", "local:1", "--no-history")
# the process leads its session, as in `ssh -t host foreplan run`, and the terminal is its own
OWN_TERMINAL = "import fcntl, signal, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
IGNORING = OWN_TERMINAL + "signal.signal(signal.SIGHUP, signal.SIG_IGN); "


@pytest.fixture
def folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TERM", "xterm")
    return folder


@contextmanager
def on_terminal(
    before: str, *arguments: str, cwd: Path
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command on a terminal of its own, and the other end of that."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", before + MAIN, *arguments],
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
        cwd=cwd,
    )
    os.close(its)
    with process:
        try:
            yield process, ours
        finally:
            process.kill()


def the_home(folder: Path) -> RunHome:
    (home,) = runs(folder)
    return home


def left_behind(home: RunHome) -> list[str]:
    """Processes of a run that live."""
    mark, found = f"FOREPLAN_RUN={home.path}".encode(), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                found.append(name)
        except OSError:  # gone, or another user's
            continue
    return found


@pytest.mark.parametrize("before", [OWN_TERMINAL, IGNORING], ids=["hears it", "ignores it"])
def test_a_closed_terminal_does_not_end_the_run(folder: Path, gate: Gate, before: str) -> None:
    write_workflow(folder, chain(folder, gate))
    with on_terminal(before, "run", "wf.yaml", *ON, cwd=folder) as (process, terminal):
        gate.wait()
        os.close(terminal)
        gate.open()
        assert process.wait(LONG) == 0
    assert (folder / "c.txt").read_text() == "1\n1\n1\n1\n"
    home = the_home(folder)
    lines = home.log.read_text().splitlines()
    assert lines[0].startswith(f"run {home.id}: 3 tasks on 1 processor")
    for number, task in enumerate("abc", 1):
        assert sum(f" {number}/3 {task} done on local" in line for line in lines) == 1
    assert lines[-2].startswith(f"run {home.id} finished: 3 tasks done in ")
    assert lines[-1] == f"more about it: foreplan report {home.id}"
    assert "\x1b" not in home.log.read_text()
    assert not left_behind(home)
    assert not is_driven(home)


def test_what_is_ignored_stays_so() -> None:
    def hang_up() -> None:
        raise AssertionError

    before = [signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM)]
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with hear_signals(hang_up):
            signal.raise_signal(signal.SIGHUP)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before[0])
    assert signal.getsignal(signal.SIGTERM) is before[1]


def test_the_library_leaves_hangups_alone(folder: Path) -> None:
    found = []

    class Looks(Silent):
        def began(self, session: Session) -> None:
            found.append((signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGTERM)))

    write_workflow(folder, {"a": {"run": "true"}})
    before = signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGTERM)
    assert library.run(folder / "wf.yaml", dir=folder, use_history=False, listener=Looks()).ok
    assert [hangup for hangup, _ in found] == [before[0]]
    assert signal.getsignal(signal.SIGTERM) is before[1]
    assert not the_home(folder).log.exists()


def test_terminated_in_good_order_and_resumed_without_a_terminal(folder: Path, gate: Gate) -> None:
    write_workflow(folder, chain(folder, gate))
    with started("run", "wf.yaml", *ON, cwd=folder) as command:
        gate.wait()
        command.process.terminate()
        command.wait_for("stopping: 1 running task will finish first; a second SIGTERM stops at")
        gate.open()
        code, printed = command.end()
    assert code == 130
    assert "stopped: 2 tasks done" in printed
    assert (folder / "b.txt").exists()
    begun = foreplan("resume", "last", "--detach", cwd=folder)
    assert begun.returncode == 0, begun.stderr
    ended = foreplan("attach", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert "finished: 3 tasks done" in ended.stdout


def test_a_run_without_a_terminal_is_looked_at(folder: Path, gate: Gate) -> None:
    write_workflow(folder, chain(folder, gate))
    begun = foreplan("run", "wf.yaml", *ON, "--detach", cwd=folder)
    assert begun.returncode == 0, begun.stderr
    gate.wait()
    home = the_home(folder)
    found = driver(home)
    assert found is not None
    assert begun.stdout.splitlines() == [
        f"run {home.id} continues without a terminal, driven by process {found[0]}",
        f"look at it: foreplan attach {home.id}",
        f"stop it: kill {found[0]}",
    ]
    assert os.getsid(found[0]) == found[0] != os.getsid(0)
    with started("attach", cwd=folder) as look:
        assert look.process.stdout is not None
        assert look.process.stdout.readline().startswith(f"run {home.id}: 3 tasks")
        look.interrupt()
        code, printed = look.end()
        assert code == 130
        assert printed.splitlines()[-1] == (
            f"run {home.id} is still running: `foreplan attach {home.id}` shows it again; "
            f"`kill {found[0]}` stops it"
        )
    # a is done already, and not to be made again
    assert "is making 'b.txt' and 1 more" in refuse("run", "wf.yaml", *ON, "--detach", cwd=folder)
    with started("attach", home.id[:8], cwd=folder) as look:
        assert look.process.stdout is not None
        first = look.process.stdout.readline()
        gate.open()
        printed = first + look.process.stdout.read()
        code, _ = look.end()
    assert (code, look.said) == (0, [])
    assert printed.splitlines()[-2].startswith(f"run {home.id} finished: 3 tasks done in ")
    assert printed == home.log.read_text()
    assert not left_behind(home)


def test_a_look_on_a_terminal_has_the_picture(folder: Path, gate: Gate) -> None:
    write_workflow(folder, chain(folder, gate))
    with started("run", "wf.yaml", *ON, cwd=folder) as command:
        gate.wait()
        with on_terminal(OWN_TERMINAL, "attach", cwd=folder) as (look, terminal):
            seen = b""
            while b"1 running" not in seen:
                seen += os.read(terminal, 1 << 16)
            gate.open()
            with suppress(OSError):  # which says that nobody has it open any more
                while True:
                    seen += os.read(terminal, 1 << 16)
            os.close(terminal)
            assert look.wait(LONG) == 0
        assert command.end()[0] == 0
    assert b"finished: 3 tasks done" in seen
    assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l")


@pytest.mark.parametrize(
    ("ended", "code", "said"),
    [
        ("finished", 0, "finished: 6 of 6 tasks done"),
        ("failed", 1, "failed: "),
        ("stopped", 130, "stopped: "),
        (None, 2, "has died: `foreplan resume "),
    ],
)
def test_a_look_at_a_run_that_is_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ended: str | None, code: int, said: str
) -> None:
    home = write_run(tmp_path, forks(4), ended=ended)
    with pytest.raises(typer.Exit) as caught:
        attach(None, tmp_path)
    assert caught.value.exit_code == code
    out, err = capsys.readouterr()
    assert out.startswith(f"run {home.id} is over\n")
    assert said in out + err


def test_what_cannot_begin_says_so(folder: Path) -> None:
    assert "nothing.yaml: cannot read it" in refuse("run", "nothing.yaml", "--detach", cwd=folder)
    assert refuse("run", "wf.yaml", "--detach", "--json", cwd=folder).startswith("--json with ")
    assert "there is no run 'last'" in refuse("attach", cwd=folder)
    assert not (folder / ".foreplan").exists()


def test_an_import_is_not_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lock would stay taken, and the next thread that imports something would wait for ever."""
    (tmp_path / "in_the_middle.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    whole = False
    with pytest.raises(KeyboardInterrupt), hear_signals(lambda: None):  # noqa: PT012
        whole = importlib.import_module("in_the_middle").whole
        signal.pause()  # until it is told again
    assert whole
