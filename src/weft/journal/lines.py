"""One line of a journal: a checksum, a space, and JSON that begins with the line's number."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar
from zlib import crc32

from weft.journal.plain import plain

T = TypeVar("T")
_SUM = 8  # hexadecimal digits


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
    return b"%08x %b\n" % (crc32(payload), payload)


def decode(payload: bytes) -> dict[str, Any]:
    """The entry of a line whose checksum is right."""
    content: dict[str, Any] = _DECODER.decode(payload.decode("ascii"))
    del content["seq"]
    return content


def scan(path: Path, read: Callable[[bytes], T]) -> Scan[T]:
    """Read all lines that are whole, right and in order from the first one on."""
    found: Scan[T] = Scan()
    with path.open("rb") as file:
        for line in file:
            payload = _checked(line)
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


def _checked(line: bytes) -> bytes | None:
    """The line's JSON, if the line is whole and its checksum is right."""
    payload = line[_SUM + 1 : -1]
    right = line.endswith(b"\n") and line.startswith(b"%08x " % crc32(payload))
    return payload if right else None
