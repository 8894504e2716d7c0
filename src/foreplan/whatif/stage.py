"""Where things stand when machines change: a run, as it is expected to go on until then.

It goes on in a simulated world whose truth are the estimates, by the present plan and nothing else.
The coordinator is a run's own, rebuilt from its journal: nothing of it is written back. After a run
it is about the next one like it: the same workflow and strategy on the machines that were there at
the end, with what the history lets expect now, this run included.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, field, replace

import numpy as np

from foreplan import registry
from foreplan.arrays import BoolArray
from foreplan.contracts import Order, Planner
from foreplan.ends import STANDS_STILL
from foreplan.engine.budget import CONTINUE
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.engine.meter import Meter
from foreplan.engine.policies.planned import Static
from foreplan.engine.retries import Retries
from foreplan.engine.state import TaskState
from foreplan.errors import InputError
from foreplan.executors.base import find_scheme
from foreplan.model import Estimates, Expectation, Platform, Schedule, Workflow
from foreplan.model.events import (
    NO_FAULT,
    Event,
    LinkChanged,
    NewEstimates,
    Paused,
    ProcessorGone,
    ProcessorJoined,
    RetryDue,
    SpeedChanged,
    TaskFailed,
    TaskFinished,
)
from foreplan.runs.estimates import Estimating, in_words
from foreplan.runs.home import RunHome
from foreplan.runs.journal import Contents, read
from foreplan.runs.money import within_limits
from foreplan.runs.options import chosen_strategy
from foreplan.runs.replay import Replayed, replay
from foreplan.runs.summary import summarise
from foreplan.simulation.reality import Reality, platform_changes
from foreplan.simulation.simulated import SimulatedExecutor
from foreplan.whatif.machines import Park

RUNNING, FINISHED = "running", "finished"


@dataclass(eq=False)
class Stage:
    """A coordinator that follows the present plan, and the planner to ask for others."""

    coordinator: Coordinator
    planner: Planner | None  # None: no plan is followed, and none is asked for
    park: Park
    name: str
    strategy: str | None = None  # just in time: the one that is simulated
    begun: bool = True  # else the plan is there, but nothing is started
    status: str | None = None  # of a run
    notes: tuple[str, ...] = ()
    now: float = field(init=False)
    tasks: dict[str, int] = field(init=False)  # by what they do now

    def __post_init__(self) -> None:
        self.now = self.coordinator.now
        kinds = (TaskState.DONE, TaskState.RUNNING, TaskState.WAITING, TaskState.GIVEN_UP)
        self.tasks = {kind.name.lower(): self.coordinator.state.count(kind) for kind in kinds}
        self.tasks["waiting"] += self.coordinator.state.count(TaskState.RESTING)
        if self.status not in (None, RUNNING):  # nobody drives it: what is begun here is not
            self.tasks["waiting"] += self.tasks["running"]
            self.tasks["running"] = 0

    def advance(self, at: float) -> None:
        """Go on to this moment; what happens just then happens after it."""
        coordinator = self.coordinator
        driver = Driver(coordinator, self.planner)
        if not self.begun and at > self.now:
            self.begun = True
            driver.begin()
        if at > coordinator.now:
            _keep_going_slowly(coordinator)
            driver.executor = world = expected_world(coordinator)
            driver.drive([], lambda: coordinator.done or not world.happens_by(at))
        if not coordinator.done:
            pass_time(coordinator, at)

    def plan(self) -> Schedule | None:
        """The present plan; before the start it is made here."""
        if self.coordinator.plan is not None or self.planner is None or self.begun:
            return self.coordinator.plan
        return self.planner.plan(self.coordinator.situation())


def before_start(workflow: Workflow, expected: Expectation, planner: str | Planner) -> Stage:
    """Nothing has started."""
    platform, estimates = expected.platform, expected.estimates
    coordinator = Coordinator(workflow, platform, estimates, Static())
    measured = expected.on is not None  # else a declared cost counts for new machines, too
    park = Park(workflow, platform, estimates, measured, expected.one_host)
    return Stage(coordinator, registry.planner(planner), park, workflow.name, begun=False)


def in_progress(
    home: RunHome,
    contents: Contents,
    replayed: Replayed,
    status: str,
    planner: str | Planner | None,
) -> Stage:
    """A run that is not done yet; one that nobody drives goes on as if resumed now."""
    header, coordinator = replayed.header, replayed.driver.coordinator
    own = replayed.driver.planner
    chosen = own if planner is None else registry.planner(planner)
    if coordinator.policy is not None:
        _follow_only(coordinator)
    pass_time(coordinator, _now(home, contents, coordinator, status))
    notes = _take_up(coordinator, own, driven=status == RUNNING)
    if coordinator.done:
        raise InputError(f"run {header.id} has nothing left to do: ask before its end")
    if header.blind and not replayed.driver.learned:
        notes.append("planned blind: nothing is known of the tasks' times, so all count alike")
    here = find_scheme(header.options.on).here
    park = Park(
        header.workflow, coordinator.platform, coordinator.estimates, measured=True, one_host=here
    )
    just_in_time = header.strategy if coordinator.policy is None else None
    return Stage(
        coordinator, chosen, park, header.id, just_in_time, status=status, notes=tuple(notes)
    )


def twin(coordinator: Coordinator) -> Coordinator:
    """A copy to try things on."""
    other = copy.copy(coordinator)
    other.state = coordinator.state.copy()
    other.tracker, other.meter = copy.copy(coordinator.tracker), Meter()
    # failures and losses are those of the run so far, not of what might be
    other.retries = Retries(coordinator.retries.policy, coordinator.workflow)
    other.evaluations = list(coordinator.evaluations)
    other.platform = replace(coordinator.platform, leaves=coordinator.state.leaves())
    other.make_room()
    return other


def pass_time(coordinator: Coordinator, at: float) -> None:
    """Let it be this time, with nothing happening before it."""
    if at > coordinator.now:
        coordinator.learn(NewEstimates(at, coordinator.estimates, coordinator.platform))


def expected_world(coordinator: Coordinator) -> SimulatedExecutor:
    """The world in which everything goes as it is expected to from now."""
    state, platform, now = coordinator.state, coordinator.platform, coordinator.now
    present, changes = state.present(), list[Event]()
    for change in platform_changes(platform):
        there = bool(present[change.processor])
        coming = float(platform.joins[change.processor]) > now
        joins = isinstance(change, ProcessorJoined) and not there
        if change.time > now and (
            joins or (isinstance(change, ProcessorGone) and (there or coming))
        ):
            changes.append(change)
    changes += [RetryDue(until) for until in state.retries()]
    reality = Reality(coordinator.estimates.cost, changes, coordinator.estimates.needs)
    return SimulatedExecutor.going_on(coordinator.workflow, platform, reality, state)


def _follow_only(coordinator: Coordinator) -> None:
    """Follow the present plan, whatever the run's policy would do."""
    coordinator.policy = Static()
    coordinator.set_over_budget(CONTINUE)
    coordinator.state.watch_nothing()


