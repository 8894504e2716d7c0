"""The frontier of money and time as a picture: makespan against cost, with the knee."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from weft.experiments.comparison_plot import SETTINGS, check_plot, show_money, show_time
from weft.files import write_bytes
from weft.quantities import amount, duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from weft.frontier import Frontier, Point

_LINE, _KNEE, _ASKED = "#1f5fa8", "#c22f2f", "#2f7d4f"


def write_plot(
    frontier: Frontier,
    path: str | os.PathLike[str],
    title: str,
    budget: float | None = None,
    deadline: float | None = None,
) -> None:
    """Draw a frontier to a .png or .svg file, and what was asked for as lines."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    check_plot(path)
    kind = Path(path).suffix.lower()[1:]
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(8, 5), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        _curve(axes, frontier)
        _asked(axes, frontier, budget, deadline)
        clean = "".join(c if c.isprintable() else "\u25a1" for c in title)
        figure.suptitle(clean[:90], fontsize=10.5, fontweight="bold")
        content = io.BytesIO()
        metadata = {"Software": None} if kind == "png" else {"Date": None, "Creator": "weft"}
        figure.savefig(content, format=kind, dpi=130, metadata=metadata)
    write_bytes(path, content.getvalue())


def _curve(axes: Axes, frontier: Frontier) -> None:
    """A staircase: until the next plan can be paid for, it stays with this one."""
    points = frontier.points
    cost, makespan = [p.cost for p in points], [p.makespan for p in points]
    axes.plot(cost, makespan, drawstyle="steps-post", color=_LINE, linewidth=1, alpha=0.5)
    axes.plot(cost, makespan, "o", color=_LINE, markersize=4.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(visible=True, color="#e2e2e2", linewidth=0.7)
    axes.set_axisbelow(True)
    show_money(axes.xaxis)
    show_time(axes.yaxis, "makespan", max(makespan))
    axes.margins(0.08)
    if (k := frontier.knee) is not None:
        axes.plot([cost[0], cost[-1]], [makespan[0], makespan[-1]], ":", color="#999999", lw=0.9)
        axes.plot([cost[k]], [makespan[k]], "o", color=_KNEE, markersize=9, zorder=4)
        _note(axes, points[k], "knee: " + _figures(points[k]), "right")  # no point is below it
    elif len(points) == 1:
        why = "nothing has a price" if frontier.free else "the cheapest plan found is the fastest"
        _note(axes, points[0], f"nothing to choose: {why}\n{_figures(points[0])}", "center")


def _asked(axes: Axes, frontier: Frontier, budget: float | None, deadline: float | None) -> None:
    """Where the budget and the deadline are, if not far off, and the fastest plan within it."""
    first, last = frontier.points[0], frontier.points[-1]
    if budget is not None and _near(budget, first.cost, last.cost):
        k = frontier.within(budget)
        gives = "" if k is None else f": {_figures(frontier.points[k])}"
        axes.axvline(budget, color=_ASKED, linewidth=1, linestyle="--")
        axes.annotate(
            f"budget {amount(budget)}{gives}", (budget, 1), xycoords=("data", "axes fraction"),
            xytext=(0, 3), textcoords="offset points", ha="center", fontsize=8, color=_ASKED,
        )  # fmt: skip
        if k is not None:
            point = frontier.points[k]
            axes.plot([point.cost], [point.makespan], "s", color=_ASKED, markersize=7, zorder=5)
    if deadline is not None and _near(deadline, last.makespan, first.makespan):
        axes.axhline(deadline, color=_ASKED, linewidth=1, linestyle="--")
        axes.annotate(
            f"deadline {duration(deadline)}", (1, deadline), xycoords=("axes fraction", "data"),
            xytext=(0, 3), textcoords="offset points", ha="right", fontsize=8, color=_ASKED,
        )  # fmt: skip


def _near(value: float, low: float, high: float) -> bool:
    """Whether the curve can still be seen if this is in the picture too."""
    width = high - low or high
    return low - width <= value <= high + width


def _figures(point: Point) -> str:
    return f"{duration(point.makespan)} for {amount(point.cost, 5)}"


def _note(axes: Axes, point: Point, text: str, side: str) -> None:
    axes.annotate(
        text, (point.cost, point.makespan), xytext=(0 if side == "center" else -8, -9),
        textcoords="offset points", ha=side, va="top", fontsize=8, color=_KNEE,
    )  # fmt: skip
