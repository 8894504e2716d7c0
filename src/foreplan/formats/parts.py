"""A workflow as plain documents, one per file, and where each task of it was written.

A file without loops, parameters and included files is one already: nothing more is imported for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from foreplan.errors import InputError, place_of
from foreplan.formats.fields import as_list, check_fields, named, shown, wrong
from foreplan.formats.origins import SourceText
from foreplan.formats.placeholders import has_placeholders
from foreplan.quantities import shortened

if TYPE_CHECKING:
    from foreplan.formats.templates import Body

PARAMS, INCLUDE = "params", "include"  # of a file
FOREACH, IF, ALL = "foreach", "if", "all"  # of a task, and of its inputs

Fields = Mapping[object, object]


@dataclass
class SourceFile:
    """What one file says, expanded: its tasks, and all else in it."""

    origin: SourceText
    content: Fields
    included: list[SourceFile] = field(default_factory=list)
    tasks: dict[str, Body] = field(default_factory=dict)

    def inherit(self) -> None:
        """Take over shell and defaults of files without tasks, which are there for this one."""
        for other in self.included:
            if "tasks" not in other.content:
                kept = ("shell", "defaults")
                shared: Fields = {key: v for key, v in other.content.items() if key in kept}
                self.content = _layered(shared, self.content, "defaults", "categories")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Errors raised inside are of this file."""
        try:
            yield
        except InputError as error:
            raise self.origin.located(error) from None


def _layered(below: Fields, above: Fields, *deep: str) -> Fields:
    """Two mappings as one; what the upper has counts, but the deep ones within are layered, too."""
    whole = {**below, **above}
    for key in deep[:1]:
        lower, upper = below.get(key), above.get(key)
        if isinstance(lower, Mapping) and isinstance(upper, Mapping):
            whole[key] = _layered(lower, upper, *deep[1:])
    return whole


@dataclass(frozen=True)
class TaskOrigins:
    """The files that tasks were read from, and the templates that they were made from."""

    main: SourceText
    templates: Sequence[tuple[SourceText, str, Sequence[str]]]  # the template, and its tasks
    others: Sequence[tuple[SourceText, Sequence[str]]]  # tasks that were written as they are

    def locate(self, error: InputError) -> InputError:
        """Return the error with the file and line of the task that it is about."""
        found = self._find(error.place)
        if error.source or found is None:
            return self.main.located(error)
        origin, key, called, rest = found
        is_named = key == called or shortened(called) in error.problem
        problem = error.problem if is_named else f"{error.problem} (in {shortened(called)})"
        place = place_of("tasks", key) + rest
        return origin.located(InputError(problem, place=place, key=error.key))

    def find_line(self, task: str) -> str:
        """Return the line of a task, and its file if there are several; empty if not known."""
        found = self._find(place_of("tasks", task))
        if found is None:
            return ""
        return found[0].find_line("tasks", found[1], with_file=len(self.others) > 1)

    def find_template(self, *tasks: str) -> str:
        """Return the name of the loop that all of these tasks are from; empty if there is none."""
        return next((key for _, key, names in self.templates if {*tasks} <= {*names}), "")

    def _find(self, place: str) -> tuple[SourceText, str, str, str] | None:
        """Return the file, the template and the task of a place, and the rest of the place."""
        best: tuple[SourceText, str, str, str] | None = None
        for origin, key, called in self._tasks():
            there = place_of("tasks", called)
            begins = place == there or place.startswith((there + ".", there + "["))
            rest = place[len(there) :]
            if begins and (best is None or len(rest) < len(best[3])):
                best = origin, key, called, rest
        return best

    def _tasks(self) -> Iterator[tuple[SourceText, str, str]]:
        """Yield every task: its file, the name of its template, its own name."""
        for origin, key, names in self.templates:
            for called in names:
                yield origin, key, called
        for origin, names in self.others:
            for called in names:
                yield origin, called, called


@dataclass
class Expansion:
    """A workflow as plain documents, one per file; and which templates its tasks are from."""

    parts: list[SourceFile]
    templates: list[tuple[SourceFile, str, Sequence[str]]]  # file, name of the template, tasks

    @property
    def origins(self) -> TaskOrigins:
        """Return where each task comes from."""
        templates = [(part.origin, key, names) for part, key, names in self.templates]
        others = [(part.origin, tuple(part.tasks)) for part in self.parts]
        return TaskOrigins(self.parts[-1].origin, templates, others)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Locate errors about tasks that are raised inside."""
        try:
            yield
        except InputError as error:
            raise self.origins.locate(error) from None


def gathers(inputs: object) -> bool:
    """Whether inputs ask for all files of a loop."""
    return any(isinstance(entry, Mapping) and ALL in entry for entry in as_list(inputs))


def needs_expansion(key: str, body: Fields) -> bool:
    """Return whether a task has a loop, a condition, or placeholders in its name or fields."""
    if FOREACH in body or IF in body or gathers(body.get("inputs")):
        return True
    return has_placeholders({key: None}) or has_placeholders(body)


def files_of(entries: object) -> list[str]:
    """The files that a task lists, as a command names them."""
    listed = as_list(entries)
    paths = (entry.get("path") if isinstance(entry, Mapping) else entry for entry in listed)
    return [str(path) for path in paths if isinstance(path, str | int)]


def task_body(key: str, value: object, known: Sequence[str]) -> Body:
    """Return the fields of a task, which must be known ones."""
    if value is not None and not isinstance(value, Mapping):
        problem = f"expected the fields of a task, not {shown(value)}"
        how = f"write `{shortened(key)}:` and below it, indented, `run: ` with the command"
        if key in known:
            how = "a field of a task stands below the name of the task, and is indented more"
        elif isinstance(value, str) and (found := _NO_SPACE.match(value)):
            how = f"write a space after the colon, `{shortened(found[1])} ...`"
        raise wrong(f"{problem}: {how}", "tasks", key)
    body: Body = value or {}
    check_fields(body, known, "tasks", key)
    return body


_NO_SPACE = re.compile(r"(\w+:)\S")

Known = tuple[Sequence[str], Sequence[str]]  # the fields of a file and of a task


def plain_workflow(document: Fields, origin: SourceText, known: Known) -> Expansion | None:
    """Return a document that needs no expansion, as it is; None if it needs one."""
    if PARAMS in document or INCLUDE in document:
        return None
    if has_placeholders({key: value for key, value in document.items() if key != "tasks"}):
        return None
    part = SourceFile(origin, document)
    with part.reading():
        tasks = named(document.get("tasks"), "the task", "tasks")
        if any(isinstance(b, Mapping) and needs_expansion(k, b) for k, b in tasks.items()):
            return None
        return literal_workflow(document, origin, known)


def literal_workflow(document: Fields, origin: SourceText, known: Known) -> Expansion:
    """Return a document in which every text means itself."""
    fields, task_fields = known
    part = SourceFile(origin, document)
    with part.reading():
        check_fields(document, fields)
        for key, value in named(document.get("tasks"), "the task", "tasks").items():
            part.tasks[key] = task_body(key, value, task_fields)
    return Expansion([part], [])
