"""The library: the same names and spec strings as the command line."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from weft import formats, registry
from weft.model import Estimates, Platform, Run, Schedule, Situation, Workflow

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


def simulate(
    workflow: Workflow,
    platform: Platform,
    strategy: str = "static",
    world: Source | None = None,
    qoi: float = 0.0,
    seed: int = 0,
    per_processor: bool = False,
    by_events: bool = False,
) -> Run:
    """A run in a simulated world, whose durations are drawn within +-qoi or given by `world`."""
    from weft import run
    from weft.executors import reality

    policy, planner = registry.strategy(strategy)
    estimates = Estimates.declared(workflow, platform)
    if world is not None:
        truth = reality.from_world(workflow, platform, estimates, formats.load_world(world))
    else:
        truth = reality.draw(workflow, platform, estimates, qoi, seed, per_processor)
    return run.simulate(workflow, platform, estimates, policy, planner, truth, by_events)
