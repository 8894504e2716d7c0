"""Names that stand for many files: a directory, `index/`, and a pattern, `parts/*.txt`."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import NamedTuple

from foreplan.errors import InputError
from foreplan.model.workflow import Workflow
from foreplan.quantities import shortened

MOST_FILES = 1_000_000  # of a pattern

_UNTIDY = re.compile(r"^\./|//|/\.\.?(?:/|$)")  # what `normpath` changes
_CLASS = re.compile(r"\[[^]]+\]")
_MAGIC = re.compile(r"[*?[]")


def is_tree(name: str) -> bool:
    """Whether it is a directory with all that is in it."""
    return name[-1:] == "/"


def is_pattern(name: str) -> bool:
    """Whether it is all files that match it: `*` and `?` are in no name of a file."""
    return "*" in name or "?" in name


def suggest_pattern(name: str) -> str:
    """Return a pattern that matches a file: `g*.txt` for `g.txt`."""
    if is_pattern(name):
        return name
    stem, suffix = (name[:-1], "/") if is_tree(name) else os.path.splitext(name)
    return f"{stem}*{suffix}"


def is_many(name: str) -> bool:
    """Whether it stands for many files."""
    return is_tree(name) or is_pattern(name)


def covers(many: str, name: str) -> bool:
    """Whether a directory or pattern has this file or folder."""
    if is_tree(many) and not is_pattern(many):
        return f"{name}/".startswith(many)
    if is_tree(many):  # all that is in folders that match
        parts = name.rstrip("/").split("/")
        folder = many.rstrip("/").replace("[^", "[!").split("/")
        return any(is_match(folder, parts[: k + 1]) for k in range(len(parts)))
    return is_match(many.replace("[^", "[!").split("/"), name.split("/"))


def is_match(wanted: list[str], parts: list[str]) -> bool:
    """Whether a shell replaces a pattern by this path: part by part, a leading dot as written.

    `**` may be any number of folders, as bash has it with `globstar`.
    """
    if not wanted or not parts:
        return not wanted and not parts
    first, *rest = wanted
    if first == "**" and (is_match(rest, parts) or is_match(wanted, parts[1:])):
        return True
    hidden = parts[0].startswith(".") and not first.startswith((".", "[.]"))
    return fnmatchcase(parts[0], first) and not hidden and is_match(rest, parts[1:])


def may_share(one: str, other: str) -> bool:
    """Whether there may be a file that both have, which are patterns or directories."""
    return _may_meet(*(_wildcards(name).split("/") for name in (one, other)))


def may_gather(pattern: str, name: str) -> bool:
    """Whether a pattern means a file, a folder, or some of a directory or another pattern."""
    if is_many(name):
        return covers(pattern, name.rstrip("/")) or may_share(pattern, name)
    return covers(pattern, name)


def _wildcards(name: str) -> str:
    """A pattern in which `?`, `*` and `**` are all that is not to the letter."""
    return _CLASS.sub("?", f"{name}**" if is_tree(name) else name)


def _may_meet(parts: list[str], others: list[str]) -> bool:
    if not parts or not others:
        return all(part == "**" for part in parts or others)
    if "**" in (parts[0], others[0]):
        one, other = (parts, others) if parts[0] == "**" else (others, parts)
        return _may_meet(one[1:], other) or _may_meet(one, other[1:])
    return _may_match(parts[0], others[0]) and _may_meet(parts[1:], others[1:])


@lru_cache(maxsize=1 << 12)
def _may_match(one: str, other: str) -> bool:
    if other.startswith("*") and not one.startswith("*"):
        one, other = other, one
    if one.startswith("*"):
        return _may_match(one[1:], other) or (bool(other) and _may_match(one, other[1:]))
    if not one or not other:
        return not one and not other
    return (one[0] == other[0] or "?" in (one[0], other[0])) and _may_match(one[1:], other[1:])


def find_matches(folder: str, pattern: str) -> Iterator[str]:
    """Yield the files and folders that match a pattern, unsorted, some of them perhaps twice.

    The result is that of `glob.iglob(pattern, root_dir=folder, recursive=True)`, except that `**`
    does not follow a link to a folder that the link is in itself. An InputError is raised for a
    pattern that leaves the folder, at 1,000,000 matches, and when `**` has entered as many folders.
    """
    if pattern.startswith("/") or ".." in pattern.split("/"):
        problem = f"{pattern!r} leaves the run's directory"
        raise InputError(f"{problem}: write a pattern of files in it, or list the files")
    for n, name in enumerate(_walk(folder, pattern)):
        if n >= MOST_FILES:
            raise InputError(
                f"{pattern!r} matches more than {MOST_FILES:,} files, or looks through as many "
                "folders: write a narrower pattern"
            )
        if name is not None:
            yield name


def _walk(folder: str, pattern: str) -> Iterator[str | None]:
    """Yield what matches, and None for each folder that `**` enters."""
    split = pattern.split("/")
    parts = [p for k, p in enumerate(split) if p or k in (0, len(split) - 1)]
    parts = [p for k, p in enumerate(parts) if p != "**" or parts[k + 1 : k + 2] != ["**"]]
    stack: list[tuple[str, int, _Trail | None]] = [("", 0, None)]
    while stack:
        prefix, k, trail = stack.pop()
        part, is_last = parts[k], k == len(parts) - 1
        if part == "**":
            here = _Trail.of(os.path.join(folder, prefix), trail)
            if here is None:
                continue
            yield None
            if not is_last:
                stack.append((prefix, k + 1, None))
            elif trail is None and prefix:
                yield prefix
            for entry in _entries(folder, prefix, _is_shown):
                if is_last:
                    yield prefix + entry.name
                if _is_folder(entry):
                    stack.append((f"{prefix}{entry.name}/", k, here))
        elif _MAGIC.search(part):
            for entry in _entries(folder, prefix, _matcher(part)):
                if is_last:
                    yield prefix + entry.name
                elif _is_folder(entry):
                    stack.append((f"{prefix}{entry.name}/", k + 1, None))
        elif not is_last:
            stack.append((f"{prefix}{part}/", k + 1, None))
        elif prefix + part and os.path.lexists(os.path.join(folder, prefix + part)):
            yield prefix + part


class _Trail(NamedTuple):
    """A folder that `**` has entered, and the one before it."""

    device: int
    inode: int
    before: _Trail | None

    @staticmethod
    def of(path: str, before: _Trail | None) -> _Trail | None:
        """Return the trail with one more folder; None if it is not there, or part of it already."""
        try:
            status = os.stat(path)
        except OSError:
            return None
        one = before
        while one is not None:
            if (one.device, one.inode) == (status.st_dev, status.st_ino):
                return None
            one = one.before
        return _Trail(status.st_dev, status.st_ino, before)


def _entries(
    folder: str, prefix: str, is_wanted: Callable[[str], object]
) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(os.path.join(folder, prefix) or ".") as entries:
            yield from (entry for entry in entries if is_wanted(entry.name))
    except OSError:  # it is not there, or may not be read
        return


def _is_shown(name: str) -> bool:
    return not name.startswith(".")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


@lru_cache(maxsize=256)
def _matcher(part: str) -> Callable[[str], object]:
    match = re.compile(translate(part)).match
    return match if part.startswith(".") else lambda name: _is_shown(name) and match(name)


def matching_files(folder: str, pattern: str) -> list[str]:
    """The files that match a pattern, sorted."""
    return sorted({*_matching_files(folder, pattern)})


def _matching_files(folder: str, pattern: str) -> Iterator[str]:
    found = find_matches(folder, pattern)
    return (name for name in found if os.path.isfile(os.path.join(folder, name)))


def is_there(folder: str, name: str) -> bool:
    """Whether a file or directory is there, or a file that matches."""
    path = os.path.join(folder, name)
    if os.path.exists(path):
        return True
    return is_pattern(name) and next(_matching_files(folder, name), None) is not None


def fixed_folder(name: str) -> str:
    """The folder that something is in, as far as no wildcard is in it; empty: none."""
    folder = os.path.dirname(name.rstrip("/"))
    while is_pattern(folder):
        folder = os.path.dirname(folder)
    return folder


class Holders:
    """Directories and patterns, found by what they have."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by: dict[str, list[str]] = {}  # by the folder that all is in
        for name in filter(is_many, names):
            folder = fixed_folder(name) if is_pattern(name) else name.rstrip("/")
            self._by.setdefault(folder, []).append(name)

    def __bool__(self) -> bool:
        return bool(self._by)

    def of(self, name: str) -> Iterator[str]:
        """Those that have a file or folder."""
        folder = name
        while True:
            yield from (many for many in self._by.get(folder, ()) if covers(many, name))
            if not folder:
                return
            folder = folder.rpartition("/")[0]

    def near(self, pattern: str) -> Iterator[str]:
        """Other patterns whose files may be where those of a pattern are."""
        folder = fixed_folder(pattern)
        while True:
            yield from filter(is_pattern, self._by.get(folder, ()))
            if not folder:
                return
            folder = folder.rpartition("/")[0]


