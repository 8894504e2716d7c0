"""What the reports of all reproductions share: their folder, their files, tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from weft import files
from weft.errors import InputError


def prepare(folder: Path) -> None:
    """Make the folder, before anything is run for nothing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make this folder: {error.strerror}", source=str(folder)) from None


def write_files(folder: Path, content: Mapping[str, str | bytes]) -> list[Path]:
    """Write each under its name; their paths."""
    for name, value in content.items():
        raw = value.encode("utf-8") if isinstance(value, str) else value
        files.write_bytes(folder / name, raw)
    return [folder / name for name in content]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(_lines(header, rows))


def _lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
