"""The report of the IC experiments, as Markdown, and all their files."""

from __future__ import annotations

import math
import platform as machine
from pathlib import Path

from weft.experiments import ic_plots
from weft.experiments.ic_cases import FAMILIAR, name_of
from weft.experiments.ic_claims import BATCHED, GAME, VOLUNTEERS, verdicts
from weft.experiments.ic_other_claims import other_verdicts
from weft.experiments.ic_plays import HEURISTICS, ICO
from weft.experiments.ic_report_text import HOW, READING
from weft.experiments.ic_tables import FITTED, Tables
from weft.experiments.ic_units import Settings, units
from weft.experiments.ic_volunteer_claims import first_of, longer
from weft.experiments.ic_volunteer_tables import RunRow, against, makespan, usual, workflows
from weft.experiments.ic_volunteers import AWAY, CHANGES, CHURN, ERROR, SLOWEST, STRATEGIES
from weft.experiments.report_files import table, write_files
from weft.experiments.selective_claims import Verdict
from weft.experiments.selective_tables import to_csv
from weft.experiments.units import Circumstances

SCHEDULERS = (ICO, *HEURISTICS)


def write(folder: Path, measured: Tables, how: Circumstances[Settings]) -> list[Path]:
    """All files: CSV, PNG and the report; their paths."""
    content: dict[str, str | bytes] = {
        "areas.csv": to_csv(measured.areas),
        "fits.csv": to_csv(measured.fits),
        "phases.csv": to_csv(measured.phases),
        "others.csv": to_csv([line for row in measured.others for line in row.lines()]),
        "volunteers.csv": to_csv(measured.runs),
        "figure4.png": ic_plots.figure4(measured),
        "figure7.png": ic_plots.figure7(measured),
        "figure8.png": ic_plots.figure8(measured),
        "figure9.png": ic_plots.figure9(measured),
        "volunteers.png": ic_plots.volunteers(measured.runs),
        "report.md": report(measured, how),
    }
    return write_files(folder, content)


def report(measured: Tables, how: Circumstances[Settings]) -> str:
    """The whole report."""
    found = verdicts(measured)
    asked = {v.claim for v in other_verdicts(measured, GAME)}
    paper = [v for v in found if v.simulator != VOLUNTEERS and v.claim not in asked]
    parts = [
        "# IC-optimal scheduling, reproduced",
        _circumstances(how),
        "## What the paper says, and what we find",
        _verdicts(paper),
        "## What weft is to show",
        _verdicts([v for v in found if v not in paper]),
        "## Areas (Figures 4 to 7)",
        _areas(measured),
        "## Phases (Figures 8 and 9)",
        _phases(measured),
        "## Workflows and random dags",
        _others(measured),
        "## Volunteers",
        _volunteers(measured.runs, how.settings),
        "## How it was measured",
        _how(),
    ]
    return "\n\n".join(parts) + "\n"


def _how() -> str:
    mean = (1 + SLOWEST) / 2
    return HOW.format(
        churn=CHURN, error=ERROR, slowest=SLOWEST, changes=CHANGES, away=AWAY, mean=mean
    )


def _circumstances(how: Circumstances[Settings]) -> str:
    settings = how.settings
    what = "in full" if settings.full else "a sample"
    return (
        "Robert Hall, Arnold L. Rosenberg and Arun Venkataramani, *A Comparison of Dag-Scheduling "
        "Strategies for Internet-Based Computing*: sections 4 and 5 by weft.\n\n"
        f"`{how.command}` ({what}) took {how} "
        f"(Python {machine.python_version()}, {machine.machine()}): {len(units(settings))} units, "
        f"{settings.plays} plays of each heuristic on each dag, {settings.compositions} random "
        f"compositions of each kind. Seed {settings.seed}; the same seed gives the same figures."
    )


def _verdicts(found: list[Verdict]) -> str:
    places = {GAME: "area", BATCHED: "phases", VOLUNTEERS: "makespan"}
    rows = [[v.claim, f"**{v.word}**", places[v.simulator], v.figures] for v in found]
    return table(["claim", "verdict", "of the", "measured"], rows)