class SharedFiles:
    """Files, directories and patterns, found by others that may mean some of the same files."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by: dict[str, list[str]] = {}  # by the letters before the first wildcard
        self._letters: list[str] = []
        self.add(names)

    def add(self, names: Iterable[str]) -> None:
        """Add names."""
        for name in names:
            self._by.setdefault(_letters(name), []).append(name)
        self._letters = sorted(self._by)

    def with_any_of(self, name: str) -> Iterator[str]:
        """Return those that may have a file of a name."""
        letters = _letters(name)
        begin = bisect_left(self._letters, letters)
        near = [letters[:k] for k in range(len(letters))]
        while begin < len(self._letters) and self._letters[begin].startswith(letters):
            near.append(self._letters[begin])
            begin += 1
        for key in near:
            for other in self._by.get(key, ()):
                if may_gather(name, other) or may_gather(other, name):
                    yield other


def _letters(name: str) -> str:
    return re.split(r"[*?[]", name, maxsplit=1)[0].rstrip("/")


def inner_files(workflow: Workflow) -> dict[str, str]:
    """What is read out of directories and patterns that tasks make, each with the whole."""
    items = zip(workflow.item_names or (), workflow.item_producer.tolist(), strict=False)
    named = [(name, maker) for name, maker in items if name is not None]
    holders = Holders(name for name, maker in named if maker >= 0)
    read = [name for name, maker in named if maker < 0] if holders else []
    wholes = ((name, next(holders.of(name.rstrip("/")), None)) for name in read)
    return {name: whole for name, whole in wholes if whole is not None}


def check_overlaps(workflow: Workflow) -> None:
    """An InputError where a directory or pattern and another name stand for the same file.

    A file that is among what a task makes may be read by who comes right after that task.
    """
    names, makers = workflow.item_names or (), workflow.item_producer.tolist()
    index = {name: item for item, name in enumerate(names) if name is not None}
    _check_spellings(workflow, index)
    holders = Holders(index)
    for name, item in index.items() if holders else ():
        for many in holders.of(name.rstrip("/")):
            if many != name:
                _check_pair(workflow, many, makers[index[many]], name, item)
    for name in filter(is_pattern, index) if holders else ():
        for other in holders.near(name):
            if name != other and may_share(name, other) and makers[index[other]] >= 0:
                _check_pair(workflow, other, makers[index[other]], name, index[name])


def _check_spellings(workflow: Workflow, index: Mapping[str, int]) -> None:
    """Refuse a file that a task makes and that is written in two ways: `./x` and `x`."""
    spelt: dict[str, str] = {}
    for name in filter(_UNTIDY.search, index):
        tidy = os.path.normpath(name) + ("/" if is_tree(name) else "")
        other = tidy if tidy in index and tidy != name else spelt.setdefault(tidy, name)
        if other == name:
            continue
        makers = workflow.item_producer[[index[other], index[name]]].tolist()
        if max(makers) < 0:
            continue
        how = f"write it as {shortened(tidy)!r} everywhere"
        if min(makers) < 0:
            maker = max(makers)
            task = _readers(workflow, index[name if makers[1] < 0 else other])[0]
            by = f"which {workflow.name_task(maker)} makes"
            field = "inputs"
        else:
            maker, task = makers
            both = f"{workflow.name_task(maker)} and {shortened(workflow.task_names[task])}"
            by = f"made by both {both}"
            how = how if task == maker else "only one task can make a file"
            field = "outputs"
        same = f"{shortened(other)!r} and {shortened(name)!r} are the same file"
        by = "" if task == maker else f", {by}"
        raise workflow.task_error(task, f"{same}{by}: {how}", field)


def _check_pair(workflow: Workflow, many: str, maker: int, name: str, item: int) -> None:
    tasks, other = workflow.task_names, int(workflow.item_producer[item])
    if maker < 0 and other < 0:
        return
    both = is_pattern(many) and is_pattern(name)
    among = "which may have files of" if both else "which is among"
    file, whole = shortened(name), shortened(many)
    if other >= 0:
        is_made = maker >= 0
        whose = f"which {workflow.name_task(maker)} makes" if is_made else "which is read as it is"
        raise workflow.task_error(
            other,
            f"{shortened(tasks[other])} makes {file!r}, {among} {whole!r}, {whose}: one of them "
            "must have another place",
            "outputs",
        )
    for reader in _readers(workflow, item):
        if maker not in _right_before(workflow, reader) and not _is_added_after(
            workflow, reader, maker
        ):
            by = shortened(tasks[maker])
            raise workflow.task_error(
                reader,
                f"{shortened(tasks[reader])} reads {file!r}, {among} {whole!r}, and that {by} "
                f"makes: list {whole!r} under its inputs, too (a loop over glob(...) waits for "
                f"{by} by itself)",
                "inputs",
            )


def _is_added_after(workflow: Workflow, task: int, maker: int) -> bool:
    """Whether a task was added by the maker, or by one right after it: then all of it is there."""
    for by in adders(workflow, task):
        if by not in workflow.task_names:  # it is up to date, and no part of this
            return True
        adder = workflow.task_names.index(by)
        if adder == maker or maker in _right_before(workflow, adder):
            return True
    return False


def adders(workflow: Workflow, task: int) -> Iterator[str]:
    """The task that has added a task, the one that has added that, and so on."""
    by = workflow.spec(task).added_by
    while by is not None:
        yield by
        is_part = by in workflow.task_names
        by = workflow.spec(workflow.task_names.index(by)).added_by if is_part else None


def _readers(workflow: Workflow, item: int) -> list[int]:
    readers: list[int] = workflow.use_task[slice(*workflow.use_ptr[item : item + 2])].tolist()
    return readers


def _right_before(workflow: Workflow, task: int) -> Iterator[int]:
    for item in workflow.in_item[slice(*workflow.in_ptr[task : task + 2])].tolist():
        yield int(workflow.item_producer[item])
