"""What became of a run, read off its journal without building anything."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foreplan.durable import reason
from foreplan.errors import InputError
from foreplan.files import printable
from foreplan.runs.home import RunHome, check_private, runs
from foreplan.runs.journal import RULES, decode, read_header, scan
from foreplan.runs.lock import is_driven
from foreplan.runs.options import parameters

_STATUSES = ("finished", "failed", "stopped")
# a quote inside JSON text is written \", so these bytes are nothing but such keys and values
_EVENT, _FINISHED = b'"t":"event"', b'"kind":"task_finished"'
_ADDED = b'"t":"tasks"'
_TURNS = (b'"t":"end"', b'"t":"resumed"')


@dataclass(frozen=True)
class Summary:
    """A run on one line."""

    id: str
    name: str
    created: str | None  # as the header has it
    status: str  # running, finished, failed, stopped, interrupted, or unreadable
    done: int
    total: int | None
    seconds: float | None  # the run's own clock at the last entry
    problem: str | None = None  # what is wrong with the journal


def summarise(home: RunHome) -> Summary:
    """The state of a run; a journal that cannot be read is a state too."""
    driven = is_driven(home)  # first: a run that ends meanwhile has written its end
    try:
        found = scan(home.journal, bytes)
        header = decode(found.lines[0]) if found.lines else {}
    except OSError as error:
        return _unreadable(home, driven, reason(error))
    except ValueError:
        return _unreadable(home, driven, "its first line is not JSON")
    if not found.lines:
        return _unreadable(home, driven, f"its first line {found.fault or 'is missing'}")
    if header.get("rules") != RULES:
        return _unreadable(home, driven, "another version of foreplan wrote it")
    lines = found.lines[1:]
    status = "running" if driven else _ending(lines) or "interrupted"
    total = header.get("tasks")
    total = total + _added(lines) if type(total) is int else None
    done = sum(_FINISHED in line for line in lines if _EVENT in line)
    if total is not None:  # lost results were made twice
        done = total if status == "finished" else min(done, total)
    # while it is driven, the last line may be about to be written
    problem = f"line {len(found.lines) + 1} {found.fault}" if found.bad and not driven else None
    return Summary(
        home.id, _name(header, home), _text(header, "created"), status, done, total,
        _seconds(lines), problem,
    )  # fmt: skip


def _added(lines: list[bytes]) -> int:
    """How many tasks were added while it ran."""
    entries = (_entry(line) for line in lines if _ADDED in line)
    found = (entry.get("added") for entry in entries if entry.get("t") == "tasks")
    return sum(len(more["tasks"]) for more in found if isinstance(more, dict) and "tasks" in more)


def _unreadable(home: RunHome, driven: bool, problem: str) -> Summary:
    status = "running" if driven else "unreadable"
    return Summary(home.id, home.id, None, status, 0, None, None, problem)


def _name(header: dict[str, Any], home: RunHome) -> str:
    return _text(header, "name") or home.id


def _text(header: dict[str, Any], key: str) -> str | None:
    value = header.get(key)
    return value if isinstance(value, str) else None


def _entry(line: bytes) -> dict[str, Any]:
    try:
        return decode(line)
    except (ValueError, RecursionError):
        return {}


def _ending(lines: list[bytes]) -> str | None:
    """How the run ended, unless it was resumed after that."""
    for line in reversed(lines):
        if any(turn in line for turn in _TURNS):
            entry = _entry(line)
            if entry.get("t") == "resumed":
                return None
            if entry.get("t") == "end":
                return entry["status"] if entry.get("status") in _STATUSES else None
    return None


def _seconds(lines: list[bytes]) -> float | None:
    for line in reversed(lines):
        time = _entry(line).get("time") if b'"time":' in line else None
        if isinstance(time, (int, float)) and not isinstance(time, bool):
            return float(time)
    return None


def last_source(directory: Path) -> tuple[str, dict[str, Any]]:
    """The file of the workflow that was run last in a directory, and its parameters."""
    for home in runs(directory):
        if source := _source_of(home):
            return source, kept_params(home)
    raise InputError("no workflow was run here yet: name its file, `foreplan adopt FILE OUTPUT`")


def last_run_of(workflow: Path, directory: Path) -> RunHome:
    """Return the last run of a workflow's file in a directory."""
    wanted = os.path.realpath(workflow)
    for home in runs(directory):
        source = _source_of(home)
        if source is not None and os.path.realpath(source) == wanted:
            check_private(home.path)
            return home
    raise InputError(
        f"it was not run in {directory.absolute()}: `foreplan runs` lists the runs there, --dir "
        "names another directory",
        source=printable(workflow),
    )


def _source_of(home: RunHome) -> str | None:
    """Return the workflow's file of a run; None if it has none, or its journal is unreadable."""
    try:
        return read_header(home.journal).get("source")
    except (OSError, ValueError, KeyError):
        return None


def kept_params(home: RunHome) -> dict[str, Any]:
    """The parameters that a run was given."""
    return parameters(read_header(home.journal).get("options", {}).get("params", {}))
