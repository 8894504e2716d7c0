"""The only wiring: executor -> coordinator -> executor, with the planner asked in between."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field, replace
from typing import Protocol, cast

import numpy as np

from weft import registry
from weft.contracts import Executor, Order, Planner, Policy
from weft.coordinator import Coordinator
from weft.coordinator.deciding import Deciding
from weft.coordinator.purse import Purse
from weft.errors import PlanningError, TooLateError, UnaffordableError, WeftError
from weft.executors.reality import Reality
from weft.executors.simulated import SimulatedExecutor
from weft.history.lessons import Lessons
from weft.kernels import board as b
from weft.kernels.drive import drive
from weft.model import (
    AttemptLog,
    Estimates,
    Evaluation,
    Platform,
    Run,
    Schedule,
    Tolerance,
    TransferLog,
    Workflow,
    affordable,
)
from weft.model.events import (
    Command,
    Event,
    EventKind,
    Heard,
    NewEstimates,
    NewPlan,
    NewStrategy,
    Replan,
)
from weft.spec import spec_of
from weft.staying import staying


class StuckError(WeftError):
    """Nothing will ever happen again, and tasks are left."""


class Recorder(Protocol):
    """Where a run's journal is kept: what it hears is on disk before anything is done about it."""

    def heard(self, entry: Heard) -> None:
        """The coordinator has heard this."""
        ...

    def judged(self, evaluation: Evaluation) -> None:
        """A plan was taken or not."""
        ...

    def sync(self, commands: list[Command]) -> None:
        """Put all of it on disk: these commands are going to be performed."""
        ...


@dataclass
class Progress:
    """A run under way: the plans it followed and the time spent planning."""

    coordinator: Coordinator
    planner: Planner | None
    recorder: Recorder | None = None
    plans: list[Schedule] = field(default_factory=list)
    plan_times: list[float] = field(default_factory=list)
    planning_seconds: float = 0.0
    events: list[Event] | None = None
    lessons: Lessons | None = None  # what a simulated run teaches
    learned: list[NewEstimates] = field(default_factory=list)
    switched: NewStrategy | None = None  # a run that began just in time: since when it has plans

    def hear(self, entry: Heard) -> list[Command]:
        """Tell the coordinator; the plans that it asks for are made at once."""
        if self.recorder is not None:
            self.recorder.heard(entry)
        if self.events is not None and isinstance(entry, Event):
            self.events.append(entry)
        if isinstance(entry, NewEstimates):
            self.learned.append(entry)
        evaluated = len(self.coordinator.evaluations)
        commands = self.told(entry)
        if self.recorder is not None:
            for evaluation in self.coordinator.evaluations[evaluated:]:
                self.recorder.judged(evaluation)
        self.note_plan()
        return self.settled(commands)

    def told(self, entry: Heard) -> list[Command]:
        """What the coordinator answers; with another strategy comes another planner."""
        if not isinstance(entry, NewStrategy):
            return self.coordinator.handle(entry)
        policy, self.planner = registry.strategy(entry.strategy)
        assert not isinstance(policy, Order)
        self.switched = entry
        return self.coordinator.switch(policy, entry)

    def settled(self, commands: list[Command]) -> list[Command]:
        """The commands that are left for the executor."""
        if commands and isinstance(commands[-1], Replan):
            entry = self.lesson(commands[-1]) or self.answer(commands[-1])
            return commands[:-1] + self.hear(entry)
        return commands

    def lesson(self, asked: Replan) -> NewEstimates | None:
        """Before a new plan is made: other estimates, if the run has taught some."""
        if self.lessons is None:
            return None
        coordinator = self.coordinator
        estimates = self.lessons.revised(coordinator.board, coordinator.estimates)
        if estimates is None:
            return None
        return NewEstimates(asked.time, estimates, coordinator.platform, asked.reason)

    def answer(self, asked: Replan) -> NewPlan:
        """Ask the planner, and take the time."""
        coordinator = self.coordinator
        assert self.planner is not None
        assert coordinator.policy is not None
        begun = time.perf_counter()
        schedule = answered(self.planner, coordinator, asked)
        if schedule is not None and coordinator.plan is not None and coordinator.policy.stays:
            schedule = staying(schedule, coordinator.plan, coordinator.situation())
        seconds = time.perf_counter() - begun
        self.planning_seconds += seconds
        return NewPlan(asked.time, asked.version, schedule, seconds)

    def note_decided(self, evaluation: Evaluation, plan: Schedule | None) -> None:
        """Keep what the kernels decided."""
        self.coordinator.note(evaluation, plan)
        self.planning_seconds += evaluation.seconds
        if plan is not None:
            self.plans.append(plan)
            self.plan_times.append(evaluation.time)

    def note_plan(self) -> None:
        """Keep the plan if it is a new one."""
        plan = self.coordinator.plan
        if plan is not None and (not self.plans or self.plans[-1] is not plan):
            self.plans.append(plan)
            self.plan_times.append(self.coordinator.now)


