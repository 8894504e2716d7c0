"""A moment of a run under way, as people want to see it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft.coordinator.meter import usage_of
from weft.kernels import board as b
from weft.model import STANDS_STILL, Money

if TYPE_CHECKING:
    from weft.coordinator import Coordinator
    from weft.live import Session


@dataclass(frozen=True)
class Work:
    """What a processor does."""

    processor: str
    present: bool
    task: str | None = None
    since: float = 0.0
    progress: float | None = None  # the share that is done, if the task says so


@dataclass(frozen=True)
class View:
    """Counts, times and processors at one moment."""

    now: float  # seconds of the run's time
    total: int
    done: int
    running: int
    failed: int  # given up
    projected: float | None  # when the run will end, by its plan
    replans: int
    reason: str  # of the last new plan
    work: tuple[Work, ...]
    money: Money | None = None  # where anything has a price
    budget: float = math.inf
    deadline: float = math.inf

    @property
    def waiting(self) -> int:
        """How many tasks are still to start."""
        return max(0, self.total - self.done - self.running - self.failed)

    def counts(self) -> str:
        """The counts in words."""
        text = f"{self.done}/{self.total} done, {self.running} running, {self.waiting} waiting"
        return f"{text}, {self.failed} given up" if self.failed else text


def look(session: Session) -> View:
    """The run now. Called beside the thread that drives it: what it reads may just be changing."""
    coordinator, now = session.coordinator, session.clock()
    board = coordinator.board  # its logs only grow, and in another board
    names, running = coordinator.platform.processor_names, board.running.tolist()
    tasks = coordinator.workflow.task_names
    work = [
        Work(name, bool(board.present[p]))
        if running[p] < 0
        else Work(
            name,
            True,
            tasks[board.attempt_task[running[p]]],
            float(board.attempt_start[running[p]]),
            session.reported.get(running[p]),
        )
        for p, name in enumerate(names[: len(running)])
    ]
    taken = [e for e in coordinator.evaluations[1:] if e.taken]
    return View(
        now=now,
        total=coordinator.workflow.n_tasks,
        done=coordinator.n_done,
        running=sum(attempt >= 0 for attempt in running),
        failed=int(board.counts[b.N_GIVEN_UP]),
        projected=projected_end(coordinator, now),
        replans=len(taken),
        reason=taken[-1].reason if taken else "",
        work=tuple(work),
        money=_money(session, now),
        budget=coordinator.purse.budget,
        deadline=coordinator.deadline.at,
    )


def _money(session: Session, now: float) -> Money | None:
    """The money now: what is spent and committed is looked up, the rest is as last projected."""
    last, coordinator = session.spending.money, session.coordinator
    if last is None:
        return None
    board, platform = coordinator.board, coordinator.platform
    busy = np.flatnonzero(board.running >= 0).astype(np.int32)
    attempts = board.running[busy]
    estimate = board.estimate[board.attempt_task[attempts] * board.n_processors + busy]
    rest = np.maximum(0.0, estimate - board.worked[attempts])
    ends = board.since[attempts] + rest / np.maximum(board.availability[busy], STANDS_STILL)
    then, today = np.full(len(busy), board.clock[0]), np.full(len(busy), now)
    used = usage_of(board, coordinator.workflow, platform).and_then(busy, then, today)
    spent = used.cost(platform)
    committed = used.and_then(busy, today, np.maximum(ends, today)).cost(platform) - spent
    planned = last.projected - spent - committed
    return Money(spent, committed, planned if math.isnan(planned) else max(0.0, planned))


def projected_end(coordinator: Coordinator, now: float) -> float | None:
    """When the run will end: every processor's plan, shifted by how late it is now."""
    plan, board = coordinator.plan, coordinator.board
    if plan is None:
        return None
    left = np.flatnonzero((board.status == b.WAITING) | (board.status == b.RUNNING))
    on = board.on[left]
    left, on = left[on >= 0], on[on >= 0]
    if not len(left):
        return None
    n = board.n_processors
    first, last = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(first, on, plan.start[left])
    np.maximum.at(last, on, plan.finish[left])
    late = np.maximum(0.0, now - first)  # of a processor that is idle
    at_work = np.flatnonzero(board.running >= 0)
    attempts = board.running[at_work]
    tasks = board.attempt_task[attempts]
    begun_late = board.attempt_start[attempts] - plan.start[tasks]
    late[at_work] = np.maximum(begun_late, now - plan.finish[tasks])
    return max(now, float((last + late).max()))