def _areas(measured: Tables) -> str:
    body = []
    for fit in measured.fits:
        margin = "" if math.isnan(fit.margin) else f" ± {fit.margin:.2f}"
        body.append(
            [name_of(fit.family), fit.heuristic.upper(), fit.through, str(fit.points),
             f"{fit.a:.3g}", f"{fit.b:.2f}{margin}", f"{fit.b_normalised:.2f}"]
        )  # fmt: skip
    header = ["dags", "heuristic", "fit through", "points", "a", "b", "b of the normalised"]
    none = [
        f"{name.upper()} on {name_of(family)}"
        for family in FAMILIAR
        for name in HEURISTICS
        if measured.fit(family, name, FITTED) is None
    ]
    equal = f" No difference at all: {', '.join(none)}." if none else ""
    pictures = "![Figure 4](figure4.png)\n\n![Figures 5 to 7](figure7.png)"
    return f"{READING}{equal}\n\n{table(header, body)}\n\n{pictures}"


def _phases(measured: Tables) -> str:
    means = sorted({row.mean for row in measured.phases})
    body = []
    for family in dict.fromkeys(row.family for row in measured.phases):
        for name in HEURISTICS:
            some = [r for r in measured.phases if (r.family, r.heuristic) == (family, name)]
            ratios = {m: [r.ratio for r in some if r.mean == m] for m in means}
            cells = [f"{sum(r) / len(r):.2f}" for r in ratios.values()]
            body.append([name_of(family), name.upper(), *cells])
    return (
        "Phase ratios T(heuristic) / T(ICO), means over the dags of a class, by the mean request "
        f"size; each dag is in `phases.csv`.\n\n{table(['', '', *map(str, means)], body)}\n\n"
        "![Figure 8](figure8.png)\n\n![Figure 9](figure9.png)"
    )


def _others(measured: Tables) -> str:
    body = []
    for row in measured.others:
        areas = [f"{row.schedulers[name][0]:.2f}" for name in SCHEDULERS]
        polls = [f"{row.schedulers[name][1]:.1f}" for name in SCHEDULERS]
        count = f"{row.optimal} of {row.dags}"
        body.append([row.dag, f"{row.vertices:.0f}", count, *areas, *polls])
    names = ["`ico`", *(name.upper() for name in HEURISTICS)]
    header = ["dag", "tasks", "ICO applies", *names, *(f"{name}, phases" for name in names)]
    return (
        "The mean number of ELIGIBLE tasks (normalised area), then the mean number of phases over "
        f"mean request sizes 2 .. 2^14.\n\n{table(header, body)}"
    )


def _volunteers(runs: list[RunRow], settings: Settings) -> str:
    body = []
    for workflow in workflows(runs):
        some = usual(runs, workflow)
        cells = [_cell(makespan(some, name).value) for name in STRATEGIES]
        body.append([name_of(workflow), str(some[0].tasks), *cells, first_of(some)])
    header = ["workflow", "tasks", *(f"`{name}`" for name in STRATEGIES), "least"]
    return (
        f"{settings.processors:,} volunteers, estimates off by a factor of up to {ERROR:g}; mean "
        "makespans in spans (what the run takes at the volunteers' mean speed if nobody idles, or "
        f"on the longest path). Least: within 1%.\n\n{table(header, body)}\n\n"
        "![Volunteers](volunteers.png)\n\nWhen does which win? How much longer than `ico` in the "
        f"same worlds, all workflows together:\n\n{_sweeps(runs)}"
    )


def _sweeps(runs: list[RunRow]) -> str:
    body = []
    for sweep, words in ic_plots.WORDS.items():
        for value, some in ic_plots.points(runs, sweep).items():
            found = [against(some, name, runs) for name in STRATEGIES[1:]]
            cells = [longer(figure) if figure.graphs else "" for figure in found]
            body.append([words, value, *cells])
    return table(["varied", "", *(f"`{name}`" for name in STRATEGIES[1:])], body)


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"