def answered(planner: Planner, coordinator: Coordinator, asked: Replan) -> Schedule | None:
    """The plan that is asked for; None if there is none and the old one will do.

    If nothing can be done in time before machines leave, a run that is under way goes on as if
    they stayed: what they then take with them is made good. If nothing is affordable any more, it
    is finished the cheapest way; if nothing ends by the deadline any more, the fastest way.
    """
    assert coordinator.policy is not None
    situation, freedom = coordinator.situation(), coordinator.freedom
    try:
        return planner.plan(situation, freedom)
    except UnaffordableError as error:
        budget, cheapest = coordinator.purse.budget, cast(Schedule, error.cheapest)
        if coordinator.plan is None and not affordable(error.cost, budget):
            # said of all the money, not of what the reserve leaves
            raise UnaffordableError(budget, error.cost, cheapest.makespan, cheapest) from None
        return cheapest if asked.forced else None
    except TooLateError as error:
        if coordinator.plan is None:
            raise
        return cast(Schedule, error.fastest)
    except PlanningError:
        if coordinator.plan is None and not coordinator.board.counts[b.N_ATTEMPTS]:
            raise
        if not asked.forced:
            return None
        platform = situation.platform
        stay = np.where(platform.leaves > situation.now, np.inf, platform.leaves)
        return planner.plan(replace(situation, platform=replace(platform, leaves=stay)), freedom)


def run_by_events(progress: Progress, executor: Executor) -> None:
    """Every event through the coordinator: the way of every real executor."""
    coordinator, progress.events = progress.coordinator, []
    commands = progress.settled(coordinator.begin())
    while True:
        perform(progress, executor, commands)
        if coordinator.done or coordinator.halted:
            return
        event = executor.next_event()
        if event is None:
            raise stuck(coordinator)
        commands = progress.hear(event)


def perform(progress: Progress, executor: Executor, commands: list[Command]) -> None:
    """Have done what the coordinator asks for, once its reasons are on disk."""
    if progress.recorder is not None:
        progress.recorder.sync(commands)
    for command in commands:
        executor.perform(command)


def run_natively(progress: Progress, executor: SimulatedExecutor) -> None:
    """The same run without leaving the kernels from one decision to the next."""
    coordinator = progress.coordinator
    kernels = Deciding.of(coordinator, progress.planner)
    replan = coordinator.set_out()
    first, late = kernels is not None and replan is not None, -1
    while True:
        while replan is not None and not first:
            new = progress.lesson(replan)
            if new is not None:
                progress.learned.append(new)
                coordinator.learn(new)
                replan = coordinator.consider(-1, new)
                continue
            late = coordinator.take(progress.answer(replan))
            progress.note_plan()
            replan = coordinator.consider(late, None)
        if coordinator.halted:
            return
        board = coordinator.make_room(plans=kernels is not None)
        most = 2 * board.burst + int(board.counts[b.N_COMMANDS])
        executor.make_room(len(board.attempt_task), len(board.transfer_item), most)
        world = executor.world
        if kernels is None:
            why, late, kind, which = drive(board, world)
        else:
            why, late, kind, which = kernels.drive(board, world, first, late)
            for evaluation, plan in kernels.decided():
                progress.note_decided(evaluation, plan)
            if first:
                first = False
                replan = coordinator.asked  # as before, if the kernels could not plan
                if replan is not None:
                    continue
        if why == b.NOTHING:
            if not coordinator.done and not coordinator.halted:
                raise stuck(coordinator)
            return
        if why == b.UNSETTLED:
            coordinator.leave_over()
            replan, late = coordinator.consider(late, None), -1
        elif why != b.ROOM:
            event = None
            if why == b.CHANGED:
                event = Event(EventKind(int(kind)), int(which), coordinator.now)
            replan = coordinator.consider(int(late), event)
            late = -1


