"""The report of the AHEFT experiment: its files, tables and pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from foreplan_reproductions.aheft.cases import (
    APPLICATIONS,
    CCRS,
    KINDS,
    LEVELS,
    NEAR,
    NO_LEVELS,
    RANDOM,
    SHAPES,
    SIZES,
)
from foreplan_reproductions.aheft.claims import NAMES, PAIRS, PARAMETER_NAMES, SIMULATORS, verdicts
from foreplan_reproductions.aheft.runs import FIVE, OUTPUTS, Reading, paper_sample, run_loop
from foreplan_reproductions.aheft.tables import (
    ALL,
    AVERAGES,
    EVENTS,
    LETTER,
    PUBLISHED,
    Row,
    Tables,
)
from foreplan_reproductions.aheft.units import Settings, units
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes


TABLES = {  # of improvement, by the paper's numbers: (kinds, parameter)
    "table3": ((RANDOM,), "ccr"),
    "table4": ((RANDOM,), "size"),
    "table7": (APPLICATIONS, "size"),
    "table8": (APPLICATIONS, "ccr"),
}


def summary(measured: Tables) -> Summary:
    """Average makespans, published and ours."""
    rows = []
    for kind in KINDS:
        row, (heft, aheft, minmin) = measured.main_row(kind), AVERAGES[kind]
        last = [f"{minmin:.0f}", f"{row.minmin:.0f}"] if kind == RANDOM else ["", ""]
        rows.append(
            [NAMES[kind], f"{heft:.0f}", f"{row.heft:.0f}", f"{aheft:.0f}", f"{row.aheft:.0f}",
             f"{row.published:.1f}%", f"{row.improvement:.1f}%", *last]
        )  # fmt: skip
    header = ["", "HEFT", "ours", "AHEFT", "ours", "better by", "ours", "Min-Min", "ours"]
    return Summary("Average makespans, published and ours", header, rows)


def files(measured: Tables, how: Circumstances[Settings]) -> dict[str, str | bytes]:
    """All files: CSV, PNG and the report."""
    averages = [measured.main_row(kind) for kind in KINDS]
    panel_rows = [r for kind in APPLICATIONS for p in PANELS for r in measured.rows(kind, p)]
    readings = [r for r in measured.readings if r.parameter in (ALL, "ccr", "size")]
    return {
        "averages.csv": to_csv(averages, ("reading", "parameter", "value")),
        **{
            f"{name}.csv": to_csv(
                [r for kind in kinds for r in measured.rows(kind, parameter)], ("reading",)
            )
            for name, (kinds, parameter) in TABLES.items()
        },
        "table6.csv": to_csv(averages[1:], ("reading", "parameter", "value", "minmin")),
        "figure8.csv": to_csv(panel_rows, ("reading", "minmin", "published")),
        "random.csv": to_csv([r for r in measured.main if r.kind == RANDOM], ("reading", "kind")),
        "readings.csv": to_csv(readings),
        "figure8.png": figure8(measured, *PAIRS[0]),
        "figure8-jobs.png": figure8(measured, *PAIRS[1]),
        "improvements.png": improvements(measured),
        "report.md": report(measured, how),
    }  # fmt: skip


def report(measured: Tables, how: Circumstances[Settings]) -> str:
    """The whole report."""
    loop = (
        "*Event by event* are foreplan's own runs. *The paper's loop* is its Figure 2 with "
        "equations (1) to (3) as printed, on fewer cases (`readings.csv`)."
    )
    tables = ["![Improvement](improvements.png)", *(_improvement(measured, t) for t in TABLES)]
    return document(
        "aheft",
        [
            "AHEFT, reproduced",
            "Zhifeng Yu and Weisong Shi, *An Adaptive Rescheduling Strategy for Grid Workflow "
            "Applications*: section 4 by foreplan.",
            _circumstances(measured, how),
        ],
        {
            "Average makespans": _averages(measured),
            "Verdicts": f"{claims_table(verdicts(measured), SIMULATORS)}\n\n{loop}",
            "Readings of the paper": _all_readings(measured),
            "Figure 5: the sample": _figure5(),
            "Tables 3, 4, 7 and 8: improvement": "\n\n".join(tables),
            "Figure 8: makespans of BLAST and WIEN2K": _figure8(measured),
        },
    )


def _circumstances(measured: Tables, how: Circumstances[Settings]) -> str:
    settings, listed = how.settings, []
    every = [unit for unit in units(settings) if unit.part == "main"]
    for kind in KINDS:
        cases = sum(len(unit.models) for unit in every if unit.dag.kind == kind)
        listed.append(f"{NAMES[kind]}: {cases:,} cases, {measured.main_row(kind).dags:,} DAGs")
    per_type = "Every value of every parameter is met equally often. "
    if settings.full:
        counts = f"{settings.random} at random, {settings.applications} of each application"
        per_type = f"Instances per DAG type: {counts}. "
    return (
        f"{how.told('all types and resource models', 'an even sample')}. {'; '.join(listed)}. "
        f"{per_type}Seed {settings.seed}; the same seed gives the same figures."
    )


_V = (
    "Table 5's v is the number of parallel jobs of a step (*v-way*), as the text says, or of all "
    "jobs (*v jobs*)."
)


def _averages(measured: Tables) -> str:
    body = []
    for kind in KINDS:
        row, (heft, aheft, minmin) = measured.main_row(kind), AVERAGES[kind]
        body.append(
            [
                NAMES[kind], f"{heft:g}", f"{row.heft:.0f}", f"{aheft:g}", f"{row.aheft:.0f}",
                f"{row.published:.1f}%", f"{row.improvement:.1f}% ± {row.margin:.1f}",
                f"{row.mean_rate:.1f}%",
                *((f"{minmin:g}", f"{row.minmin:.0f}") if kind == RANDOM else ("", "")),
            ]
        )  # fmt: skip
    header = [
        "", "HEFT published", "ours", "AHEFT published", "ours", "improvement published", "ours",
        "mean of the cases' rates", "Min-Min published", "ours",
    ]  # fmt: skip
    return (
        f"{table(header, body)}\n\nThe applications' part is Table 6. {_V} An improvement is 1 - "
        "the ratio of the average makespans, as the published averages give it; the mean of the "
        "cases' own rates stands beside it. ± is half the 95% interval, by DAG."
    )


def _improvement(measured: Tables, name: str) -> str:
    kinds, parameter = TABLES[name]
    body = []
    for kind in kinds:
        ours, loop = measured.rows(kind, parameter), measured.rows(kind, parameter, LETTER)
        for what, cell in _COLUMNS.items():
            body.append([NAMES[kind], what, *(cell(row) for row in ours)])
        body.append([NAMES[kind], "the paper's loop", *(_measured(row) for row in loop)])
    values = [f"{row.value:g}" for row in measured.rows(kinds[0], parameter)]
    title = f"Table {name[-1]}: improvement by {PARAMETER_NAMES[parameter]}"
    return f"**{title}**\n\n{table(['', '', *values], body)}"


def _measured(row: Row) -> str:
    return f"{row.improvement:.1f}% ± {row.margin:.1f}"


_COLUMNS: dict[str, Callable[[Row], str]] = {
    "published": lambda row: f"{row.published:.1f}%",
    "ours": _measured,
    "ours, mean of rates": lambda row: f"{row.mean_rate:.1f}%",
}


def _figure5() -> str:
    """What each reading of equation (1) makes of the paper's sample."""
    body = []
    for outputs, words in OUTPUTS.items():
        first, last, _ = run_loop(*paper_sample(), Reading(outputs))
        body.append([words, f"{first:g}", f"{last:g}"])
    rows = table(["reading", "HEFT", "AHEFT"], [["published", "80", "76"], *body])
    return f"The DAG of Figure 4; r4 joins at 15. Makespans in the paper's loop:\n\n{rows}"


