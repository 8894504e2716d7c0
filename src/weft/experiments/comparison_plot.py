"""A comparison as a picture: makespans, their ratios to the first, new plans; drawn plainly."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.charts.chart import unit_for
from weft.errors import InputError
from weft.experiments.comparison import Comparison, Figures, Mean
from weft.files import write_bytes
from weft.quantities import amount, duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

SUFFIXES = (".png", ".svg")
SETTINGS: Any = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "text.usetex": False,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "weft",
    "axes.unicode_minus": False,
}
_DOT, _FAINT, _BAR = "#1f5fa8", "#9db8d6", "#77aadd"


def check_plot(path: str | os.PathLike[str]) -> None:
    """A plot of an unknown kind is told before the work."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InputError(
            f"cannot draw a plot of this kind; known: {', '.join(SUFFIXES)}", source=str(path)
        )


def write_plot(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Draw a comparison to a .png or .svg file."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    check_plot(path)
    rows, kind = comparison.overall, Path(path).suffix.lower()[1:]
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(11, 1.5 + 0.42 * len(rows)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, 3, sharey=True, width_ratios=(1, 1, 0.7))
        _points(axes[0], [f.makespan for f in rows], words=duration)
        longest = max((f.makespan.mean or 0.0 for f in rows), default=0.0)
        show_time(axes[0].xaxis, "makespan", longest, ", mean and 95% interval")
        _points(axes[1], [f.ratio for f in rows], _each(comparison), partial(amount, digits=5))
        axes[1].axvline(1.0, color="#999999", linewidth=0.8, zorder=1)
        axes[1].set_xlabel(f"ratio to {_short(rows[0].strategy)}, in the same run")
        _plans(axes[2], rows)
        names = [_short(f.strategy) for f in rows]
        axes[0].set_yticks(range(len(rows)), labels=names)
        axes[0].set_ylim(len(rows) - 0.5, -0.5)
        figure.suptitle(_title(comparison), fontsize=10.5, fontweight="bold")
        content = io.BytesIO()
        metadata = {"Software": None} if kind == "png" else {"Date": None, "Creator": "weft"}
        figure.savefig(content, format=kind, dpi=130, metadata=metadata)
    write_bytes(path, content.getvalue())


def _title(comparison: Comparison) -> str:
    names = [name for name, _ in comparison.by_workflow]
    what = _short(names[0], 50) if len(names) == 1 else f"{len(names)} workflows"
    runs = f"{comparison.runs:,} run{'s' if comparison.runs != 1 else ''}"
    scenario = "" if comparison.scenario.calm else f", {comparison.scenario}"
    return f"{what}, {runs} of each strategy, QoI {comparison.qoi:.0%}{scenario}"


def _each(comparison: Comparison) -> list[list[float]]:
    """The ratios on each workflow, where there are several."""
    if len(comparison.by_workflow) < 2:
        return []
    columns = zip(*(figures for _, figures in comparison.by_workflow), strict=True)
    return [[f.ratio.mean for f in column if f.ratio.mean is not None] for column in columns]


def show_time(axis: Axis, what: str, longest: float, more: str = "") -> None:
    """Label an axis of seconds in the unit that reads well."""
    from matplotlib.ticker import AutoLocator, FuncFormatter

    unit = unit_for(longest)

    class Ticks(AutoLocator):
        def tick_values(self, vmin: float, vmax: float) -> Any:
            ticks = super().tick_values(vmin / unit.seconds, vmax / unit.seconds)
            return [tick * unit.seconds for tick in ticks]

    axis.set_major_locator(Ticks())
    axis.set_major_formatter(FuncFormatter(lambda time, _: amount(time / unit.seconds)))
    axis.set_label_text(f"{what} ({unit.name}){more}")


def show_money(axis: Axis) -> None:
    """Label an axis of money, without exponents."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: amount(value)))
    axis.set_label_text("cost")


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
        axes.annotate(
            words(m.mean),
            (m.mean, y),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
            color="#333333",
        )
    axes.margins(x=0.12)


def _plans(axes: Axes, rows: Sequence[Figures]) -> None:
    """New plans per run: those considered, and those taken."""
    _plain(axes)
    at = range(len(rows))
    axes.barh(at, [f.considered for f in rows], height=0.55, color="#d5dde8", label="considered")
    axes.barh(at, [f.replans for f in rows], height=0.3, color=_BAR, label="taken")
    for y, f in enumerate(rows):
        axes.annotate(
            amount(f.replans, 3),
            (max(f.considered, f.replans), y),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
            color="#333333",
        )
    axes.set_xlim(0, max(1.0, *(f.considered for f in rows)) * 1.2)
    axes.set_xlabel("new plans per run")
    if any(f.considered != f.replans for f in rows):
        axes.legend(fontsize=7.5, frameon=False)


def _plain(axes: Axes) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x", color="#e2e2e2", linewidth=0.7)
    axes.set_axisbelow(True)


def _short(text: str, longest: int = 34) -> str:
    clean = "".join(c if c.isprintable() else "\u25a1" for c in text)
    return clean if len(clean) <= longest else clean[: longest - 1] + "\u2026"
