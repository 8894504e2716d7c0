"""Writing a Gantt chart to a file; the suffix says how."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from weft.charts.build import chart_of
from weft.charts.chart import Chart
from weft.charts.page import page
from weft.charts.picture import png, svg
from weft.charts.run_build import run_chart_of
from weft.errors import InputError
from weft.files import write_bytes
from weft.model import Run, Schedule

_WRITERS: dict[str, Callable[[Chart], bytes]] = {".html": page, ".png": png, ".svg": svg}
SUFFIXES = tuple(_WRITERS)


def write_gantt(schedule: Schedule, path: str | os.PathLike[str]) -> None:
    """Draw a schedule to an .svg, .png or .html file."""
    _writer_for(Path(path))  # a wrong suffix is told before the work
    write_chart(chart_of(schedule), path)


def write_run_gantt(run: Run, path: str | os.PathLike[str]) -> None:
    """Draw a run, plan against fact, to an .svg, .png or .html file."""
    _writer_for(Path(path))
    write_chart(run_chart_of(run), path)


def write_chart(chart: Chart, path: str | os.PathLike[str]) -> None:
    """Draw a chart to an .svg, .png or .html file; the file is complete or not there."""
    target = Path(path)
    draw = _writer_for(target)
    if not target.parent.is_dir():
        raise InputError(f"there is no directory {str(target.parent)!r}", source=str(target))
    write_bytes(target, draw(chart))


def _writer_for(path: Path) -> Callable[[Chart], bytes]:
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        problem = f"cannot draw a chart as {suffix!r}" if suffix else "the file has no suffix"
        raise InputError(f"{problem}; known: {', '.join(SUFFIXES)}", source=str(path))
    return _WRITERS[suffix]
