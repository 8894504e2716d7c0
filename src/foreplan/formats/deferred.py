"""Loops over files that tasks make: a template that is expanded when these tasks are done.

In its place stands a task that reads the outputs which the loop's globs may match. It prints the
template, and the files that it was given: the files that the tasks made, and no others. What it
prints is read as any expansion is, see `growing`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreplan.errors import InputError
from foreplan.formats.fields import as_list, shown, wrong
from foreplan.formats.loops import MatchedPath, PathPattern, matched_paths
from foreplan.formats.parts import FOREACH, files_of
from foreplan.formats.placeholders import replace_references
from foreplan.model.filenames import SharedFiles, is_many, is_match, is_pattern, is_tree
from foreplan.model.workflow import TaskSpec
from foreplan.quantities import shortened

if TYPE_CHECKING:
    from foreplan.formats.parts import SourceFile
    from foreplan.formats.templates import Body, Template

OVER = "over"  # in what is printed: variables of the loop, and the patterns that they go over
MADE = "made"  # and these files; the name of a folder ends in a slash
_TEMPLATE = "TEMPLATE"
_LIST = "LIST"
_GLOBS = "GLOBS"
_RUN = f'eval "${_LIST}"'  # the words of a command would seem to name files

# Inputs are links in the directory of the task, to files or to folders with all that is in them.
# The lists are files first, so that an error of `find` ends the script.
_SCRIPT = r"""set -eu
each() {
  find . -path ./.foreplan -prune -o -type l \
    -exec sh -c 'kind=$1; shift; find -L "$@" -type "$kind"' sh "$1" {} +
}
each f > .foreplan/files
each d > .foreplan/folders
printf '%s\n' "$TEMPLATE"
{
  sed 's/[\\"]/\\&/g; s/^/- "/; s/$/"/' .foreplan/files
  sed 's/[\\"]/\\&/g; s/^/- "/; s/$/\/"/' .foreplan/folders
} | LC_ALL=C sort
"""

Fields = Mapping[Any, Any]
Place = str | int


def as_input(pattern: str, directory: Path) -> str:
    """Return a pattern as outputs are written: relative to the data directory, without `./`."""
    normal = os.path.normpath(pattern)
    if os.path.isabs(normal):
        inside = os.path.relpath(normal, directory.absolute())
        normal = normal if inside.split("/")[0] == ".." else inside
    return f"{normal}/" if is_tree(pattern) else normal


@dataclass(frozen=True)
class MadeFiles:
    """The files that tasks made for a loop, as its expanding task has listed them."""

    over: Mapping[str, Collection[str]]  # patterns of these files, by variable of the loop
    files: tuple[str, ...]

    @staticmethod
    def read(document: Fields) -> tuple[Fields, MadeFiles | None]:
        """Split what a task printed into the document and the files that it listed."""
        if OVER not in document:
            return document, None
        files = list[str]()
        for line in document.get(MADE) or ():
            if not isinstance(line, str) or not line.startswith("./"):
                raise InputError(f"a name of a file must not have a line break: {shown(line)}")
            files.append(line[2:])
        rest = {key: value for key, value in document.items() if key not in (OVER, MADE)}
        return rest, MadeFiles(document[OVER], tuple(files))

    def matching(self, pattern: str, *place: Place) -> list[MatchedPath]:
        """Return the files and folders that match a pattern; with `/` at its end, folders alone."""
        wanted = pattern.rstrip("/").replace("[^", "[!").split("/")
        end = "/" if is_tree(pattern) else ""
        names = (file.rstrip("/") for file in self.files if is_tree(file) or not end)
        found = [name + end for name in names if is_match(wanted, name.split("/"))]
        if not found:
            problem = "the tasks that this loop waits for made no file that matches"
            raise wrong(f"{problem} {shortened(pattern)}: there is nothing to loop over", *place)
        if odd := next(filter(is_pattern, found), None):
            problem = f"the file {shown(odd)} has * or ? in its name, and would mean others, too"
            raise wrong(f"{problem}: rename it", *place)
        return matched_paths(found, pattern)


@dataclass
class Globs:
    """Finds the files of a loop's globs: those that tasks made, or patterns in their place."""

    directory: Path
    made: MadeFiles | None = None
    only: Collection[str] | None = None  # variables whose files are yet to be made; None: all
    patterns: dict[str, list[str]] = field(default_factory=dict)  # by variable, as far as asked
    tables: list[tuple[str, str]] = field(default_factory=list)  # variable, file

    def find(
        self, variable: str, kind: str, argument: str, *place: Place
    ) -> Sequence[object] | None:
        """Return what a variable goes over; None if that is to be looked for in the directory."""
        name = as_input(argument, self.directory)
        if kind != "glob":
            self.tables.append((variable, name))
            return None
        if self.made is not None and variable in self.made.over:
            is_own = name in self.made.over[variable]  # other rows are those of another task
            return self.made.matching(name, *place) if is_own else []
        if self.only is not None and variable not in self.only:
            return None
        self.patterns.setdefault(variable, []).append(name)
        return [PathPattern(name, name)]


