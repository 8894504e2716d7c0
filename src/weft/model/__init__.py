"""Frozen data: workflow, platform, estimates, schedule and situation."""

from weft.model.check import check_schedule
from weft.model.estimates import Estimates
from weft.model.platform import Link, Platform, Processor
from weft.model.schedule import Schedule
from weft.model.situation import Attempts, Copies, Freedom, Situation, Transfers
from weft.model.workflow import EXTERNAL, Item, TaskSpec, Workflow, index_names

__all__ = [
    "EXTERNAL",
    "Attempts",
    "Copies",
    "Estimates",
    "Freedom",
    "Item",
    "Link",
    "Platform",
    "Processor",
    "Schedule",
    "Situation",
    "TaskSpec",
    "Transfers",
    "Workflow",
    "check_schedule",
    "index_names",
]
