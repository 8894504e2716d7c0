"""Estimates: the expected cost in seconds of every task on every processor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.arrays import FloatArray, frozen
from weft.errors import InputError
from weft.model.platform import Platform
from weft.model.workflow import Workflow


@dataclass(frozen=True, eq=False)
class Estimates:
    """The cost matrix W[task, processor], at full availability."""

    cost: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", frozen(self.cost, np.float64))

    @staticmethod
    def declared(
        workflow: Workflow, platform: Platform, otherwise: FloatArray | None = None
    ) -> Estimates:
        """What the files declare: seconds per processor, else seconds at speed 1 over speed.

        Where no task has a cost, all count alike: a second at speed 1. `otherwise` has the costs of
        tasks that declare none, if they are known.
        """
        n, p = workflow.n_tasks, platform.n_processors
        cost = np.empty((n, p))
        at_speed_1 = workflow.base_cost if workflow.has_costs else np.ones(n)
        np.divide(at_speed_1[:, None], platform.speed[None, :], out=cost)
        for column, name in enumerate(platform.processor_names):
            given = workflow.processor_cost.get(name)
            if given is not None:
                cost[:, column] = np.where(np.isnan(given), cost[:, column], given)
        if otherwise is not None:
            silent = workflow.silent
            cost[silent] = otherwise[silent]
        missing = np.isnan(cost)
        if missing.any():
            task, processor = (int(x) for x in np.argwhere(missing)[0])
            raise InputError(
                f"task {workflow.task_names[task]!r} has no cost on processor "
                f"{platform.processor_names[processor]!r}; give it one, or one number for all",
                place=f"tasks.{workflow.task_names[task]}.cost",
            )
        return Estimates(cost)


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
