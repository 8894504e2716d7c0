"""A store made smaller: its parts folded into one, without what can never be found again.

A result counts as long as it is the last of its files or of its task, since it tells what is up to
date even where files are missing; an older one only if files may still be as it made them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from foreplan.store import parts
from foreplan.store.content import Entry, Memory
from foreplan.store.store import Result, Store, other_format


@dataclass(frozen=True)
class Foldable:
    """What can be made smaller in a store, and how."""

    folder: Path
    whole: list[parts.Found] = field(default_factory=list)
    lines: list[parts.Line] = field(default_factory=list)  # what is left of them
    dropped: int = 0  # results
    damaged: tuple[str, ...] = ()  # parts that were moved aside
    live: int = 0  # parts of runs under way, which are left alone
    before: int = 0  # bytes
    after: int = 0

    @property
    def is_worth_it(self) -> bool:
        """Whether anything becomes smaller."""
        return self.before > self.after


def foldable(
    data: str | os.PathLike[str],
    is_live: Callable[[str], bool],
    has_results: Callable[[str], bool],
    everything: bool = False,
) -> Foldable:
    """What of a store can go; nothing is changed.

    `has_results` says whether what functions gave back in a run is still there.
    """
    folder = parts.folder_of(data)
    parts.check_private(folder)
    if not everything and not parts.is_readable(folder):
        raise other_format(folder)
    names = parts.list_parts(folder)
    over = [name for name in names if parts.is_over(is_live, name)]
    found = []
    for name in over:
        with suppress(FileNotFoundError):  # somebody folds it just now
            found.append(parts.read_part(folder / name, keep=True))
    whole = [part for part in found if everything or not part.bad]  # the next run mends the others
    if everything:  # whatever the lines say
        every = [line for part in whole for line in part.lines]
        lines = list[parts.Line]()
    else:
        store = Store.of_parts(folder, whole)
        every = list(store.lines())
        lines = list(_kept(store, every, os.fspath(data), has_results))
    damaged = tuple(sorted(_listed(folder / parts.DAMAGED)))
    before = sum(part.size for part in whole)
    aside = sum(_size(folder / parts.DAMAGED / name) for name in damaged)
    return Foldable(
        folder,
        whole,
        lines,
        sum("outputs" in line for line in every) - sum("outputs" in line for line in lines),
        damaged,
        len(names) - len(over),
        before + aside,
        sum(len(parts.encode(line)) for line in lines),
    )


def fold_store(found: Foldable) -> None:
    """Do it; whoever reads or writes the store meanwhile finds what counts, or writes it again."""
    parts.fold(found.folder, found.whole, found.lines)
    parts.drop_other_formats(found.folder)
    for name in found.damaged:
        with suppress(OSError):
            os.unlink(found.folder / parts.DAMAGED / name)


def _kept(
    store: Store, every: list[parts.Line], data: str, has_results: Callable[[str], bool]
) -> Iterator[parts.Line]:
    memory = Memory(data)
    for line in every:
        if "outputs" in line:
            if _counts(store, line, memory, has_results):
                yield line
        elif "files" in line:
            there = {n: e for n, e in line["files"].items() if memory.status(n) is not None}
            if there:
                yield {**line, "files": there}
        else:
            yield line


def _counts(
    store: Store, line: parts.Line, memory: Memory, has_results: Callable[[str], bool]
) -> bool:
    """Whether a result can still be found to hold."""
    if line.get("call") is not None and has_results(line["call"][0]):
        return True
    outputs: dict[str, Entry] = line["outputs"]
    if not outputs:
        return _is_same(store.of_task(line["task"])[:1], line)
    latest = {name: store.made(name)[:1] for name in outputs}
    if any(_is_same(last, line) for last in latest.values()):
        return True
    return not any(
        memory.status(name) == last[0].outputs[name][:3] and last[0].outputs[name][3] != entry[3]
        for name, entry in outputs.items()
        for last in (latest[name],)
        if last
    )


def _is_same(last: list[Result], line: parts.Line) -> bool:
    return bool(last) and (last[0].at, last[0].key) == (line["at"], line.get("key"))


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
