"""The report of the IC experiments: their files, tables and pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from foreplan_reproductions.experiment import Circumstances, Summary
from foreplan_reproductions.ic.cases import COMPOSED, EVOLVING, FAMILIAR, FFT, REDUCTION, name_of
from foreplan_reproductions.ic.claims import (
    FEW,
    GAME,
    PUBLISHED_A,
    PUBLISHED_B,
    SIMULATORS,
    VOLUNTEERS,
    longer,
    other_verdicts,
    shown_fit,
    verdicts,
)
from foreplan_reproductions.ic.plays import BLOCKS, FIFO, GREEDY, HEURISTICS, HOPS, ICO, KNOWN, LIFO
from foreplan_reproductions.ic.tables import (
    FITTED,
    HULL,
    PER_LEVEL,
    PhaseRow,
    RunRow,
    Tables,
    against,
    levels,
    usual,
    workflows,
)
from foreplan_reproductions.ic.units import Settings, units
from foreplan_reproductions.ic.volunteers import (
    ERROR,
    MIN_MIN,
    STATIC,
    STRATEGIES,
    UNKNOWN,
    application,
)
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


SCHEDULERS = (ICO, *KNOWN)


def summary(measured: Tables) -> Summary:
    """The curves through the differences of areas."""
    rows = [
        [name_of(fit.family), fit.heuristic.upper(), fit.through, shown_fit(fit)]
        for fit in measured.fits
    ]
    title = "ICO's area less that of the heuristics, a v^b"
    return Summary(title, ["dags", "heuristic", "fit through", "curve"], rows, texts=3)


def files(measured: Tables, how: Circumstances[Settings]) -> dict[str, str | bytes]:
    """All files: CSV, PNG and the report."""
    return {
        "areas.csv": to_csv(measured.areas),
        "fits.csv": to_csv(measured.fits),
        "phases.csv": to_csv(measured.phases),
        "readings.csv": to_csv(measured.readings),
        "others.csv": to_csv([line for row in measured.others for line in row.lines()]),
        "volunteers.csv": to_csv(measured.runs),
        "figure4.png": figure4(measured),
        "figure7.png": figure7(measured),
        "figure8.png": figure8(measured),
        "figure9.png": figure9(measured),
        "volunteers.png": volunteers(measured.runs),
        "report.md": report(measured, how),
    }


def report(measured: Tables, how: Circumstances[Settings]) -> str:
    """The whole report."""
    settings, found = how.settings, verdicts(measured)
    asked = {v.claim for v in other_verdicts(measured, GAME)}
    paper = [v for v in found if v.simulator != VOLUNTEERS and v.claim not in asked]
    return document(
        "ic",
        [
            "IC-optimal scheduling, reproduced",
            "Robert Hall, Arnold L. Rosenberg and Arun Venkataramani, *A Comparison of "
            "Dag-Scheduling Strategies for Internet-Based Computing*: sections 4 and 5 by "
            "foreplan.",
            f"{how.told()}: {len(units(settings))} units, {settings.plays} plays of each heuristic "
            f"on each dag, {settings.compositions} random compositions of each kind. Seed "
            f"{settings.seed}; the same seed gives the same figures.",
        ],
        {
            "What the paper says, and what we find": claims_table(paper, SIMULATORS),
            "What foreplan is to show": claims_table(
                [v for v in found if v not in paper], SIMULATORS
            ),
            "Areas (Figures 4 to 7)": _areas(measured),
            "Phases (Figures 8 and 9)": _phases(measured),
            "Other readings": _readings(measured),
            "Workflows and random dags": _others(measured),
            "Volunteers": _volunteers(measured.runs, settings),
        },
    )


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
    equal = f"\n\nNo difference at all: {', '.join(none)}." if none else ""
    pictures = "![Figure 4](figure4.png)\n\n![Figures 5 to 7](figure7.png)"
    return f"{table(header, body)}{equal}\n\n{pictures}"


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


def _readings(measured: Tables) -> str:
    """What comes out if the paper is read in other ways."""
    body = []
    for name, a in PUBLISHED_A.items():
        fit = measured.fit(FFT, name, PER_LEVEL)
        if fit is not None:
            v, y = measured.points(FFT, name)
            at = float(y[-1] / levels(v)[-1] / v[-1] ** PUBLISHED_B)
            body.append([name.upper(), f"{a:g} v^{PUBLISHED_B}", shown_fit(fit), f"{at:.2g}"])
    header = ["", "published", "per level", f"a at the largest, b = {PUBLISHED_B}"]
    per_level = table(header, body)
    rows = dict[tuple[str, float], list[str]]()
    for row in measured.readings:
        most = BLOCKS.get(row.family)
        blocks = name_of(row.family) + (f", a up to {most.a}, d up to {most.d}" if most else "")
        head = [blocks, f"{row.merged:.0%}", f"{row.sources:.0f}"]
        cells = rows.setdefault((row.family, row.merged), head)
        cells.append(f"{row.behind:.1f} ± {row.margin:.1f}")
    names = ["FIFO", "LIFO", "GREEDY", "FIFO, its sinks put last"]
    merged = table(["blocks", "merged, at least", "sources", *names], list(rows.values()))
    return (
        f"FFT: the areas' difference over the number of levels.\n\n{per_level}\n\nCompositions of "
        "2,000 vertices if at least such a share is merged of the sinks and sources that could be "
        "(elsewhere: any number): below ICO's area by, in %, "
        f"{measured.readings[0].dags} dags.\n\n{merged}"
    )


def _others(measured: Tables) -> str:
    body = []
    for row in measured.others:
        areas = [f"{row.schedulers[name][0]:.2f}" for name in SCHEDULERS]
        polls = [f"{row.schedulers[name][1]:.1f}" for name in SCHEDULERS]
        count = f"{row.optimal} of {row.dags}"
        body.append([row.dag, f"{row.vertices:.0f}", count, *areas, *polls])
    names = [f"`{name}`" for name in SCHEDULERS]
    header = ["dag", "tasks", "ICO applies", *names, *(f"{name}, phases" for name in names)]
    return (
        "The mean number of ELIGIBLE tasks (normalised area), then the mean number of phases over "
        f"mean request sizes 2 .. 2^14.\n\n{table(header, body)}"
    )


def _volunteers(runs: list[RunRow], settings: Settings) -> str:
    body = []
    for workflow in workflows(runs):
        some = usual(runs, workflow)
        mine = [run.makespan for run in some if run.strategy == ICO]
        head = [name_of(workflow), str(some[0].tasks), str(len(mine)), f"{np.mean(mine):.2f}"]
        body.append([*head, *_against(some, runs)])
    body.append(["all, each alike", "", "", "", *_against(usual(runs), runs)])
    others = [f"`{name}`" for name in STRATEGIES[1:]]
    return (
        f"{settings.processors:,} volunteers, estimates off by a factor of up to {ERROR:g}; the "
        "mean makespan of `ico` in spans (what the run takes at the volunteers' mean speed if "
        "nobody idles, or on the longest path), then how much longer the others take in the same "
        f"worlds.\n\n{table(['workflow', 'tasks', 'worlds', '`ico`', *others], body)}\n\n"
        "![Volunteers](volunteers.png)\n\nWhen does which win? How much longer than `ico` in the "
        f"same worlds, each workflow alike:\n\n{_sweeps(runs)}"
    )


def _against(some: Sequence[RunRow], runs: Sequence[RunRow]) -> list[str]:
    """How much longer than `ico` each of the others takes."""
    found = [against(some, name, runs) for name in STRATEGIES[1:]]
    return [longer(figure) if figure.graphs else "" for figure in found]


def _sweeps(runs: list[RunRow]) -> str:
    body = []
    for sweep, words in WORDS.items():
        for value, some in points(runs, sweep).items():
            body.append([words, value, *_against(some, runs)])
    return table(["varied", "", *(f"`{name}`" for name in STRATEGIES[1:])], body)


# Colours that stay apart for colour-blind readers; marks and dashes for those who print in grey.
STYLES: dict[str, dict[str, Any]] = {
    FIFO: {"color": "#0072b2", "marker": "o", "linestyle": "-"},
    LIFO: {"color": "#d55e00", "marker": "^", "linestyle": "--"},
    GREEDY: {"color": "#009e73", "marker": "s", "linestyle": "-."},
    HOPS: {"color": "#e69f00", "marker": "v", "linestyle": "-"},
    MIN_MIN: {"color": "#cc79a7", "marker": "d", "linestyle": ":"},
    STATIC: {"color": "#000000", "marker": "x", "linestyle": ":"},
}
THREE = {name.upper(): STYLES[name] for name in HEURISTICS}
OTHERS = {name: STYLES[name] for name in STRATEGIES if name != ICO}


def figure4(measured: Tables) -> bytes:
    """Differences of areas on familiar dags, with the curves through them, as PNG."""
    title = "Figure 4: ICO's area less that of a heuristic, by vertices; bars: 95%, curves: a v^b"
    with figure_of(title, (2, 3), THREE) as (figure, panels):
        for axes in panels.flat[len(FAMILIAR) :]:
            axes.set_visible(False)
        for family, axes in zip(FAMILIAR, panels.flat, strict=False):
            _area_marks(axes, measured, family, HULL)
            for name in HEURISTICS:
                _curve(axes, measured, family, name, FITTED)
            _logarithmic(axes)
            plain(axes, name_of(family))
        return png_of(figure)


def figure7(measured: Tables) -> bytes:
    """The same on random compositions, with lower hulls: Figures 5, 6 and 7, as PNG."""
    title = "Figures 5 to 7: ICO's area less that of a heuristic; lines: lower hull, curves: a v^b"
    with figure_of(title, (2, 2), THREE) as (figure, panels):
        for family, axes in zip(COMPOSED, panels.flat, strict=True):
            _area_marks(axes, measured, family, FITTED)
            for name in HEURISTICS:
                axes.plot(*measured.hull(family, name), color=STYLES[name]["color"], linewidth=0.8)
                _curve(axes, measured, family, name, HULL)
            _logarithmic(axes)
            plain(axes, f"compositions of {name_of(family)}")
        return png_of(figure)


def _area_marks(axes: Axes, measured: Tables, family: str, through: str) -> None:
    """A mark per dag, faint where a hull is drawn beside them."""
    faint = 0.35 if through == FITTED else 1.0
    for name in HEURISTICS:
        rows = [r for r in measured.areas if (r.family, r.heuristic) == (family, name)]
        rows = [row for row in rows if row.difference > 0]  # the scale is logarithmic
        style = {key: STYLES[name][key] for key in ("color", "marker")}
        at, values = [row.vertices for row in rows], [row.difference for row in rows]
        axes.plot(at, values, linestyle="none", markersize=3.5, alpha=faint, **style)
        if through != FITTED:
            bars = [min(row.margin, 0.99 * row.difference) for row in rows]
            axes.errorbar(at, values, bars, fmt="none", ecolor=style["color"], elinewidth=0.8)


def _curve(axes: Axes, measured: Tables, family: str, name: str, through: str) -> None:
    fit = measured.fit(family, name, through)
    v, _ = measured.points(family, name)
    if fit is not None and fit.a > 0:
        at = np.geomspace(v.min(), v.max(), 60)
        style = {key: STYLES[name][key] for key in ("color", "linestyle")}
        axes.plot(at, fit.a * at**fit.b, linewidth=1.2, **style)


def _logarithmic(axes: Axes) -> None:
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    decades = (10.0, 100.0, 1000.0, 10_000.0)
    ticks = [k * d for d in decades for k in (1, 2, 5) if low <= k * d <= high]
    axes.set_xticks(ticks, labels=[f"{tick:.0f}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_yscale("log" if axes.lines and axes.dataLim.y1 > 0 else "linear")


def figure8(measured: Tables) -> bytes:
    """Phase ratios on the smallest and the largest of each familiar class, as PNG."""
    return _ratios(measured.phases, "Figure 8", (REDUCTION, EVOLVING, FFT))


def figure9(measured: Tables) -> bytes:
    """The same on random compositions."""
    return _ratios(measured.phases, "Figure 9", COMPOSED)


def _ratios(rows: Sequence[PhaseRow], which: str, families: Sequence[str]) -> bytes:
    title = f"{which}: phases of a heuristic over those of ICO, by mean request size; bars: 95%"
    with figure_of(title, (2, len(families)), THREE) as (figure, panels):
        for column, family in enumerate(families):
            some = [row for row in rows if row.family == family]
            least, most = (pick(some, key=lambda row: row.vertices).dag for pick in (min, max))
            for dag, axes in zip((least, most), panels[:, column], strict=True):
                shown = [row for row in some if row.dag == dag]
                _ratio(axes, shown)
                plain(axes, f"{name_of(family)}, {shown[0].vertices} vertices")
        return png_of(figure)


def _ratio(axes: Axes, rows: Sequence[PhaseRow]) -> None:
    axes.axhline(1.0, color="#999999", linewidth=0.8, zorder=1)
    for name in HEURISTICS:
        some = [row for row in rows if row.heuristic == name]
        at, values = [row.mean for row in some], [row.ratio for row in some]
        axes.plot(at, values, markersize=3.5, linewidth=1.2, **STYLES[name])
        bars = [row.margin for row in some]
        axes.errorbar(at, values, bars, fmt="none", ecolor=STYLES[name]["color"], elinewidth=0.8)
    axes.set_xscale("log", base=2)


def volunteers(runs: Sequence[RunRow]) -> bytes:
    """How much longer than `ico` each strategy takes: by workflow, and what changes it."""
    title = f"Among volunteers: how much longer than `ico` (%); bars: 95%, of {FEW} worlds or more"
    common = [run for run in runs if run.sweep != ""] + usual(runs)
    with figure_of(title, (2, 3), OTHERS) as (figure, panels):
        panels[1, 2].set_visible(False)
        by_workflow = {application(name_of(w)): usual(runs, w) for w in workflows(runs)}
        _longer(panels[0, 0], by_workflow, runs, "by workflow")
        for sweep, axes in zip(WORDS, panels.flat[1:5], strict=True):
            _longer(axes, points(common, sweep), runs, WORDS[sweep])
        return png_of(figure)


WORDS = {
    "error": "estimates are off by a factor of up to",
    "seen": "volunteers' speeds are known",
    "churn": "how often a volunteer goes in a span",
    "processors": "volunteers",
}


def points(runs: Sequence[RunRow], sweep: str) -> dict[str, list[RunRow]]:
    """The runs of a sweep by its value, and with them the usual ones."""
    some = [*usual(runs), *(run for run in runs if run.sweep == sweep)]
    values = sorted({getattr(run, sweep) for run in some})
    return {shown_value(v): [r for r in some if getattr(r, sweep) == v] for v in values}


def shown_value(value: float) -> str:
    """A value of a sweep; infinite is an error with which nothing is known."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unknown" if value == UNKNOWN else f"{value:g}"


def _longer(
    axes: Axes, groups: dict[str, list[RunRow]], runs: Sequence[RunRow], title: str
) -> None:
    axes.axhline(0.0, color="#999999", linewidth=0.8, zorder=1)
    for shift, name in enumerate(OTHERS):
        found = [against(group, name, runs) for group in groups.values()]
        kept = [k for k, figure in enumerate(found) if figure.graphs]
        at = [k + 0.12 * (shift - 2) for k in kept]
        values = [found[k].value for k in kept]
        style = {key: STYLES[name][key] for key in ("color", "marker")}
        axes.plot(at, values, linestyle="none", markersize=5, **style)
        bars = [np.nan_to_num(found[k].margin) if found[k].graphs >= FEW else 0.0 for k in kept]
        axes.errorbar(at, values, bars, fmt="none", ecolor=style["color"], elinewidth=0.8)
    plain(axes, title)
    axes.set_xticks(range(len(groups)), labels=list(groups))
    axes.tick_params("x", rotation=25 if len(groups) > 4 else 0)
