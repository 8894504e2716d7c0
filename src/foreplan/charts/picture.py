"""A chart as a picture: SVG and PNG, drawn by matplotlib.

Many alike marks go into one path, or a drawing of 5,000 tasks would be many megabytes.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from foreplan.arrays import FloatArray, IntArray
from foreplan.charts.chart import Chart, Gauge, HeldLevel
from foreplan.charts.plots import SETTINGS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MISSING = "\u25a1"
ELLIPSIS = "\u2026"
_SIZE = 100.0


class Lettering:
    """Measures and cleans text for one picture."""

    def __init__(self) -> None:
        from matplotlib.font_manager import findfont
        from matplotlib.ft2font import FT2Font

        self._font = FT2Font(findfont(SETTINGS["font.family"][0]))
        self._font.set_size(_SIZE, 72)
        self._known = self._font.get_charmap()
        self._advance: dict[str, float] = {}

    def clean(self, text: str, longest: int = 120) -> str:
        """The text on one line, of bounded length, with a box for what the font has not."""
        text = text if len(text) <= longest else _shortened(text, longest - 1)
        return "".join(
            c if c.isprintable() and ord(c) in self._known else (" " if c.isspace() else MISSING)
            for c in text
        )

    def width(self, text: str) -> float:
        """The width of clean text, in units of the font size."""
        return sum(self._width_of(c) for c in text)

    def fitted(self, text: str, width: float, fewest: int = 6) -> str:
        """The clean text, without its middle if need be; empty if hardly any would be left."""
        if width < self._width_of(ELLIPSIS):
            return ""
        text = self.clean(text)
        if self.width(text) <= width:
            return text
        room = width - self._width_of(ELLIPSIS)
        for kept in range(min(len(text) - 1, int(room / 0.25)), fewest - 1, -1):
            short = _shortened(text, kept)
            if self.width(short) <= width:
                return short
        return ""

    def _width_of(self, character: str) -> float:
        if character not in self._advance:
            glyph = self._font.load_char(ord(character))
            self._advance[character] = glyph.linearHoriAdvance / 65536 / _SIZE
        return self._advance[character]


def _shortened(text: str, kept: int) -> str:
    """Without its middle: the ends of a name say what kind of thing it is, and which one."""
    return text[: kept // 2] + ELLIPSIS + text[len(text) - (kept - kept // 2) :]


INK = "#111111"
TRANSFER = "#6a7a90"
MOMENT = "#aa2277"
PALE = 0.45  # how much of their colour bars have that show only what was meant
FEW_MOMENTS = 40  # more new plans than these are drawn fainter
MARGIN = 0.09  # of a row, above and below its bars
HAIR = 1 / 150  # inches: no bar is narrower, so that tasks of no duration show
EDGED = 2.0  # points: narrower bars have no white edge, which would cover them
OUTLINED = 6.0  # points: narrower bars share an outline,
CLOSE = 3.0  # if they are no farther apart than this
APART = 10.0  # points between lines of the critical path from one row to another
CHUNK = 1000  # rectangles in one path: the renderer has a limit
FEW_TRANSFERS = 250  # so many may lie over the bars
VECTOR_TRANSFERS = 1500  # more than these become an image inside an SVG
MOST_NAMES = 2000
HELD = "#a9bcd6"  # memory, and other amounts
MEANT: dict[str, Any] = {"color": "#53657f", "linewidth": 0.9, "linestyle": (0, (3, 2))}
SPARE: dict[str, Any] = {"colors": "#b9c0ca", "linewidths": 2.2}
USED: dict[str, Any] = {"color": "#b04a00", "linewidth": 0.9}
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
    rows = np.arange(len(chart.rows), dtype=np.int32)
    begin = np.array([row.begin for row in chart.rows]) / unit
    end = np.array([row.end for row in chart.rows]) / unit
    away = [(i, a / unit, b / unit) for i, row in enumerate(chart.rows) for a, b in row.away]
    for top, bottom in _strips(chart, rows):
        _rectangles(axes, begin, end, top, bottom, facecolor="#eff1f4", zorder=0.4)
    if away:
        at, left, right = np.array(away, dtype=np.float64).T
        look = {"facecolor": "white", "edgecolor": "#c8ccd2", "hatch": "////", "zorder": 0.5}
        for top, bottom in _strips(chart, at.astype(np.int32)):
            _rectangles(axes, left, right, top, bottom, **look)


def _strips(chart: Chart, rows: IntArray) -> list[tuple[FloatArray, FloatArray]]:
    """Tops and bottoms of rows: once, or once in each lane, if those of a host lie apart."""
    if not chart.apart:
        top = chart.places.row[rows]
        return [(top + 0.04, top + 0.96)]
    strips = []
    for number, lane in enumerate(chart.lanes):
        middle, half = _slots(chart, rows, np.full(len(rows), number, dtype=np.int32))
        half = half + MARGIN * lane.height if lane.meant else half  # gaps would show through
        strips.append((middle - half, middle + half))
    return strips


def draw_gauges(axes: Axes, chart: Chart) -> None:
    """What is held of each host's memory and other amounts: filled; as it was meant: a line."""
    places = zip(chart.gauges, chart.places.gauge, chart.places.gauge_height, strict=True)
    ends = [(row.host, row.begin, row.end) for row in chart.rows]
    for gauge, above, height in places:
        top, bottom = above + 0.08 * height, above + 0.94 * height
        begin = min(begin for host, begin, _ in ends if host == gauge.host)
        end = max(end for host, _, end in ends if host == gauge.host)
        spans = np.array([[begin, end]]) / chart.unit.seconds
        box = (spans[:, 0], spans[:, 1], np.array([top]), np.array([bottom]))
        _rectangles(axes, *box, facecolor="#f5f6f8", zorder=0.4)
        axes.plot(spans[0], [top, top], color="#8a93a0", linewidth=0.7, zorder=3.2)
        for level in gauge.levels:
            _draw_level(axes, chart, gauge, level, (top, bottom))


