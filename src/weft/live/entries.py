"""Entries of the journal: what the coordinator hears and says, as plain data."""

from __future__ import annotations

from typing import Any

from weft.errors import InputError
from weft.formats.weft_platform import platform_from_dict, platform_to_dict
from weft.journal.packed import pack, unpack
from weft.journal.plain import real
from weft.model import Estimates, Evaluation, Platform, Schedule, Workflow
from weft.model.events import (
    CancelTask,
    Command,
    DropTransfer,
    Event,
    EventKind,
    Heard,
    NewEstimates,
    NewPlan,
    NewStrategy,
    SendItem,
    StartTask,
    WakeAt,
)


def entry_to_dict(entry: Heard) -> dict[str, Any]:
    """What the coordinator has heard."""
    if isinstance(entry, Event):
        return {"t": "event", **entry.to_dict()}
    if isinstance(entry, NewEstimates):
        return {
            "t": "estimates",
            "time": entry.time,
            "cost": pack(entry.estimates.cost),
            "platform": platform_to_dict(entry.platform),
            "because": entry.because,
        }
    if isinstance(entry, NewStrategy):
        return {"t": "strategy", **vars(entry)}
    plan = entry.schedule
    answer = {
        "t": "plan",
        "time": entry.time,
        "version": entry.version,
        "seconds": entry.seconds,
    }
    if plan is None:
        return answer
    return {
        **answer,
        "planner": plan.planner,
        "processor": pack(plan.processor),
        "start": pack(plan.start),
        "finish": pack(plan.finish),
    }


def entry_from_dict(content: dict[str, Any], workflow: Workflow, platform: Platform) -> Heard:
    """The same, read back; the platform is the one known at that time."""
    time = real(content["time"])
    if content["t"] == "event":
        kind = EventKind[content["kind"].upper()]
        return Event(kind, content["which"], time, real(content["value"]), content.get("detail"))
    if content["t"] == "estimates":
        estimates = Estimates(unpack(content["cost"]))
        platform = platform_from_dict(content["platform"])
        return NewEstimates(time, estimates, platform, content.get("because", ""))
    if content["t"] == "strategy":
        return NewStrategy(time, content["strategy"], content["because"])
    if content["t"] != "plan":
        raise InputError(f"the journal has an entry of an unknown kind: {content['t']!r}")
    if "planner" not in content:
        return NewPlan(time, content["version"], None, real(content["seconds"]))
    schedule = Schedule(
        planner=content["planner"],
        workflow=workflow,
        platform=platform,
        processor=unpack(content["processor"]),
        start=unpack(content["start"]),
        finish=unpack(content["finish"]),
    )
    return NewPlan(time, content["version"], schedule, real(content["seconds"]))


def evaluation_from_dict(content: dict[str, Any]) -> Evaluation:
    """What became of a plan."""
    return Evaluation(
        time=real(content["time"]),
        reason=content["reason"],
        forced=content["forced"],
        taken=content["taken"],
        makespan=real(content["makespan"]),
        projected=real(content["projected"]),
        migrated=content.get("migrated", 0),
        seconds=real(content["seconds"]),
    )


def commands_to_dict(commands: list[Command]) -> dict[str, Any]:
    """What is going to be done: no one needs it to go on, but it tells what was decided."""
    return {"t": "commands", "do": [_said(command) for command in commands]}


def _said(command: Command) -> list[Any]:
    match command:
        case StartTask():
            return ["start", command.attempt, command.task, command.processor]
        case SendItem():
            return ["send", command.transfer, command.item, command.source, command.target]
        case CancelTask():
            return ["cancel", command.attempt]
        case DropTransfer():
            return ["drop", command.transfer]
        case WakeAt():
            return ["wake", command.time]
    raise TypeError(f"{command} is no decision")
