"""What people want to see of a history: a row for each category on each machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weft.history.levels import Declared, find_speeds, log_seconds
from weft.history.medians import group_deviations, group_medians
from weft.history.records import History
from weft.history.sizes import find_shapes


@dataclass(frozen=True)
class Row:
    """A category on a machine; the median and the spread are those of the newest records."""

    category: str
    machine: str
    count: int
    median: float  # seconds
    spread: float  # robust standard deviation, relative to the median
    last: float  # seconds since 1970
    by_size: bool  # whether predictions follow the size of the input


def summarise(records: History, counts: Mapping[tuple[str, str], tuple[int, float]]) -> list[Row]:
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
        rows.append(Row(*names, count, median, spread, last, bool(shapes.used[category])))
    return rows