def simulate(
    workflow: Workflow,
    platform: Platform,
    estimates: Estimates,
    strategy: Policy | Order,
    planner: Planner | None,
    reality: Reality,
    by_events: bool = False,
    purse: Purse | None = None,
) -> Run:
    """One run in a simulated world, natively or with every event through the coordinator."""
    # the one strategy that is planned post mortem, with the truth for estimates
    known = Estimates(reality.work) if strategy.name == "ideal" else estimates
    patient = Tolerance(losses=sys.maxsize)  # nobody waits for a simulated machine
    coordinator = Coordinator(workflow, platform, known, strategy, patient, purse=purse)
    progress = Progress(coordinator, planner)
    policy = progress.coordinator.policy
    if policy is not None and policy.learn:
        progress.lessons = Lessons.of(workflow, platform, known)
    executor = SimulatedExecutor(workflow, platform, reality)
    if by_events or coordinator.purse.cuts:  # when the money is gone is no event of the kernels'
        run_by_events(progress, executor)
        progress.events = progress.events if by_events else None
    else:
        run_natively(progress, executor)
    return record(progress, spec_of(strategy), executor.changes(), executor)


def record(
    progress: Progress,
    strategy: str,
    changes: list[Event],
    simulated: SimulatedExecutor | None = None,
) -> Run:
    """The record of a run: what the board says of it, and what happened to the machines.

    What attempts needed is known of a simulated world only.
    """
    coordinator, board = progress.coordinator, progress.coordinator.board
    n, m = int(board.counts[b.N_ATTEMPTS]), int(board.counts[b.N_TRANSFERS])
    tried, on = board.attempt_task[:n], board.attempt_on[:n]
    work = np.full(n, np.nan) if simulated is None else simulated.actual_work(tried, on)
    return Run(
        strategy=strategy,
        workflow=coordinator.workflow,
        platform=coordinator.declared,
        attempts=AttemptLog(
            task=tried,
            processor=on,
            start=board.attempt_start[:n],
            finish=board.attempt_finish[:n],
            end=board.attempt_end[:n].astype(np.int32),
            work=work,
        ),
        transfers=TransferLog(
            item=board.transfer_item[:m],
            source=board.transfer_from[:m],
            target=board.transfer_to[:m],
            sent=board.transfer_sent[:m],
            arrival=board.transfer_arrival[:m],
            forgotten=board.transfer_forgotten[:m],
        ),
        plans=tuple(progress.plans),
        plan_times=tuple(progress.plan_times),
        evaluations=tuple(coordinator.evaluations[1:]),
        changes=tuple(changes),
        events=None if progress.events is None else tuple(progress.events),
        planning_seconds=progress.planning_seconds,
        lessons=tuple(progress.learned),
        budget=coordinator.purse.budget,
        over_budget_at=coordinator.purse.over_at,
        deadline=coordinator.deadline.at,
        late_at=coordinator.deadline.late_at,
        planned_from=progress.switched.time if progress.switched else 0.0,
    )


def stuck(coordinator: Coordinator) -> StuckError:
    """What to say when nothing can happen any more."""
    left = coordinator.workflow.n_tasks - coordinator.n_done
    return StuckError(
        f"at {coordinator.now:g} nothing can happen any more, and {left} tasks are not done: "
        "the processors they need are gone or stand still"
    )
