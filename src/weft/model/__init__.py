"""Frozen data: workflow, platform, estimates, schedule and situation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.model.call import Call, Ref
    from weft.model.check import check_schedule
    from weft.model.estimates import Estimates, Expectation
    from weft.model.money import Money, Usage, affordable, forecast
    from weft.model.platform import Link, Platform, Processor
    from weft.model.record import ENDS, AttemptLog, Evaluation, Run, TransferLog
    from weft.model.rewinding import rewind_set
    from weft.model.schedule import Schedule
    from weft.model.situation import (
        STANDS_STILL,
        Attempts,
        Copies,
        Freedom,
        Reuse,
        Situation,
        Transfers,
    )
    from weft.model.tolerance import Tolerance
    from weft.model.workflow import EXTERNAL, Item, TaskSpec, Workflow, index_names

# Where each name lives; imported when first used: a Dask worker needs few of them, and waits.
_HOMES = {
    "Call": "call",
    "Ref": "call",
    "check_schedule": "check",
    "Estimates": "estimates",
    "Expectation": "estimates",
    "Money": "money",
    "Usage": "money",
    "affordable": "money",
    "forecast": "money",
    "Link": "platform",
    "Platform": "platform",
    "Processor": "platform",
    "ENDS": "record",
    "AttemptLog": "record",
    "Evaluation": "record",
    "Run": "record",
    "TransferLog": "record",
    "rewind_set": "rewinding",
    "Schedule": "schedule",
    "STANDS_STILL": "situation",
    "Attempts": "situation",
    "Copies": "situation",
    "Freedom": "situation",
    "Reuse": "situation",
    "Situation": "situation",
    "Transfers": "situation",
    "Tolerance": "tolerance",
    "EXTERNAL": "workflow",
    "Item": "workflow",
    "TaskSpec": "workflow",
    "Workflow": "workflow",
    "index_names": "workflow",
}

__all__ = [
    "ENDS",
    "EXTERNAL",
    "STANDS_STILL",
    "AttemptLog",
    "Attempts",
    "Call",
    "Copies",
    "Estimates",
    "Evaluation",
    "Expectation",
    "Freedom",
    "Item",
    "Link",
    "Money",
    "Platform",
    "Processor",
    "Ref",
    "Reuse",
    "Run",
    "Schedule",
    "Situation",
    "TaskSpec",
    "Tolerance",
    "TransferLog",
    "Transfers",
    "Usage",
    "Workflow",
    "affordable",
    "check_schedule",
    "forecast",
    "index_names",
    "rewind_set",
]


def __getattr__(name: str) -> Any:
    """A name of this room, imported when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value
