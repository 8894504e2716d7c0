"""The journal: one line per entry, appended, and on disk before anything is done about it.

A line is a checksum, a space, and JSON that begins with the line's number.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NoReturn, Self, TypeVar
from zlib import crc32

from foreplan.durable import (
    FRAME,
    make_file,
    open_file,
    reason,
    sync,
    sync_directory,
    unframed,
    write_all,
    write_new,
)
from foreplan.errors import ForeplanError, InputError


class JournalError(ForeplanError):
    """The journal or the home of a run cannot be read or written; says what to do."""


class JournalRemovedError(JournalError):
    """Somebody has deleted the journal of a run under way, so the run cannot be resumed."""


def plain(value: Any) -> Any:
    """The value as JSON can hold it: inf, -inf and nan as these words; keys as text.

    `real` reads the words back. Arrays are refused: they are packed.
    """
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, dict):
        return {_key(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if getattr(value, "ndim", None) == 0:  # a scalar of numpy, which need not be imported here
        return plain(value.item())
    raise TypeError(f"a journal holds plain values only, and no {type(value).__name__}")


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(plain(key))


def real(value: Any) -> float:
    """A number as the journal holds it, words for inf, -inf and nan included."""
    if value in ("inf", "-inf", "nan") or (
        isinstance(value, (int, float)) and not isinstance(value, bool)
    ):
        return float(value)
    raise InputError(f"a number is expected here, and not {value!r}")


T = TypeVar("T")


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


# entries are never parts of themselves, and to look for that takes a tenth of the time
_ENCODER = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(parse_constant=_refuse)


@dataclass
class Scan(Generic[T]):
    """The lines of a file up to the first bad one, and how much comes from there on."""

    lines: list[T] = field(default_factory=list)
    good: int = 0  # bytes
    bad: int = 0  # bytes
    readable: int = 0  # lines from the first bad one on whose own checksum is right
    fault: str = ""  # what is wrong with the first bad line


def encode(number: int, entry: dict[str, Any]) -> bytes:
    """The line of an entry; it is ASCII, so no cut splits a character."""
    if "seq" in entry:
        raise ValueError("an entry's seq is given by the journal")
    try:
        body = _ENCODER.encode(entry)
    except (TypeError, ValueError):  # rare: numpy's numbers, or what is not finite
        body = _ENCODER.encode(plain(entry))
    rest = "}" if body == "{}" else "," + body[1:]
    payload = f'{{"seq":{number}{rest}'.encode("ascii")
    return FRAME % (crc32(payload), payload)


def decode(payload: bytes) -> dict[str, Any]:
    """The entry of a line whose checksum is right."""
    content: dict[str, Any] = _DECODER.decode(payload.decode("ascii"))
    del content["seq"]
    return content


def read_header(path: Path) -> dict[str, Any]:
    """Return the header of a journal as plain data, without reading the rest."""
    with open(open_file(path), "rb") as file:
        return decode(file.readline().partition(b" ")[2])


def resume_words(journal: Path, command: str = "") -> str:
    """Return what resumes a run, for a message: a command, or of functions a call in Python.

    `command` is the command as it must be typed, if that is more than the run's name.
    """
    run = journal.parent.name
    try:
        has_functions = bool(read_header(journal).get("functions"))
    except (OSError, ValueError, KeyError):  # nobody can tell
        has_functions = False
    return how_to_resume(run, has_functions, command)


def how_to_resume(run: str, has_functions: bool, command: str = "") -> str:
    """Return the command that resumes a run, or the call in Python if it runs functions."""
    if has_functions:
        return f"`foreplan.run(flow, ..., resume={run!r})` in Python"
    return f"`{command or f'foreplan resume {run}'}`"


def scan(path: Path, read: Callable[[bytes], T]) -> Scan[T]:
    """Read all lines that are whole, right and in order from the first one on."""
    found: Scan[T] = Scan()
    with open(open_file(path), "rb") as file:
        for line in file:
            payload = unframed(line)
            if not found.bad:
                found.fault = _take(line, payload, found, read)
                if not found.fault:
                    found.good += len(line)
                    continue
            found.bad += len(line)
            found.readable += payload is not None
    return found


def _take(line: bytes, payload: bytes | None, found: Scan[T], read: Callable[[bytes], T]) -> str:
    """Add the line to what was found, or say what is wrong with it."""
    if not line.endswith(b"\n"):
        return "is cut"
    if payload is None:
        return "is damaged (its checksum is wrong)"
    if not payload.startswith((b'{"seq":%d,' % len(found.lines), b'{"seq":%d}' % len(found.lines))):
        return "is out of order (lines are missing or doubled)"
    try:
        found.lines.append(read(payload))
    except (ValueError, RecursionError):
        return "is not JSON"
    return ""


# Raised when the entries of a journal change, or the decisions that a replay must repeat: a journal
# of other rules is refused (decision 028).
RULES = 3
_SAFE = "nothing finished is lost: what attempts have finished is on disk and will be found"


@dataclass(frozen=True)
class Damage:
    """What was lost of a journal: all from the first bad line on."""

    line: int  # counted from 1, the header
    bytes: int
    entries_after: int  # entries that could be read, but come after something that is missing
    message: str


@dataclass(frozen=True)
class Contents:
    """What a journal tells, up to the first bad line if there is one."""

    header: dict[str, Any]
    entries: list[dict[str, Any]]
    damage: Damage | None = None


def read(path: Path) -> Contents:
    """Read a journal without changing it; of a run under way the last line may still be cut."""
    found = _scan(path)
    return _contents(path, found, "it is left as it is")


class Journal:
    """A journal that is written; its writer holds the run's lock. Not for several threads."""

    def __init__(self, path: Path, descriptor: int, count: int, length: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor
        self._count, self._length = count, length  # lines and bytes that are on disk for sure
        self._broken = ""

    @staticmethod
    def create(path: Path, header: dict[str, Any]) -> Journal:
        """Begin a new journal; it must not be there yet."""
        line = encode(0, header)
        try:
            descriptor = make_file(path)
        except OSError as error:
            raise _cannot_begin(path, error) from None
        try:
            write_all(descriptor, line)
            os.fsync(descriptor)
            sync_directory(path.parent)
        except BaseException as error:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise _cannot_begin(path, error) if isinstance(error, OSError) else error from None
        return Journal(path, descriptor, 1, len(line))

    @staticmethod
    def open(path: Path) -> tuple[Journal, Contents]:
        """Go on with a journal: what it tells, its damaged end set aside."""
        found = _scan(path)
        try:
            descriptor = open_file(path, os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise JournalError(f"{path}: cannot write the journal: {reason(error)}") from None
        try:
            done = _repair(path, descriptor, found) if found.bad else ""
            contents = _contents(path, found, done)
        except BaseException:
            os.close(descriptor)
            raise
        return Journal(path, descriptor, len(found.lines), found.good), contents

    def append(self, entries: list[dict[str, Any]]) -> None:
        """Add entries; they are on disk when this returns, and none of them is if it fails.

        Keys come back as text, tuples as lists, numbers that are not finite as words (see `real`).
        """
        if self._descriptor is None:
            raise ValueError("the journal is closed")
        if self._broken:
            raise self._failure(self._broken)
        lines = b"".join(encode(self._count + i, entry) for i, entry in enumerate(entries))
        if not lines:
            return
        self._check_own(self._descriptor)
        try:
            self._write(self._descriptor, lines)
        except BaseException as error:
            self._cut_back(self._descriptor)
            if isinstance(error, OSError):
                raise self._failure(reason(error)) from error
            raise
        self._count += len(entries)
        self._length += len(lines)

    def _write(self, descriptor: int, lines: bytes) -> None:
        written = os.write(descriptor, lines)  # as a rule all of them
        if written < len(lines):
            write_all(descriptor, lines[written:])
        try:
            sync(descriptor)
        except OSError as error:
            # the system may have dropped what it could not write: a second try proves nothing
            self._broken = reason(error)
            raise

    def _check_own(self, descriptor: int) -> None:
        """Nobody else may have written to the file, nor removed it: that would be no journal."""
        state = os.fstat(descriptor)
        if state.st_nlink == 0:
            raise JournalRemovedError(
                f"{self.path}: somebody has deleted the journal while the run was going on, so it "
                "ends here and cannot be resumed; what it has published is there, and `foreplan "
                "run` does what is left"
            )
        if state.st_size != self._length:
            self._broken = "the file has been changed by another program"
        if self._broken:
            raise self._failure(self._broken)

    def _cut_back(self, descriptor: int) -> None:
        """Remove what was half written. If that fails too, the next `open` does it."""
        try:
            os.ftruncate(descriptor, self._length)
            os.fsync(descriptor)
        except OSError as error:
            self._broken = self._broken or reason(error)

    def _failure(self, why: str) -> JournalError:
        return JournalError(
            f"{self.path}: cannot write the journal: {why}; {_SAFE}; once this is repaired "
            f"(free some space?), {resume_words(self.path)} resumes it"
        )

    def close(self) -> None:
        """Let go of the file; all that was appended is on disk already."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _cannot_begin(path: Path, error: OSError) -> JournalError:
    return JournalError(
        f"{path}: cannot begin the journal: {reason(error)}; nothing has been started yet"
    )


def _scan(path: Path) -> Scan[dict[str, Any]]:
    """What can be read; at least the header, else there is no journal."""
    try:
        found = scan(path, decode)
    except OSError as error:
        raise JournalError(f"{path}: cannot read the journal: {reason(error)}") from None
    if not found.lines:
        problem = f"its first line {found.fault}" if found.bad else "it is empty"
        raise JournalError(
            f"{path}: this is no journal of a run: {problem}, so the run cannot be resumed; "
            "what it has published is still there: start it anew with `foreplan run`"
        )
    rules = found.lines[0].get("rules")
    if rules != RULES:
        raise JournalError(
            f"{path}: another version of foreplan wrote this journal (rules {rules}; this version "
            f"has rules {RULES}): use that version, or start a new run with `foreplan run`"
        )
    return found


def _contents(path: Path, found: Scan[dict[str, Any]], done: str) -> Contents:
    return Contents(found.lines[0], found.lines[1:], _damage(path, found, done))


def _damage(path: Path, found: Scan[dict[str, Any]], done: str) -> Damage | None:
    if not found.bad:
        return None
    line = len(found.lines) + 1
    after = ""
    if found.readable:
        entries = (
            "1 readable entry" if found.readable == 1 else f"{found.readable} readable entries"
        )
        after = f", so {entries} from there on cannot be used either"
    message = (
        f"{path}: line {line} {found.fault}{after}; {found.bad:,} bytes from there to the end: "
        f"{done}; {_SAFE}"
    )
    return Damage(line, found.bad, found.readable, message)


def _repair(path: Path, descriptor: int, found: Scan[dict[str, Any]]) -> str:
    """Set the bad bytes aside, then cut them off; in this order, so that none is ever lost."""
    try:
        with path.open("rb") as file:
            file.seek(found.good)
            kept = _set_aside(path, file.read())
        os.ftruncate(descriptor, found.good)
        os.fsync(descriptor)
    except OSError as error:
        raise JournalError(
            f"{path}: line {len(found.lines) + 1} {found.fault}, and it cannot be repaired: "
            f"{reason(error)}; {_SAFE}; once this is repaired (free some space?), "
            f"{resume_words(path)} resumes it"
        ) from None
    return f"set aside in {kept.name}"


def _set_aside(path: Path, content: bytes) -> Path:
    """Keep the bytes in a new file beside the journal."""
    number = 1
    while True:
        kept = path.with_name(f"{path.stem}.damaged{'' if number == 1 else f'.{number}'}")
        try:
            write_new(kept, content)
        except FileExistsError:
            number += 1
        else:
            return kept
