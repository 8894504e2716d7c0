"""foreplan: an adaptive workflow scheduler.

>>> import foreplan
>>> wf = foreplan.load({"tasks": {"a": {"cost": 3}, "b": {"cost": 2}}, "edges": [["a", "b", 1]]})
>>> pf = foreplan.load_platform({"processors": {"p1": {}, "p2": {"speed": 2}}})
>>> foreplan.plan(wf, pf, planner="heft").makespan
2.5
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreplan.lazy import lazily
from foreplan.version import __version__ as __version__

if TYPE_CHECKING:
    from foreplan.api import (
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
    from foreplan.checks.schedules import check_schedule
    from foreplan.comparison import compare
    from foreplan.errors import ForeplanError, InputError, InvalidScheduleError, PlanningError
    from foreplan.executors.progress import progress
    from foreplan.flow import Flow
    from foreplan.model import Platform, Run, Schedule, Workflow
    from foreplan.runs.outcome import Outcome, RunFailedError, RunInterrupted
    from foreplan.scheduling.margins import margins
    from foreplan.scheduling.rewinding import rewind_set

# A public name is imported when it is first used, so that `import foreplan` is instant.
_LATER = {
    "api": "load load_platform estimate plan pareto simulate run compute what_if",
    "checks.schedules": "check_schedule",
    "comparison": "compare",
    "errors": "InputError InvalidScheduleError PlanningError ForeplanError",
    "executors.progress": "progress",
    "flow": "Flow",
    "model": "Platform Run Schedule Workflow",
    "runs.outcome": "Outcome RunFailedError RunInterrupted",
    "scheduling.margins": "margins",
    "scheduling.rewinding": "rewind_set",
}
__getattr__ = lazily(__name__, **_LATER)
__all__ = [
    "Flow",
    "ForeplanError",
    "InputError",
    "InvalidScheduleError",
    "Outcome",
    "PlanningError",
    "Platform",
    "Run",
    "RunFailedError",
    "RunInterrupted",
    "Schedule",
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
