"""A run rebuilt from its journal: the same coordinator hears the same things again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from weft import registry
from weft.coordinator import Coordinator
from weft.coordinator.purse import STOP
from weft.journal.log import Contents
from weft.live.entries import commands_to_dict, entry_from_dict
from weft.live.header import Header
from weft.model import Run
from weft.model.events import Command, Event, EventKind, NewEstimates, NewPlan, Replan
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
    )
    progress = Progress(coordinator, planner, events=[])
    replayed = Replayed(header, progress)
    said = _performed(coordinator.begin())
    for content in contents.entries:
        kind = content.get("t")
        if kind in HEARD:
            said += _performed(_heard(replayed, content))
        elif kind == "commands":
            replayed.decisions.append(commands_to_dict(said))
            replayed.journalled.append(content)
            said = []
        elif kind == "end":
            replayed.ends.append(content)
        elif kind == "resumed":
            replayed.sittings.append(content["time"])
            said = []  # what was decided last was never done
            if content.get("over_budget"):
                coordinator.purse.stops = content["over_budget"] == STOP
    # perhaps only since it was gone on with
    if progress.planner is not None and coordinator.purse.kept:
        progress.planner = registry.within_budget(progress.planner)
    return replayed


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
