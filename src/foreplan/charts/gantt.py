"""Writing a Gantt chart to a file, as a picture or a page; the suffix says how."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from foreplan.charts.build import chart_of, run_chart_of
from foreplan.charts.chart import Bars, Blocks, Chart, Gauge, Inputs, Places
from foreplan.charts.picture import png, svg
from foreplan.errors import InputError
from foreplan.files import write_bytes
from foreplan.model import Run, Schedule

_SCRIPTS = ("gantt_data.js", "gantt_draw.js", "gantt_marks.js", "gantt_page.js")


def page(chart: Chart) -> bytes:
    """The page, its data embedded as JSON."""
    style, elements = parts(chart)
    # The chart comes last: what it holds is not searched for places to fill.
    return _read("gantt.html").replace("/*STYLE*/", style).replace("/*CHART*/", elements).encode()


def parts(chart: Chart) -> tuple[str, str]:
    """The style and the elements of a chart, for a page in which something has the class gantt."""
    filled = _read("gantt_chart.html").replace("/*SCRIPT*/", "\n".join(map(_read, _SCRIPTS)))
    return _read("gantt.css"), filled.replace("/*DATA*/", embedded(data(chart)))


def _read(name: str) -> str:
    return files("foreplan.charts").joinpath(name).read_text(encoding="utf-8")


def data(chart: Chart) -> dict[str, Any]:
    """What the page's script reads: columns, which are shorter than objects."""
    bars, inputs = chart.bars, chart.inputs
    return {
        "title": chart.title,
        "facts": list(chart.facts),
        "unit": {"name": chart.unit.name, "seconds": chart.unit.seconds},
        "end": chart.end,
        "grouped": chart.grouped,
        "rows": [asdict(row) for row in chart.rows],
        "lanes": [asdict(lane) for lane in chart.lanes],
        "categories": list(chart.categories),
        "palette": list(chart.palette),
        "bars": {
            "name": list(bars.name),
            **_columns(bars),
            "blocks": None if bars.blocks is None else _columns(bars.blocks),
        },
        "inputs": {
            "item": list(inputs.item) if any(inputs.item) else None,
            **_columns(inputs),
            "shown": inputs.shown.astype(int).tolist(),
        },
        "critical": {"bar": list(chart.critical), "bound": list(chart.bound)},
        "moments": list(chart.moments),
        "places": {**_columns(chart.places), "height": chart.places.height},
        "gauges": [_gauge(gauge) for gauge in chart.gauges],
    }


def _columns(rows: Bars | Blocks | Inputs | Places) -> dict[str, Any]:
    """The arrays as lists."""
    return {name: c.tolist() for name, c in vars(rows).items() if isinstance(c, np.ndarray)}


def _gauge(gauge: Gauge) -> dict[str, Any]:
    levels = [
        {**vars(level), "time": level.time.tolist(), "held": level.held.tolist()}
        for level in gauge.levels
    ]
    return {**vars(gauge), "label": gauge.label, "levels": levels}


def embedded(content: dict[str, Any]) -> str:
    """JSON that may stand inside a script element: no name in it can end that element."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


_WRITERS: dict[str, Callable[[Chart], bytes]] = {".html": page, ".png": png, ".svg": svg}
SUFFIXES = tuple(_WRITERS)


def write_gantt(shown: Schedule | Run, path: str | os.PathLike[str]) -> None:
    """Draw a schedule, or a run as plan against fact, to an .svg, .png or .html file."""
    _writer_for(Path(path))  # a wrong suffix is told before the work
    write_chart(chart_of(shown) if isinstance(shown, Schedule) else run_chart_of(shown), path)


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
