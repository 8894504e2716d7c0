"""Gantt charts of plans and runs, in the kind of file that their names ask for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from foreplan.errors import InputError

if TYPE_CHECKING:
    from foreplan.model import Run, Schedule


def check_gantts(paths: list[Path] | None) -> list[Path]:
    """The files to draw; a chart of an unknown kind is told before the work."""
    for path in paths or []:
        from foreplan.charts.gantt import SUFFIXES

        known = (*SUFFIXES, ".json")
        if path.suffix.lower() not in known:
            raise InputError(f"{path}: cannot draw a chart of this kind; known: {', '.join(known)}")
    return paths or []


def check_plot(path: Path | None) -> None:
    """A plot of an unknown kind is told before the work."""
    if path is not None:
        from foreplan.charts import plots

        plots.check_plot(path)


def draw_gantt(shown: Schedule | Run, path: Path) -> None:
    """Write the chart that the suffix asks for."""
    from foreplan import formats
    from foreplan.charts.gantt import write_gantt
    from foreplan.model import Schedule

    if path.suffix.lower() != ".json":
        write_gantt(shown, path)
    elif isinstance(shown, Schedule):
        formats.write_trace(shown, path)
    else:
        formats.write_run_trace(shown, path)
