"""The library: the same names and spec strings as the command line."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from os import PathLike
from typing import Any

from weft import formats, registry
from weft.files import in_file
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
    """A run in a simulated world, whose durations are drawn within +-qoi or given by `world`.

    A world that gives no durations may be combined with a qoi. `by_events` keeps every event.
    """
    from weft import run
    from weft.executors import reality

    policy, planner = registry.strategy(strategy)
    estimates = Estimates.declared(workflow, platform)
    if world is None:
        truth = reality.draw(workflow, platform, estimates, qoi, seed, per_processor)
    else:
        given = formats.load_world(world)
        # names that the workflow or the platform does not have are found only here
        with nullcontext() if isinstance(world, Mapping) else in_file(world):
            truth = reality.from_world(
                workflow, platform, estimates, given, qoi, seed, per_processor
            )
    return run.simulate(workflow, platform, estimates, policy, planner, truth, by_events)
