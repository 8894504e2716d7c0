"""The predictor: what each task is expected to take on each processor, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from foreplan.arrays import BoolArray, FloatArray, IntArray, sealed
from foreplan.history.levels import (
    NOISE,
    Declared,
    Indices,
    Levels,
    Shapes,
    calibration,
    deviation,
    find_shapes,
    find_speeds,
    log_seconds,
    measure,
    robust_line,
)
from foreplan.history.records import History, Level, MeasuredRow, RecordTable
from foreplan.model import Estimates, Link, Platform, Workflow
from foreplan.model.resources import declared_needs

SAME = 0.05  # tasks of a category whose declared costs differ by more than this are unlike


@dataclass(frozen=True, eq=False)
class PredictionQuestion:
    """Rows and machines are the records' indices here; costs and speeds are logarithms."""

    kind: IntArray  # task -> its category among those of the workflow
    row: IntArray  # level, task -> the row of the records that tells of it; -1: there is none
    machine: IntArray  # processor -> machine; those that the records do not know stand at the end
    cost: FloatArray  # task -> the cost at speed 1
    given: FloatArray  # task, processor -> the cost declared for just that
    log_speed: FloatArray  # processor -> the declared speed
    size: FloatArray  # task -> bytes of input
    declared: Declared

    @staticmethod
    def put(
        workflow: Workflow,
        platform: Platform,
        machines: Sequence[str],
        categories: Sequence[str],
        table: RecordTable,
        sizes: FloatArray | None,
        commands: Sequence[str] | None = None,
    ) -> PredictionQuestion:
        """The question, with every name looked up."""
        n, p = workflow.n_tasks, platform.n_processors
        if len(categories) != n or len(machines) != p or (sizes is not None and len(sizes) != n):
            raise ValueError("one category and size per task, and one machine per processor")
        kinds = {name: i for i, name in enumerate(dict.fromkeys(categories))}
        kind = np.array([kinds[name] for name in categories], dtype=np.int32)
        row = _rows(categories, commands or [""] * n, table)
        places = {name: i for i, name in enumerate(table.machines)}
        machine = np.array([places.setdefault(m, len(places)) for m in machines], dtype=np.int32)
        with np.errstate(divide="ignore"):  # a cost of nothing is -inf here
            cost, given = np.log(workflow.base_cost), np.log(_given(workflow, platform))
        log_speed = np.log(platform.speed)
        declared_cost, own = np.full(len(table.rows), np.nan), row[Level.OWN]
        declared_cost[own[own >= 0]] = _alike(cost, kind, len(kinds))[kind[own >= 0]]
        declared_speed = np.full(len(places), np.nan)
        declared_speed[machine[::-1]] = log_speed[::-1]  # the first processor of a machine speaks
        size = np.full(n, np.nan) if sizes is None else np.asarray(sizes, dtype=np.float64)
        declared = Declared(declared_cost, declared_speed)
        return PredictionQuestion(kind, row, machine, cost, given, log_speed, size, declared)


def _rows(categories: Sequence[str], commands: Sequence[str], table: RecordTable) -> IntArray:
    """The row of every task at every level; -1 where there is none."""
    n = len(categories)
    found = np.full((len(Level), n), -1, dtype=np.int32)
    for level in {row.level for row in table.rows}:
        rows = enumerate(table.rows)
        index = {(row.category, row.mark): i for i, row in rows if row.level == level}
        marks = commands if level == Level.FAR else [""] * n
        tasks = zip(categories, marks, strict=True)
        found[level] = [index.get(task, -1) for task in tasks]
    # without a command nothing far is known to be alike
    found[Level.FAR, [not command for command in commands]] = -1
    return found


def _given(workflow: Workflow, platform: Platform) -> FloatArray:
    """The costs that are declared for one processor; NaN elsewhere."""
    given = np.full((workflow.n_tasks, platform.n_processors), np.nan)
    for column, name in enumerate(platform.processor_names):
        if name in workflow.processor_cost:
            given[:, column] = workflow.processor_cost[name]
    return given


