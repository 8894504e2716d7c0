"""The store on disk: a folder of parts, one append-only file per writer, so that no lock is needed.

A line is JSON behind a checksum. Nobody ever writes to another's part; a reader reads them all.
What a kill has cut off at the end of a part is passed by; other damage is said, and mended by
`tidy`: the good lines go into a new part, then the damaged one is moved aside. Old parts of runs
that are over are folded into one: it is there before they go, so a reader finds each line at least
once, whoever else folds at the same time. An old part is renamed before it goes, and looked at
again: a writer that was taken to be over finds its part where it was, and then what it wrote is
seen there, or it does not, and writes it once more into a new one.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from foreplan.durable import (
    FRAME,
    check_owner,
    make_directory,
    make_file,
    read_file,
    sync_directory,
    unframed,
    write_all,
    write_new,
)
from foreplan.store.content import CLOCK

DAMAGED = "damaged"  # the folder of parts that were moved aside
FORMAT = 2  # of what parts hold; raised when it changes, and stores of other formats are refused
_MARK = "format-"  # an empty file, named after the format of the store it is in
FOLDED = "folded"  # the writer of parts that were folded into one
_END, _GONE = ".jsonl", ".gone"  # a part, and one that is folded and about to go
_ENCODER = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":"))
_TRIES = 20  # listings, where parts are folded again and again while they are read

Line = dict[str, Any]


def folder_of(data: str | os.PathLike[str]) -> Path:
    """Where the store of a data directory is."""
    return Path(data) / ".foreplan" / "store"


def make_folder(data: str | os.PathLike[str]) -> Path:
    """The folder of the store, made if it is not there."""
    folder = folder_of(data)
    for place in (folder.parent, folder):
        with suppress(FileExistsError):
            make_directory(place)
    with suppress(FileExistsError):
        write_new(folder.parent / ".gitignore", b"*\n")
    with suppress(FileExistsError):
        os.close(make_file(folder / CLOCK))
    if not list_parts(folder) and not _formats(folder):
        with suppress(FileExistsError):
            os.close(make_file(folder / f"{_MARK}{FORMAT}"))
    return folder


def check_private(folder: Path) -> None:
    """Refuse a store that others may have written to: they could forge what is up to date."""
    for place in (folder.parent, folder) if hasattr(os, "geteuid") else ():
        with suppress(FileNotFoundError):
            check_owner(place)


def is_readable(folder: Path) -> bool:
    """Return whether a store is empty, or of the format that this version writes."""
    formats = _formats(folder)
    if formats or not list_parts(folder):
        return formats in ([], [str(FORMAT)])
    # a directory may be listed without the mark and with a part that was added after it
    return (folder / f"{_MARK}{FORMAT}").exists()


def drop_other_formats(folder: Path) -> None:
    """Let an empty store be of no format, so that the next run can write to it."""
    if not list_parts(folder):
        for name in _formats(folder):
            if name != str(FORMAT):
                (folder / f"{_MARK}{name}").unlink(missing_ok=True)


def _formats(folder: Path) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    return [name.removeprefix(_MARK) for name in names if name.startswith(_MARK)]


def encode(line: Line) -> bytes:
    """A line as it stands in a part; it is ASCII, so no cut splits a character."""
    payload = _ENCODER.encode(line).encode("ascii")
    return FRAME % (crc32(payload), payload)


class Part:
    """A file that one process appends to; made with its first line. For several threads."""

    def __init__(self, folder: str | os.PathLike[str], writer: str) -> None:
        self._folder, self._writer = Path(folder), writer
        self._lock = threading.Lock()
        self._descriptor = -1
        self._path = self._folder
        self._length = 0
        self._process = os.getpid()

    def append(self, line: bytes) -> None:
        """Add lines; whoever reads from now on finds them. An OSError leaves none of them."""
        with self._lock:
            if self._descriptor < 0 or self._process != os.getpid():
                self._open()
            self._write(line)
            if not os.path.exists(self._path):  # somebody took this run to be over
                self._open()
                self._write(line)

    def _open(self) -> None:
        if self._descriptor >= 0 and self._process == os.getpid():
            os.close(self._descriptor)
        self._descriptor, self._length, self._process = -1, 0, os.getpid()
        while self._descriptor < 0:
            self._path = self._folder / f"{self._writer}.{secrets.token_hex(4)}{_END}"
            with suppress(FileExistsError):
                self._descriptor = make_file(self._path)

    def _write(self, line: bytes) -> None:
        try:
            write_all(self._descriptor, line)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._length)
            raise
        self._length += len(line)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._descriptor >= 0 and self._process == os.getpid():
                os.close(self._descriptor)
            self._descriptor = -1


_parts: dict[tuple[str, str], Part] = {}
_parts_lock = threading.Lock()


def append(folder: str, writer: str, line: bytes) -> None:
    """Add a line to this process's part of a run: for jobs, wherever they are."""
    part = _parts.get((folder, writer))
    if part is None:
        with _parts_lock:
            part = _parts.setdefault((folder, writer), Part(folder, writer))
    part.append(line)


