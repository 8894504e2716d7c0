"""A run that is gone on with: what happened while nobody looked, and what is to be done now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.coordinator import Coordinator
from weft.kernels import board as b
from weft.live.heartbeat import at_their_times, moment
from weft.live.session import Session
from weft.live.spending import budget_event
from weft.model.events import Command, Event, EventKind, SendItem, StartTask, WakeAt


def take_up(
    session: Session,
    set_clock: Callable[[float], None],
    known: tuple[float, float] | None,
    budget: float | None,
) -> list[Command]:
    """What happened while nobody looked, and what is to be done now.

    The run's clock stands still while nobody drives it, but not while anything of it still ran:
    `known` is the last moment that the journal has by both clocks, the run's and the wall's.
    """
    coordinator, board = session.coordinator, session.coordinator.board
    now = coordinator.now
    open_ones = np.flatnonzero(board.attempt_end[: board.counts[b.N_ATTEMPTS]] == b.OPEN).tolist()
    running = [
        StartTask(k, int(board.attempt_task[k]), int(board.attempt_on[k]), now) for k in open_ones
    ]
    here = np.flatnonzero(board.held == b.HERE).tolist()
    held = [divmod(pair, board.n_hosts) for pair in here]
    commands: list[Command] = []
    if coordinator.asked is not None and board.present.any():
        commands += session.progress.settled([coordinator.asked])
    events = session.machines.recover(running, held)
    events = at_their_times(events, board, session.clock(), known)
    if events:
        set_clock(max(session.clock(), events[-1].time))
    session.recorder.note("beat", **moment(session.clock))
    for event in events:
        if not _is_known(coordinator, event):
            commands += session.hear(event)
            session.note(event)
    told = budget_event(coordinator, budget, session.clock())
    if told is not None:
        commands += session.hear(told)
    if not coordinator.purse.holds and (
        coordinator.board.counts[b.HELD_BACK] or coordinator.given_up
    ):
        commands += session.hear(Event(EventKind.PAUSED, 0, session.clock(), 0.0))
    for again in _sends(coordinator, commands):
        session.machines.perform(again)
    if np.isfinite(wakes := coordinator.wakes_at):  # nor of the next rescheduling point
        session.machines.perform(WakeAt(max(session.clock(), wakes)))
    leaves = coordinator.board.leaves
    for p in np.flatnonzero(coordinator.board.present & np.isfinite(leaves)).tolist():
        session.machines.drain(p, float(leaves[p]))  # the machines do not know of it yet
    return commands


def with_added(on: Any, coordinator: Coordinator) -> Any:
    """Where a run goes on: `local:2` is more if processors were added to it."""
    name, _, declared = str(on).partition(":")
    if name != "local" or not declared.isdecimal():
        return on
    names = enumerate(coordinator.platform.processor_names, 1)
    own = [k for k, p in names if p == f"local-{k}" and coordinator.board.present[k - 1]]
    return f"local:{max([int(declared), *own])}"


def _is_known(coordinator: Coordinator, event: Event) -> bool:
    """Whether a processor is known to be there or away, as is said; or an attempt to be over.

    A plan that was being made when the run was stopped may just have ended the attempt.
    """
    if event.kind in (EventKind.TASK_FINISHED, EventKind.TASK_FAILED):
        return bool(coordinator.board.attempt_end[event.which] != b.OPEN)
    if event.kind not in (EventKind.JOINED, EventKind.GONE):
        return False
    present = coordinator.board.present
    there = event.which < len(present) and bool(present[event.which])
    return there == (event.kind == EventKind.JOINED)


def _sends(coordinator: Coordinator, commands: list[Command]) -> list[Command]:
    """Transfers that were under way are begun again."""
    board, new = coordinator.board, {c.transfer for c in commands if isinstance(c, SendItem)}
    moving = np.flatnonzero(np.isnan(board.transfer_arrival[: board.counts[b.N_TRANSFERS]]))
    return [
        SendItem(
            k,
            int(board.transfer_item[k]),
            int(board.transfer_from[k]),
            int(board.transfer_to[k]),
            coordinator.now,
        )
        for k in moving.tolist()
        if k not in new
    ]