def _alike(cost: FloatArray, kind: IntArray, n: int) -> FloatArray:
    """The cost that all tasks of a category declare; NaN if they differ or say nothing."""
    least, most = np.full(n, np.inf), np.full(n, -np.inf)
    np.fmin.at(least, kind, cost)
    np.fmax.at(most, kind, cost)
    silent = np.bincount(kind, np.isnan(cost), n) > 0
    known = np.isfinite(least) & np.isfinite(most) & ~silent
    alike = np.full(n, np.nan)
    alike[known] = np.where(most[known] - least[known] < SAME, most[known], np.nan)
    return alike


DEFAULT_SECONDS = 1.0
DECLARED_SPREAD, DEFAULT_SPREAD = 0.5, 1.0  # relative deviations of what nobody has measured
UNMEASURED_SPREAD = 0.5  # of the speed of a machine that is only declared
LEAST_SPREAD = 0.1  # of declared costs, however well they fit elsewhere

ByteArray = npt.NDArray[np.uint8]


class Source(IntEnum):
    """The links of the chain: where an estimate comes from."""

    MEASURED = 0  # the same workflow and category on the same machine
    SCALED = 1  # the same on other machines, by the machines' speeds
    DECLARED = 2  # the declared cost, by the machine's speed where it is known
    NEAR = 3  # the category in other workflows of the directory
    FAR = 4  # the category and command in other directories
    DEFAULT = 5  # the median of the run's other tasks, or one second


FALLBACKS = ((Level.NEAR, Source.NEAR), (Level.FAR, Source.FAR))
SAID = {
    Source.MEASURED: "measured here before",
    Source.SCALED: "measured on other machines",
    Source.DECLARED: "by their declared cost",
    Source.NEAR: "from other workflows of this directory",
    Source.FAR: "from elsewhere",
    Source.DEFAULT: "not measured yet",
}


@dataclass(frozen=True, eq=False)
class Prediction:
    """Estimates, their relative standard deviations, and the link of the chain each comes from."""

    estimates: Estimates
    spread: FloatArray
    source: ByteArray
    blind: bool  # no task has a history or a declared cost
    rows: tuple[MeasuredRow | None, ...]  # by task: the records that it rests on

    def counts(self) -> dict[Source, int]:
        """How many tasks have each source as their best."""
        best = np.bincount(self.source.min(axis=1), minlength=len(Source))
        return {source: int(best[source]) for source in Source}

    def measured(self) -> BoolArray:
        """Which tasks have a history, here or elsewhere."""
        unknown = (self.source == Source.DECLARED) | (self.source == Source.DEFAULT)
        known: BoolArray = ~unknown.any(axis=1)
        return known

    def origins(self) -> str:
        """Return how many estimates come from which source; empty if nothing was known."""
        counts = {} if self.blind else self.counts()
        return ", ".join(f"{count} {SAID[source]}" for source, count in counts.items() if count)


def predict(
    workflow: Workflow,
    platform: Platform,
    machines: Sequence[str],
    categories: Sequence[str],
    records: History,
    sizes: FloatArray | None = None,
    commands: Sequence[str] | None = None,
) -> Prediction:
    """Estimates by the chain: measured, scaled, declared, near, far, default.

    `machines` names the machine of every processor and `categories` the category of every task,
    as the records do; `sizes` are the known bytes of input of every task, NaN where unknown;
    `commands` are their marks, without which nothing counts from other directories.
    """
    table = records.table()
    question = PredictionQuestion.put(
        workflow, platform, machines, categories, table, sizes, commands
    )
    known = _learn(question, table)
    shape = workflow.n_tasks, platform.n_processors
    found = PartialPrediction(
        np.full(shape, np.nan), np.zeros(shape), np.full(shape, Source.DEFAULT, dtype=np.uint8)
    )
    used = np.full(workflow.n_tasks, -1)
    _put_measured(question, known, Level.OWN, None, found, used)
    slowness = known.levels.slowness[question.machine]
    _put_declared(question, slowness, found)
    for level, source in FALLBACKS:
        _put_measured(question, known, level, source, found, used)
    _put_default(slowness, found)
    return Prediction(
        Estimates(sealed(np.exp(found.logs)), declared_needs(workflow)),
        sealed(found.spread),
        sealed(found.source),
        blind=bool((found.source == Source.DEFAULT).all()),
        rows=tuple(table.rows[row] if row >= 0 else None for row in used.tolist()),
    )


