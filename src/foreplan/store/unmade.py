"""Outputs that no task makes any more.

The store knows every output that was made, and of which workflow file and parameters. An output is
an orphan if that file, with the same parameters, has no task any more that makes it, and nobody
reads it. Where one of that is not known, the output is left alone.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from foreplan.model.filenames import Holders, is_many, is_pattern, is_tree, may_share
from foreplan.model.workflow import Workflow
from foreplan.shell import matching, text_of
from foreplan.store.keys import NamedFiles, words_of
from foreplan.store.store import ADOPTED, Result, ResultOrigin, Store

_OWN = ".foreplan/"  # what is in there is not an output of the user's


class _Names:
    """Names of files, directories and patterns."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {*names}
        self._many = [name for name in self._names if is_many(name)]
        self._holders = Holders(self._many)

    def has(self, name: str) -> bool:
        """Return whether a file, or some of a directory, is among them."""
        if name in self._names or any(self._holders.of(name.rstrip("/"))):
            return True
        if not is_tree(name):
            return False
        inside = (other == name[:-1] or other.startswith(name) for other in self._names)
        return any(inside) or any(may_share(name, other) for other in self._many)

    def has_folder(self, folder: str) -> bool:
        """Return whether a folder itself is one of them, or inside of one."""
        return folder in self._names or any(self._holders.of(folder))


class FilesInUse:
    """The files that workflows make or read, declared or named by their commands.

    All tasks of the `known` origins are in these workflows. Others count by what their results
    were made from.
    """

    def __init__(
        self, store: Store, workflows: Sequence[Workflow], known: Collection[ResultOrigin]
    ) -> None:
        self._store = store
        self._data = str(store.folder.parents[1])
        self._known = known
        self._workflows = workflows
        self._declared = _Names(n for wf in workflows for n in wf.item_names or () if n)
        self._made = {name for wf in workflows for name in _made(wf)}

    @property
    def temporary(self) -> set[str]:
        """The outputs that are deleted when they have been read."""
        return {name for wf in self._workflows for spec in wf.specs.values() for name in spec.temp}

    def declares(self, name: str) -> bool:
        """Return whether a task makes or reads an output, or some of it."""
        return self._declared.has(name)

    def has(self, name: str) -> bool:
        """Return whether a task makes or reads an output, or a command names it or its folder."""
        if self.declares(name) or self._others.has(name):
            return True
        return any(place in self._named for place in (name.rstrip("/"), *folders_of(name)))

    def keeps_folder(self, folder: str) -> bool:
        """Return whether a folder counts even if it is empty: as a directory of tasks, or named."""
        above = (folder, *folders_of(folder))
        return self._declared.has_folder(folder) or any(name in self._named for name in above)

    @cached_property
    def _others(self) -> _Names:
        """The files that results of other workflows were made from."""
        results = self._store.latest_results()
        others = (r for r in results if self._store.origins.get(r.run) not in self._known)
        return _Names(name for result in others for name in result.recipe.get("inputs", ()))

    @cached_property
    def _named(self) -> set[str]:
        """The undeclared files that commands name.

        A wildcard of a command that matches outputs of tasks means these: it is no reason to keep
        an output that none of the tasks makes. One that matches none of them means other files.
        """
        found = set[str]()
        for workflow in self._workflows:
            files = NamedFiles(self._data)
            declared = _declared(workflow)
            for task, spec in workflow.specs.items():
                text = text_of(spec.run or "", spec.shell, spec.around)
                named = {*files.of(spec, declared[task])}
                for _, matched in matching(text, self._data, spec.ignores):
                    if not self._made.isdisjoint(matched):
                        named.difference_update({*matched} - words_of(text))
                found |= named
        return found


class Orphan(NamedTuple):
    """An output that no task makes any more."""

    name: str  # as its task named it: a file, a directory or a pattern
    made: list[Result]  # the latest first
    origins: set[ResultOrigin | None]

    def files(self) -> Iterator[str]:
        """Return the names under which it may be on disk: of a pattern, all files that it had."""
        if is_pattern(self.name):
            yield from dict.fromkeys(f for r in self.made for f in r.matched.get(self.name, ()))
        else:
            yield self.name

    def contents(self, file: str) -> tuple[set[str], set[str]]:
        """Return the contents that tasks gave a file, and those that somebody has adopted."""
        by_note = set[str](), set[str]()
        for result in self.made:
            entries = result.matched.get(self.name, {}) if is_pattern(self.name) else result.outputs
            if file in entries:
                by_note[result.note == ADOPTED].add(entries[file][3])
        return by_note


def _undeclared(store: Store, in_use: FilesInUse) -> Iterator[Orphan]:
    """Return the outputs that tasks have made, and that no task makes or reads any more."""
    for name in store.outputs():
        if name.startswith(_OWN) or in_use.declares(name):
            continue
        made = store.made(name)
        by_task = [result for result in made if result.note != ADOPTED]
        if by_task:
            yield Orphan(name, made, {store.origins.get(result.run) for result in by_task})


def orphans_on_disk(
    store: Store, in_use: FilesInUse, origin: ResultOrigin
) -> Iterator[tuple[Orphan, str]]:
    """Return the files on disk that are orphans of one workflow file and its parameters."""
    orphans = (orphan for orphan in _undeclared(store, in_use) if orphan.origins == {origin})
    files = ((orphan, file) for orphan in orphans for file in orphan.files())
    return (o for o in files if _is_on_disk(store, o[1]) and not in_use.has(o[1]))


def find_orphans(
    store: Store, in_use: FilesInUse, judged: Collection[ResultOrigin]
) -> tuple[list[Orphan], Counter[ResultOrigin]]:
    """Return the orphans of workflow files that could be read, and how many others there may be."""
    found = list[Orphan]()
    doubtful = Counter[ResultOrigin]()
    for orphan in _undeclared(store, in_use):
        if in_use.has(orphan.name):
            continue
        unknown = {origin for origin in orphan.origins if origin not in judged}
        if not unknown:
            found.append(orphan)
        elif any(_is_on_disk(store, file) for file in orphan.files()):
            doubtful.update(origin for origin in unknown if origin is not None)
    return found, doubtful


def _is_on_disk(store: Store, file: str) -> bool:
    return os.path.lexists(store.folder.parents[1] / file)


def _made(workflow: Workflow) -> Iterator[str]:
    items = zip(workflow.item_names or (), workflow.item_producer.tolist(), strict=False)
    return (name for name, task in items if name and task >= 0)


def _declared(workflow: Workflow) -> list[set[str]]:
    """By task, the files that it makes or reads."""
    found: list[set[str]] = [set() for _ in range(workflow.n_tasks)]
    ends, uses = workflow.use_ptr.tolist(), workflow.use_task.tolist()
    producers = workflow.item_producer.tolist()
    for item, name in enumerate(workflow.item_names or ()):
        tasks = uses[ends[item] : ends[item + 1]]
        tasks += [producers[item]] if producers[item] >= 0 else []
        for task in tasks if name else ():
            found[task].add(str(name))
    return found


def folders_of(name: str) -> Iterator[str]:
    """Return the folders that a file is in, the innermost first."""
    folder = os.path.dirname(name.rstrip("/"))
    while folder:
        yield folder
        folder = os.path.dirname(folder)
