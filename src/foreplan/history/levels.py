"""What the records say: how long each category takes, how slow each machine is, how sure that is.

All of it in logarithms of seconds, where a machine that is twice as slow is a sum away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foreplan.arrays import BoolArray, FloatArray, IntArray
from foreplan.history.records import MeasuredRow, RecordTable

Indices = npt.NDArray[np.integer[Any]]  # of any width

TO_DEVIATION = 1.4826  # the median absolute deviation times this is a normal standard deviation
MAX_POINTS = 100  # of a line: their pairs are what it costs


def group_medians(values: FloatArray, groups: Indices, n: int) -> FloatArray:
    """The median of each group; NaN for one without values."""
    counts = np.bincount(groups, minlength=n)
    medians = np.full(n, np.nan)
    some = counts > 0
    if not some.any():
        return medians
    ordered = values[np.lexsort((values, groups))]
    first = np.cumsum(counts) - counts
    low = (first + (counts - 1) // 2)[some]
    high = (first + counts // 2)[some]
    medians[some] = (ordered[low] + ordered[high]) / 2
    return medians


def group_deviations(
    values: FloatArray, centres: FloatArray, groups: Indices, n: int
) -> FloatArray:
    """The robust standard deviation of each group about its centre."""
    return TO_DEVIATION * group_medians(np.abs(values - centres[groups]), groups, n)


def deviation(values: FloatArray) -> float:
    """The robust standard deviation about the median."""
    return TO_DEVIATION * float(np.median(np.abs(values - np.median(values))))


def robust_line(x: FloatArray, y: FloatArray) -> tuple[float, float] | None:
    """Start and slope of the line by Theil and Sen; it rises, and starts at 0 or above, or is None.

    The slope is the median of those of all pairs of points; of many points some are taken.
    """
    if len(x) > MAX_POINTS:
        some = np.linspace(0, len(x) - 1, MAX_POINTS).astype(np.intp)
        x, y = x[some], y[some]
    a, b = np.triu_indices(len(x), 1)
    run = x[b] - x[a]
    apart = run != 0
    if not apart.any():
        return None
    slope = float(np.median((y[b] - y[a])[apart] / run[apart]))
    if slope <= 0:
        return None
    start = float(np.median(y - slope * x))
    if start >= 0:
        return start, slope
    known = x > 0
    slope = float(np.median(y[known] / x[known]))
    return (0.0, slope) if slope > 0 else None


NEAR = 0.05  # differences of logarithms below this weigh by their square, others by their size
SWEEPS = 20
STILL = 1e-5  # a change of the logarithms that is none
ALIKE = 1e-6  # how strongly machines are taken to be alike where nothing links them


@dataclass(frozen=True, eq=False)
class Cells:
    """Log seconds of rows (kinds of work) on machines, and how much each is to be trusted."""

    row: Indices
    machine: Indices
    level: FloatArray
    weight: FloatArray


@dataclass(frozen=True, eq=False)
class Speeds:
    """The logarithm of each machine's slowness; 0 where it is not measured."""

    slowness: FloatArray
    measured: BoolArray


def machine_speeds(cells: Cells, n_machines: int) -> Speeds:
    """Fit log seconds = row + machine, nearly by least absolute deviations.

    Deviations are weighed anew until the fit stands still, so that wild cells have little say.
    A row that is on one machine only tells nothing of machines.
    """
    linked = np.bincount(cells.row)[cells.row] > 1 if len(cells.row) else np.zeros(0, np.bool_)
    _, row = np.unique(cells.row[linked], return_inverse=True)
    machine, level = cells.machine[linked], cells.level[linked]
    slowness = np.zeros(n_machines)
    measured = np.zeros(n_machines, dtype=np.bool_)
    measured[machine] = True
    if not len(level):
        return Speeds(slowness, measured)
    weight = cells.weight[linked]
    for _ in range(SWEEPS):
        before = slowness
        slowness = _least_squares(row, machine, level, weight, before)
        rest = level - slowness[machine]
        rest -= _row_means(rest, weight, row)[row]
        weight = cells.weight[linked] / np.maximum(np.abs(rest), NEAR)
        if np.abs(slowness - before).max() < STILL:
            break
    return Speeds(slowness, measured)


def _row_means(values: FloatArray, weight: FloatArray, row: Indices) -> FloatArray:
    means: FloatArray = np.bincount(row, weight * values) / np.bincount(row, weight)
    return means


