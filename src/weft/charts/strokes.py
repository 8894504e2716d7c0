"""The marks of a picture: rows, bars, transfers, the critical path, names.

Many alike marks go into one path, or a drawing of 5,000 tasks would be many megabytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.charts.chart import Chart
from weft.charts.lettering import Lettering

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#111111"
TRANSFER = "#6a7a90"
MOMENT = "#aa2277"
PALE = 0.45  # how much of their colour bars have that show only what was meant
FEW_MOMENTS = 40  # more new plans than these are drawn fainter
MARGIN = 0.09  # of a row, above and below its bars
HAIR = 1 / 150  # inches: no bar is narrower, so that tasks of no duration show
CHUNK = 1000  # rectangles in one path: the renderer has a limit
FEW_TRANSFERS = 250  # so many may lie over the bars
VECTOR_TRANSFERS = 1500  # more than these become an image inside an SVG
MOST_NAMES = 2000
_NAME: dict[str, Any] = {
    "ha": "center",
    "va": "center_baseline",
    "color": INK,
    "clip_on": True,
    "zorder": 6,
}


def draw_rows(axes: Axes, chart: Chart) -> None:
    """A light band for the time a processor is there: what shows between bars is idle time."""
    unit = chart.unit.seconds
    rows = np.arange(len(chart.rows), dtype=np.float64)
    begin = np.array([row.begin for row in chart.rows]) / unit
    end = np.array([row.end for row in chart.rows]) / unit
    _rectangles(axes, begin, end, rows + 0.04, rows + 0.96, facecolor="#eff1f4", zorder=0.4)
    away = [(i, a, b) for i, row in enumerate(chart.rows) for a, b in row.away]
    if away:
        at, begin, end = np.array(away, dtype=np.float64).T
        look = {"facecolor": "white", "edgecolor": "#c8ccd2", "hatch": "////", "zorder": 0.5}
        _rectangles(axes, begin / unit, end / unit, at + 0.04, at + 0.96, **look)


def draw_bars(axes: Axes, chart: Chart, inches: float) -> None:
    """The bars, one colour per category; pale where they only show what was meant."""
    dense = len(chart.bars.name) > 1500
    meant = np.array([lane.meant for lane in chart.lanes], dtype=np.bool_)[chart.bars.lane]
    for category, colour in enumerate(chart.palette):
        for pale in (False, True):
            chosen = (chart.bars.category == category) & (meant == pale)
            _rectangles(
                axes,
                *_boxes(chart, np.flatnonzero(chosen).astype(np.int32), inches),
                facecolor=colour,
                edgecolor="white",
                linewidth=0.25 if dense else 0.5,
                alpha=PALE if pale else None,
                zorder=3,
            )


def draw_moments(axes: Axes, chart: Chart) -> None:
    """A thin line through all rows whenever a new plan was taken."""
    from matplotlib.collections import LineCollection

    if not chart.moments:
        return
    x = np.array(chart.moments) / chart.unit.seconds
    ends = np.stack([np.stack([x, x], axis=1), np.tile([0, len(chart.rows)], (len(x), 1))], axis=2)
    few = len(x) <= FEW_MOMENTS
    lines = LineCollection(
        list(ends),
        colors=MOMENT,
        linewidths=0.9 if few else 0.5,
        linestyles="--",
        alpha=0.8 if few else max(0.15, 0.8 * FEW_MOMENTS / len(x)),
        zorder=4.5,
    )
    axes.add_collection(lines, autolim=False)


def draw_transfers(axes: Axes, chart: Chart) -> None:
    """A line per transfer; the more there are, the fainter, and under the bars."""
    from matplotlib.collections import LineCollection

    inputs = chart.inputs
    shown = np.flatnonzero(inputs.shown)
    if len(shown) == 0:
        return
    ends = _lines(
        chart, inputs.source[shown], inputs.sent[shown], inputs.target[shown], inputs.arrival[shown]
    )
    few = len(shown) <= FEW_TRANSFERS
    lines = LineCollection(
        list(ends),
        colors=TRANSFER,
        linewidths=0.8 if few else 0.5,
        alpha=0.75 if few else float(np.clip(220 / len(shown), 0.05, 0.5)),
        zorder=4 if few else 2,
        rasterized=len(shown) > VECTOR_TRANSFERS,
    )
    axes.add_collection(lines, autolim=False)


def draw_critical(axes: Axes, chart: Chart, inches: float) -> None:
    """Dark outlines, and lines from each task to the one that waited for it."""
    from matplotlib.collections import LineCollection

    path = np.array(chart.critical, dtype=np.int32)
    if len(path) == 0:
        return
    width = 1.5 if len(chart.bars.name) <= 300 else 1.0
    boxes = _boxes(chart, path, inches)
    _rectangles(axes, *boxes, facecolor="none", edgecolor=INK, linewidth=width, zorder=5)
    before, after = path[:-1], path[1:]
    ends = _lines(chart, before, chart.bars.finish[before], after, chart.bars.start[after])
    axes.add_collection(LineCollection(list(ends), colors=INK, linewidths=width, zorder=5), False)


def draw_names(
    axes: Axes, chart: Chart, lettering: Lettering, inches: float, row_height: float
) -> None:
    """The names of tasks inside the bars of the tallest lanes, where they fit."""
    heights = np.array([lane.height for lane in chart.lanes])
    size = min(8.0, float(heights.max()) * row_height * 72 * 0.6)
    if size < 4.5:
        return
    per_em = chart.span * 1.005 / inches * size / 72  # time that one em of text covers
    duration = chart.bars.finish - chart.bars.start
    named = (duration > per_em) & (heights[chart.bars.lane] == heights.max())
    candidates = np.flatnonzero(named)
    longest = candidates[np.argsort(-duration[candidates], kind="stable")][:MOST_NAMES]
    bars = np.sort(longest).astype(np.int32)
    for bar, y in zip(bars.tolist(), _middle(chart, bars).tolist(), strict=True):
        text = lettering.fitted(chart.bars.name[bar], float(duration[bar] / per_em) - 0.5)
        if text:
            x = float(chart.bars.start[bar] + duration[bar] / 2) / chart.unit.seconds
            axes.text(x, y, text, fontsize=size, **_NAME)


def _boxes(
    chart: Chart, bars: IntArray, inches: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Left, right, top and bottom of bars."""
    start, finish = chart.bars.start[bars], chart.bars.finish[bars]
    right = np.maximum(finish, start + chart.span * HAIR / inches)
    half = np.array([lane.height / 2 for lane in chart.lanes])[chart.bars.lane[bars]]
    middle, half = _middle(chart, bars), half * (1 - 2 * MARGIN)
    unit = chart.unit.seconds
    return start / unit, right / unit, middle - half, middle + half