def _draw_level(
    axes: Axes, chart: Chart, gauge: Gauge, level: HeldLevel, between: tuple[float, float]
) -> None:
    top, bottom = between
    x = np.concatenate([[0.0], level.time, [chart.span]]) / chart.unit.seconds
    held = np.concatenate([[0.0], level.held, level.held[-1:] if len(level.held) else [0.0]])
    y = bottom - (bottom - top) * held / gauge.size
    if level.meant or level.line:
        look: dict[str, Any] = MEANT if level.meant else USED
        axes.plot(x, y, drawstyle="steps-post", zorder=3.1, **look)
    else:
        axes.fill_between(x, y, bottom, step="post", facecolor=HELD, linewidth=0, zorder=3)


def draw_bars(axes: Axes, chart: Chart, inches: float) -> None:
    """The bars, one colour per category; pale where they only show what was meant."""
    line = 0.25 if len(chart.bars.name) > 1500 else 0.5
    long = (chart.bars.finish - chart.bars.start) * inches * POINTS / chart.span >= EDGED
    meant = np.array([lane.meant for lane in chart.lanes], dtype=np.bool_)[chart.bars.lane]
    for category, colour in enumerate(chart.palette):
        for pale, edged in product((False, True), repeat=2):
            chosen = (chart.bars.category == category) & (meant == pale) & (long == edged)
            _rectangles(
                axes,
                *_boxes(chart, np.flatnonzero(chosen).astype(np.int32), inches),
                facecolor=colour,
                edgecolor="white",
                linewidth=line if edged else 0,
                alpha=PALE if pale else None,
                zorder=3,
            )


def draw_spare(axes: Axes, chart: Chart) -> None:
    """A thin line after each bar: how much later it may end, and nothing else starts later."""
    from matplotlib.collections import LineCollection

    if (bars := _with_spare(chart)) is None:
        return
    finish, spare = chart.bars.finish[bars], chart.bars.spare
    assert spare is not None
    ends = _lines(chart, bars, finish, bars, finish + spare[bars])
    axes.add_collection(LineCollection(list(ends), zorder=2.9, **SPARE), False)


def _with_spare(chart: Chart) -> IntArray | None:
    """The bars that may end later, if there are any."""
    if chart.bars.spare is None or not chart.bars.spare.any():
        return None
    return np.flatnonzero(chart.bars.spare > 0).astype(np.int32)


