"""What a predictor is asked: a workflow and a platform in the terms of the records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray
from weft.history.levels import Declared
from weft.history.origins import Level
from weft.history.records import Table
from weft.model import Platform, Workflow

SAME = 0.05  # tasks of a category whose declared costs differ by more than this are unlike


@dataclass(frozen=True, eq=False)
class Question:
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
        table: Table,
        sizes: FloatArray | None,
        commands: Sequence[str] | None = None,
    ) -> Question:
        """The question, with every name looked up."""
        n, p = workflow.n_tasks, platform.n_processors
        if len(categories) != n or len(machines) != p or (sizes is not None and len(sizes) != n):
            raise ValueError("one category and size per task, and one machine per processor")
        kinds = {name: i for i, name in enumerate(dict.fromkeys(categories))}
        kind = np.array([kinds[name] for name in categories], dtype=np.int32)
        row = _rows(categories, commands or [""] * n, workflow.name, table)
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
        return Question(kind, row, machine, cost, given, log_speed, size, declared)

    def has_cost(self) -> BoolArray:
        """The tasks that declare a cost somewhere."""
        some: BoolArray = ~np.isnan(self.cost) | ~np.isnan(self.given).all(axis=1)
        return some


def _rows(
    categories: Sequence[str], commands: Sequence[str], workflow: str, table: Table
) -> IntArray:
    """The row of every task at every level; -1 where there is none."""
    n = len(categories)
    found = np.full((len(Level), n), -1, dtype=np.int32)
    marks = {Level.FAR: commands, Level.OLD: [workflow] * n}
    for level in {row.level for row in table.rows}:
        rows = enumerate(table.rows)
        index = {(row.category, row.mark): i for i, row in rows if row.level == level}
        tasks = zip(categories, marks.get(level, [""] * n), strict=True)
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
