"""Where things stand when machines change: a run, as it is expected to go on until then.

It goes on in a simulated world whose truth are the estimates, by the present plan and nothing else.
The coordinator is a run's own, rebuilt from its journal: nothing of it is written back.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from weft import registry
from weft.contracts import Planner
from weft.coordinator import Coordinator
from weft.coordinator.meter import Meter
from weft.coordinator.patience import Patience
from weft.coordinator.purse import CONTINUE
from weft.errors import InputError
from weft.executors.reality import Reality, platform_changes
from weft.executors.simulated import SimulatedExecutor
from weft.journal.log import Contents
from weft.journal.places import RunHome
from weft.kernels import board as b
from weft.live.replay import Replayed
from weft.model import STANDS_STILL, Expectation, Schedule, Workflow
from weft.model.events import NO_FAULT, Event, EventKind, NewEstimates
from weft.policies.static import Static
from weft.whatif.machines import Park
from weft.wiring import Progress, perform, stuck

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
        status = self.coordinator.board.status
        kinds = {"done": b.DONE, "running": b.RUNNING, "waiting": b.WAITING, "given_up": b.GIVEN_UP}
        self.tasks = {name: int(np.count_nonzero(status == k)) for name, k in kinds.items()}
        if self.status not in (None, RUNNING):  # nobody drives it: what is begun here is not
            self.tasks["waiting"] += self.tasks["running"]
            self.tasks["running"] = 0

    def advance(self, at: float) -> None:
        """Go on to this moment; what happens just then happens after it."""
        coordinator = self.coordinator
        progress = Progress(coordinator, self.planner)
        if not self.begun and at > self.now:
            self.begun = True
            progress.settled(coordinator.begin())
        if at > coordinator.now:
            _slow_but_going(coordinator)
            executor = expected_world(coordinator)
            follow(progress, executor, lambda world: world.happens_by(at))
        if not coordinator.done:
            pass_time(coordinator, at)

    def plan(self) -> Schedule | None:
        """The present plan; before the start it is made here."""
        if self.coordinator.plan is not None or self.planner is None or self.begun:
            return self.coordinator.plan
        return self.planner.plan(self.coordinator.situation())


def before_start(workflow: Workflow, expected: Expectation, planner: str) -> Stage:
    """Nothing has started."""
    platform, estimates = expected.platform, expected.estimates
    coordinator = Coordinator(workflow, platform, estimates, Static())
    measured = expected.on is not None  # else a declared cost counts for new machines, too
    park = Park(workflow, platform, estimates, measured, expected.one_host)
    return Stage(coordinator, registry.planner(planner), park, workflow.name, begun=False)


def in_progress(
    home: RunHome, contents: Contents, replayed: Replayed, status: str, planner: str | None
) -> Stage:
    """A run that is not done yet; one that nobody drives goes on as if resumed now."""
    header, coordinator = replayed.header, replayed.progress.coordinator
    own = replayed.progress.planner
    chosen = own if planner is None else registry.planner(planner)
    if coordinator.policy is not None:
        _follow_only(coordinator)
    pass_time(coordinator, _now(home, contents, coordinator, status))
    notes = _take_up(coordinator, own, driven=status == RUNNING)
    if coordinator.done:
        raise InputError(f"run {header.id} has nothing left to do: ask before its end")
    if header.blind and not replayed.progress.learned:
        notes.append("planned blind: nothing is known of the tasks' times, so all count alike")
    local = header.options.place.partition(":")[0] == "local"
    park = Park(
        header.workflow, coordinator.platform, coordinator.estimates, measured=True, one_host=local
    )
    just_in_time = header.strategy if coordinator.policy is None else None
    return Stage(
        coordinator, chosen, park, header.id, just_in_time, status=status, notes=tuple(notes)
    )


def twin(coordinator: Coordinator) -> Coordinator:
    """A copy to try things on."""
    other = copy.copy(coordinator)
    # what is read-only stays: it is shared
    own: dict[str, Any] = {
        name: value.copy()
        for name, value in coordinator.board._asdict().items()
        if isinstance(value, np.ndarray) and value.flags.writeable
    }
    other.board = coordinator.board._replace(**own)
    other.purse, other.meter = copy.copy(coordinator.purse), Meter()
    # failures and losses are those of the run so far, not of what might be
    other.patience = Patience(coordinator.patience.tolerance, coordinator.workflow)
    other.evaluations = list(coordinator.evaluations)
    other.platform = replace(coordinator.platform, leaves=coordinator.board.leaves.copy())
    other.make_room()
    return other


def follow(
    progress: Progress,
    executor: SimulatedExecutor,
    happens: Callable[[SimulatedExecutor], bool] = lambda world: True,
) -> None:
    """Let happen what does, as long as it is wanted, or until all is done."""
    while not progress.coordinator.done and happens(executor):
        event = executor.next_event()
        if event is None:
            raise stuck(progress.coordinator)
        perform(progress, executor, progress.hear(event))


def pass_time(coordinator: Coordinator, at: float) -> None:
    """Let it be this time, with nothing happening before it."""
    if at > coordinator.now:
        coordinator.learn(NewEstimates(at, coordinator.estimates, coordinator.platform))


def expected_world(coordinator: Coordinator) -> SimulatedExecutor:
    """The world in which everything goes as it is expected to from now."""
    board, platform, now = coordinator.board, coordinator.platform, coordinator.now
    changes = []
    for change in platform_changes(platform):
        there = bool(board.present[change.which])
        coming = float(platform.joins[change.which]) > now
        joins = change.kind == EventKind.JOINED and not there
        if change.time > now and (joins or (change.kind == EventKind.GONE and (there or coming))):
            changes.append(change)
    reality = Reality(coordinator.estimates.cost, changes)
    return SimulatedExecutor.going_on(coordinator.workflow, platform, reality, board)


def _follow_only(coordinator: Coordinator) -> None:
    """Follow the present plan, whatever the run's policy would do."""
    coordinator.policy = Static()
    coordinator.set_over_budget(CONTINUE)
    coordinator.board.latest[:] = np.inf
    coordinator.board.variance[0] = coordinator.board.early[0] = np.inf


