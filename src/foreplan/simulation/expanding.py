"""Simulated tasks that add others: what they add is part of the world's truth."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from foreplan.arrays import FloatArray
from foreplan.engine.driver import Driver
from foreplan.errors import InputError
from foreplan.model import Estimates, Workflow
from foreplan.model.events import Event, Heard, TaskFinished, TasksAdded
from foreplan.model.growth import grow
from foreplan.model.resources import check_fits, declared_needs, grown_needs
from foreplan.simulation.simulated import SimulatedExecutor


class Expanding:
    """Looks on while a simulated run is driven, and lets tasks be added where the world says so."""

    def __init__(self, driver: Driver, executor: SimulatedExecutor, ideal: bool = False) -> None:
        self._driver, self._executor, self._ideal = driver, executor, ideal

    def read(self, event: Event) -> list[Heard]:
        """What is heard of a task that is done: before that, the tasks that it adds."""
        coordinator = self._driver.coordinator
        if not isinstance(event, TaskFinished):
            return [event]
        task = coordinator.state.attempt(event.attempt).task
        name = coordinator.workflow.task_names[task]
        adds = coordinator.workflow.spec(task).expand and task not in coordinator.expanded
        more = self._executor.reality.expansions.get(name) if adds else None
        if more is None:
            return [event]
        try:
            return [self._added(event.time, task, more), event]
        except InputError as error:
            raise error.at(f"expansions.{name}") from None

    def look(self, events: list[Event]) -> None:
        """Nothing is shown."""

    def _added(self, time: float, task: int, more: Workflow) -> TasksAdded:
        coordinator, reality = self._driver.coordinator, self._executor.reality
        known, platform = coordinator.estimates, coordinator.platform
        grown = grow(coordinator.workflow, task, more)
        cost = Estimates.declared(more, platform).cost
        work = cost * factors_of(more, reality.added_factors)
        needs = grown_needs(grown, known.needs, declared_needs(grown))
        check_fits(grown, platform, needs)
        estimated = np.concatenate([known.cost, work if self._ideal else cost])
        self._executor.grow(grown, np.concatenate([reality.work, work]), needs)
        return TasksAdded(time, task, more, grown, Estimates(estimated, needs))


def factors_of(more: Workflow, factors: Mapping[str, float]) -> FloatArray:
    """What added tasks really take, as factors of what is estimated; one column."""
    return np.array([[factors.get(name, 1.0)] for name in more.task_names])
