"""The report of the GTP experiment: its files, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from foreplan_reproductions.experiment import Circumstances, Summary
from foreplan_reproductions.gtp.cases import MAIN_CCR
from foreplan_reproductions.gtp.claims import (
    COMPETITORS,
    METRIC_NAMES,
    SIMULATORS,
    published_words,
    shown,
    verdicts,
)
from foreplan_reproductions.gtp.runs import (
    AHEFT,
    DLS,
    DLS_PEAK,
    GTP,
    GTPC,
    GTPC_DLS,
    GTPC_HEFT,
    GTPCR,
    GTPCR_HEFT,
    GTPR,
    HEFT,
    SPARE_GTP,
    WITH_OURS,
    WITH_OURS_R,
)
from foreplan_reproductions.gtp.tables import NSL, OVERHEAD, PUBLISHED, Key, Tables
from foreplan_reproductions.gtp.units import (
    BY_PLANNER,
    CALM,
    FAILING_SWEEPS,
    FAILURE,
    GRID_BOUND,
    GRID_BOUND_FAILURE,
    PLANNERS,
    POLICIES,
    SHARED,
    Settings,
    units,
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


def summary(measured: Tables) -> Summary:
    """Published gains and ours."""
    rows = [_gain_row(measured, *what, value) for what, value in PUBLISHED.items()]
    title = f"Gains in NSL, {measured.main_size} tasks"
    return Summary(title, ["", "at", *GAIN_HEADER], rows)


GAIN_HEADER = ["published", "mean", "best of ten", "maximum"]


def _gain_row(
    measured: Tables, part: str, bound: float, mine: str, over: str, published: float
) -> list[str]:
    key = measured.main(part, bound)
    best = (f"{gain:.1f}%" for gain in measured.best(key, mine, over))
    words, mean = published_words(part, published), shown(measured.gain(key, mine, over))
    return [f"{mine} over {over}", f"{bound:.0%}", words, mean, *best]


def files(measured: Tables, how: Circumstances[Settings]) -> dict[str, str | bytes]:
    """All files: CSV, PNG and the report."""
    main = (measured.main_size, MAIN_CCR)
    rows, pairs = list(measured.rows()), list(measured.gains())
    mine = [row for row in rows if (row.size, row.ccr) == main]
    return {
        "figure4.csv": to_csv([r for r in mine if r.part == CALM], ("part", "rewound", "levels")),
        "figure5.csv": to_csv([r for r in mine if r.part == FAILURE], ("part",)),
        "gains.csv": to_csv([g for g in pairs if g.part in (CALM, FAILURE, BY_PLANNER)]),
        "sweeps.csv": to_csv([r for r in rows if r.part not in (CALM, FAILURE)]),
        "figure4.png": figure4(measured),
        "figure5.png": figure5(measured),
        "gains.png": gains(measured),
        "sweeps.png": sweeps(measured),
        "report.md": report(measured, how),
    }


def report(measured: Tables, how: Circumstances[Settings]) -> str:
    """The whole report."""
    settings = how.settings
    runs = sum(len(p.specs) for u in units(settings) for p in u.points)
    shapes = "Shapes from `.stg` files. " if settings.stg else ""
    return document(
        "gtp",
        [
            "GTP, reproduced",
            "Israel Hernandez and Murray Cole, *Reactive Scheduling of DAG Applications on "
            "Heterogeneous and Dynamic Distributed Computing Systems* and the papers it sums up: "
            "section 7 by foreplan.",
            f"{how.told('all sizes, CCRs and bounds')}: {runs:,} runs. {shapes}"
            f"Graphs: {settings.main} of {measured.main_size} tasks at CCR {MAIN_CCR:g}, "
            f"{settings.grid} of each other size and CCR, {settings.sweeps} in the sweeps. "
            f"Seed {settings.seed}; the same seed gives the same figures.",
        ],
        {
            "Published and measured": _published(measured),
            "Verdicts": claims_table(verdicts(measured), SIMULATORS)
            + "\n\nA strategy is better, or a gain grows, where the 95% interval says so.",
            "Sweeps": _all_sweeps(measured),
            "Figure 4: GTP and GTP/c": _figure4(measured),
            "Figure 5: GTP/r and GTP/c/r, one failure": _figure5(measured),
            "Other sizes and CCRs": _grid(measured),
            "DLS/sr and the planners": _by_planner(measured),
        },
    )


def _published(measured: Tables) -> str:
    body = []
    for (part, bound, mine, over), value in PUBLISHED.items():
        key = measured.main(part, bound)
        nsls = (f"{measured.mean(key, name).value:.3f}" for name in (over, mine))
        body.append([*_gain_row(measured, part, bound, mine, over, value), *nsls])
    header = ["gain in NSL", "variability", *GAIN_HEADER, "NSL of the one", "of the other"]
    return (
        f"{table(header, body)}\n\n![Gains](gains.png)\n\nThe mean is 1 - the ratio of the average "
        "NSLs, ± half its 95% interval by graph; both strategies had the same events. Best of ten: "
        "the greatest gain of ten graphs, in the mean over all draws of ten. The paper's figures "
        "are lost in our copy; what its text says of them stands here."
    )


def _figure4(measured: Tables) -> str:
    metrics = {
        NSL: "NSL", "migrated": "migrated tasks", "remappings": "remappings",
        OVERHEAD: "overhead %", "restarts": "restarts", "copies": "copies used",
        "lost": "work lost %", "resent": "data sent in vain %",
    }  # fmt: skip
    tables = _by_bound(measured, CALM, WITH_OURS, metrics)
    return f"![Figure 4](figure4.png)\n\n{tables}"


def _figure5(measured: Tables) -> str:
    metrics = {
        NSL: "NSL", "rewound": "rewound tasks", "levels": "rewound levels",
        OVERHEAD: "overhead %", "lost": "work lost %",
    }  # fmt: skip
    tables = _by_bound(measured, FAILURE, WITH_OURS_R, metrics)
    return f"![Figure 5](figure5.png)\n\n{tables}"


def _by_bound(measured: Tables, part: str, names: tuple[str, ...], metrics: dict[str, str]) -> str:
    keys = measured.keys(part, measured.main_size, MAIN_CCR)
    body = []
    for metric, words in metrics.items():
        digits = 3 if metric == NSL else 2 if metric == "lost" else 1
        for name in names:
            means = [measured.mean(key, name, metric).value for key in keys]
            if any(means):
                body.append([words, name, *(f"{mean:.{digits}f}" for mean in means)])
    return table(["", "", *(f"{key.value:.0%}" for key in keys)], body)


def _grid(measured: Tables) -> str:
    body = []
    sizes = sorted({key.size for key in measured.keys(CALM)})
    for size in sizes:
        for key in measured.keys(CALM, size):
            if key.value != GRID_BOUND:
                continue
            gains = [shown(measured.gain(key, GTPC, over)) for over in COMPETITORS]
            failing = key._replace(part=FAILURE, value=GRID_BOUND_FAILURE)
            gains.append(shown(measured.gain(failing, GTPCR, GTPR)))
            graphs = measured.mean(key, GTPC).graphs
            body.append([str(size), f"{key.ccr:g}", str(graphs), *gains])
    header = ["tasks", "CCR", "graphs", *(f"{GTPC} over {over}" for over in COMPETITORS)]
    header.append(f"{GTPCR} over {GTPR}, failure")
    return (
        f"Gains in NSL at {GRID_BOUND:.0%} variability, with one failure at "
        f"{GRID_BOUND_FAILURE:.0%}; all that was run is in `gains.csv`.\n\n{table(header, body)}"
    )


def _by_planner(measured: Tables) -> str:
    pairs = [
        (GTPC, DLS), (GTPC, DLS_PEAK), (GTPC_DLS, DLS), (GTPC, SPARE_GTP), (GTPC_HEFT, DLS),
        (GTPC_HEFT, GTPC),
    ]  # fmt: skip
    body = []
    for key in measured.keys(BY_PLANNER):
        there = measured.strategies(key)
        gains = [shown(measured.gain(key, *p)) if p[1] in there else "" for p in pairs]
        body.append([str(key.size), f"{key.ccr:g}", str(measured.mean(key, DLS).graphs), *gains])
    header = ["tasks", "CCR", "graphs", *(f"{mine} over {over}" for mine, over in pairs)]
    return (
        f"Gains in NSL at {GRID_BOUND:.0%} variability. DLS/sr knows every speed as it is now; at "
        "peak, it plans as if nothing had changed; by GTP, it plans with GTP's planner.\n\n"
        f"{table(header, body)}"
    )


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
BEST_STYLE: dict[str, Any] = {"color": "#999999", "marker": "None", "linestyle": ":"}
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
    return _panels_by_bound(measured, CALM, title, WITH_OURS, metrics)


def figure5(measured: Tables) -> bytes:
    """NSL, rewound tasks and levels, and overhead by variability, with one failure, as PNG."""
    title = f"Figure 5: {measured.main_size} tasks, CCR {MAIN_CCR:g}, one processor fails"
    return _panels_by_bound(
        measured, FAILURE, title, WITH_OURS_R, (NSL, "rewound", "levels", OVERHEAD)
    )


def _panels_by_bound(
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
    styles = {**OVER, **FAILING, "best of ten graphs": BEST_STYLE, "published": PUBLISHED_STYLE}
    title = f"Gain in NSL (%), {measured.main_size} tasks, CCR {MAIN_CCR:g}; bars: 95%"
    pairs = [(CALM, GTPC, over) for over in COMPETITORS] + [(FAILURE, GTPCR, GTPR)]
    with figure_of(title, (2, 2), styles) as (figure, panels):
        for (part, mine, over), axes in zip(pairs, panels.flat, strict=True):
            keys = measured.keys(part, measured.main_size, MAIN_CCR)
            style = STYLES[over] if part == CALM else STYLES[mine]
            bounds = [100 * key.value for key in keys]
            _gains(axes, measured, bounds, keys, mine, over, style)
            best = [measured.best(key, mine, over).of_ten for key in keys]
            axes.plot(bounds, best, linewidth=1.3, **BEST_STYLE)
            for (there, bound, *pair), gain in PUBLISHED.items():
                if (there, *pair) == (part, mine, over):
                    axes.plot([100 * bound], [gain], markersize=11, zorder=5, **PUBLISHED_STYLE)
            plain(axes, f"{mine} over {over}")
            _percents(axes, bounds)
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


AXES = {**PANELS, "error": "error of the estimates at 0% variability"}
FAILING_AXES = dict(zip(FAILING_SWEEPS, ("period", "rate", "ccr", "density"), strict=True))


def _all_sweeps(measured: Tables) -> str:
    parts = [_WHAT, "![Sweeps](sweeps.png)"]
    parts += [f"**{AXES[part]}**\n\n{_sweep(measured, part)}" for part in _there(measured, AXES)]
    parts += [f"**Policy and planner**, gain over HEFT in %\n\n{_planners(measured)}"]
    parts += [f"**CCR**, transfers share the links and nothing varies\n\n{_shared(measured)}"]
    parts += [
        f"**{AXES[FAILING_AXES[part]]}**, one failure at 20%: {GTPCR} against {GTPR}\n\n"
        f"{_failing(measured, part)}"
        for part in _there(measured, FAILING_AXES)
    ]
    return "\n\n".join(parts)


def _there(measured: Tables, parts: dict[str, str]) -> list[str]:
    """The parts that were measured: shapes that are given have the density they have."""
    return [part for part in parts if measured.keys(part)]


def _sweep(measured: Tables, part: str) -> str:
    keys = measured.sweep(part)
    rows = [
        [f"{mine} over {over}", *(shown(measured.gain(key, mine, over)) for key in keys)]
        for mine, over in (
            *((GTPC, over) for over in COMPETITORS),
            (GTPC_HEFT, DLS),
            (GTPC_DLS, DLS),
        )
        if mine in measured.strategies(keys[0])
    ]
    return table(["gain", *(f"{key.value:g}" for key in keys)], rows)


def _planners(measured: Tables) -> str:
    keys = measured.sweep("planner")
    header = ["policy", *(f"planner {p}, {key.value:.0%}" for key in keys for p in PLANNERS)]
    rows = [
        [
            policy,
            *(
                shown(measured.gain(key, f"{policy} by {planner}", "static by heft"))
                for key in keys
                for planner in PLANNERS
            ),
        ]
        for policy in POLICIES
    ]
    return table(header, rows)


def _shared(measured: Tables) -> str:
    keys = measured.sweep(SHARED)
    rows = [
        [f"{name} over {HEFT}", *(shown(measured.gain(key, name, HEFT)) for key in keys)]
        for name in (DLS, GTP, GTPC)
    ]
    rows.append([f"NSL of {HEFT}", *(f"{measured.mean(key, HEFT).value:.3f}" for key in keys)])
    return table(["gain", *(f"{key.value:g}" for key in keys)], rows)


def _failing(measured: Tables, part: str) -> str:
    keys = measured.sweep(part)
    rows = [["gain in NSL", *(shown(measured.gain(key, GTPCR, GTPR)) for key in keys)]]
    for metric, words in (("rewound", "rewound tasks"), ("levels", "rewound levels")):
        for name in (GTPR, GTPCR):
            cells = [f"{measured.mean(key, name, metric).value:.1f}" for key in keys]
            rows.append([f"{words}, {name}", *cells])
    return table(["", *(f"{key.value:g}" for key in keys)], rows)


_WHAT = """\
One thing after the other is varied, on the first graphs of the main part, at 40% variability and
with everything else as there."""
