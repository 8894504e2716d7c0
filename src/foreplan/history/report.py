"""What people see of a history: a row for each category and machine, and its records as a file."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from foreplan.errors import InputError
from foreplan.files import printable, write_text
from foreplan.history.levels import (
    Declared,
    find_shapes,
    find_speeds,
    group_deviations,
    group_medians,
    log_seconds,
)
from foreplan.history.memory import Suggestion, cores_of, model_of, suggestion
from foreplan.history.records import FailureRecord, History, Measured, TaskRecord, TransferRecord


@dataclass(frozen=True)
class SummaryRow:
    """A category on a machine; the median and the spread are those of the newest records."""

    category: str
    machine: str
    count: int
    median: float  # seconds
    spread: float  # robust standard deviation, relative to the median
    last: float  # seconds since 1970
    by_size: bool  # whether predictions follow the size of the input
    memory: float | None = None  # bytes, the most that one of the newest had
    at_most: bool = False  # it is only known to be no more than that
    cores: float | None = None  # that they kept busy


def summarise(
    records: History, counts: Mapping[tuple[str, str], tuple[int, float]]
) -> list[SummaryRow]:
    """The rows in order of category and machine; `counts` are the repository's."""
    table = records.table()
    values, every = log_seconds(table), np.ones(len(table.seconds), dtype=np.bool_)
    n, m = len(table.rows), len(table.machines)
    speeds = find_speeds(table, values, every, Declared(np.full(n, np.nan), np.full(m, np.nan)))
    shapes = find_shapes(table, values, speeds.slowness, np.ones(n, dtype=np.bool_))
    key, of_record = np.unique(table.category * np.int64(m) + table.machine, return_inverse=True)
    medians = group_medians(table.seconds, of_record, len(key))
    spreads = group_deviations(values, group_medians(values, of_record, len(key)), of_record,
                               len(key))  # fmt: skip
    rows = []
    for cell, (category, machine) in enumerate(zip(key // m, key % m, strict=True)):
        names = table.rows[category].category, table.machines[machine]
        if names not in counts:  # forgotten by another process in between
            continue
        count, last = counts[names]
        median, spread = float(medians[cell]), float(spreads[cell])
        by_size = bool(shapes.used[category])
        most, at_most, cores = _used(records.of(table.rows[category], names[1]))
        rows.append(SummaryRow(*names, count, median, spread, last, by_size, most, at_most, cores))
    return rows


def _used(records: list[Measured]) -> tuple[float | None, bool, float | None]:
    memory = [(r.memory, r.at_most) for r in records if not math.isnan(r.memory)]
    most, at_most = max(memory, default=(None, False))
    return most, at_most, cores_of(records)


def suggest(records: History, asked: Mapping[str, float]) -> list[Suggestion]:
    """What tasks of each category could ask for, in their order; `asked` is the repository's."""
    by_category: dict[str, list[Measured]] = {}
    for row, measured in records.by_row():
        by_category.setdefault(row.category, []).extend(measured)
    found = []
    for category, measured in by_category.items():
        model = model_of(measured)
        if model is not None:
            found.append(suggestion(category, model, asked.get(category)))
    return [said for said in found if said.matters]


COLUMNS = ("kind", "at", "run", "workflow", "category", "machine", "source", "target", "size",
           "seconds", "directory", "command", "memory", "at_most", "cpu", "read", "written",
           "asked", "cause")  # fmt: skip


def check_suffix(path: Path) -> None:
    """Refuse a file of another kind, before any work."""
    if path.suffix.lower() not in _WRITERS:
        raise InputError(
            "the history is exported as .csv or .json, by the name of the file",
            source=printable(path),
        )


def write(
    tasks: list[TaskRecord],
    transfers: list[TransferRecord],
    path: Path,
    failures: Sequence[FailureRecord] = (),
) -> None:
    """Write the records to a file of the kind that its suffix says."""
    check_suffix(path)
    kinds: dict[str, Sequence[Any]] = {"tasks": tasks, "transfers": transfers}
    kinds["failures"] = failures
    plain = {kind: [_plain(asdict(r)) for r in records] for kind, records in kinds.items()}
    write_text(path, _WRITERS[path.suffix.lower()](plain))


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """What is unknown is nothing, not NaN, which JSON does not have."""
    return {key: None if value != value else value for key, value in record.items()}


def _csv(records: dict[str, list[dict[str, Any]]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for kind, rows in records.items():
        writer.writerows({"kind": kind.removesuffix("s"), **row} for row in rows)
    return text.getvalue()


def _json(records: dict[str, list[dict[str, Any]]]) -> str:
    return json.dumps(records, indent=1) + "\n"


_WRITERS = {".csv": _csv, ".json": _json}
