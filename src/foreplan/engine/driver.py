"""The loop: what happens goes to the coordinator, what it wants done to where things happen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Protocol, cast

import numpy as np

from foreplan import registry
from foreplan.arrays import FloatArray, IntArray
from foreplan.contracts import Order, Planner, Policy
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.kernels.arrays import N_ATTEMPTS
from foreplan.engine.online_estimates import OnlineEstimates
from foreplan.errors import ForeplanError, PlanningError, TooLateError, UnaffordableError
from foreplan.model import (
    Evaluation,
    Run,
    Schedule,
    Situation,
    affordable,
)
from foreplan.model.events import (
    CancelTask,
    Command,
    DropTransfer,
    Event,
    Heard,
    NewEstimates,
    NewPlan,
    NewStrategy,
    Replan,
    TasksAdded,
)
from foreplan.model.resources import one_each
from foreplan.scheduling.projection import second_opinion
from foreplan.scheduling.slack import staying

UNDONE = (CancelTask, DropTransfer)
BATCH = 512  # events that are heard before anything is done about them


class StuckError(ForeplanError):
    """Nothing will ever happen again, and tasks are left."""


class Outside(Protocol):
    """Where things happen and are done: an executor, or a journal that is read again."""

    def perform(self, command: Command) -> None:
        """Begin to do what the coordinator asks for."""

    def flush(self) -> None:
        """What was asked for is on its way when this returns."""

    def next_event(self, wait: bool = True) -> Heard | None:
        """Wait for the next thing that happens; None if nothing ever will, or none has yet."""


class Recorder(Protocol):
    """Where a run's journal is kept: what it hears is on disk before anything is done about it."""

    @property
    def pending(self) -> Sized:
        """What is not on disk yet."""

    def note_heard(self, entry: Heard) -> None:
        """The coordinator has heard this."""

    def note_judged(self, evaluation: Evaluation) -> None:
        """A plan was taken or not."""

    def sync(self, commands: list[Command]) -> None:
        """Put all of it on disk: these commands are going to be performed."""


class Observer(Protocol):
    """Who looks on while a run is driven."""

    def read(self, event: Event) -> Iterable[Heard]:
        """What the coordinator is to hear of an event: as a rule the event."""

    def look(self, events: list[Event]) -> None:
        """These things were heard, and what they lead to is under way."""