@dataclass
class GlobLoop:
    """A template with a glob, until it is known whether a task makes files that it matches."""

    part: SourceFile
    key: str
    body: Body
    template: Template  # with patterns in the place of files
    globs: Globs  # which has these patterns
    outputs: Collection[str]  # of its tasks, as patterns

    @property
    def called(self) -> str:
        """Return the name of the task in its place: `*` for what the loop replaces."""
        return replace_references(self.key, lambda reference: "*")

    @property
    def place(self) -> tuple[str, ...]:
        """Return the place of its loop in its file."""
        return "tasks", self.key, FOREACH

    @property
    def patterns(self) -> list[str]:
        """Return all patterns that the loop goes over."""
        return list(dict.fromkeys(p for found in self.globs.patterns.values() for p in found))

    def variables_over(self, outputs: SharedFiles) -> list[str]:
        """Return the variables of the loop that go over some of these outputs."""
        found = self.globs.patterns
        return [variable for variable in found if matched(found[variable], outputs)]


def matched(patterns: Iterable[str], outputs: SharedFiles) -> list[str]:
    """Return the outputs that patterns may match."""
    each = dict.fromkeys(patterns)
    return list(dict.fromkeys(file for one in each for file in outputs.with_any_of(one)))


def deferred(
    loop: GlobLoop,
    params: Mapping[str, object],
    over: Mapping[str, Sequence[str]],
    inputs: Iterable[str],
    after: Sequence[str],
) -> dict[str, Any]:
    """Return the task that reads the files, and prints them with all that the loop needs."""
    content = loop.part.content
    patterns = list(dict.fromkeys(pattern for found in over.values() for pattern in found))
    body = {key: value for key, value in loop.body.items() if key != "after"}  # it waits for these
    printed = {key: content[key] for key in ("shell", "defaults") if key in content}
    printed |= {"tasks": {loop.key: body}, OVER: over}
    text = json.dumps(printed, ensure_ascii=False)
    # another value of what the template does not name must not make it print again
    used = {called: value for called, value in params.items() if called in text}
    lines = [
        f"{key}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in {"params": used, **printed}.items()
    ]
    task: dict[str, Any] = {
        "run": _RUN,
        "shell": "sh",
        "env": {
            _LIST: _SCRIPT,
            _TEMPLATE: "\n".join([*lines, f"{MADE}:"]),
            _GLOBS: "\n".join(patterns),
        },
        "inputs": list(dict.fromkeys([*inputs, *(patterns if after else ())])),
        "expand": True,
    }
    return task | ({"after": list(after)} if after else {})


def made_globs(spec: TaskSpec) -> list[str]:
    """Return the patterns that the loop of a task goes over, if the task stands for a loop."""
    if spec.run != _RUN or spec.around is None:
        return []
    return dict(spec.around.env).get(_GLOBS, "").split("\n")


@dataclass(frozen=True)
class LaterLoop:
    """A task in the place of a loop, or of some rows of it, and the files of the tasks it adds."""

    called: str
    aliases: Collection[str]  # for the whole loop, and for each of its rows
    template: str
    task: dict[str, Any]
    over: Collection[str]  # patterns of the files that it waits for
    read: Collection[str]  # patterns of the files of its tasks
    made: Collection[str]

    def may_make(self, file: str) -> bool:
        """Return whether its tasks may make files that a name stands for."""
        return any(self._outputs.with_any_of(file))

    @cached_property
    def _outputs(self) -> SharedFiles:
        return SharedFiles(self.made)


def let_wait(loops: Sequence[LaterLoop]) -> None:
    """Have the tasks of a loop added when those of other loops, whose files they read, are done."""
    for loop in loops:
        inputs, after = loop.task["inputs"], loop.task.get("after", [])
        for other in loops:
            if other.template == loop.template:
                continue
            if any(map(other.may_make, loop.over)):
                inputs += [pattern for pattern in loop.over if pattern not in inputs]
            if any(map(other.may_make, (*loop.over, *loop.read))) and other.called not in after:
                after.append(other.called)
        if after:
            loop.task["after"] = after


def with_waits(body: Body, loops: Sequence[LaterLoop], made: Collection[str], task: str) -> Body:
    """Have a task that reads a pattern wait for the loops whose tasks may make files of it.

    Where it comes after a loop, it waits for all tasks that stand for that loop.
    """
    read = [f for f in files_of(body.get("inputs")) if is_many(f) and f not in made]
    after = dict.fromkeys(names_in(body.get("after")))
    for loop in loops:
        if not after.keys().isdisjoint(loop.aliases):
            after[loop.called] = None
        for file in filter(loop.may_make, read):
            if not is_pattern(file):
                problem = f"{shown(file)} is a directory in which {loop.called} makes files"
                how = f"write a pattern of them, {shown(file + '*')}"
                raise wrong(f"{problem}: {how}", "tasks", task, "inputs")
            after[loop.called] = None
    called = {loop.called for loop in loops}
    aliases = {alias for loop in loops for alias in loop.aliases} - called
    names = [name for name in after if name not in aliases]
    return body if names == names_in(body.get("after")) else {**body, "after": names}


def names_in(after: object) -> list[str]:
    """Return the tasks that a task lists under `after`; wrong entries are refused later."""
    names = [name for name in as_list(after) if isinstance(name, str)]
    return names if len(names) == len(as_list(after)) else []