def _slow_but_going(coordinator: Coordinator) -> None:
    """What stands still is expected to go on slowly, by situations and in the world alike."""
    board, now = coordinator.board, coordinator.now
    for kind, rates in (
        (EventKind.AVAILABILITY, board.availability),
        (EventKind.BANDWIDTH, board.bandwidth),
    ):
        for which in np.flatnonzero(rates < STANDS_STILL).tolist():
            coordinator.handle(Event(kind, which, now, STANDS_STILL))


def _now(home: RunHome, contents: Contents, coordinator: Coordinator, status: str) -> float:
    """The run's time: it goes on since the last entry, if somebody drives it."""
    times = [float(entry["time"]) for entry in contents.entries if "time" in entry]
    now = max([coordinator.now, *times])
    if status == RUNNING:
        now += max(0.0, time.time() - home.journal.stat().st_mtime)
    return now


def _take_up(coordinator: Coordinator, planner: Planner | None, driven: bool) -> list[str]:
    """Go on as a resume would: what was under way is begun anew, what was given up tried again."""
    board, now, notes = coordinator.board, coordinator.now, list[str]()
    if not driven:
        cut = board.running[board.running >= 0].tolist()
        if cut:
            notes.append(f"attempts that were cut short and begin anew: {len(cut)}")
        for attempt in cut:
            coordinator.handle(Event(EventKind.TASK_FAILED, attempt, now, NO_FAULT))
    given_up = bool(coordinator.given_up) and not driven
    if coordinator.board.counts[b.HELD_BACK] or given_up:
        coordinator.handle(Event(EventKind.PAUSED, 0, now, 0.0))
    if coordinator.asked is not None and coordinator.board.present.any():
        Progress(coordinator, planner).settled([coordinator.asked])
    return notes
