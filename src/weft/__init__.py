"""weft: an adaptive workflow scheduler.

>>> import weft
>>> wf = weft.load({"tasks": {"a": {"cost": 3}, "b": {"cost": 2}}, "edges": [["a", "b", 1]]})
>>> pf = weft.load_platform({"processors": {"p1": {}, "p2": {"speed": 2}}})
>>> weft.plan(wf, pf, planner="heft").makespan
2.5
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.api import load, load_platform, plan, simulate
    from weft.errors import InputError, InvalidScheduleError, PlanningError, WeftError
    from weft.experiments.comparison import compare
    from weft.model import Platform, Run, Schedule, Workflow, check_schedule

__version__ = "0.1.0"

# Where each public name lives; it is imported when first used, so that `import weft` is instant.
_HOMES = {
    "load": "weft.api",
    "load_platform": "weft.api",
    "plan": "weft.api",
    "simulate": "weft.api",
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
}
__all__ = [
    "InputError",
    "InvalidScheduleError",
    "PlanningError",
    "Platform",
    "Run",
    "Schedule",
    "WeftError",
    "Workflow",
    "check_schedule",
    "compare",
    "load",
    "load_platform",
    "plan",
    "simulate",
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