def close_part(folder: str, writer: str) -> None:
    """Close this process's part of a run that is over."""
    with _parts_lock:
        part = _parts.pop((folder, writer), None)
    if part is not None:
        part.close()


def writer_of(name: str) -> str:
    """Who has written a part: the run."""
    return name.removesuffix(_END).removesuffix(_GONE).rpartition(".")[0]


@dataclass
class Found:
    """What one part holds."""

    name: str
    lines: list[Line] = field(default_factory=list)
    good: list[bytes] = field(default_factory=list)  # the same as they stand there, if asked for
    size: int = 0  # bytes
    bad: int = 0  # lines that cannot be read, but for one that is cut off at the end


def read_parts(folder: Path, keep: bool = False) -> list[Found]:
    """All parts, each once; what is folded meanwhile is found again where it went to."""
    found: dict[str, Found] = {}
    for _ in range(_TRIES):
        names = list_parts(folder)
        try:
            for name in names:
                if name not in found:
                    found[name] = read_part(folder / name, keep)
        except FileNotFoundError:
            continue
        return list(found.values())
    raise OSError(f"{folder}: its files come and go: try again")


def list_parts(folder: Path) -> list[str]:
    """The names of all parts."""
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith((_END, _GONE)))
    except FileNotFoundError:
        return []


def read_part(path: Path, keep: bool = False) -> Found:
    """The lines of a part that can be read."""
    return parse(read_file(path), path.name, keep)


def parse(raw: bytes, name: str = "", keep: bool = False) -> Found:
    """The lines that can be read, of a part or of what is to become one."""
    found = Found(name, size=len(raw))
    add, load = found.lines.append, json.loads
    for line in raw.splitlines(keepends=True):
        payload = unframed(line)
        if payload is None:
            found.bad += line.endswith(b"\n")
            continue
        try:
            content = load(payload)
        except (ValueError, RecursionError):
            found.bad += 1
            continue
        if isinstance(content, dict):
            add(content)
            if keep:
                found.good.append(line)
    return found


def mend(folder: Path, found: Found) -> str:
    """Move a damaged part aside, its good lines into a new one; what was done, in a sentence."""
    if found.good:
        put(folder, writer_of(found.name) or FOLDED, found.good)
    aside = folder / DAMAGED
    with suppress(FileExistsError):
        make_directory(aside)
    with suppress(FileNotFoundError):  # somebody else was faster
        os.rename(folder / found.name, aside / found.name)
    return f"{told(folder, found)}; it was moved to {aside / found.name}"


def told(folder: Path, found: Found) -> str:
    """What is wrong with a part."""
    lines = "1 line" if found.bad == 1 else f"{found.bad} lines"
    return (
        f"{folder / found.name}: this part of the store is damaged: {lines} of it cannot be read, "
        f"{len(found.lines)} can: what they told of is made again"
    )


def fold(folder: Path, parts: list[Found], lines: Iterable[Line]) -> None:
    """Put lines, which say all that counts of these parts, in the place of the parts."""
    if encoded := [encode(line) for line in lines]:
        put(folder, FOLDED, encoded)
    for part in parts:
        gone = folder / (part.name.removesuffix(_END).removesuffix(_GONE) + _GONE)
        with suppress(FileNotFoundError):  # somebody else folds, too
            os.rename(folder / part.name, gone)
            if gone.stat().st_size > part.size:
                put(folder, FOLDED, read_part(gone, keep=True).good)
            os.unlink(gone)


def put(folder: Path, writer: str, lines: list[bytes]) -> None:
    """A new part that is whole when it appears."""
    name = f"{writer}.{secrets.token_hex(4)}"
    hidden = folder / f".{name}.tmp"
    try:
        write_new(hidden, b"".join(lines))
        os.rename(hidden, folder / f"{name}{_END}")
        sync_directory(folder)
    finally:
        hidden.unlink(missing_ok=True)


def is_over(is_live: Callable[[str], bool], name: str) -> bool:
    """Whether nobody writes to a part any more."""
    writer = writer_of(name)
    return name.endswith(_GONE) or writer == FOLDED or not is_live(writer)
