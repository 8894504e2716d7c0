"""The report of the budget experiment, as Markdown, and all its files."""

from __future__ import annotations

import platform as machine
from collections.abc import Sequence
from pathlib import Path

from weft.experiments import budget_plots
from weft.experiments.budget import COMPARED, SWEEP_KS, Settings
from weft.experiments.budget_cases import FAMILY_NAMES, KS, STARTS
from weft.experiments.budget_claims import SIMULATORS, verdicts
from weft.experiments.budget_plans import BEST, FAITHFUL, FROM_HBMCT, GAINS, LOSSES, careful
from weft.experiments.budget_run_tables import RunRow, held, run_rows
from weft.experiments.budget_tables import EVERY, INDEPENDENT, Tables
from weft.experiments.budget_why import HOW, why
from weft.experiments.report_files import table, write_files
from weft.experiments.selective_tables import to_csv
from weft.experiments.units import Circumstances


def write(folder: Path, measured: Tables, how: Circumstances[Settings]) -> list[Path]:
    """All files: CSV, PNG and the report; their paths."""
    runs = list(run_rows(held(measured.runs)))
    best = [*(careful(name) for name in (*LOSSES, *GAINS)), BEST]
    content: dict[str, str | bytes] = {
        "figure3.csv": to_csv(list(measured.rows(_with_careful(LOSSES)))),
        "figure4.csv": to_csv(list(measured.rows(_with_careful(FROM_HBMCT)))),
        "figure5.csv": to_csv(list(measured.rows(_with_careful(GAINS)))),
        "figure6.csv": to_csv(list(measured.times())),
        "ours.csv": to_csv(list(measured.rows(best))),
        "careful.csv": to_csv(list(measured.careful())),
        "sweep.csv": to_csv(list(measured.sweep_rows())),
        "runs.csv": to_csv(runs),
        "figure3.png": budget_plots.figure3(measured),
        "figure4.png": budget_plots.figure4(measured),
        "figure5.png": budget_plots.figure5(measured),
        "figure6.png": budget_plots.figure6(measured),
        "ours.png": budget_plots.ours(measured),
        "sweep.png": budget_plots.sweep(measured),
        "runs.png": budget_plots.runs(runs),
        "report.md": report(measured, how),
    }
    return write_files(folder, content)


def _with_careful(names: Sequence[str]) -> list[str]:
    return [*names, *(careful(name) for name in names)]


def report(measured: Tables, how: Circumstances[Settings]) -> str:
    """The whole report."""
    parts = [
        "# LOSS and GAIN, reproduced",
        _circumstances(measured, how),
        "## Independent figures and ours",
        _independent(measured),
        "## Verdicts",
        _verdicts(measured),
        "## What decides it",
        why(measured),
        "## Figures 3, 4 and 5: average normalised difference",
        _figures(measured),
        "## Figure 6: running time",
        _times(measured),
        "## Ours: the defaults and best-affordable",
        _ours(measured),
        "## Runs under a budget",
        _runs(measured),
        "## How it was measured",
        HOW,
    ]
    return "\n\n".join(parts) + "\n"


def _circumstances(measured: Tables, how: Circumstances[Settings]) -> str:
    settings, part = how.settings, measured.figures
    left_out = ", ".join(
        f"{start.upper()} {sum(part.degenerate[family, start] for family in EVERY)}"
        for start in STARTS
    )
    return (
        "Rizos Sakellariou, Henan Zhao, Eleni Tsiakkouri and Marios D. Dikaiakos, *Scheduling "
        "Workflows with Budget Constraints*: section 4 by weft.\n\n"
        f"`{how.command}` ({'in full' if settings.full else 'a sample'}) took {how} "
        f"(Python {machine.python_version()}, {machine.machine()}): {part.plans:,} plans of "
        f"{settings.dags} DAGs of each type (the paper: 100), {settings.sweep} of each in the "
        f"sweep, {settings.runs:,} DAGs run. Left out, as the start is no faster or no dearer than "
        f"the cheapest assignment: {left_out} of {sum(part.dags.values())}, and "
        f"{len(measured.runs) - len(held(measured.runs))} of the runs. Seed {settings.seed}; the "
        "same seed gives the same figures, but for running times."
    )


def _independent(measured: Tables) -> str:
    body = []
    for name, all_wanted in INDEPENDENT.items():
        cells = []
        for k, wanted in zip(SWEEP_KS, all_wanted, strict=True):
            mean = measured.figures.mean(name, COMPARED, (k,))
            cells += [f"{wanted:.2f}", f"{mean.value:.2f} ± {mean.margin:.2f}"]
            cells.append(f"{mean.value - wanted:+.2f}")
        body.append([name, *cells])
    header = [""]
    for k in SWEEP_KS:
        header += [f"k = {k:g}", "ours", "difference"]
    return (
        f"{table(header, body)}\n\nAverage normalised differences of the faithful variants (LOSS "
        "from HEFT) over FFT, fork-join and Laplace; the independent ones are from small runs of "
        "another implementation. The paper's figures are pictures, without numbers in its text."
    )


def _verdicts(measured: Tables) -> str:
    rows = [
        [v.claim, SIMULATORS[v.simulator], f"**{v.word}**", v.figures] for v in verdicts(measured)
    ]
    return (
        table(["claim", "of", "verdict", "figures"], rows)
        + "\n\nAhead is where the 95% interval says so, over the DAGs, each with the mean of its "
        "budgets. A time is longer where the medians are, by 5%. A cell is a type of DAGs at a k."
    )


def _figures(measured: Tables) -> str:
    parts = []
    for number, names in ((3, LOSSES), (4, FROM_HBMCT), (5, GAINS)):
        parts += [f"![Figure {number}](figure{number}.png)", _by_budget(measured, names)]
    return "\n\n".join(parts)


def _by_budget(measured: Tables, names: Sequence[str]) -> str:
    body = [
        [FAMILY_NAMES[family], name, *(f"{value:.2f}" for value in means)]
        for family in EVERY
        for name in names
        for means in (measured.figures.values(name, (family,)).mean(axis=0),)
    ]
    return table(["", "", *(f"{k:g}" for k in KS)], body)


def _times(measured: Tables) -> str:
    body = []
    for name in (*FAITHFUL, BEST):
        times = [1000 * measured.figures.seconds(name, k) for k in KS]
        body.append([name, *(f"{t:.2f}" for t in times)])
    return (
        "![Figure 6](figure6.png)\n\nMedian milliseconds of a plan on FFT graphs, compiled, the "
        "start's plan included; the other types are in `figure6.csv`.\n\n"
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
        f"![Ours](ours.png)\n\n{_by_budget(measured, names)}\n\nCareful less faithful, DAG by DAG, "
        "with half the 95% interval; + is better beyond chance, `behind` worse. How many DAGs were "
        "better, alike and worse is in `careful.csv`.\n\n"
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
