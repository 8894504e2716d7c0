"""The report of the budget experiment: its files, tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from foreplan_reproductions.budget.cases import FAMILY_NAMES, KS, STARTS
from foreplan_reproductions.budget.claims import (
    NEAR_START,
    SIMULATORS,
    RunRow,
    by_machines,
    held,
    run_rows,
    verdicts,
)
from foreplan_reproductions.budget.runs import (
    BEST,
    FAITHFUL,
    FROM_HBMCT,
    GAINS,
    LOSSES,
    STRATEGIES,
    careful,
)
from foreplan_reproductions.budget.tables import EVERY, Part, Tables
from foreplan_reproductions.budget.units import SWEEP_KS, Settings
from foreplan_reproductions.experiment import Circumstances, Summary
from foreplan_reproductions.reports import (
    claims_table,
    document,
    figure_of,
    plain,
    png_of,
    table,
    to_csv,
)


def summary(measured: Tables) -> Summary:
    """Average normalised differences on related and unrelated machines."""
    parts = by_machines(measured)
    rows = [[n, *(_three(part, n) for part in parts.values())] for n in (*LOSSES, *GAINS)]
    title = "Average normalised difference at k = .1 / .5 / .9"
    return Summary(title, ["", *(f"{way} machines" for way in parts)], rows)


def files(measured: Tables, how: Circumstances[Settings]) -> dict[str, str | bytes]:
    """All files: CSV, PNG and the report."""
    ways = list(run_rows(held(measured.runs)))
    best = [*(careful(name) for name in (*LOSSES, *GAINS)), BEST]
    return {
        "figure3.csv": to_csv(list(measured.figures.rows(_with_careful(LOSSES)))),
        "figure4.csv": to_csv(list(measured.figures.rows(_with_careful(FROM_HBMCT)))),
        "figure5.csv": to_csv(list(measured.figures.rows(_with_careful(GAINS)))),
        "unrelated.csv": to_csv(list(measured.beside.rows(FAITHFUL))),
        "figure6.csv": to_csv(list(measured.times())),
        "ours.csv": to_csv(list(measured.figures.rows(best))),
        "careful.csv": to_csv(list(measured.careful())),
        "sweep.csv": to_csv(list(measured.sweep_rows())),
        "runs.csv": to_csv(ways),
        "figure3.png": figure3(measured),
        "figure4.png": figure4(measured),
        "figure5.png": figure5(measured),
        "figure6.png": figure6(measured),
        "unrelated.png": unrelated(measured),
        "ours.png": ours(measured),
        "sweep.png": sweep(measured),
        "runs.png": runs(ways),
        "report.md": report(measured, how),
    }


def _with_careful(names: Sequence[str]) -> list[str]:
    return [*names, *(careful(name) for name in names)]


def report(measured: Tables, how: Circumstances[Settings]) -> str:
    """The whole report."""
    ahead = (
        "Ahead is where the 95% interval says so, over the DAGs, each with the mean of its "
        "budgets. A time is longer where the medians are, by 5%. A cell is a type of DAGs at a k. "
        f"Near the start is at least {NEAR_START:g}, over all types."
    )
    return document(
        "budget",
        [
            "LOSS and GAIN, reproduced",
            "Rizos Sakellariou, Henan Zhao, Eleni Tsiakkouri and Marios D. Dikaiakos, *Scheduling "
            "Workflows with Budget Constraints*: section 4 by foreplan.",
            _circumstances(measured, how),
        ],
        {
            "Related and unrelated machines": _machines(measured),
            "Verdicts": f"{claims_table(verdicts(measured), SIMULATORS)}\n\n{ahead}",
            "What the paper leaves open": f"![Sweep](sweep.png)\n\n{_sweep(measured)}",
            "Figures 3, 4 and 5: average normalised difference": _figures(measured.figures),
            "The same on unrelated machines": "![Unrelated](unrelated.png)\n\n"
            + _by_budget(measured.beside, FAITHFUL),
            "Figure 6: running time": _times(measured),
            "Ours: the defaults and best-affordable": _ours(measured),
            "Runs under a budget": _runs(measured),
        },
    )


def _circumstances(measured: Tables, how: Circumstances[Settings]) -> str:
    settings, part = how.settings, measured.figures
    left_out = ", ".join(
        f"{start.upper()} {sum(part.degenerate[family, start] for family in EVERY)}"
        for start in STARTS
    )
    return (
        f"{how.told()}: {part.plans:,} plans of "
        f"{settings.dags} DAGs of each type (the paper: 100), {settings.beside} of each on "
        f"unrelated machines, {settings.sweep} of each in the sweep, {settings.runs:,} DAGs run. "
        "Left out, as the start is no faster or no dearer than the cheapest assignment: "
        f"{left_out} of {sum(part.dags.values())}, and "
        f"{len(measured.runs) - len(held(measured.runs))} of the runs. Seed {settings.seed}; the "
        "same seed gives the same figures, but for running times."
    )


def _machines(measured: Tables) -> str:
    body = []
    for name in (*LOSSES, *GAINS):
        cells = [
            f"{mean.value:.2f} ± {mean.margin:.2f}"
            for part in by_machines(measured).values()
            for mean in (part.mean(name, EVERY, (k,)) for k in SWEEP_KS)
        ]
        body.append([name, *cells])
    header = ["", *(f"{way}, k = {k:g}" for way in by_machines(measured) for k in SWEEP_KS)]
    return (
        f"{table(header, body)}\n\nAverage normalised differences of the faithful variants (LOSS "
        "from HEFT) over all types, with half the 95% interval. The paper's figures are pictures, "
        "without numbers in its text. Related: speeds uniform in 1 .. 3, each cost off by up to "
        "30%, tasks alike, CCR 0.1 .. 1. Unrelated: each cost within a third of the task's mean, "
        "which is uniform in 0 .. 2 of the mean of all; CCR 1. Prices are uniform in 1 .. 10."
    )


def _figures(part: Part) -> str:
    parts = []
    for number, names in ((3, LOSSES), (4, FROM_HBMCT), (5, GAINS)):
        parts += [f"![Figure {number}](figure{number}.png)", _by_budget(part, names)]
    return "\n\n".join(parts)


def _by_budget(part: Part, names: Sequence[str]) -> str:
    body = [
        [FAMILY_NAMES[family], name, *(f"{value:.2f}" for value in means)]
        for family in EVERY
        for name in names
        for means in (part.values(name, (family,)).mean(axis=0),)
    ]
    return table(["", "", *(f"{k:g}" for k in KS)], body)


def _times(measured: Tables) -> str:
    body = []
    for name in (*FAITHFUL, BEST):
        times = [1000 * measured.figures.seconds(name, k) for k in KS]
        body.append([name, *(f"{t:.2f}" for t in times)])
    return (
        "![Figure 6](figure6.png)\n\nMedian processor time (ms) of a plan, FFT graphs, compiled, "
        "the start's plan included; the other types are in `figure6.csv`.\n\n"
        + table(["", *(f"{k:g}" for k in KS)], body)
    )


def _ours(measured: Tables) -> str:
    names = [*(careful(name) for name in (*LOSSES, *GAINS)), BEST]
    body = []
    for name in FAITHFUL:
        rows = [row for row in measured.careful() if row.variant == name]
        for family in FAMILY_NAMES.values():
            cells = [r for r in rows if r.dag == family]
            marks = {"better": "+", "alike": "", "worse": "behind"}
            shown = [f"{r.difference:+.3f} ± {r.margin:.3f} {marks[r.verdict]}" for r in cells]
            body.append([name, family, *shown])
    return (
        f"![Ours](ours.png)\n\n{_by_budget(measured.figures, names)}\n\nCareful less "
        "faithful, DAG by DAG, with half the 95% interval; + is better beyond chance, `behind` "
        "worse. How many DAGs were better, alike and worse is in `careful.csv`.\n\n"
        + table(["", "", *(f"{k:g}" for k in KS)], body)
    )


def _runs(measured: Tables) -> str:
    body = [_run_row(row) for row in run_rows(held(measured.runs))]
    header = [
        "strategy", "budget kept", "over", "", "mean", "median", "worst", "over all", "avoidable",
        "cost", "makespan", "new plans",
    ]  # fmt: skip
    return (
        "![Runs](runs.png)\n\n"
        + table(header, body)
        + "\n\nReal durations off the estimates by up to 30%, machines and links that vary by 30%, "
        "one machine that fails for good; the budget is midway between the cheapest assignment's "
        "cost and that of HEFT's plan. Over: runs that cost more than the budget, and by how much, "
        "in % of it; then the mean over all runs. Avoidable: of these, the runs in which the "
        "cheapest assignment all along would have kept the budget. Cost is in % of the budget, "
        "makespan in % of what the cheapest assignment was planned to take, both means of all."
    )


def _run_row(row: RunRow) -> list[str]:
    return [
        row.strategy, row.kept, f"{row.over} of {row.runs}", f"{row.over_percent:.1f}%",
        f"{row.mean:.1f}%", f"{row.median:.1f}%", f"{row.worst:.1f}%", f"{row.spent:.2f}%",
        str(row.avoidable),
        f"{row.cost:.1f}%", f"{row.makespan:.1f}%", f"{row.replans:.1f}",
    ]  # fmt: skip


# Colours that stay apart for colour-blind readers; marks and dashes for those who print in grey.
_COLOURS = ("#0072b2", "#d55e00", "#009e73")
_MARKS = ("o", "^", "s")
_FAINT: dict[str, Any] = {"linestyle": "--", "markerfacecolor": "white"}
_BEST: dict[str, Any] = {"color": "#000000", "marker": "d", "linestyle": "-"}

Style = dict[str, Any]


def figure3(measured: Tables) -> bytes:
    """LOSS from HEFT, as PNG."""
    return _panels_by_budget(measured, "Figure 3: LOSS from HEFT", LOSSES)


def figure4(measured: Tables) -> bytes:
    """LOSS from HBMCT, as PNG."""
    return _panels_by_budget(measured, "Figure 4: LOSS from HBMCT", FROM_HBMCT)


def figure5(measured: Tables) -> bytes:
    """GAIN, as PNG."""
    return _panels_by_budget(measured, "Figure 5: GAIN", GAINS)


def ours(measured: Tables) -> bytes:
    """The careful variants from HEFT and best-affordable, as PNG."""
    names = [careful(name) for name in (*LOSSES, *GAINS)]
    styles = {**_styles(names[:3], {}), **_styles(names[3:], _FAINT), BEST: _BEST}
    return _panels(measured.figures, "Ours: the defaults, and best-affordable", styles)


def unrelated(measured: Tables) -> bytes:
    """LOSS from HEFT and GAIN on unrelated machines, as PNG."""
    styles = {**_styles(LOSSES, {}), **_styles(GAINS, _FAINT)}
    return _panels(measured.beside, "Unrelated machines: LOSS from HEFT, GAIN", styles)


def _panels_by_budget(measured: Tables, title: str, names: Sequence[str]) -> bytes:
    """Faithful and careful by budget, one panel per type."""
    styles = {**_styles(names, {}), **_styles([careful(name) for name in names], _FAINT)}
    return _panels(measured.figures, title, styles)


def _styles(names: Sequence[str], more: Mapping[str, Any]) -> dict[str, Style]:
    return {
        name: {"color": colour, "marker": mark, "linestyle": "-", **more}
        for name, colour, mark in zip(names, _COLOURS, _MARKS, strict=True)
    }


def _panels(part: Part, title: str, styles: dict[str, Style]) -> bytes:
    title += ": average normalised difference by budget (1: the start's makespan)"
    legend = {name.replace(" from HBMCT", ""): style for name, style in styles.items()}
    with figure_of(title, (2, 2), legend) as (figure, panels):
        for family, axes in zip(EVERY, panels.flat, strict=True):
            for value in (0.0, 1.0):
                axes.axhline(value, color="#999999", linewidth=0.8, zorder=1)
            for name, style in styles.items():
                means = part.values(name, (family,)).mean(axis=0)
                axes.plot(KS, means, markersize=4.5, linewidth=1.3, **style)
            plain(axes, FAMILY_NAMES[family])
            axes.set_xticks(KS)
            axes.set_xlabel("k: 0 is the cheapest assignment's cost, 1 the start's", fontsize=8)
        return png_of(figure)


def figure6(measured: Tables) -> bytes:
    """The median running time on FFT graphs from both starts, as PNG."""
    styles = {**_styles(LOSSES, {}), **_styles(GAINS, _FAINT)}
    title = "Figure 6: processor time of a plan (ms, median), FFT graphs"
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
    """The ANDs at three budgets under each reading, as PNG."""
    styles = {**_styles(LOSSES, {"linestyle": "none"})}
    styles |= _styles(GAINS, {**_FAINT, "linestyle": "none"})
    readings = list(measured.sweep)
    title = "What the paper leaves open: average normalised difference by reading"
    with figure_of(title, (1, 3), styles) as (figure, panels):
        for number, axes in enumerate(panels.flat):
            k = next(iter(measured.sweep.values())).ks[number]
            for shift, name in enumerate((*LOSSES, *GAINS)):
                at = np.arange(len(readings)) + 0.1 * (shift - 2.5)
                values = [p.mean(name, ks=(k,)).value for p in measured.sweep.values()]
                axes.plot(np.clip(values, -1.0, 1.2), at, markersize=4.0, **styles[name])
            plain(axes, f"k = {k:g} (-1: or less)")
            labels = readings if number == 0 else [""] * len(readings)
            axes.set_yticks(np.arange(len(readings)), labels=labels)
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


def _sweep(measured: Tables) -> str:
    body = []
    for reading, part in measured.sweep.items():
        left_out = sum(part.degenerate[family, "heft"] for family in EVERY)
        cells = [_three(part, name) for name in (*LOSSES, *GAINS)]
        ahead = [part.ahead(*pair) for pair in zip(LOSSES, GAINS, strict=True)]
        differences = [f"{figure.value:+.2f} ± {figure.margin:.2f}" for figure in ahead]
        body.append([reading, *cells, *differences, str(left_out)])
    header = ["reading", *LOSSES, *GAINS, *(f"LOSS{v} - GAIN{v}" for v in (1, 2, 3)), "left out"]
    ks = " / ".join(f"{k:g}" for k in SWEEP_KS)
    return (
        f"One thing is changed at a time, on the first DAGs of each type. The AND at k = {ks}; "
        "then by how much LOSS is ahead of GAIN over these budgets. Means far below 0 come from "
        "DAGs on which HEFT is hardly faster than the cheapest assignment, by which the metric "
        f"divides; `sweep.csv` has the medians.\n\n{table(header, body)}"
    )


def _three(part: Part, name: str) -> str:
    return " / ".join(f"{part.mean(name, EVERY, (k,)).value:.2f}" for k in SWEEP_KS)
