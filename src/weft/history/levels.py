"""What the records say: how long each category takes, how slow each machine is, how sure that is.

All of it in logarithms of seconds, where a machine that is twice as slow is a sum away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.arrays import BoolArray, FloatArray, IntArray
from weft.history.medians import (
    TO_DEVIATION,
    Indices,
    deviation,
    group_deviations,
    group_medians,
)
from weft.history.origins import Row
from weft.history.records import Table
from weft.history.speeds import Cells, Speeds, machine_speeds

SHORTEST = 1e-6  # seconds; nothing is taken to be shorter
NOISE = 0.2  # relative deviation of a task, until a few repetitions tell
SCALED = 0.3  # of a machine's speed from one category to another, likewise
FEW = 3  # from so many on, things unlike each other have a typical value
LOOSE = 0.3  # the trust in a row of unlike things, beside one of the same category


@dataclass(frozen=True, eq=False)
class Declared:
    """What is declared: of categories the log cost, of machines the log speed; NaN if nothing."""

    cost: FloatArray
    speed: FloatArray


@dataclass(frozen=True, eq=False)
class Levels:
    """Log seconds of cells (category and machine) and of categories at slowness 0."""

    key: npt.NDArray[np.int64]  # category x machines + machine, ascending
    count: IntArray
    level: FloatArray
    spread: FloatArray
    category: FloatArray  # NaN where nothing is known
    slowness: FloatArray
    measured: BoolArray
    scaled_spread: float  # of a category on a machine where it has not been seen

    def find(self, category: IntArray, machine: IntArray) -> IntArray:
        """The cell of every category (row) on every machine (column); -1 where there is none."""
        wanted = category[:, None] * np.int64(len(self.slowness)) + machine[None, :]
        wanted = np.where(category[:, None] < 0, -1, wanted)
        if not len(self.key):
            return np.full(wanted.shape, -1, dtype=np.int32)
        at = np.minimum(np.searchsorted(self.key, wanted), len(self.key) - 1)
        return np.where(self.key[at] == wanted, at, -1).astype(np.int32)


def log_seconds(table: Table) -> FloatArray:
    """The logarithm of every record's seconds."""
    logs: FloatArray = np.log(np.maximum(table.seconds, SHORTEST))
    return logs


def find_speeds(table: Table, values: FloatArray, counted: BoolArray, declared: Declared) -> Speeds:
    """How slow machines are; where nothing was measured, as they are declared.

    Beside categories that were seen on several machines, two kinds of rows tell of machines: what
    a declared second takes there, and what the typical task of a group takes there. The second is
    the only one if every task is a category of its own, and nothing is declared.
    """
    n_machines = len(declared.speed)
    key, of_record = np.unique(_keys(table, n_machines)[counted], return_inverse=True)
    level = group_medians(values[counted], of_record, len(key))
    row, machine = key // n_machines, key % n_machines
    count = np.bincount(of_record, minlength=len(key))
    kinds = [Cells(row, machine, level, np.sqrt(count))]
    n_rows = len(table.rows)
    known = ~np.isnan(declared.cost[row]) if len(row) else np.zeros(0, np.bool_)
    costs = level[known] - declared.cost[row[known]]
    kinds.append(_typical(np.full(len(costs), n_rows), machine[known], costs, n_machines))
    group = _groups(table.rows)[row] if len(row) else row
    alone = (np.bincount(row, minlength=n_rows)[row] == 1) & (group >= 0)
    rows = n_rows + 1 + group[alone]
    kinds.append(_typical(rows, machine[alone], level[alone], n_machines))
    cells = Cells(
        *(np.concatenate([getattr(kind, name) for kind in kinds]) for name in Cells.__annotations__)
    )
    return _filled(machine_speeds(cells, n_machines), declared.speed)


def measure(table: Table, values: FloatArray, counted: BoolArray, speeds: Speeds) -> Levels:
    """The levels and deviations of cells and categories, given the machines' speeds."""
    n_machines, n_categories = len(speeds.slowness), len(table.rows)
    values, category = values[counted], table.category[counted]
    key, of_record = np.unique(_keys(table, n_machines)[counted], return_inverse=True)
    count, n = np.bincount(of_record, minlength=len(key)), len(key)
    row, machine = key // n_machines, key % n_machines
    at_zero = values - speeds.slowness[table.machine[counted]]
    of_category = group_medians(at_zero, category, n_categories)
    # what other machines let expect counts as one more record: one wild record is then outvoted
    expected = of_category[row] + speeds.slowness[machine]
    elsewhere = np.flatnonzero(np.bincount(row, minlength=n_categories)[row] > 1)
    level = group_medians(
        np.concatenate([values, expected[elsewhere]]), np.concatenate([of_record, elsewhere]), n
    )
    own = group_deviations(values, level, of_record, n)
    repeated = own[count > FEW]
    noise = float(np.median(repeated)) if len(repeated) else NOISE
    spread = np.sqrt((1 + 1 / count) * ((count - 1) * own**2 + 2 * noise**2) / (count + 1))
    apart = (group_medians(values, of_record, n) - expected)[elsewhere]
    unlike = TO_DEVIATION * float(np.median(np.abs(apart))) if len(apart) > 2 * FEW else SCALED
    return Levels(
        key=key,
        count=count.astype(np.int32),
        level=level,
        spread=spread,
        category=of_category,
        slowness=speeds.slowness,
        measured=speeds.measured,
        scaled_spread=float(np.hypot(noise, unlike)),
    )


def calibration(logs: FloatArray, kinds: Indices, n: int) -> tuple[float, float] | None:
    """The typical logarithm over kinds and its deviation; None if there are too few kinds."""
    by_kind = group_medians(logs, kinds, n)
    by_kind = by_kind[~np.isnan(by_kind)]
    return (float(np.median(by_kind)), deviation(by_kind)) if len(by_kind) >= FEW else None


def _keys(table: Table, n_machines: int) -> npt.NDArray[np.int64]:
    keys: npt.NDArray[np.int64] = table.category * np.int64(n_machines) + table.machine
    return keys


def _typical(row: Indices, machine: Indices, level: FloatArray, n_machines: int) -> Cells:
    """The median of each row on each machine, where there are a few values."""
    key, of_value = np.unique(row.astype(np.int64) * n_machines + machine, return_inverse=True)
    count = np.bincount(of_value, minlength=len(key))
    some = count >= FEW
    medians = group_medians(level, of_value, len(key))[some]
    return Cells(
        key[some] // n_machines, key[some] % n_machines, medians, LOOSE * np.sqrt(count[some])
    )


def _groups(rows: tuple[Row, ...]) -> IntArray:
    """The group of each row: what stands before its category's last slash; -1 if there is none."""
    prefixes = [(row.level, row.category.rpartition("/")[0]) for row in rows]
    named = sorted({prefix for prefix in prefixes if prefix[1]})
    index = {prefix: number for number, prefix in enumerate(named)}
    return np.array([index.get(prefix, -1) for prefix in prefixes], dtype=np.int32)


def _filled(speeds: Speeds, log_speed: FloatArray) -> Speeds:
    """Machines that are not measured are as the others, but for their declared speeds."""
    both = speeds.measured & ~np.isnan(log_speed)
    typical = float(np.median((speeds.slowness + log_speed)[both])) if both.any() else 0.0
    otherwise = typical - np.nan_to_num(log_speed)
    return Speeds(np.where(speeds.measured, speeds.slowness, otherwise), speeds.measured)
