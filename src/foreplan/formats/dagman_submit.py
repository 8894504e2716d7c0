"""What a submit description asks for: request_cpus, request_memory and request_gpus.

Numbers are read, memory with HTCondor's units (powers of 1024; a bare number is MiB). An expression
or a macro is not evaluated: what it asks for is left out, and noted.
"""

from __future__ import annotations

import re
from pathlib import Path

from foreplan.errors import InputError
from foreplan.formats.fields import shown
from foreplan.formats.resources import request_from_fields
from foreplan.model.resources import Request

_ASSIGNED = re.compile(r"\s*(request_(?:cpus|memory|gpus))\s*=\s*(.*?)\s*", re.IGNORECASE)
_WHOLE = re.compile(r"[0-9]{1,7}")
_MEMORY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([KMGT]?)B?", re.IGNORECASE)
_LARGEST = 1 << 20  # bytes of a submit description that are looked at
_JOINED = re.compile(r"\\[ \t]*\r?\n")

Said = tuple[Request | None, tuple[str, ...]]  # the request, and what could not be read of it


def read_submit_file(path: Path) -> Said:
    """What a submit file asks for; a file that is not there says nothing."""
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST)
    except (OSError, ValueError):
        return None, ()
    return read_submit(raw.decode("utf-8", "surrogateescape"))


def read_submit(text: str) -> Said:
    """What the text of a submit description asks for; the last word counts."""
    said: dict[str, str] = {}
    for line in _JOINED.sub("", text).splitlines():
        if found := _ASSIGNED.fullmatch(line):
            said[found[1].lower()] = found[2]
    fields: dict[object, object] = {}
    notes: list[str] = []
    for key, value in said.items():
        field = {"request_cpus": "cores", "request_memory": "memory", "request_gpus": "gpus"}[key]
        read = _memory(value) if field == "memory" else _whole(value)
        if read is None or (field == "cores" and read == 0):
            notes.append(f"{key} = {shown(value)} is no plain number: it is left out")
        else:
            fields[field] = read
    try:
        return request_from_fields(fields), tuple(notes)
    except InputError as error:  # a number that is out of range
        return None, (*notes, str(error))


def _whole(value: str) -> int | None:
    return int(value) if _WHOLE.fullmatch(value) else None


def _memory(value: str) -> str | None:
    found = _MEMORY.fullmatch(value)
    return None if found is None else f"{found[1]}{(found[2] or 'M').upper()}iB"
