"""Records as a file: CSV for a spreadsheet, JSON for a program."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weft.errors import InputError
from weft.files import printable, write_text
from weft.history.records import TaskRecord, TransferRecord

COLUMNS = ("kind", "at", "run", "workflow", "category", "machine", "source", "target", "size",
           "seconds", "directory", "command")  # fmt: skip


def check_suffix(path: Path) -> None:
    """Refuse a file of another kind, before any work."""
    if path.suffix.lower() not in _WRITERS:
        raise InputError(
            "the history is exported as .csv or .json, by the name of the file",
            source=printable(path),
        )


def write(tasks: list[TaskRecord], transfers: list[TransferRecord], path: Path) -> None:
    """Write the records to a file of the kind that its suffix says."""
    check_suffix(path)
    done = [_plain(asdict(record)) for record in tasks]
    moved = [asdict(record) for record in transfers]
    write_text(path, _WRITERS[path.suffix.lower()](done, moved))


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """An unknown size is nothing, not NaN, which JSON does not have."""
    return {**record, "size": None if math.isnan(record["size"]) else record["size"]}


def _csv(tasks: list[dict[str, Any]], transfers: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({"kind": "task", **record} for record in tasks)
    writer.writerows({"kind": "transfer", **record} for record in transfers)
    return text.getvalue()


def _json(tasks: list[dict[str, Any]], transfers: list[dict[str, Any]]) -> str:
    return json.dumps({"tasks": tasks, "transfers": transfers}, indent=1) + "\n"


_WRITERS = {".csv": _csv, ".json": _json}
