"""Figures 3 to 6, our variants beside them, and the runs under a budget, as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.experiments.budget_cases import FAMILY_NAMES, KS
from weft.experiments.budget_plans import BEST, FROM_HBMCT, GAINS, LOSSES, careful
from weft.experiments.budget_run_tables import RunRow
from weft.experiments.budget_runs import STRATEGIES
from weft.experiments.budget_tables import EVERY, INDEPENDENT, Tables
from weft.experiments.plot_panels import figure_of, plain, png_of

# Colours that stay apart for colour-blind readers; marks and dashes for those who print in grey.
_COLOURS = ("#0072b2", "#d55e00", "#009e73")
_MARKS = ("o", "^", "s")
_FAINT: dict[str, Any] = {"linestyle": "--", "markerfacecolor": "white"}
_BEST: dict[str, Any] = {"color": "#000000", "marker": "d", "linestyle": "-"}

Style = dict[str, Any]


def figure3(measured: Tables) -> bytes:
    """LOSS from HEFT, as PNG."""
    return _by_budget(measured, "Figure 3: LOSS from HEFT", LOSSES)


def figure4(measured: Tables) -> bytes:
    """LOSS from HBMCT, as PNG."""
    return _by_budget(measured, "Figure 4: LOSS from HBMCT", FROM_HBMCT)


def figure5(measured: Tables) -> bytes:
    """GAIN, as PNG."""
    return _by_budget(measured, "Figure 5: GAIN", GAINS)


def ours(measured: Tables) -> bytes:
    """The careful variants from HEFT and best-affordable, as PNG."""
    names = [careful(name) for name in (*LOSSES, *GAINS)]
    styles = {**_styles(names[:3], {}), **_styles(names[3:], _FAINT), BEST: _BEST}
    return _panels(measured, "Ours: the defaults, and best-affordable", styles)


def _by_budget(measured: Tables, title: str, names: Sequence[str]) -> bytes:
    """Faithful and careful by budget, one panel per type."""
    styles = {**_styles(names, {}), **_styles([careful(name) for name in names], _FAINT)}
    return _panels(measured, title, styles)


def _styles(names: Sequence[str], more: Mapping[str, Any]) -> dict[str, Style]:
    return {
        name: {"color": colour, "marker": mark, "linestyle": "-", **more}
        for name, colour, mark in zip(names, _COLOURS, _MARKS, strict=True)
    }


def _panels(measured: Tables, title: str, styles: dict[str, Style]) -> bytes:
    title += ": average normalised difference by budget (1: the start's makespan)"
    legend = {name.replace(" from HBMCT", ""): style for name, style in styles.items()}
    with figure_of(title, (2, 2), legend) as (figure, panels):
        for family, axes in zip(EVERY, panels.flat, strict=True):
            for value in (0.0, 1.0):
                axes.axhline(value, color="#999999", linewidth=0.8, zorder=1)
            for name, style in styles.items():
                means = measured.figures.values(name, (family,)).mean(axis=0)
                axes.plot(KS, means, markersize=4.5, linewidth=1.3, **style)
            plain(axes, FAMILY_NAMES[family])
            axes.set_xticks(KS)
            axes.set_xlabel("k: 0 is the cheapest assignment's cost, 1 the start's", fontsize=8)
        return png_of(figure)


def figure6(measured: Tables) -> bytes:
    """The median running time on FFT graphs from both starts, as PNG."""
    styles = {**_styles(LOSSES, {}), **_styles(GAINS, _FAINT)}
    title = "Figure 6: running time of a plan (ms, median), FFT graphs"
    starts = {"LOSS from HEFT": LOSSES, "LOSS from HBMCT": FROM_HBMCT}
    with figure_of(title, (1, 2), styles) as (figure, panels):
        for (words, losses), axes in zip(starts.items(), panels.flat, strict=True):
            for name, style in zip((*losses, *GAINS), styles.values(), strict=True):
                times = [1000 * measured.figures.seconds(name, k) for k in KS]
                axes.plot(KS, times, markersize=4.5, linewidth=1.3, **style)
            plain(axes, words)
            axes.set_ylim(bottom=0.0)
            axes.set_xticks(KS)
            axes.set_xlabel("k", fontsize=8)
        return png_of(figure)


def sweep(measured: Tables) -> bytes:
    """The ANDs at three budgets under each reading, with the independent ones, as PNG."""
    styles = {**_styles(LOSSES, {"linestyle": "none"})}
    styles |= _styles(GAINS, {**_FAINT, "linestyle": "none"})
    readings = list(measured.sweep)
    title = "What the paper leaves open: AND on FFT, fork-join and Laplace, by reading"
    with figure_of(title, (1, 3), styles) as (figure, panels):
        for number, axes in enumerate(panels.flat):
            k = next(iter(measured.sweep.values())).ks[number]
            for shift, name in enumerate((*LOSSES, *GAINS)):
                at = np.arange(len(readings)) + 0.1 * (shift - 2.5)
                values = [p.mean(name, ks=(k,)).value for p in measured.sweep.values()]
                axes.plot(np.clip(values, -1.0, 1.2), at, markersize=4.0, **styles[name])
                wanted, place = INDEPENDENT[name][number], -1 + 0.1 * (shift - 2.5)
                axes.plot([wanted], [place], **{**styles[name], "markersize": 6.0})
            plain(axes, f"k = {k:g} (-1: or less)")
            labels = ["independent", *readings] if number == 0 else [""] * (len(readings) + 1)
            axes.set_yticks(np.arange(-1, len(readings)), labels=labels)
            axes.invert_yaxis()
        return png_of(figure)


def runs(rows: Sequence[RunRow]) -> bytes:
    """How many runs ended over budget, and by how much, as PNG."""
    kept = list(dict.fromkeys(row.kept for row in rows if row.strategy == "slack"))
    colours = ("#999999", "#d55e00", "#0072b2", "#56b4e9", "#009e73")
    styles = {
        name: {"color": colour, "marker": "s", "linestyle": "none"}
        for name, colour in zip(kept, colours, strict=True)
    }
    found = {(row.strategy, row.kept): row for row in rows}
    least = [row for row in rows if row.kept not in kept][-1]  # the cheapest way all along
    titles = {
        "runs over budget (%)": "over_percent",
        "mean overspending (% of the budget)": "spent",
    }
    whole = "Runs under a budget, by where it is kept; dotted: the cheapest way all along"
    with figure_of(whole, (1, 2), styles) as (figure, panels):
        for (title, column), axes in zip(titles.items(), panels.flat, strict=True):
            for shift, (name, style) in enumerate(styles.items()):
                at = np.arange(len(STRATEGIES)) + 0.16 * (shift - 2)
                values = [getattr(found[strategy, name], column) for strategy in STRATEGIES]
                axes.bar(at, values, 0.15, color=style["color"], zorder=2)
            axes.axhline(getattr(least, column), color="#000000", linestyle=":", zorder=3)
            plain(axes, title)
            axes.set_xticks(np.arange(len(STRATEGIES)), labels=list(STRATEGIES))
        return png_of(figure)