def _keep_going_slowly(coordinator: Coordinator) -> None:
    """What stands still is expected to go on slowly, by situations and in the world alike."""
    state, now = coordinator.state, coordinator.now
    for p in np.flatnonzero(state.availability() < STANDS_STILL).tolist():
        coordinator.handle(SpeedChanged(p, now, STANDS_STILL))
    for link in np.flatnonzero(state.bandwidth() < STANDS_STILL).tolist():
        coordinator.handle(LinkChanged(link, now, STANDS_STILL))


def _now(home: RunHome, contents: Contents, coordinator: Coordinator, status: str) -> float:
    """The run's time: it goes on since the last entry, if somebody drives it."""
    times = [float(entry["time"]) for entry in contents.entries if "time" in entry]
    now = max([coordinator.now, *times])
    if status == RUNNING:
        now += max(0.0, time.time() - home.journal.stat().st_mtime)
    return now


def _take_up(coordinator: Coordinator, planner: Planner | None, driven: bool) -> list[str]:
    """Go on as a resume would: what was under way is begun anew, what was given up tried again."""
    state, now, notes = coordinator.state, coordinator.now, list[str]()
    if not driven:
        cut = [attempt.number for attempt in state.running()]
        if cut:
            notes.append(f"attempts that were cut short and begin anew: {len(cut)}")
        for attempt in cut:
            coordinator.handle(TaskFailed(attempt, now, NO_FAULT))
    given_up = bool(coordinator.given_up) and not driven
    if state.held_back or given_up:
        coordinator.handle(Paused(now, False))
    if coordinator.asked is not None and state.present().any():
        Driver(coordinator, planner).settle([coordinator.asked])
    return notes


