"""A moment of a run under way, as people want to see it."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from foreplan.display.waiting import Waiting, next_ones
from foreplan.engine.meter import usage_by
from foreplan.engine.state import TaskState
from foreplan.model import Money
from foreplan.quantities import amount, duration
from foreplan.runs.replay import found_up_to_date

if TYPE_CHECKING:
    from foreplan.engine.coordinator import Coordinator
    from foreplan.runs import Session

NEXT = 3  # waiting tasks that are named
_TRIES, _PAUSE = 20, 0.01  # looks, and seconds between them, while tasks are being added


@dataclass(frozen=True)
class Work:
    """What a processor does."""

    processor: str
    present: bool
    task: str | None = None
    since: float = 0.0
    progress: float | None = None  # the share that is done, if the task says so
    cores: int = 1  # of the task; 0: this is another than the first of them


@dataclass(frozen=True)
class View:
    """Counts, times and processors at one moment."""

    now: float  # seconds of the run's time
    total: int
    done: int  # with those that were found up to date
    running: int
    failed: int  # given up
    projected: float | None  # when the run will end, by its plan
    work: tuple[Work, ...]
    money: Money | None = None  # where anything has a price
    budget: float = math.inf
    deadline: float = math.inf
    reused: int = 0  # of what is done: it was found up to date
    ready: int = 0  # waiting tasks that have all that they need
    next: tuple[Waiting, ...] = ()  # waiting tasks that are expected first, and what they wait for

    @property
    def waiting(self) -> int:
        """How many tasks are still to start."""
        return max(0, self.total - self.done - self.running - self.failed)

    def counts(self) -> str:
        """The counts in words."""
        reused = f", {self.reused} up to date" if self.reused else ""
        text = f"{self.done - self.reused}/{self.total} done{reused}"
        text += f", {self.running} running, {self.waiting} waiting"
        return f"{text}, {self.failed} given up" if self.failed else text

    def times(self) -> str:
        """How long it has gone on, and when it is expected to end."""
        text = f"{clock(self.now)} elapsed"
        if self.projected is not None:
            left = clock(max(0.0, self.projected - self.now))
            text += f", expected to end at {clock(self.projected)} ({left} more)"
        return text


def look(session: Session) -> View:
    """The run now. Called beside the thread that drives it, which may just be adding tasks."""
    for _ in range(_TRIES):
        with suppress(IndexError, ValueError):  # the plan, or the state, is of fewer tasks
            return _look(session)
        time.sleep(_PAUSE)
    return _look(session)


def _look(session: Session) -> View:
    coordinator, now = session.coordinator, session.clock()
    state, names = coordinator.state, coordinator.platform.processor_names
    tasks, present = coordinator.workflow.task_names, state.present()
    attempts = state.running()
    running = {core: attempt for attempt in attempts for core in state.cores_of(attempt.number)}
    work = [
        Work(name, bool(there))
        if (attempt := running.get(p)) is None
        else Work(
            name,
            True,
            tasks[attempt.task],
            attempt.start,
            session.reported.get(attempt.number),
            len(state.cores_of(attempt.number)) if p == attempt.processor else 0,
        )
        for p, (name, there) in enumerate(zip(names, present, strict=False))
    ]
    first, ready = next_ones(coordinator, NEXT)
    return View(
        now=now,
        total=coordinator.workflow.n_tasks,
        done=coordinator.n_done,
        running=len(attempts),
        failed=state.count(TaskState.GIVEN_UP),
        projected=projected_end(coordinator, now),
        work=tuple(work),
        money=_money(session, now),
        budget=coordinator.tracker.budget,
        deadline=coordinator.deadline.at,
        reused=len(found_up_to_date(state, set(session.reused))),
        ready=ready,
        next=tuple(first),
    )


def _money(session: Session, now: float) -> Money | None:
    """The money now: what is spent and committed is looked up, the rest is as last projected."""
    last, coordinator = session.spending.money, session.coordinator
    if last is None:
        return None
    state, platform = coordinator.state, coordinator.platform
    busy, ends = state.expected_ends(now)
    used = usage_by(state, coordinator.workflow, platform, now)
    money = Money.of(platform, used, used.with_running(busy, now, ends))
    planned = last.projected - money.spent - money.committed
    return replace(money, planned=planned if math.isnan(planned) else max(0.0, planned))


def amounts(money: Money, budget: float) -> str:
    """The money of a run under way."""
    said = [f"{amount(money.spent)} spent", f"{amount(money.committed)} committed"]
    if math.isfinite(money.projected):
        said.append(f"{amount(money.projected)} projected")
    text = ", ".join(said)
    return f"{text} of a budget of {amount(budget)}" if math.isfinite(budget) else text


def clock(seconds: float) -> str:
    """A time that is looked at while it goes on: its digits stay where they are."""
    return f"{seconds:.1f} s" if seconds < 59.95 else duration(seconds)


def projected_end(coordinator: Coordinator, now: float) -> float | None:
    """When the run will end: every processor's plan, shifted by how late it is now."""
    plan, state = coordinator.plan, coordinator.state
    if plan is None:
        return None
    left = state.tasks(TaskState.WAITING, TaskState.RUNNING)
    on = state.places()[left]
    left, on = left[on >= 0], on[on >= 0]
    if not len(left):
        return None
    n = len(state.present())
    first, last = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(first, on, plan.start[left])
    np.maximum.at(last, on, plan.finish[left])
    late = np.maximum(0.0, now - first)  # of a processor that is idle
    ends = dict(zip(*state.expected_ends(now), strict=True))
    for attempt in state.running():
        end = ends.get(attempt.processor, now)
        late[attempt.processor] = end - plan.finish[attempt.task]
    return max(now, float((last + late).max()))
