"""Words that the commands for real runs share."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from weft.quantities import duration

took = duration


def clock(seconds: float) -> str:
    """A time that is looked at while it goes on: its digits stay where they are."""
    return f"{seconds:.1f} s" if seconds < 59.95 else duration(seconds)


def against(actual: float, planned: float) -> str:
    """How far a time is from its plan."""
    return f"{actual / planned - 1:+.1%}" if planned > 0 else "-"


def many(count: int, one: str, more: str = "") -> str:
    """A number and its noun."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def moment(text: str | None) -> str:
    """A moment of a journal's, which is UTC, in the user's time."""
    try:
        return datetime.fromisoformat(text or "").astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return "-"


def clean(text: str) -> str:
    """Text of others, for a terminal: it must not move the cursor or change the colours."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def about_command(command: str | None, unlisted: Sequence[str]) -> list[str]:
    """The lines about a command that has failed: all of it, and what was perhaps forgotten."""
    if command is None:
        return []
    first, *rest = command.strip().splitlines() or [""]
    lines = [f"command: {first}", *(f"         {line}" for line in rest)]
    if unlisted:
        names = ", ".join(unlisted[:5]) + (", ..." if unlisted[5:] else "")
        one = len(unlisted) == 1
        lines.append(
            f"it names {names}, which {'is' if one else 'are'} in the data directory but not "
            f"among its inputs: list {'it' if one else 'them'} under inputs"
        )
    return lines


def near(path: Path) -> str:
    """A path from here, if it is below."""
    try:
        return os.fspath(path.absolute().relative_to(Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or this directory is gone
        return os.fspath(path)


def command(name: str, run: str, directory: Path) -> str:
    """A command about a run, as it must be typed here."""
    words = ["weft", name, run]
    try:
        if directory.absolute() != Path.cwd():
            words += ["--dir", near(directory)]
    except OSError:
        words += ["--dir", os.fspath(directory)]
    return shlex.join(words)
