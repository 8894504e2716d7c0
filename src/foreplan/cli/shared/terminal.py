"""Runs without a terminal: `--detach`, and terminals that are closed while a run goes on."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

import typer

from foreplan.errors import InputError
from foreplan.files import near

INTERRUPTED = 130
COULD_NOT = 2


def command(name: str, run: str, directory: Path, *more: str) -> str:
    """A command about a run, or about a workflow's file, as it must be typed here."""
    words = ["foreplan", name, run, *more]
    try:
        if directory.absolute() != Path.cwd():
            words += ["--dir", near(directory)]
    except OSError:
        words += ["--dir", os.fspath(directory)]
    return shlex.join(words)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """As Ctrl-C does, but not within an import, whose lock would stay taken: soon after it."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            again = threading.Timer(0.01, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


@contextmanager
def hear_signals(hung_up: Callable[[], None]) -> Iterator[None]:
    """A closed terminal does not end this, and SIGTERM does as Ctrl-C; what is ignored stays so."""

    def hear(number: int, frame: FrameType | None) -> None:
        hung_up()

    before = []
    if threading.current_thread() is threading.main_thread():
        stops = ((signal.SIGINT, _interrupt), (signal.SIGTERM, _interrupt))
        wanted = ((signal.SIGHUP, hear), *stops)
        before = [
            (number, signal.signal(number, handler))
            for number, handler in wanted
            if signal.getsignal(number) is not signal.SIG_IGN  # as by nohup
        ]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def leave_terminal(directory: Path, as_json: bool) -> Callable[[str], None]:
    """Go on in a process without a terminal; the one that was started waits until a run has begun.

    Whoever goes on calls what is given back, with the run's id. Called before threads are started.
    """
    if as_json:
        raise InputError(
            "it would be lost: once the run has ended, see `foreplan report --json`",
            place="--json with --detach",
        )
    from foreplan.executors.processes import OF_ATTEMPT, OF_RUN
    from foreplan.runs.home import check_system

    check_system()
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        _wait_for(child, reader, directory)
    os.close(reader)
    os.setsid()
    for name in (OF_RUN, OF_ATTEMPT):  # detached by a task, it is not part of that task
        os.environ.pop(name, None)

    def begun(run: str) -> None:
        with open(writer, "w") as pipe:
            pipe.write(run)

    return begun


def _wait_for(child: int, reader: int, directory: Path) -> NoReturn:
    """Say that the run has begun; if it could not, it has said why itself."""
    try:
        with open(reader) as pipe:
            run = pipe.read()
    except KeyboardInterrupt:
        os.kill(child, signal.SIGINT)  # it has a session of its own, so it has heard nothing
        os.waitpid(child, 0)
        raise typer.Exit(INTERRUPTED) from None
    if run:
        print(f"run {run} continues without a terminal, driven by process {child}")
        print(f"look at it: {command('attach', run, directory)}")
        print(f"stop it: kill {child}")
        raise typer.Exit
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        print(
            f"foreplan: error: the run was killed by signal {-code} at its start", file=sys.stderr
        )
    raise typer.Exit(code if code > 0 else COULD_NOT)
