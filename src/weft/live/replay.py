"""A run rebuilt from its journal: the same coordinator hears the same things again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from weft import registry
from weft.contracts import Order
from weft.coordinator import Coordinator
from weft.coordinator.facts import Facts
from weft.errors import InputError
from weft.journal.log import Contents
from weft.live.deadlines import within_limits
from weft.live.entries import commands_to_dict, entry_from_dict, evaluation_from_dict
from weft.live.header import RULES, Header, rules_of
from weft.model import Run
from weft.model.events import Command, Event, EventKind, NewEstimates, NewPlan, NewStrategy, Replan
from weft.wiring import Progress, record

HEARD = ("event", "plan", "estimates", "strategy")
CHANGES = (
    EventKind.JOINED,
    EventKind.GONE,
    EventKind.AVAILABILITY,
    EventKind.BANDWIDTH,
    EventKind.ITEM_LOST,
    EventKind.LEAVING,
)


@dataclass
class Replayed:
    """A run as its journal tells it, ready to go on."""

    header: Header
    progress: Progress
    decisions: list[dict[str, Any]] = field(default_factory=list)  # as the coordinator takes them
    journalled: list[dict[str, Any]] = field(default_factory=list)  # as they were taken then
    ends: list[dict[str, Any]] = field(default_factory=list)
    sittings: list[float] = field(default_factory=list)  # when it was gone on with
    until: float = 0.0  # the last time that the journal has

    def run(self) -> Run:
        """The record of the run as far as it came."""
        return live_record(self.progress, self.header.strategy, self.header.platform.n_processors)


def replay(contents: Contents, directory: Path) -> Replayed:
    """Let a new coordinator hear all that the journal says was heard."""
    header = Header.from_dict(contents.header, directory)
    policy, planner = registry.strategy(header.strategy)
    coordinator = Coordinator(
        header.workflow,
        header.platform,
        header.estimates,
        policy,
        header.options.tolerance(),
        header.rest,
        header.options.purse(),
        header.options.ends_by,
    )
    progress = Progress(coordinator, planner, events=[])
    replayed = Replayed(header, progress)
    former, entries = by_other_rules(contents)
    if former is None:
        said = _performed(coordinator.begin())
    else:
        said = []
        _take_facts(replayed, Facts(coordinator, policy), former)
    for content in entries:
        kind = content.get("t")
        if kind in HEARD:
            said += _performed(_heard(replayed, content))
        elif kind == "commands":
            replayed.decisions.append(commands_to_dict(said))
            replayed.journalled.append(content)
            said = []
        else:
            _note(replayed, content)
            if kind == "resumed":
                said = []  # what was decided last was never done
    times = [float(entry["time"]) for entry in contents.entries if "time" in entry]
    replayed.until = max(coordinator.now, *times, 0.0)
    # perhaps only since it was gone on with
    if progress.planner is not None:
        progress.planner = within_limits(progress.planner, coordinator)
    return replayed


def by_other_rules(contents: Contents) -> tuple[list[dict[str, Any]] | None, list[dict[str, Any]]]:
    """The entries that were decided by rules of former versions, if any, and those by today's.

    A resumed run goes on by the rules of the weft that resumes it.
    """
    resumed = [k for k, entry in enumerate(contents.entries) if entry.get("t") == "resumed"]
    known = {k: rules_of(contents.entries[k]) for k in resumed if "rules" in contents.entries[k]}
    if any(rules > RULES for rules in known.values()):
        raise InputError(
            f"a newer weft has gone on with this run (rules {max(known.values())}; this one knows "
            f"those up to {RULES}): use that one"
        )
    if rules_of(contents.header) == RULES:
        return None, contents.entries
    at = next((k for k, rules in known.items() if rules == RULES), len(contents.entries))
    return contents.entries[:at], contents.entries[at:]


def _take_facts(replayed: Replayed, facts: Facts, entries: list[dict[str, Any]]) -> None:
    """Take what was done by other rules as it was done."""
    progress = replayed.progress
    judged = any(content.get("t") == "evaluation" for content in entries)
    for content in entries:
        kind = content.get("t")
        if kind in HEARD:
            _take_fact(progress, facts, content, judged)
        elif kind == "evaluation":
            facts.judge(evaluation_from_dict(content))
        elif kind == "commands":
            for command in content["do"]:
                facts.do(command)
            replayed.decisions.append(content)
            replayed.journalled.append(content)
        else:
            _note(replayed, content)
        progress.note_plan()
    facts.decide_again()


def _take_fact(progress: Progress, facts: Facts, content: dict[str, Any], judged: bool) -> None:
    coordinator = facts.coordinator
    entry = entry_from_dict(content, coordinator.workflow, coordinator.platform)
    if isinstance(entry, Event):
        assert progress.events is not None
        progress.events.append(entry)
        facts.hear(entry)
    elif isinstance(entry, NewEstimates):
        progress.learned.append(entry)
        facts.learn(entry)
    elif isinstance(entry, NewStrategy):
        policy, progress.planner = registry.strategy(entry.strategy)
        assert not isinstance(policy, Order)
        progress.switched = entry
        facts.follow_plans(policy, entry)
    else:
        progress.planning_seconds += entry.seconds
        facts.note_plan(entry.time, entry.schedule, judged)


def _note(replayed: Replayed, content: dict[str, Any]) -> None:
    """What the coordinator need not hear of."""
    if content.get("t") == "end":
        replayed.ends.append(content)
    elif content.get("t") == "resumed":
        replayed.sittings.append(content["time"])
        replayed.progress.coordinator.forget_alarm()
        if content.get("over_budget"):
            replayed.progress.coordinator.set_over_budget(content["over_budget"])
        if content.get("deadline"):
            replayed.progress.coordinator.deadline.set(content["deadline"])


def _heard(replayed: Replayed, content: dict[str, Any]) -> list[Command]:
    progress, coordinator = replayed.progress, replayed.progress.coordinator
    entry = entry_from_dict(content, coordinator.workflow, coordinator.platform)
    if isinstance(entry, Event):
        assert progress.events is not None
        progress.events.append(entry)
    if isinstance(entry, NewEstimates):
        progress.learned.append(entry)
    commands = progress.told(entry)
    if isinstance(entry, NewPlan):
        progress.planning_seconds += entry.seconds
    progress.note_plan()
    return commands


def _performed(commands: list[Command]) -> list[Command]:
    return [command for command in commands if not isinstance(command, Replan)]


def live_record(progress: Progress, strategy: str, known: int) -> Run:
    """The record of a real run: what happened to the machines is among the events."""
    events = progress.events or []
    changes = [event for event in events if event.kind in CHANGES]
    if progress.switched is not None:
        strategy = f"{strategy}, then {progress.switched.strategy}"
    run = record(progress, strategy, changes)
    joins = run.platform.joins.copy()
    for event in reversed(changes):
        if event.kind == EventKind.JOINED and event.which >= known:
            joins[event.which] = event.time  # processors found later were not there before
    return replace(run, real=True, platform=replace(run.platform, joins=joins))
