"""The predictor: what each task is expected to take on each processor, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from weft.arrays import BoolArray, FloatArray, sealed
from weft.history.levels import Levels, calibration, find_speeds, log_seconds, measure
from weft.history.question import Question
from weft.history.records import History, Table
from weft.history.sizes import Shapes, find_shapes
from weft.model import Estimates, Platform, Workflow

DEFAULT_SECONDS = 1.0
DECLARED_SPREAD, DEFAULT_SPREAD = 0.5, 1.0  # relative deviations of what nobody has measured
UNMEASURED_SPREAD = 0.5  # of the speed of a machine that is only declared
LEAST_SPREAD = 0.1  # of declared costs, however well they fit elsewhere

ByteArray = npt.NDArray[np.uint8]


class Source(IntEnum):
    """The links of the chain: where an estimate comes from."""

    MEASURED = 0  # the same category on the same machine
    SCALED = 1  # the same category elsewhere, by the machines' speeds
    DECLARED = 2  # the declared cost, by the machine's speed where it is known
    DEFAULT = 3  # the median of the run's other tasks, or one second


@dataclass(frozen=True, eq=False)
class Prediction:
    """Estimates, their relative standard deviations, and the link of the chain each comes from."""

    estimates: Estimates
    spread: FloatArray
    source: ByteArray
    blind: bool  # no task has a history or a declared cost

    def counts(self) -> dict[Source, int]:
        """How many tasks have each source as their best."""
        best = np.bincount(self.source.min(axis=1), minlength=len(Source))
        return {source: int(best[source]) for source in Source}

    def measured(self) -> BoolArray:
        """Which tasks have a history, here or elsewhere."""
        known: BoolArray = self.source.max(axis=1, initial=0) <= Source.SCALED
        return known

    def message(self, in_order: str | None = None) -> str:
        """One line for people: what the plan rests on, or that tasks are handed out in an order."""
        if self.blind and in_order is not None:
            return (
                "planning blind: no task has a history or a declared cost, so ready tasks are "
                f"handed out in the order of `{in_order}` until those that are left are known"
            )
        if self.blind:
            return (
                "planning blind: no task has a history or a declared cost, so all count alike; "
                "the next run will know more"
            )
        said = {
            Source.MEASURED: "measured here before",
            Source.SCALED: "measured on other machines",
            Source.DECLARED: "by their declared cost",
            Source.DEFAULT: "unknown, taken as typical",
        }
        counts = self.counts()
        parts = [f"{counts[source]} {text}" for source, text in said.items() if counts[source]]
        return f"estimates of {len(self.source)} tasks: {', '.join(parts)}"


def categories_of(workflow: Workflow) -> tuple[str, ...]:
    """The category of every task under which history knows it; its own name if it has none."""
    return tuple(
        workflow.spec(task).category or f"{workflow.name}/{name}"
        for task, name in enumerate(workflow.task_names)
    )


def predict(
    workflow: Workflow,
    platform: Platform,
    machines: Sequence[str],
    categories: Sequence[str],
    records: History,
    sizes: FloatArray | None = None,
) -> Prediction:
    """Estimates by the chain: measured, scaled, declared, default.

    `machines` names the machine of every processor and `categories` the category of every task,
    as the records do; `sizes` are the known bytes of input of every task, NaN where unknown.
    """
    table = records.table()
    question = Question.put(workflow, platform, machines, categories, table, sizes)
    levels, shapes, sized = _learn(question, table)
    logs, spread, source = _from_records(question, levels)
    if sized is not None:
        _by_size(question, sized, shapes, logs, spread, source)
    slowness = levels.slowness[question.machine]
    known = ~np.isnan(logs)
    blind = not (known.any() or question.has_cost().any())
    _from_declared(question, slowness, logs, spread, source)
    _by_default(slowness, logs, spread, source)
    return Prediction(Estimates(sealed(np.exp(logs))), sealed(spread), sealed(source), blind)


def _learn(question: Question, table: Table) -> tuple[Levels, Shapes | None, Levels | None]:
    """What the records say, without sizes, and with them if they tell something."""
    values, every = log_seconds(table), np.ones(len(table.seconds), dtype=np.bool_)
    speeds = find_speeds(table, values, every, question.declared)
    asked = np.zeros(len(table.categories), dtype=np.bool_)
    of_task = question.task_category
    asked[of_task[~np.isnan(question.size) & (of_task >= 0)]] = True
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
    return levels, shapes, sized


def _from_records(question: Question, levels: Levels) -> tuple[FloatArray, FloatArray, ByteArray]:
    """Log seconds, deviations and sources by the first two links; NaN where they know nothing."""
    logs, spread, source = _by_kind(question, levels)
    rows = question.kind
    logs, spread, source = logs[rows], spread[rows], source[rows]
    # a cost declared for just this processor knows more than a speed that nobody has measured
    better = (source == Source.SCALED) & ~np.isnan(question.given)
    better &= ~levels.measured[question.machine][None, :]
    logs[better] = np.nan
    return logs, spread, source


def _by_kind(question: Question, levels: Levels) -> tuple[FloatArray, FloatArray, ByteArray]:
    """The same for the workflow's categories."""
    known = question.category >= 0
    of_category = np.full(len(question.category), np.nan)
    of_category[known] = levels.category[question.category[known]]
    cell = levels.find(question.category, question.machine)
    scaled = of_category[:, None] + levels.slowness[question.machine][None, :]
    unsure = np.where(levels.measured[question.machine], 0.0, UNMEASURED_SPREAD)
    spread = np.broadcast_to(np.hypot(levels.scaled_spread, unsure), cell.shape).copy()
    here = cell >= 0
    scaled[here] = levels.level[cell[here]]
    spread[here] = levels.spread[cell[here]]
    source = np.where(here, np.uint8(Source.MEASURED), np.uint8(Source.SCALED))
    return scaled, spread, source