@dataclass
class Driver:
    """The loop of every run that is not native: hear, replan, journal, perform.

    Simulations, real runs, replays and what-if differ in the executor and in who looks on.
    """

    coordinator: Coordinator
    planner: Planner | None
    executor: Outside | None = None
    recorder: Recorder | None = None
    observer: Observer | None = None
    answers: bool = True  # else plans that are asked for come from there: a journal has them
    plans: list[Schedule] = field(default_factory=list)
    plan_times: list[float] = field(default_factory=list)
    planning_seconds: float = 0.0
    events: list[Event] | None = None  # None: they are not kept
    online: OnlineEstimates | None = None  # what a simulated run teaches
    learned: list[NewEstimates] = field(default_factory=list)
    added: list[TasksAdded] = field(default_factory=list)  # by expansions, in their order
    _padded: Schedule | None = None  # no new plan: the old one, with the tasks that were added
    switched: NewStrategy | None = None  # a run that began just in time: since when it has plans

    def drive(
        self, commands: list[Command] | None = None, is_over: Callable[[], bool] | None = None
    ) -> None:
        """From the start, or from these commands on, until the run is over, or as long as is said.

        A run is over when every task is done or given up, or it is held back and nothing runs.
        """
        commands = self.begin() if commands is None else commands
        coordinator, events = self.coordinator, list[Event]()
        while True:
            self.perform(commands)
            if self.observer is not None:
                self.observer.look(events)
            if (coordinator.done or coordinator.halted) if is_over is None else is_over():
                return
            commands, events = self._listen()

    def begin(self) -> list[Command]:
        """What is to be done first."""
        return self.settle(self.coordinator.begin())

    def perform(self, commands: list[Command]) -> None:
        """Have done what the coordinator asks for, once its reasons are on disk."""
        if self.recorder is not None:
            if not commands and not self.recorder.pending:
                return
            self.recorder.sync(commands)
        elif not commands:
            return
        assert self.executor is not None
        for command in commands:
            self.executor.perform(command)
        self.executor.flush()

    def _listen(self) -> tuple[list[Command], list[Event]]:
        """All that has happened meanwhile, and what it leads to."""
        assert self.executor is not None
        commands, events = list[Command](), list[Event]()
        entry = self.executor.next_event()
        if entry is None:
            raise stuck(self.coordinator)
        while entry is not None:
            new = self.take(entry)
            commands += new
            if isinstance(entry, Event):
                events.append(entry)
            # what is cancelled or dropped must be so before more is heard of it
            more = len(events) < BATCH and not any(isinstance(c, UNDONE) for c in new)
            entry = self.executor.next_event(wait=False) if more else None
        return commands, events

    def take(self, entry: Heard) -> list[Command]:
        """What follows from what the executor tells, as the observer reads it."""
        if self.observer is None or not isinstance(entry, Event):
            return self.hear(entry)
        return [command for read in self.observer.read(entry) for command in self.hear(read)]

    def hear(self, entry: Heard) -> list[Command]:
        """Tell the coordinator; the plans that it asks for are made at once."""
        if self.recorder is not None:
            self.recorder.note_heard(entry)
        evaluated = len(self.coordinator.evaluations)
        self.note(entry)
        commands = self._tell(entry)
        if isinstance(entry, TasksAdded):
            self._padded = self.coordinator.plan
        if self.recorder is not None:
            for evaluation in self.coordinator.evaluations[evaluated:]:
                self.recorder.note_judged(evaluation)
        self.note_plan()
        return self.settle(commands)

    def _tell(self, entry: Heard) -> list[Command]:
        """What the coordinator answers; with another strategy comes another planner."""
        if not isinstance(entry, NewStrategy):
            return self.coordinator.handle(entry)
        return self.coordinator.switch(self.switch(entry), entry)

    def switch(self, new: NewStrategy) -> Policy:
        """Have another planner from now on; the policy that comes with it."""
        policy, self.planner = registry.strategy(new.strategy)
        assert not isinstance(policy, Order)
        self.switched = new
        return policy

    def settle(self, commands: list[Command]) -> list[Command]:
        """Have the plan made that is asked for; the commands that are left for the executor."""
        if self.answers and commands and isinstance(commands[-1], Replan):
            entry = self.revise_estimates(commands[-1]) or self.answer(commands[-1])
            return commands[:-1] + self.hear(entry)
        return commands

    def revise_estimates(self, asked: Replan) -> NewEstimates | None:
        """Before a new plan is made: other estimates, if the run has taught some."""
        if self.online is None:
            return None
        coordinator = self.coordinator
        estimates = self.online.revise(coordinator.state, coordinator.estimates)
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
        return NewPlan(asked.time, asked.version, schedule, time.perf_counter() - begun)

    def note(self, entry: Heard) -> None:
        """Keep what the record of the run has of it."""
        if isinstance(entry, NewEstimates):
            self.learned.append(entry)
        elif isinstance(entry, TasksAdded):
            self.added.append(entry)
            if self.online is not None:
                self.online.grow(entry.workflow, entry.estimates)
        elif isinstance(entry, NewPlan):
            self.planning_seconds += entry.seconds
        elif self.events is not None and isinstance(entry, Event):
            self.events.append(entry)

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
        if plan is None or plan is self._padded:
            return
        if not self.plans or self.plans[-1] is not plan:
            self.plans.append(plan)
            self.plan_times.append(self.coordinator.now)