def _figure8(measured: Tables) -> str:
    pictures = "![Figure 8, v-way](figure8.png)\n\n![Figure 8, v jobs](figure8-jobs.png)"
    words = (
        "1 is BLAST, 2 is WIEN2K. The published panels are pictures without numbers; the claims "
        "about them are above."
    )
    return "\n\n".join([pictures, words, *(_panels(measured, *pair) for pair in PAIRS)])


def _panels(measured: Tables, first: str, second: str) -> str:
    body = [
        [
            f"({letter}) {PARAMETER_NAMES[parameter]}", f"{blast.value:g}",
            *(f"{value:.0f}" for value in (blast.heft, blast.aheft, wien.heft, wien.aheft)),
            f"{blast.improvement:.1f}%", f"{wien.improvement:.1f}%",
        ]
        for letter, parameter in zip("abcdef", PANELS, strict=True)
        for blast, wien in zip(
            measured.rows(first, parameter), measured.rows(second, parameter), strict=True
        )
    ]  # fmt: skip
    names = (NAMES[first], NAMES[second])
    return table(["panel", "value", "HEFT1", "AHEFT1", "HEFT2", "AHEFT2", *names], body)


PANELS = ("ccr", "beta", "size", "pool", "interval", "share")  # (a) to (f)
# Colours that stay apart for colour-blind readers; marks and dashes for those who print in grey.
LINES: dict[str, dict[str, Any]] = {
    "HEFT1": {"color": "#d55e00", "marker": "s", "linestyle": ":"},
    "AHEFT1": {"color": "#d55e00", "marker": "o", "linestyle": "-"},
    "HEFT2": {"color": "#0072b2", "marker": "s", "linestyle": ":"},
    "AHEFT2": {"color": "#0072b2", "marker": "o", "linestyle": "-"},
}
RATES: dict[str, dict[str, Any]] = {
    "published": {"color": "#000000", "marker": "d", "linestyle": "--"},
    "ours, event by event": {"color": "#0072b2", "marker": "o", "linestyle": "-"},
    "the paper's loop, as printed": {"color": "#d55e00", "marker": "^", "linestyle": "-"},
    "transfers to new machines free": {"color": "#009e73", "marker": "v", "linestyle": ":"},
}
FREE = "no levels|free to new"


