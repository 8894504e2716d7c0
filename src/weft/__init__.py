"""weft: an adaptive workflow scheduler.

>>> import weft
>>> wf = weft.load({"tasks": {"a": {"cost": 3}, "b": {"cost": 2}}, "edges": [["a", "b", 1]]})
>>> pf = weft.load_platform({"processors": {"p1": {}, "p2": {"speed": 2}}})
>>> weft.plan(wf, pf, planner="heft").makespan
2.5
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.lazy import lazily
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
    from weft.checks.schedules import check_schedule
    from weft.comparison import compare
    from weft.errors import InputError, InvalidScheduleError, PlanningError, WeftError
    from weft.executors.progress import progress
    from weft.flow import Flow
    from weft.model import Platform, Run, Schedule, Workflow
    from weft.runs.outcome import Outcome, RunFailedError
    from weft.scheduling.margins import margins
    from weft.scheduling.rewinding import rewind_set

# A public name is imported when it is first used, so that `import weft` is instant.
_LATER = {
    "api": "load load_platform estimate plan pareto simulate run compute what_if",
    "checks.schedules": "check_schedule",
    "comparison": "compare",
    "errors": "InputError InvalidScheduleError PlanningError WeftError",
    "executors.progress": "progress",
    "flow": "Flow",
    "model": "Platform Run Schedule Workflow",
    "runs.outcome": "Outcome RunFailedError",
    "scheduling.margins": "margins",
    "scheduling.rewinding": "rewind_set",
}
__getattr__ = lazily(__name__, **_LATER)
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
    "margins",
    "pareto",
    "plan",
    "progress",
    "rewind_set",
    "run",
    "simulate",
    "what_if",
]


def __dir__() -> list[str]:
    """The public names, and what every module has: not the rooms, nor what is imported here."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
