"""A comparison as a picture: makespans, their ratios to the first, new plans; drawn plainly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from foreplan.charts.plots import Target, note, plot, shortened, show_time, strip_frame
from foreplan.comparison import Comparison, Figures, Mean
from foreplan.quantities import amount, duration, many

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOT, _FAINT, _BAR = "#1f5fa8", "#9db8d6", "#77aadd"


def write_plot(comparison: Comparison, target: Target) -> None:
    """Draw a comparison to a .png or .svg file, or as PNG into memory."""
    rows = comparison.overall
    with plot(target, (11, 1.5 + 0.42 * len(rows)), _title(comparison)) as figure:
        axes = figure.subplots(1, 3, sharey=True, width_ratios=(1, 1, 0.7))
        _points(axes[0], [f.makespan for f in rows], words=duration)
        longest = max((f.makespan.mean or 0.0 for f in rows), default=0.0)
        show_time(axes[0].xaxis, "makespan", longest, ", mean and 95% interval")
        _points(axes[1], [f.ratio for f in rows], _each(comparison), partial(amount, digits=5))
        axes[1].axvline(1.0, color="#999999", linewidth=0.8, zorder=1)
        axes[1].set_xlabel(f"ratio to {shortened(rows[0].strategy)}, in the same run")
        _plans(axes[2], rows)
        axes[0].set_yticks(range(len(rows)), labels=[shortened(f.strategy) for f in rows])
        axes[0].set_ylim(len(rows) - 0.5, -0.5)


def _title(comparison: Comparison) -> str:
    names = [name for name, _ in comparison.by_workflow]
    what = shortened(names[0], 50) if len(names) == 1 else f"{len(names)} workflows"
    runs = many(comparison.runs, "run")
    scenario = "" if comparison.scenario.calm else f", {comparison.scenario}"
    return f"{what}, {runs} of each strategy, QoI {comparison.qoi:.0%}{scenario}"


def _each(comparison: Comparison) -> list[list[float]]:
    """The ratios on each workflow, where there are several."""
    if len(comparison.by_workflow) < 2:
        return []
    columns = zip(*(figures for _, figures in comparison.by_workflow), strict=True)
    return [[f.ratio.mean for f in column if f.ratio.mean is not None] for column in columns]


def _points(
    axes: Axes,
    means: Sequence[Mean],
    each: Sequence[Sequence[float]] = (),
    words: Callable[[float], str] = amount,
) -> None:
    """A dot with its interval per strategy; faint dots for the single workflows."""
    _plain(axes)
    for y, values in enumerate(each):
        axes.plot(values, [y] * len(values), "|", color=_FAINT, markersize=11, zorder=2)
    for y, m in enumerate(means):
        if m.mean is None:
            continue
        if m.low is not None and m.high is not None:
            axes.plot([m.low, m.high], [y, y], color=_DOT, linewidth=2.2, zorder=3)
        axes.plot([m.mean], [y], "o", color=_DOT, markersize=6, zorder=4)
        note(axes, words(m.mean), (m.mean, y), (0, 6), ha="center")
    axes.margins(x=0.12)


def _plans(axes: Axes, rows: Sequence[Figures]) -> None:
    """New plans per run: those considered, and those taken."""
    _plain(axes)
    at = range(len(rows))
    axes.barh(at, [f.considered for f in rows], height=0.55, color="#d5dde8", label="considered")
    axes.barh(at, [f.replans for f in rows], height=0.3, color=_BAR, label="taken")
    for y, f in enumerate(rows):
        at_end = (max(f.considered, f.replans), y)
        note(axes, amount(f.replans, 3), at_end, (4, 0), va="center")
    axes.set_xlim(0, max(1.0, *(f.considered for f in rows)) * 1.2)
    axes.set_xlabel("new plans per run")
    if any(f.considered != f.replans for f in rows):
        axes.legend(fontsize=7.5, frameon=False)


def _plain(axes: Axes) -> None:
    strip_frame(axes, "x")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