def of_run(home: RunHome, planner: str | Planner | None = None, use_history: bool = True) -> Stage:
    """A run as its journal tells it; of one that is all done, the next one like it."""
    status = summarise(home).status
    contents = read(home.journal)
    replayed = replay(contents, home.data)
    if replayed.driver.coordinator.n_done == replayed.header.workflow.n_tasks:
        return _next_like(replayed, planner, use_history)
    return in_progress(home, contents, replayed, status, planner)


def _next_like(replayed: Replayed, planner: str | Planner | None, use_history: bool) -> Stage:
    header, over = replayed.header, replayed.driver.coordinator
    expected = _expected(replayed, use_history)
    platform, estimates = expected.platform, expected.estimates
    # what is simulated goes on over its budget, as for a run in progress
    budget = over.tracker.budget if over.tracker.kept else None
    options = replace(header.options, budget=budget, over_budget=CONTINUE)
    strategy = str(chosen_strategy(options, expected.blind))  # as the journal has it
    policy, own = registry.strategy(strategy)
    just_in_time = isinstance(policy, Order)
    coordinator = Coordinator(
        header.workflow,
        platform,
        estimates,
        policy if just_in_time else Static(),
        tracker=options.tracker(),
        deadline=over.deadline.at,
    )
    own = own and within_limits(own, coordinator)
    return Stage(
        coordinator,
        own if planner is None else registry.planner(planner),
        Park(header.workflow, platform, estimates, measured=True, one_host=expected.one_host),
        header.id,
        strategy if just_in_time else None,
        begun=False,
        status=FINISHED,
        notes=tuple(expected.message.splitlines()),
    )


def _expected(replayed: Replayed, use_history: bool) -> Expectation:
    """The machines of the end, and what is known of the tasks there."""
    header, over = replayed.header, replayed.driver.coordinator
    said: list[str] = []
    estimating = Estimating.look_back(
        header.workflow, header.options.directory, use_history, said.append
    )
    names = _machines(replayed)
    _recall(replayed, names, estimating)
    present, leaves = over.state.present(), over.state.leaves()
    staying = present & np.isinf(leaves)  # there at the end, and not about to leave
    there = staying if staying.any() else np.ones_like(staying)
    known = [name or over.platform.processor_names[p] for p, name in enumerate(names)]
    prediction = estimating.expected(over.platform, known)
    unnamed = [name is None for name in names]
    cost = np.where(unnamed, over.estimates.cost, prediction.estimates.cost)  # as the run knew them
    return Expectation(
        _only(over.platform, there),
        Estimates(cost[:, there], prediction.estimates.needs),
        "\n".join([*said, in_words(estimating, prediction)]),
        prediction.blind,
        header.options.place,
        find_scheme(header.options.on).here,
    )


def _machines(replayed: Replayed) -> list[str | None]:
    """The machine of every processor; None where it came later, from who knows where."""
    known, header = replayed.driver.coordinator.platform, replayed.header
    here = header.machines[0] if find_scheme(header.options.on).here else None
    came = known.n_processors - len(header.machines)
    return [*header.machines, *[here] * came]


def _recall(replayed: Replayed, machines: list[str | None], estimating: Estimating) -> None:
    """Add what the history does not have of this run: the sizes of its files, perhaps all."""
    run, state = replayed.header.id, replayed.driver.coordinator.state
    recorded = estimating.history.has_run(run)
    for event in replayed.driver.events or ():
        if isinstance(event, TaskFinished) and event.detail:
            attempt = state.attempt(event.attempt)
            machine = None if recorded else machines[attempt.processor]
            share = state.share_of(event.attempt)
            estimating.recall(attempt.task, machine, event.detail, run, share)


def _only(platform: Platform, there: BoolArray) -> Platform:
    """Some of the processors, from the start on; hosts stay, with their links."""
    names = zip(platform.processor_names, there.tolist(), strict=True)
    n = int(there.sum())
    return replace(
        platform,
        processor_names=tuple(name for name, kept in names if kept),
        host=platform.host[there],
        speed=platform.speed[there],
        price=platform.price[there],
        billing=platform.billing[there],
        joins=np.zeros(n),
        leaves=np.full(n, np.inf),
    )
