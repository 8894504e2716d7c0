"""Bringing a run to its end, event by event."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.coordinator import Coordinator
from weft.kernels import board as b
from weft.kernels.board import Board
from weft.model.events import (
    Command,
    Event,
    EventKind,
    NewPlan,
    Replan,
)
from weft.wiring import answered


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
    board, now = coordinator.board, coordinator.now + 1.0
    n, m = int(board.counts[b.N_ATTEMPTS]), int(board.counts[b.N_TRANSFERS])
    running = np.flatnonzero(board.attempt_end[:n] == b.OPEN).tolist()
    moving = np.flatnonzero(np.isnan(board.transfer_arrival[:m])).tolist()
    return [Event(EventKind.TASK_FINISHED, k, now) for k in running] + [
        Event(EventKind.ITEM_ARRIVED, k, now) for k in moving
    ]


def image(board: Board) -> list[Any]:
    return [v.tobytes() if isinstance(v, np.ndarray) else v for v in board]