def draw_ties(axes: Axes, chart: Chart) -> None:
    """A thin line at the start of bars whose blocks lie apart: they belong together."""
    from matplotlib.collections import LineCollection

    blocks = chart.bars.blocks
    if blocks is None:
        return
    bars = np.flatnonzero(np.diff(blocks.ptr) > 1).astype(np.int32)
    lines = []
    for bar in bars.tolist():
        each, row, rows = _blocks(chart, np.array([bar], dtype=np.int32))
        top, bottom = _extents(chart, each, row, rows)
        x = float(chart.bars.start[bar] + chart.span * 2 * HAIR / WIDTH) / chart.unit.seconds
        lines.append([(x, float(top.min())), (x, float(bottom.max()))])
    look: dict[str, Any] = {"colors": INK, "linewidths": 0.7, "alpha": 0.5, "zorder": 4.2}
    axes.add_collection(LineCollection(lines, **look), False)


def draw_moments(axes: Axes, chart: Chart) -> None:
    """A thin line through all rows whenever a new plan was taken."""
    from matplotlib.collections import LineCollection

    if not chart.moments:
        return
    x = np.array(chart.moments) / chart.unit.seconds
    ends = np.stack(
        [np.stack([x, x], axis=1), np.tile([0, chart.places.height], (len(x), 1))], axis=2
    )
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
    """Dark outlines, and lines from each task to the one that waited for it.

    Narrow bars side by side share an outline, and lines side by side are drawn once: otherwise
    hundreds of tasks would be black.
    """
    from matplotlib.collections import LineCollection

    path = np.array(chart.critical, dtype=np.int32)
    if len(path) == 0:
        return
    width = 1.5 if len(chart.bars.name) <= 300 else 1.0
    point = chart.span / chart.unit.seconds / (inches * POINTS)  # of the time axis
    boxes = _outlines(np.stack(_boxes(chart, path, inches), axis=1), point)
    _rectangles(axes, *boxes.T, facecolor="none", edgecolor=INK, linewidth=width, zorder=5)
    before, after = path[:-1], path[1:]
    ends = _lines(chart, before, chart.bars.finish[before], after, chart.bars.start[after])
    lines = _distinct_lines(ends, point)
    axes.add_collection(LineCollection(lines, colors=INK, linewidths=width, zorder=5), False)


def _outlines(boxes: FloatArray, point: float) -> FloatArray:
    """Join narrow boxes (left, right, top, bottom) that lie close to each other in one row.

    The boxes are in the order of time; `point` is a typographic point of the time axis.
    """
    joined: list[list[float]] = []
    last: dict[tuple[float, float], list[float]] = {}  # the last narrow one, by top and bottom
    for box in boxes.tolist():
        left, right, top, bottom = box
        if right - left >= OUTLINED * point:
            joined.append(box)
            continue
        near = last.get((top, bottom))
        if near is not None and left - near[1] <= CLOSE * point:
            near[1] = max(near[1], right)
        else:
            last[top, bottom] = box
            joined.append(box)
    return np.array(joined, dtype=np.float64).reshape(-1, 4)


def _distinct_lines(ends: FloatArray, point: float) -> list[FloatArray]:
    """Return the lines without those that lie close to one between the same two heights."""
    lines: list[FloatArray] = []
    last: dict[tuple[float, ...], FloatArray] = {}
    for line in ends:
        heights = tuple(sorted(line[:, 1].tolist()))
        near = last.get(heights)
        if near is None or np.abs(line[:, 0] - near[:, 0]).max() > APART * point:
            lines.append(line)
            last[heights] = line
    return lines


