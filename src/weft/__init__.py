"""weft: an adaptive workflow scheduler.

>>> import weft
>>> wf = weft.load({"tasks": {"a": {"cost": 3}, "b": {"cost": 2}}, "edges": [["a", "b", 1]]})
>>> pf = weft.load_platform({"processors": {"p1": {}, "p2": {"speed": 2}}})
>>> weft.plan(wf, pf, planner="heft").makespan
2.5
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.version import __version__ as __version__

if TYPE_CHECKING:
    from weft.api import (
        compute,
        estimate,
        load,
        load_platform,
        pareto,
        plan,
        run,
        simulate,
        what_if,
    )
    from weft.errors import InputError, InvalidScheduleError, PlanningError, WeftError
    from weft.executors.progress import progress
    from weft.experiments.comparison import compare
    from weft.flow import Flow
    from weft.live.outcome import Outcome, RunFailedError
    from weft.model import Platform, Run, Schedule, Workflow, check_schedule, rewind_set

# Where each public name lives; it is imported when first used, so that `import weft` is instant.
_HOMES = {
    "load": "weft.api",
    "load_platform": "weft.api",
    "estimate": "weft.api",
    "plan": "weft.api",
    "pareto": "weft.api",
    "simulate": "weft.api",
    "run": "weft.api",
    "compute": "weft.api",
    "what_if": "weft.api",
    "Flow": "weft.flow",
    "Outcome": "weft.live.outcome",
    "RunFailedError": "weft.live.outcome",
    "progress": "weft.executors.progress",
    "compare": "weft.experiments.comparison",
    "InputError": "weft.errors",
    "InvalidScheduleError": "weft.errors",
    "PlanningError": "weft.errors",
    "WeftError": "weft.errors",
    "Platform": "weft.model",
    "Run": "weft.model",
    "Schedule": "weft.model",
    "Workflow": "weft.model",
    "check_schedule": "weft.model",
    "rewind_set": "weft.model",
}
__all__ = [
    "Flow",
    "InputError",
    "InvalidScheduleError",
    "Outcome",
    "PlanningError",
    "Platform",
    "Run",
    "RunFailedError",
    "Schedule",
    "WeftError",
    "Workflow",
    "check_schedule",
    "compare",
    "compute",
    "estimate",
    "load",
    "load_platform",
    "pareto",
    "plan",
    "progress",
    "rewind_set",
    "run",
    "simulate",
    "what_if",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
