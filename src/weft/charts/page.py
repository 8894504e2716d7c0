"""A chart as one HTML file that needs nothing else: a canvas, its script and the data."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from weft.charts.chart import Chart

_SCRIPTS = ("gantt_data.js", "gantt_draw.js", "gantt_marks.js", "gantt_page.js")


def page(chart: Chart) -> bytes:
    """The page, its data embedded as JSON."""
    home = files("weft.charts")
    template = home.joinpath("gantt.html").read_text(encoding="utf-8")
    script = "\n".join(home.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS)
    style = home.joinpath("gantt.css").read_text(encoding="utf-8")
    # The data come last: what they hold is not searched for places to fill.
    filled = template.replace("/*STYLE*/", style).replace("/*SCRIPT*/", script)
    return filled.replace("/*DATA*/", _embedded(data(chart))).encode("utf-8")


def data(chart: Chart) -> dict[str, Any]:
    """What the page's script reads: columns, which are shorter than objects."""
    bars, inputs = chart.bars, chart.inputs
    return {
        "title": chart.title,
        "facts": list(chart.facts),
        "unit": {"name": chart.unit.name, "seconds": chart.unit.seconds},
        "end": chart.end,
        "grouped": chart.grouped,
        "rows": [
            {
                "name": r.name,
                "host": r.host,
                "begin": r.begin,
                "end": r.end,
                "busy": r.utilisation,
                "away": [list(gap) for gap in r.away],
            }
            for r in chart.rows
        ],
        "lanes": [
            {"name": x.name, "top": x.top, "height": x.height, "meant": x.meant}
            for x in chart.lanes
        ],
        "categories": list(chart.categories),
        "palette": list(chart.palette),
        "bars": {
            "name": list(bars.name),
            "row": bars.row.tolist(),
            "lane": bars.lane.tolist(),
            "start": bars.start.tolist(),
            "finish": bars.finish.tolist(),
            "category": bars.category.tolist(),
        },
        "inputs": {
            "item": list(inputs.item) if any(inputs.item) else None,
            "source": inputs.source.tolist(),
            "target": inputs.target.tolist(),
            "sent": inputs.sent.tolist(),
            "arrival": inputs.arrival.tolist(),
            "size": inputs.size.tolist(),
            "shown": inputs.shown.astype(int).tolist(),
        },
        "critical": {"bar": list(chart.critical), "bound": list(chart.bound)},
        "moments": list(chart.moments),
    }


def _embedded(content: dict[str, Any]) -> str:
    """JSON that may stand inside a script element: no name in it can end that element."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
