"""Bringing a run to its end, event by event."""

from __future__ import annotations

from typing import Any

import numpy as np

from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import answered
from foreplan.engine.kernels import arrays as a
from foreplan.engine.kernels.arrays import RunArrays
from foreplan.model.events import (
    Command,
    Event,
    ItemArrived,
    NewPlan,
    Replan,
    TaskFinished,
)


def finish_all(coordinator: Coordinator, planner: Any, commands: list[Command]) -> None:
    """Let all that is under way end, one thing after the other, until nothing is left."""
    for _ in range(10_000):
        replans = [c for c in commands if isinstance(c, Replan)]
        if replans or coordinator.asked is not None:
            version = coordinator.version
            asked = replans[-1] if replans else coordinator.asked
            assert asked is not None
            plan = answered(planner, coordinator, asked)
            commands = coordinator.handle(NewPlan(coordinator.now, version, plan))
            continue
        event = next(iter(under_way(coordinator)), None)
        if event is None:
            break
        commands = coordinator.handle(event)
    assert coordinator.done, "nothing is under way, but tasks are left"


def under_way(coordinator: Coordinator) -> list[Event]:
    """The events that end what is under way."""
    arrays, now = coordinator.state.arrays, coordinator.now + 1.0
    n, m = int(arrays.counts[a.N_ATTEMPTS]), int(arrays.counts[a.N_TRANSFERS])
    running = np.flatnonzero(arrays.attempt_end[:n] == a.OPEN).tolist()
    moving = np.flatnonzero(np.isnan(arrays.transfer_arrival[:m])).tolist()
    return [TaskFinished(k, now) for k in running] + [ItemArrived(k, now) for k in moving]


def image(arrays: RunArrays) -> list[Any]:
    return [v.tobytes() if isinstance(v, np.ndarray) else v for v in arrays]
