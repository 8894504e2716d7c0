"""`foreplan logs`: what a task has printed, and what it prints now."""

from __future__ import annotations

import math
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreplan.cli.shared.options import RunDirectory, TaskQuestion, TaskWords
from foreplan.cli.shared.streams import reader_left
from foreplan.cli.shared.tables import say
from foreplan.errors import ForeplanError
from foreplan.files import clean, near
from foreplan.quantities import duration

if TYPE_CHECKING:
    from foreplan.runs.home import RunHome
    from foreplan.runs.logs import Printed
    from foreplan.runs.replay import Replayed

TICK = 0.25  # seconds between two looks
SHARE = 10.0  # to look at the whole journal takes at most so small a share of the time
CHUNK = 1 << 20


def logs(
    words: TaskWords,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="Go on until the attempt ends; wait for it if none runs yet."
        ),
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", "-a", help="Of all attempts; else of the last one.")
    ] = False,
    directory: RunDirectory = Path(),
) -> None:
    """Print what a task has printed: stdout and stderr of its last attempt, or of all.

    The run may be under way, driven by another process: with `-f` what the task prints appears as
    it comes. Ctrl-C ends the look, not the run. With a workflow's file, it is the last run of that
    file. If the task was up to date then, it is the newest run that ran it.

    Example: `foreplan logs train`

    Example: `foreplan logs pipeline.yaml train`

    Example: `foreplan logs train last -f`
    """
    from foreplan.runs.home import LAST, RunHome
    from foreplan.runs.logs import printed_by
    from foreplan.runs.summary import last_run_of

    task, run, workflow = TaskQuestion.read(words)
    if workflow is None:
        home = RunHome.find(directory, run or LAST)
    else:
        home = last_run_of(workflow, directory)
    if run is None:
        home = _run_with(home, task)
    replayed, index = _found(home, task)
    attempts = printed_by(replayed, home, index)
    if follow and not (attempts and attempts[-1].is_open):
        attempts = _awaited(home, replayed, attempts, task)
    if not attempts:
        say(_not_tried(replayed, home, index, task))
        return
    shown: list[Printed] = attempts if every else attempts[-1:]
    for number, printed in enumerate(shown, len(attempts) - len(shown) + 1):
        _head(printed, number, len(attempts))
        if follow and printed.is_open:
            _follow(home, printed)
        else:
            _print_all(printed)


def _run_with(home: RunHome, task: str) -> RunHome:
    """Return the run, or the newest before it that ran the task if this one did not have to."""
    from foreplan.runs.finding import earlier_runs_with

    for other in earlier_runs_with(home, task):
        with suppress(ForeplanError):  # it has no such task, or cannot be read
            if _attempts(other, task):
                say(f"{task} did not have to run in {home.id}: this is of run {other.id}", "dim")
                return other
    return home


def _found(home: RunHome, task: str) -> tuple[Replayed, int]:
    """The run, and the task in it."""
    from foreplan.runs.finding import number_of
    from foreplan.runs.journal import read
    from foreplan.runs.replay import replay

    replayed = replay(read(home.journal), home.data)
    return replayed, number_of(replayed.header, task)


def _not_tried(replayed: Replayed, home: RunHome, task: int, name: str) -> str:
    """Why there is nothing to print."""
    from foreplan.engine.state import TaskState
    from foreplan.runs.lock import is_driven

    state = replayed.driver.coordinator.state
    if task in state.tasks(TaskState.DONE):
        return f"{name} was not run in {home.id}: what it makes was there already"
    if task in state.tasks(TaskState.GIVEN_UP):
        return f"{name} has not run in {home.id}: a task that it needs has failed"
    yet = " yet" if is_driven(home) else ""
    return f"{name} has not run in {home.id}{yet}"


def _head(printed: Printed, number: int, count: int) -> None:
    """Which attempt it is, and how it ended."""
    which = f"attempt {number} of {count}, " if count > 1 else ""
    text = f"{printed.task}: {which}on {printed.processor}, {printed.end}"
    if math.isfinite(printed.finish):
        text += f" after {duration(max(0.0, printed.finish - printed.start))}"
    say(f"{text}: {printed.reason}" if printed.reason else text, "bold")
    if printed.place:
        say(f"its directory was kept: {near(Path(printed.place))}", "dim")


def _print_all(printed: Printed) -> None:
    """Both streams, each under its name."""
    files = printed.files()
    for name, path in files.items():
        say(f"-- {name}: {near(path)}", "dim")
        with path.open("rb") as file:
            last = b"\n"
            while not reader_left() and (chunk := file.read(CHUNK)):
                _write(chunk)
                last = chunk[-1:]
        if last != b"\n":
            _write(b"\n")
    if not files and printed.tail:
        say("-- its last lines; its logs are where it ran", "dim")
        _write(printed.tail.encode() + b"\n")
    elif not files:
        say("it has printed nothing" + (" yet" if printed.is_open else ""), "dim")


def _write(content: bytes) -> None:
    """Print a piece of a log: as it is to a pipe, but a terminal is not given over to it."""
    sys.stdout.flush()
    if sys.stdout.isatty():
        text = content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
        sys.stdout.write(clean(text))
    else:
        sys.stdout.buffer.write(content)
    sys.stdout.flush()


def _follow(home: RunHome, printed: Printed) -> None:
    """Print what comes until the attempt has ended."""
    from foreplan.runs.logs import Followed

    followed, stream = Followed(home, printed), ""
    try:
        while True:
            pieces, over = followed.pieces()
            for name, content in pieces:
                if name != stream:
                    say(f"-- {name}", "dim")
                stream = name
                _write(content)
            if over:
                break
            if reader_left():
                return
            time.sleep(TICK)
    except KeyboardInterrupt:
        return
    after = [p for p in _attempts(home, printed.task) if p.attempt == printed.attempt]
    for ended in after:
        reason = f": {ended.reason}" if ended.reason else ""
        say(f"{printed.task}: {ended.end}{reason}", "bold")


def _attempts(home: RunHome, task: str) -> list[Printed]:
    from foreplan.runs.logs import printed_by

    replayed, index = _found(home, task)
    return printed_by(replayed, home, index)


def _awaited(
    home: RunHome, replayed: Replayed, attempts: list[Printed], task: str
) -> list[Printed]:
    """The attempts once one runs; as they are if none will."""
    from foreplan.engine.state import TaskState
    from foreplan.runs.lock import is_driven
    from foreplan.runs.logs import printed_by

    index, said = replayed.header.workflow.task_names.index(task), False
    while is_driven(home):
        state = replayed.driver.coordinator.state
        if index in state.tasks(TaskState.DONE, TaskState.GIVEN_UP):
            break
        if not said:
            print(f"{task} has not started; waiting for it", file=sys.stderr, flush=True)
            said = True
        size = home.journal.stat().st_size
        try:
            while is_driven(home) and home.journal.stat().st_size == size:
                time.sleep(TICK)
            begun = time.monotonic()
            replayed, index = _found(home, task)
            pause = SHARE * (time.monotonic() - begun)
        except KeyboardInterrupt:
            return []
        attempts = printed_by(replayed, home, index)
        if attempts and attempts[-1].is_open:
            break
        time.sleep(pause)
    return attempts
