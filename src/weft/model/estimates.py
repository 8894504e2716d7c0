"""Estimates: the expected cost in seconds of every task on every processor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from weft.arrays import FloatArray, frozen, row_means, sealed
from weft.errors import InputError
from weft.model.platform import Platform
from weft.model.workflow import Workflow

BLOCK = 1024  # rows that are filled column by column, so that they stay in the processor's cache


@dataclass(frozen=True, eq=False)
class Estimates:
    """The cost matrix W[task, processor], at full availability."""

    cost: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", frozen(self.cost, np.float64))

    @cached_property
    def mean(self) -> FloatArray:
        """The mean cost of each task."""
        return sealed(row_means(self.cost))

    @cached_property
    def least(self) -> float:
        """The smallest cost of all."""
        return float(self.cost.min(initial=np.inf))

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
        cost = _declared(workflow, platform)
        if otherwise is not None:
            silent = workflow.silent
            cost[silent] = otherwise[silent]
        if _any_missing(cost):
            task, processor = (int(x) for x in np.argwhere(np.isnan(cost))[0])
            raise InputError(
                f"task {workflow.task_names[task]!r} has no cost on processor "
                f"{platform.processor_names[processor]!r}; give it one, or one number for all",
                place=f"tasks.{workflow.task_names[task]}.cost",
            )
        estimates = Estimates(sealed(cost))
        if otherwise is None:
            _latest = (workflow, platform, estimates)
        return estimates


_latest: tuple[Any, ...] = ()  # whoever plans in a loop asks for the same again


def _declared(workflow: Workflow, platform: Platform) -> FloatArray:
    """The matrix of what is declared, NaN where nothing is."""
    at_speed_1 = workflow.base_cost if workflow.has_costs else np.ones(workflow.n_tasks)
    given = [workflow.processor_cost.get(name) for name in platform.processor_names]
    if all(column is None for column in given):
        return at_speed_1[:, None] / platform.speed
    cost = np.empty((workflow.n_tasks, platform.n_processors))
    for first in range(0, workflow.n_tasks, BLOCK):
        rows = slice(first, first + BLOCK)
        for p, column in enumerate(given):
            cost[rows, p] = at_speed_1[rows] / platform.speed[p] if column is None else column[rows]
    if _any_missing(cost):
        np.divide(at_speed_1[:, None], platform.speed, out=cost, where=np.isnan(cost))
    return cost


def _any_missing(cost: FloatArray) -> bool:
    """Whether a number is NaN: then the least of them is."""
    return bool(np.isnan(cost.min(initial=np.inf)))


@dataclass(frozen=True, eq=False)
class Expectation:
    """What tasks are expected to take on which machines, and in words what that rests on."""

    platform: Platform
    estimates: Estimates
    message: str = ""  # empty: on declared costs alone
    blind: bool = False  # nothing is known of any task
    on: str | None = None  # where a run would have these machines, as `--on` has it

    @staticmethod
    def declared(workflow: Workflow, platform: Platform) -> Expectation:
        """What the files declare, and nothing else."""
        return Expectation(platform, Estimates.declared(workflow, platform))

    @property
    def one_host(self) -> bool:
        """Whether all of it is one machine, with whatever is added."""
        return self.on is not None and self.on.partition(":")[0] == "local"
