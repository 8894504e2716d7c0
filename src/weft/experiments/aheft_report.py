"""The report of the AHEFT experiment, as Markdown, and all its files."""

from __future__ import annotations

import platform as machine
from collections.abc import Callable
from pathlib import Path

from weft.experiments import aheft_plots
from weft.experiments.aheft import Settings, units
from weft.experiments.aheft_cases import APPLICATIONS, BLAST, KINDS, MEAN_COST, RANDOM, WIEN2K
from weft.experiments.aheft_claims import NAMES, PARAMETER_NAMES, SIMULATORS, verdicts
from weft.experiments.aheft_tables import ALL, AVERAGES, LETTER, Row, Tables
from weft.experiments.aheft_why import HOW, why
from weft.experiments.report_files import table, write_files
from weft.experiments.selective_tables import to_csv
from weft.experiments.units import Circumstances

TABLES = {  # of improvement, by the paper's numbers: (kinds, parameter)
    "table3": ((RANDOM,), "ccr"),
    "table4": ((RANDOM,), "size"),
    "table7": (APPLICATIONS, "size"),
    "table8": (APPLICATIONS, "ccr"),
}


def write(folder: Path, measured: Tables, how: Circumstances[Settings]) -> list[Path]:
    """All files: CSV, PNG and the report; their paths."""
    averages = [measured.main_row(kind) for kind in KINDS]
    figure8 = [
        r for kind in APPLICATIONS for p in aheft_plots.PANELS for r in measured.rows(kind, p)
    ]
    readings = [r for r in measured.readings if r.parameter in (ALL, "ccr", "size")]
    content: dict[str, str | bytes] = {
        "averages.csv": to_csv(averages, ("reading", "parameter", "value")),
        **{
            f"{name}.csv": to_csv(
                [r for kind in kinds for r in measured.rows(kind, parameter)], ("reading",)
            )
            for name, (kinds, parameter) in TABLES.items()
        },
        "table6.csv": to_csv(averages[1:], ("reading", "parameter", "value", "minmin")),
        "figure8.csv": to_csv(figure8, ("reading", "minmin", "published")),
        "random.csv": to_csv([r for r in measured.main if r.kind == RANDOM], ("reading", "kind")),
        "readings.csv": to_csv(readings),
        "figure8.png": aheft_plots.figure8(measured),
        "improvements.png": aheft_plots.improvements(measured),
        "report.md": report(measured, how),
    }  # fmt: skip
    return write_files(folder, content)


def report(measured: Tables, how: Circumstances[Settings]) -> str:
    """The whole report."""
    parts = [
        "# AHEFT, reproduced",
        _circumstances(measured, how),
        "## Average makespans",
        _averages(measured),
        "## Verdicts",
        _verdicts(measured),
        "## Where it differs, and why",
        why(measured),
        "## Tables 3, 4, 7 and 8: improvement",
        "![Improvement](improvements.png)",
        *(_improvement(measured, name) for name in TABLES),
        "## Figure 8: makespans of BLAST and WIEN2K",
        _figure8(measured),
        "## How it was measured",
        f"{HOW}\n{_mean_costs(measured)}",
    ]
    return "\n\n".join(parts) + "\n"


def _circumstances(measured: Tables, how: Circumstances[Settings]) -> str:
    settings = how.settings
    every = units(settings)
    cases = {
        kind: sum(len(u.models) for u in every if u.part == "main" and u.dag.kind == kind)
        for kind in KINDS
    }
    dags = {kind: measured.main_row(kind).dags for kind in KINDS}
    what = "all types and resource models" if settings.full else "an even sample"
    listed = "; ".join(
        f"{NAMES[kind]}: {cases[kind]:,} cases, {dags[kind]:,} DAGs" for kind in KINDS
    )
    per_type = "Every value of every parameter is met equally often. "
    if settings.full:
        counts = f"{settings.random} at random, {settings.applications} of each application"
        per_type = f"Instances per DAG type: {counts}. "
    return (
        "Zhifeng Yu and Weisong Shi, *An Adaptive Rescheduling Strategy for Grid Workflow "
        "Applications*: section 4 by weft.\n\n"
        f"`{how.command}` ({what}) took {how} "
        f"(Python {machine.python_version()}, {machine.machine()}). {listed}. {per_type}"
        f"Seed {settings.seed}; the same seed gives the same figures."
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
        f"{table(header, body)}\n\nThe applications' part is Table 6. An improvement is 1 - the "
        "ratio of the average makespans, as the published averages give it; the mean of the cases' "
        "own rates stands beside it. ± is half the 95% interval, by DAG."
    )


def _verdicts(measured: Tables) -> str:
    rows = [
        [v.claim, SIMULATORS[v.simulator], f"**{v.word}**", v.figures] for v in verdicts(measured)
    ]
    return (
        table(["claim", "simulated", "verdict", "figures"], rows)
        + "\n\n*Event by event* are weft's own runs. *The paper's loop* is its Figure 2 with "
        "equations (1) to (3) as printed, on fewer cases (`readings.csv`)."
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


def _figure8(measured: Tables) -> str:
    body = [
        [
            f"({letter}) {PARAMETER_NAMES[parameter]}", f"{blast.value:g}",
            *(f"{value:.0f}" for value in (blast.heft, blast.aheft, wien.heft, wien.aheft)),
            f"{blast.improvement:.1f}%", f"{wien.improvement:.1f}%",
        ]
        for letter, parameter in zip("abcdef", aheft_plots.PANELS, strict=True)
        for blast, wien in zip(
            measured.rows(BLAST, parameter), measured.rows(WIEN2K, parameter), strict=True
        )
    ]  # fmt: skip
    header = ["panel", "value", "HEFT1", "AHEFT1", "HEFT2", "AHEFT2", "BLAST", "WIEN2K"]
    return (
        "![Figure 8](figure8.png)\n\n1 is BLAST, 2 is WIEN2K. The published panels are pictures "
        f"without numbers; the claims about them are above.\n\n{table(header, body)}"
    )


def _mean_costs(measured: Tables) -> str:
    given = ", ".join(
        f"{MEAN_COST[kind]:g} for {NAMES[kind]} (HEFT {measured.main_row(kind).heft:.0f}, "
        f"published {AVERAGES[kind][0]:g})"
        for kind in KINDS
    )
    return (
        "- **Mean job cost**: not in the paper. A makespan of HEFT is proportional to it, so one "
        "run of HEFT over all types (3 or 4 instances of each, another seed) gave it: "
        f"{given}."
    )
