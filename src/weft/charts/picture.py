"""A chart as a picture: SVG and PNG, drawn by matplotlib."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.charts.chart import Chart
from weft.charts.lettering import FONT, Lettering
from weft.charts.strokes import (
    INK,
    MOMENT,
    PALE,
    TRANSFER,
    draw_bars,
    draw_critical,
    draw_moments,
    draw_names,
    draw_rows,
    draw_transfers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 120
TALLEST = 2200  # pixels: a picture of many rows gets fewer dots per inch
WIDTH = 14.0  # inches
POINTS = 72.0  # per inch
LEGEND = 8.0  # points

# matplotlib reads these only from its settings; a user's own style must not change the picture.
_SETTINGS: Any = {
    "font.family": [FONT],
    "text.usetex": False,
    "text.parse_math": False,  # a task may be called $x_1$
    "svg.fonttype": "none",  # text stays text: smaller, and it can be searched
    "svg.hashsalt": "weft",
    "path.sketch": None,
    "axes.unicode_minus": False,
}


def svg(chart: Chart) -> bytes:
    """The chart as SVG; the same chart gives the same bytes."""
    title = Lettering().clean(chart.title)
    return _drawn(chart, "svg", {"Date": None, "Creator": "weft", "Title": title})


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

    with matplotlib.rc_context(_SETTINGS):
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
        row = min(0.42, max(0.1, 9.0 / len(chart.rows)))
        size = row_font(row) / POINTS
        right = 0.25 + (hosts * size if chart.grouped else 0.0)
        left = 0.25 + names * size
        labels = _legend_labels(chart, lettering)
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
    height = layout.top + layout.bottom + layout.row * max(2, len(chart.rows))
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
    draw_moments(axes, chart)
    draw_critical(axes, chart, inches)
    draw_names(axes, chart, lettering, inches, layout.row)
    _head(figure, chart, layout, lettering, height)
    return figure


def _frame(axes: Axes, chart: Chart, layout: Layout, lettering: Lettering) -> None:
    """The axes: time below, in the chart's unit, and the names of rows and hosts beside."""
    size = row_font(layout.row)
    axes.set_xlim(0, chart.span / chart.unit.seconds * 1.005)
    axes.set_ylim(len(chart.rows), 0)
    axes.set_xlabel(f"time ({chart.unit.name})", fontsize=9)
    axes.tick_params(axis="x", labelsize=8, color="#999999")
    axes.tick_params(axis="y", length=0, labelsize=size, pad=4)
    every = max(1, round(size * 1.1 / (layout.row * POINTS)))
    shown = range(0, len(chart.rows), every)
    labels = [_row_name(chart.rows[i].name, lettering) for i in shown]
    axes.set_yticks([i + 0.5 for i in shown], labels=labels)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#999999")
    axes.grid(visible=True, axis="x", color="#d5d5d5", linewidth=0.6)
    axes.set_axisbelow(True)
    if chart.grouped:
        _hosts(axes, chart, layout, lettering)


def _hosts(axes: Axes, chart: Chart, layout: Layout, lettering: Lettering) -> None:
    """The names of hosts at the right, and a line between them."""
    size = row_font(layout.row)
    for name, first, after in chart.groups():
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
    labels = _legend_labels(chart, lettering)
    figure.legend(
        handles=_handles(chart, labels),
        loc="upper left" if under else "upper right",
        bbox_to_anchor=(left - 0.006 if under else 0.99, 1 - (0.62 if under else 0.27) / height),
        ncols=-(-len(labels) // layout.legend_lines),
        fontsize=LEGEND,
        frameon=False,
        handlelength=1.3,
        columnspacing=1.1,
        borderpad=0,
        borderaxespad=0,
    )


def _legend_labels(chart: Chart, lettering: Lettering) -> list[str]:
    labels = list(chart.categories) if len(chart.categories) > 1 else []
    labels += [lane.name for lane in chart.lanes if lane.meant]
    labels.append("critical path")
    if chart.inputs.shown.any():
        labels.append("transfer")
    if chart.moments:
        labels.append("new plan")
    return [lettering.clean(label, longest=22) for label in labels]


def _legend_lines(labels: list[str], lettering: Lettering, room: float) -> int:
    """How many lines the legend takes in so many inches; an entry has a mark and gaps as well."""
    width = sum(lettering.width(label) + 3.4 for label in labels) * LEGEND / POINTS
    return 1 if width <= room else 2


def _handles(chart: Chart, labels: list[str]) -> list[Any]:
    """The marks of the legend, in the order of its labels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colours = chart.palette if len(chart.categories) > 1 else ()
    handles: list[Any] = [Patch(facecolor=colour) for colour in colours]
    handles += [Patch(facecolor=chart.palette[0], alpha=PALE) for x in chart.lanes if x.meant]
    handles.append(Line2D([], [], color=INK, linewidth=1.8))
    if chart.inputs.shown.any():
        handles.append(Line2D([], [], color=TRANSFER, linewidth=0.8))
    if chart.moments:
        handles.append(Line2D([], [], color=MOMENT, linewidth=0.9, linestyle="--"))
    for handle, label in zip(handles, labels, strict=True):
        handle.set_label(label)
    return handles