def _by_size(
    question: Question,
    levels: Levels,
    shapes: Shapes | None,
    logs: FloatArray,
    spread: FloatArray,
    source: ByteArray,
) -> None:
    """Put in the tasks of known size whose category depends on it."""
    assert shapes is not None
    category = question.task_category
    tasks = np.flatnonzero((category >= 0) & ~np.isnan(question.size))
    tasks = tasks[shapes.used[category[tasks]]]
    own_logs, own_spread, own_source = _by_kind(question, levels)
    kind = question.kind[tasks]
    shape = shapes.log(category[tasks], question.size[tasks])
    logs[tasks] = own_logs[kind] + shape[:, None]
    spread[tasks], source[tasks] = own_spread[kind], own_source[kind]


def _from_declared(
    question: Question,
    slowness: FloatArray,
    logs: FloatArray,
    spread: FloatArray,
    source: ByteArray,
) -> None:
    """Fill in declared costs, corrected by what those of measured categories turned out to be."""
    declared = question.cost[:, None] + slowness[None, :] - _middle(slowness + question.log_speed)
    declared = np.where(np.isnan(question.given), declared, question.given)
    both = np.isfinite(logs) & np.isfinite(declared)
    tasks = np.flatnonzero(both.all(axis=1))
    unsure = DECLARED_SPREAD
    if len(tasks):
        wrong = np.median(logs[tasks] - declared[tasks], axis=1)
        found = calibration(wrong, question.kind[tasks], len(question.category))
        if found is not None:
            declared += found[0]
            unsure = max(LEAST_SPREAD, found[1])
    _complete(declared, slowness)
    fill = np.isnan(logs) & ~np.isnan(declared)
    logs[fill] = declared[fill]
    spread[fill], source[fill] = unsure, Source.DECLARED


def _complete(declared: FloatArray, slowness: FloatArray) -> None:
    """A task with costs on some processors only: the others by their speeds."""
    missing = np.isnan(declared)
    rows = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
    if len(rows):
        at_zero = np.nanmedian(declared[rows] - slowness, axis=1)
        other = at_zero[:, None] + slowness
        declared[rows] = np.where(missing[rows], other, declared[rows])


def _by_default(
    slowness: FloatArray, logs: FloatArray, spread: FloatArray, source: ByteArray
) -> None:
    """Fill in the rest: as the run's other tasks, else a second on a processor in the middle."""
    unknown = np.isnan(logs[:, 0])  # by now a row is known as a whole, or not at all
    if unknown.any():
        typical = slowness - _middle(slowness) + np.log(DEFAULT_SECONDS)
        logs[unknown] = typical if unknown.all() else np.median(logs[~unknown], axis=0)
        spread[unknown], source[unknown] = DEFAULT_SPREAD, Source.DEFAULT


def _middle(values: FloatArray) -> float:
    return float(np.median(values)) if len(values) else 0.0