def _middle(chart: Chart, bars: IntArray) -> FloatArray:
    """The vertical middle of bars, in rows from the top."""
    shares = np.array([lane.top + lane.height / 2 for lane in chart.lanes])
    middle: FloatArray = (
        chart.bars.row[bars] + MARGIN + (1 - 2 * MARGIN) * shares[chart.bars.lane[bars]]
    )
    return middle


def _lines(
    chart: Chart, source: IntArray, leave: FloatArray, target: IntArray, arrive: FloatArray
) -> FloatArray:
    """Lines between bars as an array of (line, end, x and y)."""
    unit = chart.unit.seconds
    begin = np.stack([leave / unit, _middle(chart, source)], axis=1)
    end = np.stack([arrive / unit, _middle(chart, target)], axis=1)
    return np.stack([begin, end], axis=1)


def _rectangles(
    axes: Axes,
    left: FloatArray,
    right: FloatArray,
    top: FloatArray,
    bottom: FloatArray,
    **look: Any,
) -> None:
    """Rectangles of one look, in a few compound paths."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    x = np.stack([left, right, right, left, left], axis=1)
    y = np.stack([top, top, bottom, bottom, top], axis=1)
    corners = np.stack([x, y], axis=2)
    code = np.array([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY])
    look.setdefault("linewidth", 0)
    for begin in range(0, len(corners), CHUNK):
        part = corners[begin : begin + CHUNK]
        path = Path(part.reshape(-1, 2), np.tile(code, len(part)))
        axes.add_artist(PathPatch(path, joinstyle="miter", **look))
