"""The key of a result: what it is made from and how; not by whom, where, when or at what cost.

A part that is not there is not in the key either, so that new parts leave old keys as they are.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foreplan.model.call import Call
from foreplan.model.filenames import covers, is_many
from foreplan.model.growth import adder_of, passed_by
from foreplan.model.surroundings import Surroundings
from foreplan.model.workflow import TaskSpec
from foreplan.shell import BY_ITS_FOLDER, is_inner, matching, named_paths, text_of
from foreplan.store.content import Status, digest_of_parts, status_of
from foreplan.store.digests import PYTHON
from foreplan.store.programs import CallDigests

VERSION = "1"  # of how keys are made
_MOST = 3  # differences that are told one by one


@dataclass(frozen=True)
class Recipe:
    """What a result is made from, part by part, so that two can be compared in words."""

    key: str
    how: str  # the digest of a command and its shell, or of a function
    inputs: Mapping[str, str] = field(default_factory=dict)  # contents by file, or by task
    outputs: tuple[str, ...] = ()  # names of files, sorted
    after: Mapping[str, str] = field(default_factory=dict)  # keys of tasks that only come before
    arguments: str | None = None  # of a function, but for results of other tasks
    files: frozenset[str] = frozenset()  # of a function, which of the inputs are no results
    around: Mapping[str, str] = field(default_factory=dict)  # digests of what it has around it

    @property
    def parts(self) -> dict[str, Any]:
        """As plain data: what is not there is left out. The key and the outputs stand elsewhere."""
        parts: dict[str, Any] = {"how": self.how, "inputs": dict(self.inputs)}
        parts |= {"after": dict(self.after)} if self.after else {}
        parts |= {"around": dict(self.around)} if self.around else {}
        return parts | ({} if self.arguments is None else {"arguments": self.arguments})


def recipe_of_command(
    spec: TaskSpec, inputs: Mapping[str, str], outputs: Iterable[str], after: Mapping[str, str]
) -> Recipe:
    """The recipe of a command, given the contents of all files that belong to it."""
    how, made = digest_of_command(spec), tuple(sorted(outputs))
    read = [part for name in sorted(inputs) for part in (name, inputs[name])]
    around = {} if spec.around is None else _digests_of(spec.around)
    more = ["around", *(part for pair in around.items() for part in pair)] if around else []
    parts = ("inputs", *read, "outputs", *made, *_before(after), *more)
    key = digest_of_parts(VERSION, "command", how, *parts)
    return Recipe(key, how, inputs, made, after, around=around)


def digest_of_command(spec: TaskSpec) -> str:
    """The command and its shell."""
    return digest_of_parts(spec.run or "", spec.shell or "")


def _digests_of(around: Surroundings) -> dict[str, str]:
    """By the words that they are told in; the values of variables may be secrets."""
    parts = {f"variable {name}": value for name, value in around.env}
    parts |= {} if around.container is None else {"container": around.container}
    parts |= {} if around.conda is None else {"conda environment": around.conda}
    return {name: digest_of_parts(value) for name, value in sorted(parts.items())}


def _before(after: Mapping[str, str]) -> list[str]:
    return ["after", *sorted(after.values())] if after else []


def recipe_of_call(
    call: Call,
    digests: CallDigests,
    contents: Mapping[int | str, str],
    names: Sequence[str],
    after: Mapping[str, str],
) -> Recipe:
    """The recipe of a call, given the contents of the results (by task) and files that it takes.

    A ValueError says what of it cannot be compared with another program's.
    """
    function, arguments = digests.parts(call)
    whole = digests.of(call, contents)
    key = digest_of_parts(VERSION, "call", PYTHON, whole, *_before(after))
    called = {thing: thing if isinstance(thing, str) else names[thing] for thing in contents}
    results = {called[thing]: content for thing, content in contents.items()}
    files = frozenset(thing for thing in contents if isinstance(thing, str))
    return Recipe(key, function, results, after=after, arguments=arguments, files=files)


def differences(old: Mapping[str, Any], made: Collection[str], new: Recipe) -> list[str]:
    """What has changed since a result was made, in words; empty if nothing has."""
    if new.arguments is not None:
        found = differences_of_call(old, new.how, new.arguments)
    else:
        found = [] if old.get("how") == new.how else ["its command has changed"]
    found += [f"its {part} has changed" for part in _changed_around(old.get("around", {}), new)]
    found += _changed(old.get("inputs", {}), new)
    if sorted(made) != sorted(new.outputs) and new.arguments is None:
        found.append("its outputs have changed")
    return [*found, *_changed_before(old.get("after", {}), new.after)]


def _changed_before(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    if sorted(old.values()) == sorted(new.values()):
        return
    if changed := sorted(name for name in old.keys() & new.keys() if old[name] != new[name]):
        yield f"{_listed(changed)}, which it comes after, has changed"
    if added := sorted(new.keys() - old.keys()):
        yield f"it now comes after {_listed(added)}"
    if gone := sorted(old.keys() - new.keys()):
        yield f"it no longer comes after {_listed(gone)}"


def differences_of_call(old: Mapping[str, Any], how: str, arguments: str) -> list[str]:
    """What of a function or its arguments has changed, but for results of other tasks."""
    found = []
    if old.get("how") != how:
        found.append("its function, or what that calls, has changed")
    if old.get("arguments") != arguments:
        found.append("its arguments have changed")
    return found


def _changed(old: Mapping[str, str], new: Recipe) -> Iterator[str]:
    both = sorted(old.keys() & new.inputs.keys())
    changed = [name for name in both if old[name] != new.inputs[name]]
    files = [name for name in changed if new.arguments is None or name in new.files]
    if results := [name for name in changed if name not in files]:
        yield f"the result of {_listed(results)} has changed"
    if adders := [adder for name in files if (adder := adder_of(name))]:
        yield f"what {_listed(adders)} adds has changed"
    if files := [name for name in files if not adder_of(name)]:
        yield f"its input {_listed(files)} has changed"
    if added := sorted(new.inputs.keys() - old.keys()):
        yield f"it has a new input {_listed(added)}"
    if gone := sorted(old.keys() - new.inputs.keys()):
        yield f"it no longer reads {_listed(gone)}"


def _changed_around(old: Mapping[str, str], new: Recipe) -> list[str]:
    both = sorted(old.keys() | new.around.keys())
    return [name for name in both if old.get(name) != new.around.get(name)]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


class NamedFiles:
    """The files that commands name without declaring them, and what their scripts import."""

    def __init__(self, data: str, anywhere: bool = False, has_many: bool = True) -> None:
        self._data, self._anywhere, self._has_many = data, anywhere, has_many
        self._real = os.path.realpath(data)
        self._there: dict[str, bool] = {}  # words of commands: many have the same
        self._imported: dict[str, set[str]] = {}  # by Python's scripts

    def forget(self) -> None:
        """Look anew from now on."""
        self._there.clear()
        self._imported.clear()

    def of(self, spec: TaskSpec, declared: Collection[str]) -> list[str]:
        """The files and folders that belong to a command, but are not declared."""
        text = text_of(spec.run or "", spec.shell, spec.around)
        ignores = passed_by(spec) if spec.gathers else spec.ignores
        names = words_of(text)
        for _, matched in matching(text, self._data, ignores):
            names.update(matched)
        for script in [name for name in names if name.endswith(".py") and self._is_there(name)]:
            if script not in self._imported:
                path = os.path.join(self._data, script)
                self._imported[script] = imported_files(path, self._real)
            names |= self._imported[script]
        many = list(filter(is_many, declared)) if self._has_many else []
        found = [
            name
            for name in names
            if name not in declared and name not in ignores and self._is_there(name)
            and not (many and any(covers(other, name) for other in many))
        ]  # fmt: skip
        # a folder that holds declared files is not linked: only they are
        return [n for n in found if not any(other.startswith(n + "/") for other in declared)]

    def _is_there(self, name: str) -> bool:
        known = self._there.get(name)
        if known is None:
            path = f"{self._data}/{name}"
            known = self._there[name] = os.path.exists(path) and self._is_inside(path, name)
        return known

    def _is_inside(self, path: str, name: str) -> bool:
        if self._anywhere or ("/" not in name and not os.path.islink(path)):
            return True
        return os.path.realpath(path).startswith(self._real + "/")


def imported_files(script: str, data: str) -> set[str]:
    """The files of the data directory that a Python script imports, and these, and so on.

    Python looks for them beside the script itself, not beside the link that an attempt has to it.
    """
    first = os.path.realpath(script)
    todo, found = [first], set[str]()
    while todo:
        file = todo.pop()
        for level, names in _imports_of(file, status_of(os.stat(file))):
            place = os.path.dirname(file if level else first)
            for _ in range(level - 1):
                place = os.path.dirname(place)
            for name in names:
                place = os.path.join(place, name)
                for path in (f"{place}.py", f"{place}/__init__.py"):
                    if os.path.isfile(path):
                        inner = os.path.relpath(path, data)
                        if inner not in found and is_inner(inner):
                            found.add(inner)
                            todo.append(path)
    return found


@functools.lru_cache(maxsize=4096)
def _imports_of(path: str, status: Status) -> list[tuple[int, list[str]]]:
    """What a Python file imports: from how many folders up (0: the script's), and the names."""
    import ast

    try:
        with open(path, "rb") as file, warnings.catch_warnings(action="ignore"):
            nodes = list(ast.walk(ast.parse(file.read())))
    except (OSError, SyntaxError, ValueError, RecursionError):  # it is for another Python, or none
        return []
    found = [(0, n.name.split(".")) for k in nodes if isinstance(k, ast.Import) for n in k.names]
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            module = node.module.split(".") if node.module else []
            found += [(node.level, [*module, name.name]) for name in node.names]
    return found


def words_of(text: str) -> set[str]:
    """What in a command may be a file of the data directory, from there or by $FOREPLAN_DIR."""
    words = named_paths(text)
    if "$" in text:
        words = frozenset(BY_ITS_FOLDER.sub("", word) for word in words) - {""}
    return {word for word in words if is_inner(word)}
