"""Figures 4 and 5, the gains behind them, and the sweeps, as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.experiments.gtp import CALM, FAILURE
from weft.experiments.gtp_cases import MAIN_CCR
from weft.experiments.gtp_claims import COMPETITORS, METRIC_NAMES
from weft.experiments.gtp_runs import (
    AHEFT,
    DLS,
    GTP,
    GTPC,
    GTPC_HEFT,
    GTPCR,
    GTPCR_HEFT,
    GTPR,
    HEFT,
    WITH_OURS,
    WITH_OURS_R,
)
from weft.experiments.gtp_tables import NSL, OVERHEAD, PUBLISHED, Key, Tables
from weft.experiments.plot_panels import figure_of, plain, png_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that stay apart for colour-blind readers; marks and dashes for those who print in grey.
_COLOURS = {HEFT: "#555555", DLS: "#009e73", GTP: "#d55e00", GTPC: "#0072b2"}
STYLES: dict[str, dict[str, Any]] = {
    HEFT: {"color": _COLOURS[HEFT], "marker": "s", "linestyle": ":"},
    DLS: {"color": _COLOURS[DLS], "marker": "v", "linestyle": "-"},
    GTP: {"color": _COLOURS[GTP], "marker": "^", "linestyle": "-"},
    GTPC: {"color": _COLOURS[GTPC], "marker": "o", "linestyle": "-"},
    AHEFT: {"color": "#000000", "marker": "d", "linestyle": "--"},
    GTPC_HEFT: {"color": "#cc79a7", "marker": "x", "linestyle": "--"},
    GTPR: {"color": _COLOURS[GTP], "marker": "^", "linestyle": "-"},
    GTPCR: {"color": _COLOURS[GTPC], "marker": "o", "linestyle": "-"},
    GTPCR_HEFT: {"color": "#cc79a7", "marker": "x", "linestyle": "--"},
}
OVER: dict[str, dict[str, Any]] = {f"over {name}": STYLES[name] for name in COMPETITORS}
FAILING: dict[str, dict[str, Any]] = {f"{GTPCR} over {GTPR}": STYLES[GTPC]}
PUBLISHED_STYLE: dict[str, Any] = {"color": "#000000", "marker": "*", "linestyle": "none"}

PANELS = {  # of the sweeps, with the names of their axes
    "period": "period (% of the makespan)",
    "rate": "changes of each resource per makespan",
    "ccr": "CCR",
    "density": "predecessors per task",
    "links": "spread of the bandwidths",
    "beta": "beta: spread of a task's costs",
}


def figure4(measured: Tables) -> bytes:
    """NSL, migrated tasks, remappings and overhead by variability, as PNG."""
    title = f"Figure 4: {measured.main_size} tasks, 10 processors, CCR {MAIN_CCR:g}"
    metrics = (NSL, "migrated", "remappings", OVERHEAD)
    return _by_bound(measured, CALM, title, WITH_OURS, metrics)


def figure5(measured: Tables) -> bytes:
    """NSL, rewound tasks and levels, and overhead by variability, with one failure, as PNG."""
    title = f"Figure 5: {measured.main_size} tasks, CCR {MAIN_CCR:g}, one processor fails"
    return _by_bound(measured, FAILURE, title, WITH_OURS_R, (NSL, "rewound", "levels", OVERHEAD))


def _by_bound(
    measured: Tables, part: str, title: str, names: Sequence[str], metrics: Sequence[str]
) -> bytes:
    keys = measured.keys(part, measured.main_size, MAIN_CCR)
    bounds = [100 * key.value for key in keys]
    styles = {name: STYLES[name] for name in names}
    with figure_of(title, (2, 2), styles) as (figure, panels):
        for metric, axes in zip(metrics, panels.flat, strict=True):
            for name in names:
                values = [measured.mean(key, name, metric).value for key in keys]
                axes.plot(bounds, values, markersize=4.5, linewidth=1.3, **STYLES[name])
            unit = " (% of the work and the data needed)" if metric == OVERHEAD else ""
            plain(axes, METRIC_NAMES[metric] + unit)
            _percents(axes, bounds)
            if metric == NSL:
                _logarithmic(axes)
        return png_of(figure)


def gains(measured: Tables) -> bytes:
    """By how much GTP/c and GTP/c/r are better, by variability, with the published points."""
    styles = {**OVER, **FAILING, "published": PUBLISHED_STYLE}
    title = f"Gain in NSL (%), {measured.main_size} tasks, CCR {MAIN_CCR:g}; bars: 95%"
    pairs = [(CALM, GTPC, over) for over in COMPETITORS] + [(FAILURE, GTPCR, GTPR)]
    with figure_of(title, (2, 2), styles) as (figure, panels):
        for (part, mine, over), axes in zip(pairs, panels.flat, strict=True):
            keys = measured.keys(part, measured.main_size, MAIN_CCR)
            style = STYLES[over] if part == CALM else STYLES[mine]
            _gains(axes, measured, [100 * key.value for key in keys], keys, mine, over, style)
            for (there, bound, *pair), gain in PUBLISHED.items():
                if (there, *pair) == (part, mine, over):
                    axes.plot([100 * bound], [gain], markersize=11, zorder=5, **PUBLISHED_STYLE)
            plain(axes, f"{mine} over {over}")
            _percents(axes, [100 * key.value for key in keys])
        return png_of(figure)


def sweeps(measured: Tables) -> bytes:
    """What decides the gains of GTP/c at 40%, as PNG."""
    parts = [part for part in PANELS if measured.keys(part)]
    title = f"What decides it: gain of GTP/c at 40% (%), {measured.main_size} tasks; bars: 95%"
    with figure_of(title, (2, 3), OVER) as (figure, panels):
        for axes in panels.flat[len(parts) :]:
            axes.set_visible(False)
        for part, axes in zip(parts, panels.flat, strict=False):
            keys = measured.sweep(part)
            at = [float(k) for k in range(len(keys))]
            for over in COMPETITORS:
                _gains(axes, measured, at, keys, GTPC, over, STYLES[over])
            plain(axes, PANELS[part])
            axes.set_xticks(at, labels=[f"{key.value:g}" for key in keys])
        return png_of(figure)


def _gains(
    axes: Axes,
    measured: Tables,
    at: Sequence[float],
    keys: Sequence[Key],
    mine: str,
    over: str,
    style: dict[str, Any],
) -> None:
    found = [measured.gain(key, mine, over) for key in keys]
    values, bars = [f.value for f in found], [f.margin for f in found]
    axes.axhline(0.0, color="#999999", linewidth=0.8, zorder=1)
    axes.plot(at, values, markersize=4.5, linewidth=1.3, **style)
    axes.errorbar(at, values, bars, fmt="none", ecolor=style["color"], elinewidth=0.8)


def _logarithmic(axes: Axes) -> None:
    """So that lines near each other can be told apart beside one that goes far up."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    ticks = [tick for tick in (1, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 20, 50) if low <= tick <= high]
    axes.set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axes.set_yticks([], minor=True)


def _percents(axes: Axes, bounds: Sequence[float]) -> None:
    axes.set_xticks(bounds, labels=[f"{bound:.0f}%" for bound in bounds])
    axes.set_xlabel("variability", fontsize=9)
