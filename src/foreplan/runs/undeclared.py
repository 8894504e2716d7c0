"""The files that the tasks of a run have made beside their outputs, and that were not kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from foreplan.model import Workflow
from foreplan.model.causes import UNDECLARED
from foreplan.model.events import Event, TaskFinished
from foreplan.model.filenames import Holders, is_many, is_match
from foreplan.quantities import data_size, many
from foreplan.shell import named_paths, named_patterns, text_of

if TYPE_CHECKING:
    from foreplan.engine.state import RunState


MOST_NAMES = 5  # in a line


@dataclass(frozen=True)
class StaleRead:
    """A task that reads an older file in place of one that another task made and did not keep."""

    task: str
    file: str


@dataclass(frozen=True)
class NotKept:
    """The files that a task has made beside its outputs."""

    task: str
    files: int
    bytes: int
    names: tuple[str, ...]  # the first few; those first of which an older file is there
    at_least: bool  # there were more, which were not counted
    read: tuple[StaleRead, ...] = ()

    def stale_reads(self) -> list[str]:
        """Return a line for each task that reads an older file, with what to do."""
        return [
            f"{read.task} reads an older {read.file}: {self.task} made a new one, which was not "
            f"kept; list it under the outputs of {self.task} and the inputs of {read.task}"
            for read in self.read
        ]


def find_not_kept(
    events: Iterable[Event], state: RunState, workflow: Workflow
) -> tuple[NotKept, ...]:
    """Return what the last attempt of each finished task did not keep, in the order of tasks."""
    details: dict[int, dict[str, Any]] = {}
    for event in events:
        if isinstance(event, TaskFinished):
            detail = (event.detail or {}).get(UNDECLARED)
            if detail is not None:
                details[state.attempt(event.attempt).task] = detail
    names = workflow.task_names
    return tuple(
        NotKept(
            task=names[task],
            files=int(detail["files"]),
            bytes=int(detail["bytes"]),
            names=tuple(detail["names"]),
            at_least=bool(detail["at_least"]),
            read=tuple(
                StaleRead(names[reader], file)
                for file in detail["older"]
                for reader in _readers_of(workflow).find(file)
                if reader != task
            ),
        )
        for task, detail in sorted(details.items())
    )


def summarise_not_kept(made: Sequence[NotKept]) -> str:
    """Return how many files were not kept, their size, and the first few names."""
    count = sum(one.files for one in made)
    least = "at least " if any(one.at_least for one in made) else ""
    size = data_size(sum(one.bytes for one in made))
    by: dict[str, list[str]] = {}
    for task, name in islice(((one.task, n) for one in made for n in one.names), MOST_NAMES):
        by.setdefault(task, []).append(name)
    named = "; ".join(f"{', '.join(names)} (made by {task})" for task, names in by.items())
    more = "; ..." if count > sum(map(len, by.values())) else ""
    return f"{least}{many(count, 'file')} ({size}) not listed under outputs: {named}{more}"


class _Readers:
    """The tasks that name a file in their commands, or list it as an input."""

    def __init__(self, workflow: Workflow) -> None:
        self._by_name: dict[str, list[int]] = {}
        self._patterns: list[tuple[list[str], int]] = []
        self._specs = workflow.specs
        items = zip(workflow.item_names or (), workflow.item_producer.tolist(), strict=False)
        self._made = {name for name, maker in items if name is not None and maker >= 0}
        self._holders = Holders(self._made)
        for task, spec in workflow.specs.items():
            text = text_of(spec.run, spec.shell, spec.around) if spec.run else ""
            for name in named_paths(text):
                self._by_name.setdefault(name, []).append(task)
            for pattern in named_patterns(text):
                self._patterns.append((pattern.replace("[^", "[!").split("/"), task))
        for item, file in enumerate(workflow.item_names or ()):
            if file is not None and not is_many(file):
                begin, end = workflow.use_ptr[item : item + 2]
                self._by_name.setdefault(file, []).extend(workflow.use_task[begin:end].tolist())

    def find(self, file: str) -> list[int]:
        """Return the tasks that read a file, unless they ignore it or a task makes it."""
        if file in self._made or any(self._holders.of(file)):
            return []
        parts = file.split("/")
        found = {*self._by_name.get(file, ())}
        found |= {task for pattern, task in self._patterns if is_match(pattern, parts)}
        return sorted(
            t for t in found if t not in self._specs or file not in self._specs[t].ignores
        )


@lru_cache(maxsize=1)
def _readers_of(workflow: Workflow) -> _Readers:
    return _Readers(workflow)
