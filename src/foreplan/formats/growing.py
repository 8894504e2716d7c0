"""Tasks that add others: `expand`, `after`, and what an expansion has printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from foreplan.errors import InputError
from foreplan.files import in_file
from foreplan.formats.deferred import MadeFiles
from foreplan.formats.fields import check_fields, mapping, name, one_or_more, shown, unknown, wrong
from foreplan.formats.origins import NOWHERE, SourceText
from foreplan.formats.parts import files_of
from foreplan.formats.texts import parse_yaml
from foreplan.model import Item, Workflow
from foreplan.model.filenames import is_pattern
from foreplan.model.growth import FOLDER, expansion_file

NO_TASKS = "the workflow has no tasks"
ADDED_FIELDS = ("params", "shell", "defaults", "tasks", "edges", "files")

Fields = Mapping[object, object]


class Expansions:
    """Which tasks of a file add tasks, who waits for them, and for which files of theirs."""

    def __init__(self, bodies: Mapping[str, Fields]) -> None:
        self._bodies = bodies
        says = (task for task, fields in bodies.items() if "expand" in fields)
        self._expands = {task for task in says if _is_true(bodies[task], task)}
        outputs = (files_of(b.get("outputs")) for b in bodies.values()) if self._expands else ()
        self._made = {file for files in outputs for file in files if is_pattern(file)}
        waits = (task for task, fields in bodies.items() if "after" in fields)
        self._after = {task: self._waits(task) for task in waits}
        self.any = bool(self._expands or self._after)  # of many tasks, none is asked one by one

    def said(self, task: str, inputs: Callable[[], Iterable[str]]) -> dict[str, Any]:
        """What of it the task's own spec tells."""
        return {"expand": task in self._expands, "gathers": self._gathers(task, inputs)}

    def files(self, task: str, key: str, listed: Sequence[str]) -> Sequence[str]:
        """The files that a task lists, with what is printed by itself or by whom it waits for."""
        if key == "outputs" and task in self._expands:
            return [*listed, expansion_file(task)]
        if key == "inputs" and task in self._after:
            awaited = [expansion_file(t) for t in self._after[task] if t in self._expands]
            gathered = self._gathers(task, lambda: listed)
            return [file for file in listed if file not in gathered] + awaited
        return listed

    def _gathers(self, task: str, listed: Callable[[], Iterable[str]]) -> tuple[str, ...]:
        """The patterns of what it reads of the expansions that it waits for."""
        if self._expands.isdisjoint(self._after.get(task, ())):
            return ()
        return tuple(file for file in listed() if is_pattern(file) and file not in self._made)

    def edges(self, index: Mapping[str, int], known: Iterable[Item]) -> list[Item]:
        """Whoever waits for a task that adds none just comes after it."""
        pairs = {(item.producer, *item.consumers) for item in known}
        found = [
            (index[other], index[task])
            for task, others in self._after.items()
            for other in others
            if other not in self._expands
        ]
        return [Item(0.0, pair[0], (pair[1],)) for pair in found if pair not in pairs]

    def _waits(self, task: str) -> list[str]:
        place = ("tasks", task, "after")
        others = [name(other, *place) for other in one_or_more(self._bodies[task]["after"], *place)]
        for k, other in enumerate(others):
            if other not in self._bodies:
                raise unknown("task", other, self._bodies, *place)
            if other == task:
                raise wrong("the task waits for itself", *place)
            if other in others[:k]:
                raise wrong(f"{shown(other)} is listed twice", *place)
        return others


def _is_true(fields: Fields, task: str) -> bool:
    expand = fields.get("expand", False)
    if not isinstance(expand, bool):
        raise wrong(f"expected true or false, not {shown(expand)}", "tasks", task, "expand")
    return expand


Reader = Callable[[Mapping[str, object], MadeFiles | None, SourceText], Workflow]


def printed_tasks(text: str, file: str, read: Reader) -> Workflow:
    """Return the tasks that a task has printed to a file."""
    if not text.strip():
        raise InputError("it has printed nothing; `tasks: {}` adds no tasks")
    with in_file(file):
        document, made = MadeFiles.read(mapping(parse_yaml(text)))
    # a loop that waited prints its template, whose lines are not those of the workflow's file
    origin = SourceText(file, text) if made is None else NOWHERE
    return added_tasks(document, lambda content: read(content, made, origin))


def added_tasks(document: Fields, read: Callable[[Mapping[str, object]], Workflow]) -> Workflow:
    """The tasks that are added, from the content of what adds them."""
    check_fields(document, ADDED_FIELDS)
    try:
        return read(document)  # type: ignore[arg-type]
    except InputError as error:
        if error.problem != NO_TASKS:
            raise
        return Workflow.from_items("", [], [], [])  # that is all right here


def as_written(
    workflow: Workflow, task: int, inputs: list[str] | None, outputs: list[str] | None
) -> dict[str, list[str] | None]:
    """The files that a task lists, and whom it waits for, as a file says it."""
    spec, names = workflow.spec(task), workflow.task_names
    read, made = inputs or [], outputs or []
    if not spec.expand and not any(file.startswith(FOLDER) for file in read):
        return {"inputs": inputs, "outputs": outputs}
    printed = {expansion_file(names[t]): names[t] for t, s in workflow.specs.items() if s.expand}
    return {
        "inputs": [f for f in read if f not in printed] + list(spec.gathers) or None,
        "outputs": [file for file in made if file != expansion_file(names[task])] or None,
        "after": [printed[file] for file in read if file in printed] or None,
    }
