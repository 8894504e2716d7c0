"""The only wiring: executor -> coordinator -> executor, with the planner asked in between."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from weft.contracts import Executor, Planner, Policy
from weft.coordinator import Coordinator, Evaluation
from weft.errors import WeftError
from weft.executors.reality import Reality
from weft.executors.simulated import SimulatedExecutor
from weft.kernels import board as b
from weft.kernels.compiled import compiled, pays
from weft.kernels.drive import drive
from weft.model import Estimates, Platform, Schedule, Workflow
from weft.model.events import Command, Event, EventKind, NewPlan, Replan


class StuckError(WeftError):
    """Nothing will ever happen again, and tasks are left."""


@dataclass
class Finished:
    """A run that is over: its coordinator, the plans it followed, and the time spent planning."""

    coordinator: Coordinator
    plans: list[Schedule] = field(default_factory=list)
    planning_seconds: float = 0.0
    journal: list[Event] = field(default_factory=list)

    @property
    def evaluations(self) -> list[Evaluation]:
        """Every time that a new plan was considered, the first plan left out."""
        return self.coordinator.evaluations[1:]

    def answer(self, planner: Planner, asked: Replan) -> NewPlan:
        """Ask the planner, and take the time."""
        begun = time.perf_counter()
        schedule = planner.plan(self.coordinator.situation())
        self.planning_seconds += time.perf_counter() - begun
        return NewPlan(asked.time, asked.version, schedule)


def run_by_events(coordinator: Coordinator, planner: Planner, executor: Executor) -> Finished:
    """Every event through the coordinator: the way of every real executor."""
    run = Finished(coordinator)
    waiting: list[Command] = [coordinator.first_plan()]
    while True:
        while waiting:
            command = waiting.pop(0)
            if isinstance(command, Replan):
                waiting += coordinator.handle(run.answer(planner, command))
                _note_plan(run)
            else:
                executor.perform(command)
        if coordinator.done:
            return run
        event = executor.next_event()
        if event is None:
            raise _stuck(coordinator)
        run.journal.append(event)
        waiting = coordinator.handle(event)


def run_natively(
    coordinator: Coordinator, planner: Planner, executor: SimulatedExecutor
) -> Finished:
    """The same run without leaving the kernels from one decision to the next."""
    run = Finished(coordinator)
    replan: Replan | None = coordinator.first_plan()
    while True:
        while replan is not None:
            late = coordinator.take(run.answer(planner, replan))
            _note_plan(run)
            replan = coordinator.consider(late, None)
        board = coordinator.make_room()
        most = board.burst + int(board.counts[b.N_COMMANDS])
        executor.make_room(len(board.attempt_task), len(board.transfer_item), most)
        loop = compiled(drive) if pays(20 * board.n_tasks) else drive
        why, late, kind, which = loop(board, executor.world)
        if why == b.NOTHING:
            if not coordinator.done:
                raise _stuck(coordinator)
            return run
        if why != b.ROOM:
            event = Event(EventKind(int(kind)), int(which), coordinator.now)
            replan = coordinator.consider(int(late), event if why == b.CHANGED else None)


def simulate(
    workflow: Workflow,
    platform: Platform,
    estimates: Estimates,
    policy: Policy,
    planner: Planner,
    reality: Reality,
    by_events: bool = False,
) -> Finished:
    """One run in a simulated world."""
    known = Estimates(reality.work) if policy.name == "ideal" else estimates
    coordinator = Coordinator(workflow, platform, known, policy)
    executor = SimulatedExecutor(workflow, platform, reality)
    run = run_by_events if by_events else run_natively
    return run(coordinator, planner, executor)


def _note_plan(run: Finished) -> None:
    plan = run.coordinator.plan
    if plan is not None and (not run.plans or run.plans[-1] is not plan):
        run.plans.append(plan)


def _stuck(coordinator: Coordinator) -> StuckError:
    left = coordinator.workflow.n_tasks - int(coordinator.board.counts[b.N_DONE])
    return StuckError(
        f"at {coordinator.now:g} nothing can happen any more, and {left} tasks are not done: "
        "no processor is left that could run them"
    )