def answered(
    planner: Planner, coordinator: Coordinator, asked: Replan, situation: Situation | None = None
) -> Schedule | None:
    """The plan that is asked for; None if there is none and the old one is kept.

    If nothing can be done in time before machines leave, a run that is under way goes on as if
    they stayed: what they then take with them is made good. If nothing is affordable any more, it
    is finished the cheapest way; if nothing ends by the deadline any more, the fastest way.
    """
    assert coordinator.policy is not None
    situation = coordinator.situation() if situation is None else situation
    try:
        plan = planner.plan(situation, coordinator.freedom)
        if getattr(coordinator.policy, "second", False) and not coordinator.tracker.kept:
            plan = second_opinion(planner, situation, plan)
        return _with_cores(plan, situation)
    except UnaffordableError as error:
        budget, cheapest = coordinator.tracker.budget, cast(Schedule, error.cheapest)
        if coordinator.plan is None and not affordable(error.cost, budget):
            # said of all the money, not of what the reserve leaves
            raise UnaffordableError(budget, error.cost, cheapest.makespan, cheapest) from None
        return cheapest if asked.forced else None
    except TooLateError as error:
        if coordinator.plan is None:
            raise
        return cast(Schedule, error.fastest)
    except PlanningError:
        if coordinator.plan is None and coordinator.state.arrays.counts[N_ATTEMPTS] == 0:
            raise
        if not asked.forced:
            return None
        platform = situation.platform
        stay = np.where(platform.leaves > situation.now, np.inf, platform.leaves)
        if np.array_equal(stay, platform.leaves):
            raise
        kept = replace(situation, platform=replace(platform, leaves=stay))
        return answered(planner, coordinator, asked, kept)


def _with_cores(schedule: Schedule, situation: Situation) -> Schedule:
    """The plan, if it gives tasks as many cores as they take."""
    needs = situation.estimates.needs
    if needs is None:
        return schedule
    planned = schedule.cores or one_each(schedule.processor)
    waiting = np.flatnonzero(situation.waiting()).astype(np.int32)
    wrong = np.isnan(needs.factor_of(waiting, planned.width[waiting]))
    if wrong.any():
        task = situation.workflow.task_names[waiting[wrong][0]]
        raise PlanningError(
            f"{schedule.planner} does not plan for tasks that take several cores, as {task!r} does"
        )
    return schedule if schedule.cores is not None else replace(schedule, cores=planned)


def record(
    driver: Driver,
    strategy: str,
    changes: Sequence[Event],
    work: Callable[[IntArray, IntArray], FloatArray] | None = None,
) -> Run:
    """The record of a run: what its state says, and what happened to the machines.

    What attempts needed is known of a simulated world only, which tells their `work`.
    """
    coordinator = driver.coordinator
    return Run(
        strategy=strategy,
        workflow=coordinator.workflow,
        platform=coordinator.declared,
        attempts=coordinator.state.attempt_log(work),
        transfers=coordinator.state.transfer_log(),
        plans=tuple(driver.plans),
        plan_times=tuple(driver.plan_times),
        evaluations=tuple(coordinator.evaluations[1:]),
        changes=tuple(changes),
        events=None if driver.events is None else tuple(driver.events),
        planning_seconds=driver.planning_seconds,
        new_estimates=tuple(driver.learned),
        budget=coordinator.tracker.budget,
        over_budget_at=coordinator.tracker.over_at,
        deadline=coordinator.deadline.at,
        late_at=coordinator.deadline.late_at,
        planned_from=driver.switched.time if driver.switched else 0.0,
        added=tuple((new.time, new.workflow.n_tasks - new.more.n_tasks) for new in driver.added),
    )


def stuck(coordinator: Coordinator) -> StuckError:
    """What to say when nothing can happen any more."""
    left = coordinator.workflow.n_tasks - coordinator.n_done
    shut_out = coordinator.shut_out()
    if shut_out.any():
        task = coordinator.workflow.task_names[int(shut_out.argmax())]
        return StuckError(
            f"at {coordinator.now:g} nothing can happen any more, and {left} tasks are not done: "
            f"no host that is left has what {task!r} needs"
        )
    return StuckError(
        f"at {coordinator.now:g} nothing can happen any more, and {left} tasks are not done: "
        "the processors they need are gone or stand still"
    )
