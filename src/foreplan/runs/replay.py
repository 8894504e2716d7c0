"""A run rebuilt from its journal: the same coordinator hears the same things again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foreplan import registry
from foreplan.contracts import Order, Policy
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver, record
from foreplan.engine.state import RunState
from foreplan.errors import ForeplanError
from foreplan.model import ENDS, Run, Workflow
from foreplan.model.events import (
    REUSED,
    Command,
    Event,
    Heard,
    ItemLost,
    LinkChanged,
    ProcessorGone,
    ProcessorJoined,
    ProcessorLeaving,
    Replan,
    SpeedChanged,
    TaskFinished,
)
from foreplan.runs.entries import Header, commands_to_dict, entry_from_dict
from foreplan.runs.journal import Contents
from foreplan.runs.money import within_limits

HEARD = ("event", "plan", "estimates", "strategy", "tasks")
CHANGES = (
    ProcessorJoined,
    ProcessorGone,
    SpeedChanged,
    LinkChanged,
    ItemLost,
    ProcessorLeaving,
)


@dataclass
class Replayed:
    """A run as its journal tells it, ready to go on; the header has all tasks that were added."""

    header: Header
    driver: Driver
    decisions: list[dict[str, Any]] = field(default_factory=list)  # as the coordinator takes them
    journalled: list[dict[str, Any]] = field(default_factory=list)  # as they were taken then
    ends: list[dict[str, Any]] = field(default_factory=list)
    sessions: list[float] = field(default_factory=list)  # when it was resumed
    until: float = 0.0  # the last time that the journal has
    declared: Workflow = field(init=False)  # as it set out

    def __post_init__(self) -> None:
        self.declared = self.header.workflow

    def run(self) -> Run:
        """The record of the run as far as it came."""
        return live_record(self.driver, self.header.strategy, self.header.platform.n_processors)


def set_out(header: Header, strategy: str | Policy | Order | None = None) -> Driver:
    """A run of which nothing was heard yet; of a new one, with its `strategy` as it was given."""
    policy, planner = registry.strategy(header.strategy if strategy is None else strategy)
    coordinator = Coordinator(
        header.workflow,
        header.platform,
        header.estimates,
        policy,
        header.options.retry_policy(),
        header.rest,
        header.options.tracker(),
        header.options.ends_by,
        header.reads,
    )
    return Driver(coordinator, planner, events=[])


def replay(contents: Contents, directory: Path) -> Replayed:
    """Let a new coordinator hear all that the journal says was heard."""
    header = Header.from_dict(contents.header, directory)
    driver = set_out(header)
    driver.answers, coordinator = False, driver.coordinator
    replayed = Replayed(header, driver)
    reader = JournalReader(replayed, contents.entries)
    driver.executor = reader
    driver.drive(is_over=lambda: not reader.left)
    reader.pass_notes()
    times = [float(entry["time"]) for entry in contents.entries if "time" in entry]
    replayed.until = max(coordinator.now, *times, 0.0)
    # perhaps only since it was resumed
    if driver.planner is not None:
        driver.planner = within_limits(driver.planner, coordinator)
    replayed.header = replace(header, workflow=coordinator.workflow)
    return replayed


class JournalReader:
    """The journal in the place of an executor: what was heard is told again, and nothing is done.

    What was heard last before the driver was killed may have led to nothing.
    """

    def __init__(self, replayed: Replayed, entries: list[dict[str, Any]]) -> None:
        self._replayed, self._entries = replayed, deque(entries)
        self._decided: list[Command] = []
        self.left = sum(entry.get("t") in HEARD for entry in entries)  # to be heard

    def perform(self, command: Command) -> None:
        """Note that it was decided."""
        if not isinstance(command, Replan):  # the answer is in the journal, if there was one
            self._decided.append(command)

    def flush(self) -> None:
        """There is nothing to be done."""

    def next_event(self, wait: bool = True) -> Heard | None:
        """What was heard next."""
        if not wait or not self.left:
            return None
        self.pass_notes()
        self.left -= 1
        coordinator = self._replayed.driver.coordinator
        return _next(self._entries.popleft(), coordinator)

    def _check_decided(self) -> None:
        """Refuse a strategy of one's own that has changed: its run cannot be replayed."""
        replayed = self._replayed
        coordinator = replayed.driver.coordinator
        strategy: Any = coordinator.policy or coordinator.order
        if hasattr(strategy, "own") and replayed.decisions[-1] != replayed.journalled[-1]:
            raise ForeplanError(
                f"strategy {strategy.name} decides otherwise at {coordinator.now:g} s than it did "
                f"when run {replayed.header.id} was driven: it has changed, or depends on more "
                "than what it is asked; the run needs the strategy that it began with"
            )

    def pass_notes(self) -> None:
        """Go on to what was heard next; what was decided then is kept beside what is now."""
        while self._entries and self._entries[0].get("t") not in HEARD:
            content = self._entries.popleft()
            if content.get("t") == "commands":
                self._replayed.decisions.append(commands_to_dict(self._decided))
                self._replayed.journalled.append(content)
                self._check_decided()
            else:
                _note(self._replayed, content)
            if content.get("t") in ("commands", "resumed"):
                self._decided = []  # a resume: what was decided last was never done


def _next(content: dict[str, Any], coordinator: Coordinator) -> Heard:
    """What was heard next, by what was known then."""
    known = coordinator.estimates
    return entry_from_dict(
        content, coordinator.workflow, coordinator.platform, known.needs, known.cost
    )


def _note(replayed: Replayed, content: dict[str, Any]) -> None:
    """What the coordinator need not hear of."""
    if content.get("t") == "end":
        replayed.ends.append(content)
    elif content.get("t") == "resumed":
        replayed.sessions.append(content["time"])
        replayed.driver.coordinator.forget_alarm()
        if content.get("over_budget"):
            replayed.driver.coordinator.set_over_budget(content["over_budget"])
        if content.get("deadline"):
            replayed.driver.coordinator.deadline.set(content["deadline"])


def reused_attempts(events: Iterable[Event]) -> set[int]:
    """The attempts that found what they would have made there already."""
    ends = (event for event in events if isinstance(event, TaskFinished))
    return {event.attempt for event in ends if REUSED in (event.detail or {})}


def found_up_to_date(state: RunState, reused: Iterable[int]) -> list[int]:
    """The tasks that are done by such attempts, and have not been lost since."""
    log, finished = state.attempt_log(None), ENDS.index("finished")
    return [int(log.task[k]) for k in sorted(reused) if log.end[k] == finished]


def live_record(driver: Driver, strategy: str, known: int) -> Run:
    """The record of a real run: what happened to the machines is among the events."""
    events = driver.events or []
    changes = [event for event in events if isinstance(event, CHANGES)]
    if driver.switched is not None:
        strategy = f"{strategy}, then {driver.switched.strategy}"
    run = record(driver, strategy, changes)
    joins = run.platform.joins.copy()
    for event in reversed(changes):
        if isinstance(event, ProcessorJoined) and event.processor >= known:
            joins[event.processor] = event.time  # processors found later were not there before
    return replace(run, real=True, platform=replace(run.platform, joins=joins))
