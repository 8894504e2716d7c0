"""The frontier of money and time as a picture: makespan against cost, with the knee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foreplan.charts.plots import Target, note, plot, shortened, show_money, show_time, strip_frame
from foreplan.quantities import amount, duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from foreplan.scheduling.frontier import Frontier, Point

_LINE, _KNEE, _ASKED = "#1f5fa8", "#c22f2f", "#2f7d4f"


def write_plot(
    frontier: Frontier,
    target: Target,
    title: str,
    budget: float | None = None,
    deadline: float | None = None,
) -> None:
    """Draw a frontier to a file, or as PNG into memory, and what was asked for as lines."""
    with plot(target, (8, 5), shortened(title, 90)) as figure:
        axes = figure.subplots()
        _curve(axes, frontier)
        _draw_asked(axes, frontier, budget, deadline)


def _curve(axes: Axes, frontier: Frontier) -> None:
    """A staircase: until the next plan can be paid for, it stays with this one."""
    points = frontier.points
    cost, makespan = [p.cost for p in points], [p.makespan for p in points]
    axes.plot(cost, makespan, drawstyle="steps-post", color=_LINE, linewidth=1, alpha=0.5)
    axes.plot(cost, makespan, "o", color=_LINE, markersize=4.5)
    strip_frame(axes)
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


def _draw_asked(
    axes: Axes, frontier: Frontier, budget: float | None, deadline: float | None
) -> None:
    """Where the budget and the deadline are, if not far off, and the fastest plan within it."""
    first, last = frontier.points[0], frontier.points[-1]
    look: dict[str, Any] = {"fontsize": 8, "color": _ASKED}
    if budget is not None and _near(budget, first.cost, last.cost):
        k = frontier.within(budget)
        gives = "" if k is None else f": {_figures(frontier.points[k])}"
        axes.axvline(budget, color=_ASKED, linewidth=1, linestyle="--")
        look |= {"xycoords": ("data", "axes fraction"), "ha": "center"}
        note(axes, f"budget {amount(budget)}{gives}", (budget, 1), (0, 3), **look)
        if k is not None:
            point = frontier.points[k]
            axes.plot([point.cost], [point.makespan], "s", color=_ASKED, markersize=7, zorder=5)
    if deadline is not None and _near(deadline, last.makespan, first.makespan):
        axes.axhline(deadline, color=_ASKED, linewidth=1, linestyle="--")
        look |= {"xycoords": ("axes fraction", "data"), "ha": "right"}
        note(axes, f"deadline {duration(deadline)}", (1, deadline), (0, 3), **look)


def _near(value: float, low: float, high: float) -> bool:
    """Whether the curve can still be seen if this is in the picture too."""
    width = high - low or high
    return low - width <= value <= high + width


def _figures(point: Point) -> str:
    return f"{duration(point.makespan)} for {amount(point.cost, 5)}"


def _note(axes: Axes, point: Point, text: str, side: str) -> None:
    at, offset = (point.cost, point.makespan), (0 if side == "center" else -8, -9)
    note(axes, text, at, offset, ha=side, va="top", fontsize=8, color=_KNEE)