def figure8(measured: Tables, first: str, second: str) -> bytes:
    """Average makespan of two applications against each of the six parameters, as PNG."""
    title = f"Average makespan (1: {NAMES[first]}; 2: {NAMES[second]}), event by event"
    with figure_of(title, (2, 3), LINES) as (figure, panels):
        for letter, parameter, axes in zip("abcdef", PANELS, panels.flat, strict=True):
            for number, kind in enumerate((first, second), 1):
                rows = measured.rows(kind, parameter)
                _line(axes, f"HEFT{number}", LINES, rows, [r.heft for r in rows])
                _line(axes, f"AHEFT{number}", LINES, rows, [r.aheft for r in rows])
            _labelled(axes, f"({letter}) {PARAMETER_NAMES[parameter]}", rows)
            axes.set_ylim(bottom=0)
        panels[0, 0].set_ylabel("average makespan", fontsize=9)
        panels[1, 0].set_ylabel("average makespan", fontsize=9)
        return png_of(figure)


def improvements(measured: Tables) -> bytes:
    """Tables 3, 4, 7 and 8: improvement by job number and CCR, published and ours, as PNG."""
    title = "Improvement of AHEFT over HEFT in %, bars: 95%"
    with figure_of(title, (2, len(KINDS)), RATES) as (figure, panels):
        for column, kind in enumerate(KINDS):
            for line, parameter in enumerate(("size", "ccr")):
                axes = panels[line, column]
                _rates(axes, measured, kind, parameter)
                name = "v" if parameter == "size" else "CCR"
                _labelled(axes, f"{NAMES[kind]}: {name}", measured.rows(kind, parameter))
        return png_of(figure)