def draw_names(
    axes: Axes, chart: Chart, lettering: Lettering, inches: float, row_height: float
) -> None:
    """The names of tasks inside the bars of the tallest lanes, where they fit."""
    heights = np.array([lane.height for lane in chart.lanes])
    blocks = chart.bars.blocks
    rows = np.ones(len(chart.bars.name)) if blocks is None else blocks.rows[blocks.ptr[:-1]]
    size = np.minimum(8.0, float(heights.max()) * row_height * 72 * 0.6 * rows)
    per_em = chart.span * 1.005 / inches * size / 72  # time that one em of text covers
    duration = chart.bars.finish - chart.bars.start
    named = (duration > per_em) & (heights[chart.bars.lane] == heights.max()) & (size >= 4.5)
    candidates = np.flatnonzero(named)
    longest = candidates[np.argsort(-duration[candidates], kind="stable")][:MOST_NAMES]
    bars = np.sort(longest).astype(np.int32)
    for bar, y in zip(bars.tolist(), _middle(chart, bars).tolist(), strict=True):
        text = lettering.fitted(chart.bars.name[bar], float(duration[bar] / per_em[bar]) - 0.5)
        if text:
            x = float(chart.bars.start[bar] + duration[bar] / 2) / chart.unit.seconds
            axes.text(x, y, text, fontsize=float(size[bar]), **_NAME)


