"""`foreplan shell`: a shell in a task's directory, with its inputs and its environment."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreplan.cli.shared.options import (
    ParamOptions,
    RunDirectory,
    TaskQuestion,
    TaskWords,
    with_groups,
)
from foreplan.errors import InputError, unknown_name
from foreplan.files import clean, near

if TYPE_CHECKING:
    from foreplan.executors.base import Workload
    from foreplan.runs.entries import Header
    from foreplan.runs.home import RunHome
    from foreplan.runs.shells import TaskPlace


@with_groups
def shell(
    words: TaskWords,
    command: Annotated[
        str | None,
        typer.Option("--command", "-c", help="Run this there, and exit with its code."),
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="A directory made anew, even if one was kept.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the directory that was made there.")
    ] = False,
    directory: RunDirectory = Path(),
    *,
    params: ParamOptions,
) -> None:
    """Open a shell in a task's directory: as a failed attempt has left it, or as a run makes it.

    Its inputs are there as links, and its command as a script, `command.sh`; the environment is a
    task's (FOREPLAN_DIR, FOREPLAN_TASK, ...). Nothing that is made there is published: outputs in
    the data directory stay as they are. But inputs are links, so who writes to one writes to the
    original. The directory is removed in the end, unless it was kept by a run, or `--keep` is
    given.

    Example: `foreplan shell train` (then `sh -x command.sh`, `ls -l`, `exit`)

    Example: `foreplan shell train -c 'bash command.sh; ls -l'`

    Example: `foreplan shell train words-2026 --new` (of another run, in a fresh directory)

    Example: `foreplan shell pipeline.yaml train` (as a run of this file would make it now)
    """
    from foreplan.runs.shells import task_place

    question = TaskQuestion.read(words)
    work, number, kept = _asked(question, directory, params)
    if new:
        kept = None
    with task_place(work, number, kept, keep) as place:
        if command is None:
            _tell(question.task, place, keep)
        code = _run(place, command)
        if keep and not place.kept:
            print(f"kept: {near(place.path)}", file=sys.stderr)
    raise typer.Exit(code)


def _asked(
    question: TaskQuestion, directory: Path, params: ParamOptions
) -> tuple[Workload, int, Path | None]:
    """What is to be done, the task in it, and the directory that was kept of it."""
    home = question.find_run(directory, "shell", params)
    if home is not None:
        return _of_run(home, question.task)
    assert question.workflow is not None
    return _of_file(question.workflow, directory, question.task, params.values())


def _of_file(
    source: Path,
    directory: Path,
    task: str,
    params: Mapping[str, object],
    absolute: bool = False,
) -> tuple[Workload, int, None]:
    from foreplan import api
    from foreplan.executors.base import Workload
    from foreplan.executors.paths import check_paths
    from foreplan.files import in_file

    found = api.load(source, params=params, dir=directory)
    if task not in found.task_names:
        raise InputError(unknown_name("task", task, found.task_names), source=str(source))
    with in_file(source):
        check_paths(found, absolute)
    work = Workload(found, directory=directory.absolute(), absolute=absolute)
    return work, found.task_names.index(task), None


def _of_run(home: RunHome, task: str) -> tuple[Workload, int, Path | None]:
    from foreplan.executors.base import Workload
    from foreplan.runs.finding import standing
    from foreplan.runs.journal import read
    from foreplan.runs.logs import printed_by
    from foreplan.runs.replay import replay

    replayed = replay(read(home.journal), home.data)
    header: Header = replayed.header
    is_command = any(
        name == task and header.workflow.spec(number).run is not None
        for number, name in enumerate(header.workflow.task_names)
    )
    if header.functions and not is_command:
        raise InputError(
            f"run {home.id} is of Python functions, which have no directories: call {task} from "
            f"Python, or see `foreplan logs {task}`"
        )
    if standing(header, task) is not None:  # it was up to date, or not asked for
        if header.source is None:
            raise InputError(
                f"{task} did not run in {home.id}: name the workflow's file, "
                f"`foreplan shell FILE {task}`"
            )
        options = header.options
        return _of_file(Path(header.source), home.data, task, options.params, options.absolute)
    work = Workload(header.workflow, directory=home.data, absolute=header.options.absolute)
    number = header.workflow.task_names.index(task)
    kept = [Path(p.place) for p in printed_by(replayed, home, number) if p.place]
    there = [place for place in kept if place.is_dir()]
    return work, number, there[-1] if there else None


def _tell(task: str, place: TaskPlace, keep: bool) -> None:
    """What this is, on entry."""
    what = "as a failed attempt has left it" if place.kept else "made as a run makes it"
    lines = [f"{task}: {near(place.path)}, {what}"]
    if place.script is not None:
        lines.append(f"its command is {place.script}: `bash {place.script}` does it here")
    lines.append("nothing made here is published; inputs are links: who writes to one changes it")
    if not place.kept:
        lines.append("kept afterwards" if keep else "removed afterwards (--keep leaves it)")
    print(clean("\n".join(lines)), file=sys.stderr, flush=True)


def _run(place: TaskPlace, command: str | None) -> int:
    """Run the shell, or one command, to its end; the exit code as shells have it."""
    from foreplan.executors.command import usual_shell

    arguments = [usual_shell()[0], "-c", command] if command is not None else [_own_shell()]
    environment = place.environment | {"PWD": os.fspath(place.path)}
    with _passing_on() as passed:
        try:
            process = subprocess.Popen(arguments, cwd=place.path, env=environment)
        except OSError as error:
            raise InputError(f"cannot start {arguments[0]}: {error.strerror}") from None
        passed.append(process)
        code = process.wait()
    return code if code >= 0 else 128 - code


def _own_shell() -> str:
    """The user's shell, if it is there."""
    from foreplan.executors.command import usual_shell

    return shutil.which(os.environ.get("SHELL") or "") or usual_shell()[0]


@contextmanager
def _passing_on() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Outlive the shell: Ctrl-C is for what runs in it, and the end of this is its end, too."""
    processes: list[subprocess.Popen[bytes]] = []

    def hear(number: int, frame: FrameType | None) -> None:
        for process in processes if number != signal.SIGINT else ():
            process.send_signal(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before: list[tuple[int, Any]] = [(n, signal.signal(n, hear)) for n in numbers]
    try:
        yield processes
    finally:
        for number, handler in before:
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
