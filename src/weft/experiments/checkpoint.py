"""What is done of a long experiment: one line per unit, so that a later call goes on from there.

A line is a checksum and JSON. One that is torn or damaged is ignored, and its unit done again.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from weft.errors import InputError
from weft.files import printable

FORMAT = 1


@dataclass
class Checkpoint:
    """The units done so far, in a file; the first line says with which settings."""

    path: Path
    done: dict[int, dict[str, list[float]]] = field(default_factory=dict)
    seconds: float = 0.0  # of the processors, in all units
    sittings: list[tuple[float, int]] = field(default_factory=list)  # wall seconds, processes
    _file: IO[bytes] | None = None

    @staticmethod
    def open(path: Path, settings: Mapping[str, Any], fresh: bool = False) -> Checkpoint:
        """Go on with this file, or begin it; of other settings it is refused."""
        checkpoint = Checkpoint(path)
        head = {"format": FORMAT, **json.loads(json.dumps(settings))}
        try:
            raw = path.read_bytes() if path.exists() and not fresh else b""
            found = [_parsed(line) for line in raw.split(b"\n")]
            entries = [entry for entry in found if entry is not None]
            if raw and (not entries or entries[0] != {"settings": head}):
                raise _other_settings(path, head, entries[0] if entries else {})
            checkpoint._load(entries[1:])
            checkpoint._file = path.open("ab" if raw else "wb")
        except OSError as error:
            raise InputError(f"cannot use it: {error.strerror}", source=printable(path)) from None
        if not raw:
            checkpoint._write({"settings": head})
        elif not raw.endswith(b"\n"):
            checkpoint._file.write(b"\n")
        return checkpoint

    def _load(self, entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            if "unit" in entry:
                self.done[entry["unit"]] = entry["columns"]
                self.seconds += entry["seconds"]
            elif "sitting" in entry:
                self.sittings.append((entry["sitting"], entry["processes"]))

    def add(self, unit: int, columns: dict[str, list[float]], seconds: float) -> None:
        """A unit is done; it is on disk when this returns, as far as the system tells."""
        self.done[unit] = columns
        self.seconds += seconds
        self._write({"unit": unit, "seconds": round(seconds, 4), "columns": columns})

    def rise(self, seconds: float, processes: int) -> None:
        """A sitting ends: finished, or interrupted."""
        self.sittings.append((seconds, processes))
        self._write({"sitting": round(seconds, 3), "processes": processes})

    def close(self) -> None:
        """Nothing more is added."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, entry: dict[str, Any]) -> None:
        assert self._file is not None
        text = json.dumps(entry, separators=(",", ":")).encode()
        try:
            self._file.write(b"%08x %s\n" % (zlib.crc32(text), text))
            self._file.flush()
        except OSError as error:
            source = printable(self.path)
            raise InputError(f"cannot write: {error.strerror}", source=source) from None


def _parsed(line: bytes) -> dict[str, Any] | None:
    """The entry of a line, if it is whole."""
    checksum, _, text = line.partition(b" ")
    if not text or b"%08x" % zlib.crc32(text) != checksum:
        return None
    entry: dict[str, Any] = json.loads(text)
    return entry


def _other_settings(path: Path, head: dict[str, Any], entry: dict[str, Any]) -> InputError:
    found = entry.get("settings", {})
    differ = [name for name in head if found.get(name) != head[name]]
    what = ", ".join(f"{name} {found.get(name)!r}, not {head[name]!r}" for name in differ)
    problem = f"it was begun with other settings ({what})" if found else "its first line is damaged"
    advice = "begin anew with --fresh, or give another folder with --out"
    return InputError(f"{problem}; {advice}", source=printable(path))