def _boxes(
    chart: Chart, bars: IntArray, inches: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Left, right, top and bottom of bars; of those in several blocks, of each."""
    bars, row, rows = _blocks(chart, bars)
    start, finish = chart.bars.start[bars], chart.bars.finish[bars]
    right = np.maximum(finish, start + chart.span * HAIR / inches)
    top, bottom = _extents(chart, bars, row, rows)
    unit = chart.unit.seconds
    return start / unit, right / unit, top, bottom


def _blocks(chart: Chart, bars: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Every block of these bars: its bar, its first row, and how many rows it has."""
    blocks = chart.bars.blocks
    if blocks is None:
        return bars, chart.bars.row[bars], np.ones(len(bars), dtype=np.int32)
    count = blocks.ptr[bars + 1] - blocks.ptr[bars]
    first = np.cumsum(count) - count
    at = np.arange(count.sum()) + np.repeat(blocks.ptr[bars] - first, count)
    return np.repeat(bars, count), blocks.row[at], blocks.rows[at]


def _extents(
    chart: Chart, bars: IntArray, row: IntArray, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Top and bottom of blocks."""
    lane = chart.bars.lane[bars]
    middle, half = _slots(chart, row, lane)
    last, _ = _slots(chart, row + rows - 1, lane)
    return middle - half, last + half


def _slots(chart: Chart, row: IntArray, lane: IntArray) -> tuple[FloatArray, FloatArray]:
    """The middle of lanes in rows, and half of their height; rows may share lanes."""
    places = chart.places
    share = np.array([each.height for each in chart.lanes])[lane]
    above = np.array([each.top for each in chart.lanes])[lane]
    first, count = places.first[row], places.count[row]
    inner = count - 2 * MARGIN
    middle = places.row[first] + MARGIN + inner * (above + share * (row - first + 0.5) / count)
    half = share / 2 * inner / count
    return middle, np.where(count > 1, half - MARGIN * share, half)


def _middle(chart: Chart, bars: IntArray) -> FloatArray:
    """The vertical middle of bars, in rows from the top; of the first of several blocks."""
    blocks, lane = chart.bars.blocks, chart.bars.lane[bars]
    if blocks is None:
        return _slots(chart, chart.bars.row[bars], lane)[0]
    row, rows = blocks.row[blocks.ptr[bars]], blocks.rows[blocks.ptr[bars]]
    top, bottom = _extents(chart, bars, row, rows)
    middle: FloatArray = (top + bottom) / 2
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


DPI = 120
TALLEST = 2200  # pixels: a picture of many rows gets fewer dots per inch
WIDTH = 14.0  # inches
POINTS = 72.0  # per inch
LEGEND = 8.0  # points


def svg(chart: Chart) -> bytes:
    """The chart as SVG; the same chart gives the same bytes."""
    title = Lettering().clean(chart.title)
    return _drawn(chart, "svg", {"Date": None, "Creator": "foreplan", "Title": title})


def png(chart: Chart) -> bytes:
    """The chart as PNG, in few colours: a third of the size, and no difference to the eye."""
    from PIL import Image

    full = Image.open(io.BytesIO(_drawn(chart, "png", {"Software": None}))).convert("RGB")
    # an octree keeps the few pure colours of the bars apart, which a median cut would merge
    small = full.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    content = io.BytesIO()
    small.save(content, format="png", optimize=True)
    return content.getvalue()


def _drawn(chart: Chart, kind: str, metadata: dict[str, Any]) -> bytes:
    import matplotlib

    with matplotlib.rc_context({**SETTINGS, "path.sketch": None}):
        content, figure = io.BytesIO(), _figure(chart)
        dpi = min(DPI, TALLEST / figure.get_figheight())
        figure.savefig(content, format=kind, dpi=dpi, metadata=metadata)
    return content.getvalue()


@dataclass(frozen=True)
class Layout:
    """Sizes in inches; rows get lower as they get more."""

    row: float
    left: float
    right: float
    top: float
    legend_lines: int
    bottom: float = 0.55

    @staticmethod
    def of(chart: Chart, lettering: Lettering) -> Layout:
        """Margins that hold the longest names, and rows that keep the whole in view."""
        names = max(lettering.width(_row_name(row.name, lettering)) for row in chart.rows)
        hosts = max(lettering.width(_row_name(row.host, lettering)) for row in chart.rows)
        names = max([names, *(lettering.width(gauge.label) for gauge in chart.gauges)])
        row = min(0.42, max(0.1, 9.0 / chart.places.height))
        size = row_font(row) / POINTS
        right = 0.25 + (hosts * size if chart.grouped else 0.0)
        left = 0.25 + names * size
        labels = [mark.get_label() for mark in _legend(chart, lettering)]
        lines = _legend_lines(labels, lettering, WIDTH - left - right)
        top = 0.75 + 0.18 * lines if len(chart.categories) > 1 else 0.7
        return Layout(row, left, right, top, lines)


def row_font(row: float) -> float:
    """The font size, in points, of names beside or in a row of this height in inches."""
    return min(9.0, max(5.0, row * POINTS * 0.55))


def _row_name(name: str, lettering: Lettering) -> str:
    return lettering.clean(name, longest=40)


def _figure(chart: Chart) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lettering = Lettering()
    layout = Layout.of(chart, lettering)
    height = layout.top + layout.bottom + layout.row * max(2, chart.places.height)
    figure = Figure(figsize=(WIDTH, height), facecolor="white")
    FigureCanvasAgg(figure)
    box = (
        layout.left / WIDTH,
        layout.bottom / height,
        1 - (layout.left + layout.right) / WIDTH,
        1 - (layout.top + layout.bottom) / height,
    )
    axes = figure.add_axes(box)
    _frame(axes, chart, layout, lettering)
    inches = WIDTH - layout.left - layout.right
    draw_rows(axes, chart)
    draw_transfers(axes, chart)
    draw_bars(axes, chart, inches)
    draw_spare(axes, chart)
    draw_ties(axes, chart)
    draw_gauges(axes, chart)
    draw_moments(axes, chart)
    draw_critical(axes, chart, inches)
    draw_names(axes, chart, lettering, inches, layout.row)
    _head(figure, chart, layout, lettering, height)
    return figure


def _frame(axes: Axes, chart: Chart, layout: Layout, lettering: Lettering) -> None:
    """The axes: time below, in the chart's unit, and the names of rows and hosts beside."""
    size = row_font(layout.row)
    axes.set_xlim(0, chart.span / chart.unit.seconds * 1.005)
    axes.set_ylim(chart.places.height, 0)
    axes.set_xlabel(f"time ({chart.unit.name})", fontsize=9)
    axes.tick_params(axis="x", labelsize=8, color="#999999")
    axes.tick_params(axis="y", length=0, labelsize=size, pad=4)
    middles, step = _row_middles(chart)
    every = max(1, round(size * 1.1 / (layout.row * step * POINTS)))
    shown = range(0, len(chart.rows), every)
    labels = [_row_name(chart.rows[i].name, lettering) for i in shown]
    labels += [lettering.clean(gauge.label, longest=40) for gauge in chart.gauges]
    gauges = chart.places.gauge + chart.places.gauge_height / 2
    axes.set_yticks([*(middles[i] for i in shown), *gauges], labels=labels)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#999999")
    axes.grid(visible=True, axis="x", color="#d5d5d5", linewidth=0.6)
    axes.set_axisbelow(True)
    if chart.grouped:
        _hosts(axes, chart, layout, lettering)


def _row_middles(chart: Chart) -> tuple[FloatArray, float]:
    """Where the names of rows stand: at the last lane, if those of a host lie apart; the step."""
    if not chart.apart:
        return chart.places.row + 0.5, 1.0
    rows, last = np.arange(len(chart.rows), dtype=np.int32), len(chart.lanes) - 1
    middle, _ = _slots(chart, rows, np.full(len(rows), last, dtype=np.int32))
    return middle, chart.lanes[last].height


def _hosts(axes: Axes, chart: Chart, layout: Layout, lettering: Lettering) -> None:
    """The names of hosts at the right, and a line between them."""
    size = row_font(layout.row)
    for name, first, after in chart.places.hosts:
        if first > 0:
            axes.axhline(first, color="#888888", linewidth=0.7, zorder=1.5)
        if (after - first) * layout.row * POINTS < size * 0.9:
            continue
        axes.annotate(
            _row_name(name, lettering),
            (1, (first + after) / 2),
            xycoords=("axes fraction", "data"),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=size,
            color="#444444",
        )


def _head(
    figure: Figure, chart: Chart, layout: Layout, lettering: Lettering, height: float
) -> None:
    """Title, facts and legend, above the rows."""
    left = layout.left / WIDTH
    title = lettering.clean(chart.title)
    figure.text(left, 1 - 0.27 / height, title, fontsize=12, fontweight="bold")
    facts = lettering.clean(" \u00b7 ".join(chart.facts), longest=200)
    figure.text(left, 1 - 0.48 / height, facts, fontsize=9, color="#444444")
    under = len(chart.categories) > 1  # else the legend is short and stands beside the title
    marks = _legend(chart, lettering)
    figure.legend(
        handles=marks,
        loc="upper left" if under else "upper right",
        bbox_to_anchor=(left - 0.006 if under else 0.99, 1 - (0.62 if under else 0.27) / height),
        ncols=-(-len(marks) // layout.legend_lines),
        fontsize=LEGEND,
        frameon=False,
        handlelength=1.3,
        columnspacing=1.1,
        borderpad=0,
        borderaxespad=0,
    )


def _legend(chart: Chart, lettering: Lettering) -> list[Any]:
    """The marks of the legend, each with its label."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marks = list[tuple[str, Any]]()
    if len(chart.categories) > 1:
        pairs = zip(chart.categories, chart.palette, strict=True)
        marks += [(name, Patch(facecolor=colour)) for name, colour in pairs]
    pale = [lane.name for lane in chart.lanes if lane.meant]
    marks += [(name, Patch(facecolor=chart.palette[0], alpha=PALE)) for name in pale]
    marks.append(("critical path", Line2D([], [], color=INK, linewidth=1.8)))
    if _with_spare(chart) is not None:
        mark = Line2D([], [], color=SPARE["colors"], linewidth=SPARE["linewidths"])
        marks.append(("spare time", mark))
    if chart.inputs.shown.any():
        marks.append(("transfer", Line2D([], [], color=TRANSFER, linewidth=0.8)))
    if chart.moments:
        look: dict[str, Any] = {"color": MOMENT, "linewidth": 0.9, "linestyle": "--"}
        marks.append(("new plan", Line2D([], [], **look)))
    if chart.gauges:
        levels = {level.name: level for gauge in chart.gauges for level in gauge.levels}
        marks += [(level.legend, _level_mark(level)) for level in levels.values()]
    for label, mark in marks:
        mark.set_label(lettering.clean(label, longest=22))
    return [mark for _, mark in marks]


def _level_mark(level: HeldLevel) -> Any:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if level.meant or level.line:
        return Line2D([], [], **(MEANT if level.meant else USED))
    return Patch(facecolor=HELD)


def _legend_lines(labels: list[str], lettering: Lettering, room: float) -> int:
    """How many lines the legend takes in so many inches; an entry has a mark and gaps as well."""
    width = sum(lettering.width(label) + 3.4 for label in labels) * LEGEND / POINTS
    return 1 if width <= room else 2
