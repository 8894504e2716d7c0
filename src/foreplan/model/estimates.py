"""Estimates: the expected cost in seconds of every task on every processor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from foreplan.arrays import FloatArray, FrozenArrays, sealed
from foreplan.files import one_line
from foreplan.model.platform import Platform
from foreplan.model.resources import Needs, declared_needs
from foreplan.model.workflow import Workflow
from foreplan.quantities import duration, many, shortened


@dataclass(frozen=True, eq=False)
class Estimates(FrozenArrays):
    """The cost matrix W[task, processor], at full availability; and what tasks take beside a core.

    Of a task that may take several widths it is the cost with the smallest.
    """

    cost: FloatArray
    needs: Needs | None = None  # None: every task takes one core and nothing else

    def __repr__(self) -> str:
        tasks, processors = self.cost.shape
        most = duration(float(self.cost.max())) if self.cost.size else "-"
        size = f"{many(tasks, 'task')} on {many(processors, 'processor')}"
        return f"<Estimates: {size}, {duration(self.least)} to {most}>"

    @cached_property
    def least(self) -> float:
        """The smallest cost of all; NaN if one is not known."""
        return float(self.cost.min(initial=np.inf))

    def part(self, tasks: list[int]) -> Estimates:
        """Those of some tasks only."""
        needs = None if self.needs is None else self.needs.part(tasks)
        return Estimates(sealed(self.cost[tasks]), needs)

    @staticmethod
    def declared(
        workflow: Workflow, platform: Platform, otherwise: FloatArray | None = None
    ) -> Estimates:
        """What the files declare: seconds per processor, else seconds at speed 1 over speed.

        Where no task has a cost, all count alike: a second at speed 1. `otherwise` has the costs of
        tasks that declare none, if they are known.
        """
        global _latest
        if otherwise is None and _latest[:2] == (workflow, platform):
            return cast(Estimates, _latest[2])
        as_it_is = platform.processor_names == tuple(workflow.processor_cost)
        needs = declared_needs(workflow)
        estimates = Estimates(workflow.cost_matrix, needs) if as_it_is else None
        if estimates is None or math.isnan(estimates.least):
            cost = _declared(workflow, platform)
            if otherwise is not None:
                cost = np.where(workflow.silent[:, None], otherwise, cost)
            estimates = Estimates(sealed(cost), needs)
        if math.isnan(estimates.least):
            task, processor = (int(x) for x in np.argwhere(np.isnan(estimates.cost))[0])
            raise workflow.task_error(
                task,
                f"task {shortened(workflow.task_names[task])!r} has no cost on processor "
                f"{platform.processor_names[processor]!r}; give it one, or one number for all",
                "cost",
            )
        if otherwise is None:
            _latest = (workflow, platform, estimates)
        return estimates


_latest: tuple[Any, ...] = ()  # whoever plans in a loop asks for the same again


def _declared(workflow: Workflow, platform: Platform) -> FloatArray:
    """The matrix of what is declared, NaN where nothing is."""
    at_speed_1 = workflow.base_cost if workflow.has_costs else np.ones(workflow.n_tasks)
    cost: FloatArray = at_speed_1[:, None] / platform.speed
    number = {name: column for column, name in enumerate(workflow.processor_cost)}
    known = [p for p, name in enumerate(platform.processor_names) if name in number]
    if known:
        columns = [number[platform.processor_names[p]] for p in known]
        given = workflow.cost_matrix.take(columns, axis=1)
        cost[:, known] = np.where(np.isnan(given), cost[:, known], given)
    return cost


@dataclass(frozen=True, eq=False)
class Expectation:
    """What tasks are expected to take on which machines, and in words what that rests on."""

    platform: Platform
    estimates: Estimates
    message: str = ""  # empty: on declared costs alone
    blind: bool = False  # nothing is known of any task
    on: str | None = None  # where a run would have these machines, as `--on` has it
    one_host: bool = False  # all of it is one machine, with whatever is added

    def __repr__(self) -> str:
        said = one_line(self.message or "declared costs", 120)
        return f"<Expectation: {self.platform!r}, {self.estimates!r}, {said}>"

    @staticmethod
    def declared(workflow: Workflow, platform: Platform) -> Expectation:
        """What the files declare, and nothing else."""
        return Expectation(platform, Estimates.declared(workflow, platform))
