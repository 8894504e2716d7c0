"""The library: the same names and spec strings as the command line."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from weft import formats, registry
from weft.model import Platform, Schedule, Situation, Workflow

Source = str | PathLike[str] | Mapping[str, Any]


def load(source: Source) -> Workflow:
    """A workflow from a file (YAML, JSON, WfFormat, STG, DOT) or a dict of the same content."""
    return formats.load(source)


def load_platform(source: Source) -> Platform:
    """A platform from a YAML or JSON file, or a dict of the same content."""
    return formats.load_platform(source)


def plan(workflow: Workflow, platform: Platform, planner: str = "heft") -> Schedule:
    """A schedule of the whole workflow, before anything has started."""
    return registry.planner(planner).plan(Situation.at_start(workflow, platform))