def _rates(axes: Axes, measured: Tables, kind: str, parameter: str) -> None:
    ours = measured.rows(kind, parameter)
    published, *readings = RATES
    _line(axes, published, RATES, ours, [r.published for r in ours])
    for name, reading in zip(readings, (EVENTS, LETTER, FREE), strict=True):
        rows = measured.rows(kind, parameter, reading)
        _line(axes, name, RATES, rows, [r.improvement for r in rows])
        bars = np.nan_to_num([r.margin for r in rows])
        heights = [r.improvement for r in rows]
        colour = RATES[name]["color"]
        axes.errorbar(range(len(rows)), heights, bars, fmt="none", ecolor=colour, elinewidth=0.8)
    top = max(r.improvement + r.margin for r in [*ours, *measured.rows(kind, parameter, LETTER)])
    axes.set_ylim(0, 1.15 * max(top, *(r.published for r in ours)) + 0.1)


def _line(
    axes: Axes, name: str, styles: dict[str, dict[str, Any]], rows: list[Row], values: list[float]
) -> None:
    axes.plot(range(len(rows)), values, label=name, markersize=4.5, linewidth=1.3, **styles[name])


def _labelled(axes: Axes, title: str, rows: list[Row]) -> None:
    plain(axes, title)
    axes.set_xticks(range(len(rows)), labels=[f"{row.value:g}" for row in rows])


READINGS = {
    "aheft": "ours: event by event, transfers paid",
    "one plan": "the same, but the second plan is not weighed",
    "best of five": f"no new plans: the best of {', '.join(FIVE)} at time 0",
    "letter": "loop, case 2 of (1) as printed: clock + c",
    "append": "the same, and no insertion, as in (2)",
    "append, none join": "the same, but none that joins is used",
    "free to new": "loop, transfers to new machines free",
    "free": "loop, transfers free",
}
SHAPE_NAMES = {
    NO_LEVELS: "no levels",
    NEAR: "no levels, successors near",
    LEVELS: "levels",
}


def _all_readings(measured: Tables) -> str:
    """The readings side by side, as tables."""
    parts = [_WHAT]
    for kind in KINDS:
        parts += [f"**{NAMES[kind]}**, improvement in %:", _readings(measured, kind)]
    return "\n\n".join(parts)


def _readings(measured: Tables, kind: str) -> str:
    sizes = SIZES[kind]
    header = ["DAGs", "reading", "HEFT", "all", "longer"]
    header += [*(f"CCR {c:g}" for c in CCRS), *map(str, sizes)]
    rows = [_published(kind)]
    for shape in SHAPES if kind == RANDOM else (NO_LEVELS,):
        for name, words in READINGS.items():
            reading = f"{shape}|{name}"
            [average] = [r for r in measured.readings if _is(r, reading, kind, ALL)]
            cells = [f"{average.heft:.0f}", f"{average.improvement:.1f} ± {average.margin:.1f}"]
            cells.append(f"{average.worse} of {average.cases}")
            for parameter in ("ccr", "size"):
                found = [r for r in measured.readings if _is(r, reading, kind, parameter)]
                cells += [f"{r.improvement:.1f}" for r in found]
            rows.append([SHAPE_NAMES[shape] if kind == RANDOM else "", words, *cells])
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _published(kind: str) -> list[str]:
    rates = [f"{PUBLISHED[kind, ALL][0.0]:.1f}"]
    for parameter in ("ccr", "size"):
        rates += [f"{rate:.1f}" for rate in PUBLISHED[kind, parameter].values()]
    return ["", "published", "", rates[0], "", *rates[1:]]


def _is(row: Row, reading: str, kind: str, parameter: str) -> bool:
    return (row.reading, row.kind, row.parameter) == (reading, kind, parameter)


_WHAT = """\
The readings of the paper, each on the same cases: fewer than those of the main part, so the
intervals are wider. The loop of the paper's Figure 2 is made of plans alone. Told that data sent
under the old plan arrive when they arrive, it gives foreplan's own figures without the second plan
(a test says so), hence nothing depends on the simulator. *longer* are the cases that end later than
HEFT's. The last columns are by CCR and by v."""
