"""What the store knows: results by their keys, contents that files ever had, files as they were."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from foreplan.durable import reason
from foreplan.errors import ForeplanError
from foreplan.garbage import no_collection
from foreplan.store import parts
from foreplan.store.content import CONTENT, Entry, Memory

MANY = 32  # parts from which on they are folded
_RESULTS = 4  # of one file, that are kept when parts are folded
_CONTENTS = 64  # of one file, that are known as foreplan's own
ADOPTED = "adopted"  # the note of what somebody has adopted
_AT_ONCE = 500  # files on one line


class StoreError(ForeplanError):
    """The store cannot be read or written; says what to do."""


class KeptResult(NamedTuple):
    """What a function gave back, and where it is: in the results of a run, under a number."""

    run: str
    number: int
    content: str  # of the value
    file: Entry  # of its pickle; among small ones, no time and no inode

    @staticmethod
    def read(fields: list[Any]) -> KeptResult:
        """As it stands in a line."""
        run, number, content, file = fields
        return KeptResult(run, number, content, _entry(file))


class ResultOrigin(NamedTuple):
    """The workflow file of a run, and its parameters."""

    source: str  # from the data directory if it is in there, else absolute
    params: str = "{}"  # JSON

    def line(self, runs: Iterable[str]) -> parts.Line:
        """Return the line of a part that names the origin of these runs."""
        return {"origin": self.source, "params": self.params, "runs": [*runs]}


@dataclass(frozen=True, slots=True)
class Result:
    """What came out when a recipe was followed."""

    task: str
    run: str
    at: float  # seconds since 1970
    key: str | None  # None: what it was made from is not known
    recipe: Mapping[str, Any]  # without a key: what of it is known
    outputs: Mapping[str, Entry]
    note: str = ""  # why it has no key, or that it was adopted
    call: KeptResult | None = None  # of a function; perhaps it was not kept
    attempt: int | None = None  # of its run, and the seconds that it took: for who resumes that
    seconds: float = 0.0
    matched: Mapping[str, Mapping[str, Entry]] = field(default_factory=dict)  # files by pattern

    def line(self) -> parts.Line:
        """As it stands in a part; what is not there is left out."""
        line = {"task": self.task, "run": self.run, "at": self.at, "outputs": dict(self.outputs)}
        line |= {} if self.key is None else {"key": self.key}
        line |= {"recipe": dict(self.recipe)} if self.recipe else {}
        line |= {"note": self.note} if self.note else {}
        line |= {} if self.attempt is None else {"attempt": self.attempt}
        line |= {"seconds": self.seconds} if self.seconds or self.attempt is not None else {}
        line |= {"matched": dict(self.matched)} if self.matched else {}
        return line | ({} if self.call is None else {"call": self.call})


@dataclass
class Store:
    """All parts of a store as they were when it was read, and what was added since."""

    folder: Path
    n_parts: int = 0
    warnings: list[str] = field(default_factory=list)
    files: dict[str, Entry] = field(default_factory=dict)  # as they were when they were read
    _by_key: dict[str, list[Result]] = field(default_factory=dict)
    _by_file: dict[str, list[Result]] = field(default_factory=dict)
    _by_task: dict[str, list[Result]] = field(default_factory=dict)  # what makes no files
    _seen: dict[str, set[str]] = field(default_factory=dict)
    origins: dict[str, ResultOrigin] = field(default_factory=dict)  # by run; of flows there is none

    @staticmethod
    def read(data: str | os.PathLike[str]) -> Store:
        """What is there; nothing is changed on disk."""
        store = Store(parts.folder_of(data))
        with no_collection():
            try:
                parts.check_private(store.folder)
                if not parts.is_readable(store.folder):
                    raise other_format(store.folder)
                found = parts.read_parts(store.folder)
            except OSError as error:
                raise StoreError(
                    f"{store.folder}: the store cannot be read: {reason(error)}; mend that, or "
                    "remove the folder: then all is made again"
                ) from None
            store.add_lines(line for part in found for line in part.lines)
        store.warnings += [parts.told(store.folder, part) for part in found if part.bad]
        store.n_parts = len(found)
        return store

    @staticmethod
    def open(
        data: str | os.PathLike[str], is_live: Callable[[str], bool], known: Store | None = None
    ) -> Store:
        """The store that a run asks and adds to: made, mended and folded where that is due.

        `is_live` says whether a run is driven: its parts are left alone. `known` is the store as it
        was just read, if it was.
        """
        try:
            parts.make_folder(data)
        except OSError as error:
            raise StoreError(f"{parts.folder_of(data)}: {reason(error)}") from None
        store = known or Store.read(data)
        if store.warnings or store.n_parts > MANY:
            said = _tidy(store.folder, is_live)
            store = Store.read(data)
            store.warnings = [*said, *store.warnings]
        return store

    @staticmethod
    def of_parts(folder: Path, found: Iterable[parts.Found]) -> Store:
        """What some parts hold."""
        store = Store(folder)
        store.add_lines(line for part in found for line in part.lines)
        return store

    def add_lines(self, lines: Iterable[parts.Line]) -> None:
        """Take what lines say, in the order of their times."""
        dated: list[tuple[float, Result | dict[str, Entry]]] = []
        for line in lines:
            try:
                if "outputs" in line:
                    result = _result(line)
                    dated.append((result.at, result))
                elif "files" in line:
                    files = {name: _entry(entry) for name, entry in line["files"].items()}
                    dated.append((float(line["at"]), files))
                elif "seen" in line:
                    for name, contents in line["seen"].items():
                        self._seen.setdefault(name, set()).update(contents)
                elif "origin" in line:
                    origin = ResultOrigin(str(line["origin"]), str(line["params"]))
                    self.origins |= dict.fromkeys(line["runs"], origin)
                else:
                    raise ValueError
            except (TypeError, ValueError, KeyError, AttributeError):
                raise other_format(self.folder) from None
        dated.sort(key=lambda pair: pair[0])
        for _, news in dated:
            self.add(news) if isinstance(news, Result) else self.files.update(news)

    def add(self, result: Result) -> None:
        """Something was made; what is added last counts as the latest."""
        if result.key is not None:
            self._by_key.setdefault(result.key, []).append(result)
        for name, entry in result.outputs.items():
            self._by_file.setdefault(name, []).append(result)
            self._seen.setdefault(name, set()).add(entry[3])
            self.files[name] = entry
        for files in result.matched.values():
            for name, entry in files.items():
                self._seen.setdefault(name, set()).add(entry[3])
                self.files[name] = entry
        if not result.outputs:
            self._by_task.setdefault(result.task, []).append(result)

    def results(self, key: str) -> list[Result]:
        """What came out of a recipe, the latest first."""
        return self._by_key.get(key, [])[::-1]

    def made(self, file: str) -> list[Result]:
        """The results that a file was part of, the latest first."""
        return self._by_file.get(file, [])[::-1]

    def outputs(self) -> Iterable[str]:
        """Return the names of all outputs that tasks have ever made."""
        return self._by_file.keys()

    def latest_results(self) -> Iterable[Result]:
        """Return the results that are the last of an output, or of a task without outputs."""
        listed = (*self._by_file.values(), *self._by_task.values())
        return {id(results[-1]): results[-1] for results in listed}.values()

    def of_task(self, task: str) -> list[Result]:
        """The results of a task that makes no files, the latest first."""
        return self._by_task.get(task, [])[::-1]

    def knows(self, file: str) -> bool:
        """Whether foreplan ever made a file."""
        return file in self._seen

    def is_own(self, file: str, content: str) -> bool:
        """Whether a file had this content when foreplan made it or somebody adopted it."""
        return content in self._seen.get(file, ())

    def has_made(self, file: str, content: str) -> bool:
        """Return whether foreplan made a file with this content; adopted content does not count."""
        by_hand = (r for r in self._by_file.get(file, ()) if r.note == ADOPTED)
        return self.is_own(file, content) and all(r.outputs[file][3] != content for r in by_hand)

    def memory(self, trust: str = CONTENT) -> Memory:
        """The contents of the directory's files, as far as they are known."""
        return Memory(self.folder.parents[1], self.files, trust)

    def lines(self) -> Iterator[parts.Line]:
        """All that counts of it, as few lines as say it."""
        kept: dict[int, Result] = {}
        for named in (*self._by_file.values(), *self._by_task.values()):
            kept |= {id(result): result for result in named[-_RESULTS:]}
        there = set(_listing(self.folder.parent / "runs"))
        for results in self._by_key.values():  # what functions gave back is there for any key
            of_calls = [r for r in results if r.call is not None and r.call.run in there]
            held = [r for r in of_calls if r.call is not None and r.call.file[3]]
            kept |= {id(result): result for result in (*of_calls[-1:], *held[-1:])}
        for result in sorted(kept.values(), key=lambda result: result.at):
            yield result.line()
        runs = {result.run for result in kept.values()}
        runs |= {*{origin: run for run, origin in self.origins.items()}.values()}  # one of each
        by_origin: dict[ResultOrigin, list[str]] = {}
        for run, origin in self.origins.items():
            if run in runs:
                by_origin.setdefault(origin, []).append(run)
        for origin, listed in by_origin.items():
            yield origin.line(listed)
        shown = {(name, entry[3]) for r in kept.values() for name, entry in r.outputs.items()}
        for chunk in _chunks(self._older(shown)):
            yield {"seen": dict(chunk)}
        latest = max((result.at for result in kept.values()), default=0.0)
        for part in _chunks(self.files.items()):
            yield {"files": dict(part), "at": latest}

    def _older(self, shown: set[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
        """The contents that files had before the results that are kept."""
        for name, contents in self._seen.items():
            dated = [r.outputs[name][3] for r in self._by_file.get(name, ())]
            older = [*(contents - set(dated)), *dated]
            rest = [c for c in dict.fromkeys(older) if (name, c) not in shown][-_CONTENTS:]
            if rest:
                yield name, rest


def other_format(folder: Path) -> StoreError:
    """Say that a store has a format that this version cannot read."""
    return StoreError(
        f"{folder}: another version of foreplan wrote this store: use that version, or forget it "
        "with `foreplan clean --store --all`; then every task runs again"
    )


def file_lines(entries: Mapping[str, Entry], at: float) -> bytes:
    """Lines of files whose contents are to be remembered."""
    chunks = _chunks(entries.items())
    return b"".join(parts.encode({"files": dict(part), "at": at}) for part in chunks)


def _tidy(folder: Path, is_live: Callable[[str], bool]) -> list[str]:
    """Mend what is damaged and fold old parts; sentences on what was damaged.

    What cannot be done now, because somebody else is doing it, is left to the next one.
    """
    said: list[str] = []
    with suppress(OSError):
        names = [name for name in parts.list_parts(folder) if parts.is_over(is_live, name)]
        found = [parts.read_part(folder / name, keep=True) for name in names]
        said += [parts.mend(folder, part) for part in found if part.bad]
        whole = [part for part in found if not part.bad]
        if len(whole) > MANY:
            parts.fold(folder, whole, Store.of_parts(folder, whole).lines())
    return said


def _result(line: parts.Line) -> Result:
    call = line.get("call")
    return Result(
        line["task"],
        line["run"],
        line["at"],
        line.get("key"),
        line.get("recipe") or {},
        {name: _entry(entry) for name, entry in line["outputs"].items()},
        line.get("note", ""),
        None if call is None else KeptResult.read(call),
        line.get("attempt"),
        line.get("seconds", 0.0),
        {
            pattern: {name: _entry(entry) for name, entry in files.items()}
            for pattern, files in line.get("matched", {}).items()
        },
    )


def _listing(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _entry(entry: list[Any]) -> Entry:
    size, changed, inode, content = entry
    return size, changed, inode, content


def _chunks(items: Iterable[tuple[str, Any]]) -> Iterator[list[tuple[str, Any]]]:
    listed = list(items)
    for begin in range(0, len(listed), _AT_ONCE):
        yield listed[begin : begin + _AT_ONCE]
