"""A task's directory, to look around in: one that was kept, or made anew as an attempt has it."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from foreplan.durable import make_directory, read_file, reason, write_new
from foreplan.errors import InputError
from foreplan.executors.base import Workload
from foreplan.executors.command import CommandJob, marks, script_of
from foreplan.executors.jobs import Jobs
from foreplan.executors.kept import exports_of, find_script, write_script
from foreplan.executors.workspace import AttemptError, OverwriteError, Scratch, remove
from foreplan.runs.home import RunHome, check_private
from foreplan.runs.lock import RunLock, is_driven

SHELLS = "shells"  # in .foreplan: a home for each shell that is open, with its lock
_PLACE = "place"  # where it is, if that is not its own
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class TaskPlace:
    """A directory of a task, and what the environment says in it."""

    path: Path
    home: RunHome  # of the shell, not of a run
    environment: dict[str, str]
    script: str | None  # its name there
    kept: bool  # it is that of a failed attempt, and stays


@contextmanager
def task_place(
    work: Workload, task: int, kept: Path | None = None, keep: bool = False
) -> Iterator[TaskPlace]:
    """The directory while it is used; what was made for it is removed then, unless it is kept."""
    data = Path(os.path.realpath(work.directory))
    home = _make_home(data, work.workflow.task_names[task])
    with RunLock(home):
        try:
            yield _kept(home, data, kept) if kept else _made(home, work, data, task)
        finally:
            if kept is not None or not keep:
                remove(os.fspath(home.path))


def _make_home(data: Path, task: str) -> RunHome:
    """A home of its own for a shell, for its owner only."""
    top = data / ".foreplan"
    try:
        for place in (top, top / SHELLS):
            with suppress(FileExistsError):
                make_directory(place)
            check_private(place)
        with suppress(FileExistsError):
            write_new(top / ".gitignore", b"*\n")
        home = RunHome(top / SHELLS / f"{_ODD.sub('_', task)[:40]}-{secrets.token_hex(4)}")
        make_directory(home.path)
    except OSError as error:
        said = f"cannot make a directory there: {reason(error)}"
        raise InputError(said, source=str(top)) from None
    return home


def _made(home: RunHome, work: Workload, data: Path, task: int) -> TaskPlace:
    place = home.path / "work"
    own = os.fspath(home.path)
    job = Jobs(work, os.fspath(data), own).command(0, task, os.fspath(place), own)
    scratch = Scratch(job.scratch, job.dir, job.anywhere)
    try:
        scratch.make()
        scratch.fill(job.inputs, job.outputs, job.text, job.ignores, job.redirected)
    except OverwriteError as error:
        raise InputError(str(error), place=job.task) from None
    except AttemptError as error:
        raise InputError(f"{error}: what it needs must be made first", place=job.task) from None
    except OSError as error:
        raise InputError(f"cannot make its directory: {reason(error)}", place=job.task) from None
    script = write_script(job.scratch, script_of(job, "as a run would do it"))
    return TaskPlace(place, home, _environment(job, home), script, False)


def _environment(job: CommandJob, home: RunHome) -> dict[str, str]:
    # by the mark of a run, a resume would find the shell and end it: so it has one of its own
    own = marks(job.dir, os.fspath(home.path), job.task, job.attempt, os.devnull)
    env = {} if job.around is None else dict(job.around.env)
    return os.environ | env | own


def _kept(home: RunHome, data: Path, kept: Path) -> TaskPlace:
    write_new(home.path / _PLACE, os.fsencode(os.path.realpath(kept)))
    script = find_script(os.fspath(kept))
    own = {} if script is None else exports_of(os.fspath(kept / script))
    own |= {"FOREPLAN_DIR": os.fspath(data), "FOREPLAN_RUN": os.fspath(home.path)}
    return TaskPlace(kept, home, os.environ | own, script, True)


def open_shells(data: Path) -> Iterator[tuple[RunHome, str | None]]:
    """The shells that are open in a data directory, and the kept directories that some are in."""
    for home in _homes(data):
        if is_driven(home):
            place = None
            with suppress(OSError):
                place = os.fsdecode(read_file(home.path / _PLACE))
            yield home, place


def closed_shells(data: Path) -> list[RunHome]:
    """What shells have left that are not open: they were killed, or were to be kept."""
    return [home for home in _homes(data) if not is_driven(home)]


def _homes(data: Path) -> list[RunHome]:
    try:
        names = sorted(os.listdir(data / ".foreplan" / SHELLS))
    except OSError:
        return []
    return [RunHome(data / ".foreplan" / SHELLS / name) for name in names]
