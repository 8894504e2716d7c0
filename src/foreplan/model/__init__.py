"""Frozen data: workflow, platform, estimates, schedule and situation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreplan.lazy import lazily

if TYPE_CHECKING:
    from foreplan.model.call import Call, Ref
    from foreplan.model.estimates import Estimates, Expectation
    from foreplan.model.money import Money, Usage, affordable, forecast
    from foreplan.model.platform import Link, Platform, Processor
    from foreplan.model.record import ENDS, AttemptLog, Evaluation, Run, TransferLog
    from foreplan.model.schedule import Schedule
    from foreplan.model.situation import (
        Attempts,
        Copies,
        Freedom,
        Reuse,
        Situation,
        Transfers,
    )
    from foreplan.model.workflow import EXTERNAL, Item, TaskSpec, Workflow, index_names

# Imported when first used: a Dask worker needs few of them, and waits.
__getattr__ = lazily(
    __name__,
    call="Call Ref",
    estimates="Estimates Expectation",
    money="Money Usage affordable forecast",
    platform="Link Platform Processor",
    record="ENDS AttemptLog Evaluation Run TransferLog",
    schedule="Schedule",
    situation="Attempts Copies Freedom Reuse Situation Transfers",
    workflow="EXTERNAL Item TaskSpec Workflow index_names",
)

__all__ = [
    "ENDS",
    "EXTERNAL",
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
    "TransferLog",
    "Transfers",
    "Usage",
    "Workflow",
    "affordable",
    "forecast",
    "index_names",
]
