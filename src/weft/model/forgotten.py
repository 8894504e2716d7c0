"""Inputs that were forgotten: files that a command names, but its task does not list."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cached_property
from sys import maxunicode

from weft.errors import InputError
from weft.model.shell import named_paths, named_patterns, text_of
from weft.model.workflow import Workflow

_WILD = re.compile(r"[*?[]")
_BY_ITS_FOLDER = re.compile(r"^\$(WEFT_DIR|\{WEFT_DIR\})/")  # the data directory


def check_listed(workflow: Workflow) -> None:
    """An InputError where a command names what another task makes, but its task does not list it.

    It would read the file of an earlier run. What stands under `ignores` is passed by.
    """
    made = _Made(workflow)
    if not made.by:
        return
    for task, spec in workflow.specs.items():
        if not spec.run:
            continue
        for word, name in made.named(text_of(spec.run, spec.shell)):
            if word in spec.ignores or name in spec.ignores:
                continue
            # of a folder with files of its own, a task sees those alone
            if not any(
                file == name or file.startswith(name + "/") for file in listed_files(workflow, task)
            ):
                raise made.forgotten(workflow.task_names[task], word, name)


def listed_files(workflow: Workflow, task: int) -> list[str]:
    """The files that a task lists, as inputs and as outputs."""
    read = workflow.in_item[slice(*workflow.in_ptr[task : task + 2])]
    made = workflow.out_item[slice(*workflow.out_ptr[task : task + 2])]
    names = workflow.item_names or ()
    listed = [names[item] for item in (*read.tolist(), *made.tolist())] if names else []
    return [name for name in listed if name is not None]


class _Made:
    """The files that tasks make, and the folders that they are in."""

    def __init__(self, workflow: Workflow) -> None:
        names, self._tasks = workflow.item_names or (), workflow.task_names
        makers = workflow.item_producer.tolist()
        self.by = {n: makers[i] for i, n in enumerate(names) if n is not None and makers[i] >= 0}
        self._inside: dict[str, str] = {}  # a file of each folder
        for name in self.by:
            folder = name.rpartition("/")[0]
            while folder and folder not in self._inside:
                self._inside[folder] = name
                folder = folder.rpartition("/")[0]

    def named(self, command: str) -> Iterator[tuple[str, str]]:
        """The words of a command that mean one of these, and which."""
        for word in sorted(named_paths(command)):
            name = _BY_ITS_FOLDER.sub("", word)
            if name in self.by or name in self._inside:
                yield word, name
        for word in named_patterns(command):
            for name in self._matches(word):
                yield word, name

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted({*self.by, *self._inside})

    def _matches(self, pattern: str) -> Iterator[str]:
        prefix = _WILD.split(pattern, maxsplit=1)[0]
        begin, end = (bisect_left(self._sorted, prefix + last) for last in ("", chr(maxunicode)))
        wanted = pattern.replace("[^", "[!").split("/")
        near = self._sorted[begin:end]
        return (name for name in near if _is_match(wanted, name.split("/")))

    def forgotten(self, task: str, word: str, name: str) -> InputError:
        """What was forgotten, and what to do."""
        file = name if name in self.by else self._inside[name]
        said = word if word == file else f"{word}, and so {file}"
        return InputError(
            f"{task} names {said}, which {self._tasks[self.by[file]]} makes: list it under inputs "
            "(or under ignores, if it is not meant)"
        )


def _is_match(wanted: list[str], parts: list[str]) -> bool:
    """Whether a shell replaces a pattern by this path: part by part, a leading dot as written.

    `**` may be any number of folders, as bash has it with `globstar`.
    """
    if not wanted or not parts:
        return not wanted and not parts
    first, *rest = wanted
    if first == "**" and (_is_match(rest, parts) or _is_match(wanted, parts[1:])):
        return True
    hidden = parts[0].startswith(".") and not first.startswith((".", "[.]"))
    return fnmatchcase(parts[0], first) and not hidden and _is_match(rest, parts[1:])
