"""Frozen data: workflow, platform, estimates, schedule and situation."""

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