@dataclass(frozen=True, eq=False)
class PartialPrediction:
    """What is found by and by, of every task on every processor; NaN where nothing is known."""

    logs: FloatArray  # of seconds
    spread: FloatArray
    source: ByteArray


@dataclass(frozen=True, eq=False)
class Known:
    """What the records say, without sizes, and with them if they tell something."""

    levels: Levels
    shapes: Shapes | None
    sized: Levels | None


def _learn(question: PredictionQuestion, table: RecordTable) -> Known:
    values, every = log_seconds(table), np.ones(len(table.seconds), dtype=np.bool_)
    speeds = find_speeds(table, values, every, question.declared)
    asked = np.zeros(len(table.rows), dtype=np.bool_)
    rows = question.row[:, ~np.isnan(question.size)]
    asked[rows[rows >= 0]] = True
    shapes, grown = None, values
    for _ in range(2):  # speeds are needed to see sizes, and sizes to see speeds
        if asked.any():
            found = find_shapes(table, values, speeds.slowness, asked)
            if found.used.any():
                shapes = found
                grown = values - np.where(
                    found.used[table.category], found.log(table.category, table.size), 0.0
                )
                speeds = find_speeds(table, grown, ~np.isnan(grown), question.declared)
    levels = measure(table, values, every, speeds)
    sized = measure(table, grown, ~np.isnan(grown), speeds) if shapes is not None else None
    return Known(levels, shapes, sized)


def _put_measured(
    question: PredictionQuestion,
    known: Known,
    level: Level,
    source: Source | None,
    found: PartialPrediction,
    used: IntArray,
) -> None:
    """Put in what was measured so near, for tasks of which nothing is known so far.

    Of one's own, here or elsewhere; farther off it has one source.
    """
    rows = question.row[level]
    tasks = np.flatnonzero((rows >= 0) & np.isnan(found.logs).all(axis=1))
    logs, spread, own = _from_rows(question, known, tasks, rows[tasks])
    if level == Level.OWN:
        # a cost declared for just this processor knows more than a speed that nobody has measured
        better = (own == Source.SCALED) & ~np.isnan(question.given[tasks])
        better &= ~known.levels.measured[question.machine][None, :]
        logs[better] = np.nan
    found.logs[tasks], found.spread[tasks] = logs, spread
    found.source[tasks] = own if source is None else source
    used[tasks] = rows[tasks]


def _from_rows(
    question: PredictionQuestion, known: Known, tasks: Indices, rows: IntArray
) -> tuple[FloatArray, FloatArray, ByteArray]:
    """Log seconds, deviations and sources of some tasks by these rows, and by size where that is
    known and tells something."""
    logs, spread, source = _by_row(question, known.levels, rows)
    if known.shapes is None or known.sized is None:
        return logs, spread, source
    some = known.shapes.used[rows] & ~np.isnan(question.size[tasks])
    grown, own_spread, own_source = _by_row(question, known.sized, rows[some])
    logs[some] = grown + known.shapes.log(rows[some], question.size[tasks[some]])[:, None]
    spread[some], source[some] = own_spread, own_source
    return logs, spread, source


def _by_row(
    question: PredictionQuestion, levels: Levels, rows: IntArray
) -> tuple[FloatArray, FloatArray, ByteArray]:
    """The same by rows alone; tasks that share one are looked up once."""
    row, of_task = np.unique(rows, return_inverse=True)
    cell = levels.find(row, question.machine)
    scaled = levels.category[row][:, None] + levels.slowness[question.machine][None, :]
    unsure = np.where(levels.measured[question.machine], 0.0, UNMEASURED_SPREAD)
    spread = np.broadcast_to(np.hypot(levels.scaled_spread, unsure), cell.shape).copy()
    here = cell >= 0
    scaled[here] = levels.level[cell[here]]
    spread[here] = levels.spread[cell[here]]
    source = np.where(here, np.uint8(Source.MEASURED), np.uint8(Source.SCALED))
    return scaled[of_task], spread[of_task], source[of_task]


