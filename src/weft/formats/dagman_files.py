"""The files that a DAGMan file is made of: itself, what it includes and what it splices in."""

from __future__ import annotations

import codecs
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.errors import InputError
from weft.files import MAX_BYTES, in_file, printable
from weft.formats.dagman_syntax import Statement, statements
from weft.formats.fields import shown


@dataclass(frozen=True, eq=False)
class Source:
    """One file: where it is (None for a mere text), its bytes and its statements."""

    path: Path | None
    raw: bytes
    statements: list[Statement]

    def wrong(self, line: int, problem: str) -> InputError:
        """An error at a line of this file."""
        source = "" if self.path is None else printable(self.path)
        return InputError(problem, place=f"line {line}", source=source)


def text_source(text: str) -> Source:
    """A text that is in no file, and hence can name none."""
    return Source(None, b"", statements(text))


class Files:
    """Reads each file once, however often it is named.

    Paths are relative to the folder of the first file, as if it were submitted from there; what
    is not there is looked for in the working directory, as if it were submitted from here.
    """

    def __init__(self, first: Path) -> None:
        self.bases = (first.parent, Path())
        self._read: dict[str, Source] = {}

    def open(self, path: Path) -> Source:
        """The file at a path."""
        key = os.path.realpath(path)
        if key not in self._read:
            with in_file(path):
                self._read[key] = _source(path)
        return self._read[key]

    def named(self, name: str, bases: Sequence[Path], at: Source, line: int) -> Source:
        """The file that a line of another names."""
        places = [base / name for base in bases]
        path = next((p for p in places if _is_there(p)), places[0])
        if not _is_there(path):
            problem = f"the file {shown(name)} cannot be read: there is no {printable(path)}"
            raise at.wrong(line, problem)
        return self.open(path)


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long
        return False


def _source(path: Path) -> Source:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except ValueError:  # a zero byte in the path
        raise InputError("this is not a path") from None
    except FileNotFoundError:
        raise InputError("cannot read it: there is no such file or directory") from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(f"cannot read it: {reason}") from None
    if len(raw) > MAX_BYTES:
        raise InputError(f"the file is too large: more than {MAX_BYTES:,} bytes")
    # DAGMan does not ask for UTF-8; a comment in another code is as good
    text = raw.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    return Source(path, raw, statements(text))
