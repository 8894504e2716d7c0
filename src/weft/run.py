"""The only wiring: executor -> coordinator -> executor, with the planner asked in between."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from weft.contracts import Executor, Order, Planner, Policy
from weft.coordinator import Coordinator
from weft.errors import WeftError
from weft.executors.reality import Reality
from weft.executors.simulated import SimulatedExecutor
from weft.kernels import board as b
from weft.kernels.compiled import compiled, pays
from weft.kernels.drive import drive
from weft.model import (
    AttemptLog,
    Estimates,
    Platform,
    Run,
    Schedule,
    TransferLog,
    Workflow,
)
from weft.model.events import Event, EventKind, NewPlan, Replan
from weft.spec import spec_of


class StuckError(WeftError):
    """Nothing will ever happen again, and tasks are left."""


@dataclass
class Progress:
    """A run under way: the plans it followed and the time spent planning."""

    coordinator: Coordinator
    planner: Planner | None
    plans: list[Schedule] = field(default_factory=list)
    plan_times: list[float] = field(default_factory=list)
    planning_seconds: float = 0.0
    events: list[Event] | None = None

    def answer(self, asked: Replan) -> NewPlan:
        """Ask the planner, and take the time."""
        assert self.planner is not None
        begun = time.perf_counter()
        schedule = self.planner.plan(self.coordinator.situation())
        self.planning_seconds += time.perf_counter() - begun
        return NewPlan(asked.time, asked.version, schedule)

    def note_plan(self) -> None:
        """Keep the plan if it is a new one."""
        plan = self.coordinator.plan
        if plan is not None and (not self.plans or self.plans[-1] is not plan):
            self.plans.append(plan)
            self.plan_times.append(self.coordinator.now)


def run_by_events(progress: Progress, executor: Executor) -> None:
    """Every event through the coordinator: the way of every real executor."""
    coordinator, progress.events = progress.coordinator, []
    commands = coordinator.begin()
    while True:
        while commands:
            command = commands.pop(0)
            if isinstance(command, Replan):
                commands += coordinator.handle(progress.answer(command))
                progress.note_plan()
            else:
                executor.perform(command)
        if coordinator.done:
            return
        event = executor.next_event()
        if event is None:
            raise _stuck(coordinator)
        progress.events.append(event)
        commands = coordinator.handle(event)


def run_natively(progress: Progress, executor: SimulatedExecutor) -> None:
    """The same run without leaving the kernels from one decision to the next."""
    coordinator = progress.coordinator
    replan = coordinator.set_out()
    while True:
        while replan is not None:
            late = coordinator.take(progress.answer(replan))
            progress.note_plan()
            replan = coordinator.consider(late, None)
        board = coordinator.make_room()
        most = 2 * board.burst + int(board.counts[b.N_COMMANDS])
        executor.make_room(len(board.attempt_task), len(board.transfer_item), most)
        loop = compiled(drive) if pays(20 * board.n_tasks) else drive
        why, late, kind, which = loop(board, executor.world)
        if why == b.NOTHING:
            if not coordinator.done:
                raise _stuck(coordinator)
            return
        if why != b.ROOM:
            event = Event(EventKind(int(kind)), int(which), coordinator.now)
            replan = coordinator.consider(int(late), event if why == b.CHANGED else None)


def simulate(
    workflow: Workflow,
    platform: Platform,
    estimates: Estimates,
    strategy: Policy | Order,
    planner: Planner | None,
    reality: Reality,
    by_events: bool = False,
) -> Run:
    """One run in a simulated world, natively or with every event through the coordinator."""
    # the one strategy that is planned post mortem, with the truth for estimates
    known = Estimates(reality.work) if strategy.name == "ideal" else estimates
    progress = Progress(Coordinator(workflow, platform, known, strategy), planner)
    executor = SimulatedExecutor(workflow, platform, reality)
    if by_events:
        run_by_events(progress, executor)
    else:
        run_natively(progress, executor)
    return _record(progress, executor, spec_of(strategy))


def _record(progress: Progress, executor: SimulatedExecutor, strategy: str) -> Run:
    coordinator, board = progress.coordinator, progress.coordinator.board
    n, m = int(board.counts[b.N_ATTEMPTS]), int(board.counts[b.N_TRANSFERS])
    task, processor = board.attempt_task[:n], board.attempt_on[:n]
    return Run(
        strategy=strategy,
        workflow=coordinator.workflow,
        platform=coordinator.platform,
        attempts=AttemptLog(
            task=task,
            processor=processor,
            start=board.attempt_start[:n],
            finish=board.attempt_finish[:n],
            end=board.attempt_end[:n].astype(np.int32),
            work=executor.actual_work(task, processor),
        ),
        transfers=TransferLog(
            item=board.transfer_item[:m],
            source=board.transfer_from[:m],
            target=board.transfer_to[:m],
            sent=board.transfer_sent[:m],
            arrival=board.transfer_arrival[:m],
        ),
        plans=tuple(progress.plans),
        plan_times=tuple(progress.plan_times),
        evaluations=tuple(coordinator.evaluations[1:]),
        changes=tuple(executor.changes()),
        events=None if progress.events is None else tuple(progress.events),
        planning_seconds=progress.planning_seconds,
    )


def _stuck(coordinator: Coordinator) -> StuckError:
    left = coordinator.workflow.n_tasks - coordinator.n_done
    return StuckError(
        f"at {coordinator.now:g} nothing can happen any more, and {left} tasks are not done: "
        "the processors they need are gone or stand still"
    )