def _least_squares(
    row: Indices, machine: Indices, level: FloatArray, weight: FloatArray, guess: FloatArray
) -> FloatArray:
    """The machines' part by conjugate gradients, the rows' part taken out."""
    n = len(guess)
    total = np.bincount(machine, weight, n)
    ridge = ALIKE * float(total.max())

    def apply(values: FloatArray) -> FloatArray:
        of_cell = values[machine]
        of_cell = of_cell - _row_means(of_cell, weight, row)[row]
        image: FloatArray = np.bincount(machine, weight * of_cell, n) + ridge * values
        return image

    wanted = np.bincount(machine, weight * (level - _row_means(level, weight, row)[row]), n)
    scale = 1 / (total + ridge)
    x = guess.copy()
    rest = wanted - apply(x)
    near_enough = 1e-12 * max(float(np.abs(wanted).max()), ridge)
    step = scale * rest
    size = float(rest @ step)
    for _ in range(2 * n):
        if np.abs(rest).max() <= near_enough:
            break
        image = apply(step)
        along = size / float(step @ image)
        x += along * step
        rest -= along * image
        conditioned = scale * rest
        size, last = float(rest @ conditioned), size
        step = conditioned + (size / last) * step
    return x


ENOUGH = 10  # records with a size, and
DIFFERENT = 4  # sizes among them, before a line is tried
BETTER = 0.7  # the deviation that a line must leave, at most, of the one without


@dataclass(frozen=True, eq=False)
class Shapes:
    """Of each category: seconds grow as start + slope x bytes; NaN where size tells nothing."""

    start: FloatArray
    slope: FloatArray

    @property
    def used(self) -> BoolArray:
        """The categories that depend on size."""
        return ~np.isnan(self.slope)

    def log(self, category: IntArray, size: FloatArray) -> FloatArray:
        """The logarithm of the seconds at slowness 0; NaN where size tells nothing."""
        grown = self.start[category] + self.slope[category] * size
        logs: FloatArray = np.log(np.maximum(grown, SHORTEST))  # NaN stays NaN
        return logs


def find_shapes(
    table: RecordTable, values: FloatArray, slowness: FloatArray, asked: BoolArray
) -> Shapes:
    """The line through each category that is asked for, if it is much nearer than a constant."""
    n = len(table.rows)
    start, slope = np.full(n, np.nan), np.full(n, np.nan)
    use = asked[table.category] & ~np.isnan(table.size)
    category, size = table.category[use], table.size[use]
    seconds = np.exp(values[use] - slowness[table.machine[use]])
    first = np.searchsorted(category, np.arange(n + 1))
    for index in np.flatnonzero(_worth_trying(category, size, n)):
        own = slice(first[index], first[index + 1])
        line = _line(size[own], seconds[own])
        if line is not None:
            start[index], slope[index] = line
    return Shapes(start, slope)


def _worth_trying(category: IntArray, size: FloatArray, n: int) -> BoolArray:
    """Categories with enough records of different sizes."""
    order = np.lexsort((size, category))
    ordered, sizes = category[order], size[order]
    new = np.ones(len(ordered), dtype=np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]) | (sizes[1:] != sizes[:-1])
    different = np.bincount(ordered[new], minlength=n)
    worth: BoolArray = (np.bincount(category, minlength=n) >= ENOUGH) & (different >= DIFFERENT)
    return worth


def _line(size: FloatArray, seconds: FloatArray) -> tuple[float, float] | None:
    line = robust_line(size, seconds)
    if line is None:
        return None
    left = deviation(seconds - (line[0] + line[1] * size))
    return line if left < BETTER * deviation(seconds) else None


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


def log_seconds(table: RecordTable) -> FloatArray:
    """The logarithm of every record's seconds."""
    logs: FloatArray = np.log(np.maximum(table.seconds, SHORTEST))
    return logs


def find_speeds(
    table: RecordTable, values: FloatArray, counted: BoolArray, declared: Declared
) -> Speeds:
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


def measure(table: RecordTable, values: FloatArray, counted: BoolArray, speeds: Speeds) -> Levels:
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


def _keys(table: RecordTable, n_machines: int) -> npt.NDArray[np.int64]:
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


def _groups(rows: tuple[MeasuredRow, ...]) -> IntArray:
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
