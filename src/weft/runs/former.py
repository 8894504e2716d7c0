"""What runs of before there was a store have made: it counts, where nothing speaks against it.

Their journals tell what ran when, and how large its outputs were. An output counts if the command
and the names of its files are the same today, it has not changed since its task has ended, and no
input has since the task began, by the times of the file system: of the content, and of the status,
which nobody sets back. Where that is not certain, the task is run again.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from weft.errors import WeftError
from weft.model import TaskSpec
from weft.model.events import TaskFinished
from weft.runs.entries import in_their_shell, rules_of
from weft.runs.home import RunHome, runs
from weft.runs.journal import decode, read
from weft.runs.lock import is_driven
from weft.runs.replay import replay
from weft.store.graph import WorkflowGraph
from weft.store.survey import Survey

TICK = 0.02  # seconds by which the times of files may be behind the clock

Outputs = tuple[str, ...]  # names of files, sorted


@dataclass(frozen=True)
class Former:
    """A task that a former run has finished."""

    run: str
    spec: TaskSpec
    read: frozenset[str]
    sizes: dict[str, int]  # of its outputs
    begin: float  # seconds since 1970
    end: float


class FormerTaken(NamedTuple):
    """Lines for the store, and how many tasks they are of."""

    lines: bytes = b""
    tasks: int = 0

    @property
    def message(self) -> str:
        """What counts, in a line; empty if nothing does."""
        if not self.tasks:
            return ""
        results = "1 result" if self.tasks == 1 else f"{self.tasks:,} results"
        return f"{results} of runs of earlier versions of weft count: nothing of them has changed"


NOTHING_FORMER = FormerTaken()


def take_former(survey: Survey, own: str = "") -> FormerTaken:
    """The results of former runs that still hold, of files that the store knows nothing of.

    `own` is the run that this process drives.
    """
    data, made = Path(survey.memory.data), map(survey.outputs, range(survey.workflow.n_tasks))
    wanted = {tuple(sorted(files)) for files in made if files and _is_unknown(survey, data, files)}
    former: dict[Outputs, Former] = {}
    for home in _former_runs(data, own) if wanted else ():  # the newest first
        with suppress(WeftError):  # a journal that cannot be read tells nothing
            for outputs, done in _finished(home):
                former.setdefault(outputs, done)
    former = {outputs: done for outputs, done in former.items() if outputs in wanted}
    lines = list(_adopted(survey, data, former)) if former else []
    return FormerTaken(b"".join(lines), len(lines))


def _is_unknown(survey: Survey, data: Path, files: Sequence[str]) -> bool:
    """Whether outputs are there that the store has never heard of."""
    unknown = not any(map(survey.store.knows, files))
    return unknown and os.path.exists(data / files[0])


def _former_runs(data: Path, own: str) -> Iterator[RunHome]:
    """The runs of commands that had no store to tell, and that nobody else drives."""
    for home in runs(data):
        with suppress(OSError, ValueError, WeftError), home.journal.open("rb") as file:
            header = decode(file.readline().partition(b" ")[2])
            former = not header.get("functions") and "trust" not in header.get("options", {})
            if former and (home.id == own or not is_driven(home)):
                yield home


def _finished(home: RunHome) -> Iterator[tuple[Outputs, Former]]:
    """What a run has finished last, of each task with outputs."""
    contents = read(home.journal)
    replayed = replay(contents, home.data)
    walls = _Walls(contents.entries)
    workflow = in_their_shell(replayed.header.workflow, rules_of(contents.header))
    graph = WorkflowGraph(workflow)
    state, ends = replayed.driver.coordinator.state, replayed.driver.events or []
    latest = {state.attempt(e.attempt).task: e for e in ends if isinstance(e, TaskFinished)}
    for task, event in latest.items():
        begin, end = walls.at(state.attempt(event.attempt).start), walls.at(event.time)
        sizes = (event.detail or {}).get("sizes") or {}
        if graph.made[task] and begin is not None and end is not None:
            read_files = frozenset(graph.read[task])
            done = Former(home.id, workflow.spec(task), read_files, sizes, begin, end)
            yield tuple(sorted(graph.made[task])), done


class _Walls:
    """The run's time by the wall clock, as far as the journal has noted both."""

    def __init__(self, entries: Iterable[dict[str, Any]]) -> None:
        noted = [(float(e["time"]), float(e["wall"])) for e in entries if "wall" in e]
        self._noted = sorted(noted)

    def at(self, time: float) -> float | None:
        """When that was, no later than it really was: of a run that was resumed then, before."""
        if not self._noted:
            return None
        noted, wall = self._noted[max(0, bisect_left(self._noted, (time, 0.0)) - 1)]
        return wall + time - noted


def _adopted(survey: Survey, data: Path, former: dict[Outputs, Former]) -> Iterator[bytes]:
    """The lines of tasks whose outputs, inputs and commands are as they were."""
    workflow, graph = survey.workflow, WorkflowGraph(survey.workflow)
    ended: dict[str, float] = {}  # by file that counts, when it was there
    for task in workflow.order.tolist():
        outputs = tuple(sorted(graph.made[task]))
        done = former.get(outputs) if outputs else None
        if done is None or not _is_same(workflow.spec(task), graph.read[task], done):
            continue
        inputs = survey.making(task).statuses
        if _are_as_made(data, outputs, done) and all(
            _is_as_read(data, name, done.begin, graph, ended) for name in inputs
        ):
            with suppress(WeftError):  # it has no key
                yield survey.adopt_task(task, done.run)
                ended |= dict.fromkeys(outputs, done.end)


def _is_same(spec: TaskSpec, read_files: list[str], done: Former) -> bool:
    then = (done.spec.run, done.spec.shell, done.spec.ignores, done.spec.around, done.read)
    return (spec.run, spec.shell, spec.ignores, spec.around, frozenset(read_files)) == then


def _are_as_made(data: Path, outputs: Outputs, done: Former) -> bool:
    for name in outputs:
        try:
            size = os.stat(data / name).st_size
        except OSError:
            return False
        if size != done.sizes.get(name) or _changed(data / name) > done.end:
            return False
    return True


def _is_as_read(
    data: Path, name: str, begin: float, graph: WorkflowGraph, ended: dict[str, float]
) -> bool:
    if name in graph.maker:
        return name in ended and ended[name] <= begin
    return _changed(data / name) < begin - TICK


def _changed(path: Path) -> float:
    """When a file, or anything in a folder, was last changed: its content or its status."""
    try:
        inner = [path]
        if path.is_dir():
            inner += [Path(folder, n) for folder, d, f in os.walk(path) for n in (*d, *f)]
        times = [os.stat(file) for file in inner]
        return max(max(state.st_mtime, state.st_ctime) for state in times)
    except OSError:
        return float("inf")