def _put_declared(
    question: PredictionQuestion, slowness: FloatArray, found: PartialPrediction
) -> None:
    """Fill in declared costs, corrected by what those of measured categories turned out to be."""
    logs = found.logs
    declared = question.cost[:, None] + slowness[None, :] - _middle(slowness + question.log_speed)
    declared = np.where(np.isnan(question.given), declared, question.given)
    both = np.isfinite(logs) & np.isfinite(declared)
    tasks = np.flatnonzero(both.all(axis=1))
    unsure = DECLARED_SPREAD
    if len(tasks):
        wrong = np.median(logs[tasks] - declared[tasks], axis=1)
        typical = calibration(wrong, question.kind[tasks], int(question.kind.max()) + 1)
        if typical is not None:
            declared += typical[0]
            unsure = max(LEAST_SPREAD, typical[1])
    _complete(declared, slowness)
    fill = np.isnan(logs) & ~np.isnan(declared)
    logs[fill] = declared[fill]
    found.spread[fill], found.source[fill] = unsure, Source.DECLARED


def _complete(declared: FloatArray, slowness: FloatArray) -> None:
    """A task with costs on some processors only: the others by their speeds."""
    missing = np.isnan(declared)
    rows = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
    if len(rows):
        at_zero = np.nanmedian(declared[rows] - slowness, axis=1)
        other = at_zero[:, None] + slowness
        declared[rows] = np.where(missing[rows], other, declared[rows])


def _put_default(slowness: FloatArray, found: PartialPrediction) -> None:
    """Fill in the rest: as the run's other tasks, else a second on a processor in the middle."""
    logs = found.logs
    unknown = np.isnan(logs[:, 0])  # by now a row is known as a whole, or not at all
    if unknown.any():
        typical = slowness - _middle(slowness) + np.log(DEFAULT_SECONDS)
        logs[unknown] = typical if unknown.all() else np.median(logs[~unknown], axis=0)
        found.spread[unknown], found.source[unknown] = DEFAULT_SPREAD, Source.DEFAULT


def _middle(values: FloatArray) -> float:
    return float(np.median(values)) if len(values) else 0.0


ENOUGH = 8  # records before the startup is told from the time per byte


@dataclass(frozen=True)
class LinkEstimate:
    """A link in seconds and bytes, its relative standard deviation, and how much it rests on."""

    link: Link
    spread: float
    count: int

    @property
    def bandwidth(self) -> float:
        """Bytes per second, the startup aside."""
        per_byte = self.link.time_per_unit
        return 1 / per_byte if per_byte > 0 else float("inf")


def predict_links(source: str, target: str, records: History) -> LinkEstimate | None:
    """The link from one machine to the other by their newest transfers; None without any.

    Where nothing went this way, what went the other way tells.
    """
    known = records.between(source, target) or records.between(target, source)
    size = np.array([record.size for record in known])
    seconds = np.array([record.seconds for record in known])
    moved = size > 0
    if not moved.any():
        return None
    startup, per_byte = _line(size, seconds)
    expected = startup + per_byte * size[moved]
    wrong = seconds[moved][expected > 0] / expected[expected > 0]
    spread = max(NOISE / len(known), deviation(wrong)) if len(wrong) > 1 else NOISE
    return LinkEstimate(Link(per_byte, startup), spread, len(known))


def _line(size: FloatArray, seconds: FloatArray) -> tuple[float, float]:
    """Startup and seconds per byte."""
    moved = size > 0
    rate = seconds[moved] / size[moved]
    if len(size) < ENOUGH:
        return 0.0, float(np.median(rate))
    line = robust_line(size, seconds)
    if line is not None:
        return line
    # sizes tell nothing: all startup, but for the best rate seen, so that much still takes long
    return float(np.median(seconds)), float(np.quantile(rate, 0.1))
