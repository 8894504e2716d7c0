"""The report of the selective rescheduling experiment: its files, tables and pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft_reproductions.experiment import Circumstances, Summary
from weft_reproductions.reports import (
    claims_table,
    document,
    few_colours,
    table,
    to_csv,
)
from weft_reproductions.selective.claims import SIMULATORS, verdicts
from weft_reproductions.selective.runs import (
    EVENTS,
    FIGURE4_TASKS,
    PLANNERS,
    QOIS,
    RESCHEDULING,
    SEQUENTIAL,
    SHAPES,
    STRATEGIES,
)
from weft_reproductions.selective.tables import (
    EXACT,
    EXACT_LOOP,
    KNOWN,
    LOOP,
    PUBLISHED,
    Figure3Row,
    Figure4Row,
    ReadingRow,
    Table1Row,
    Tables,
    shape_name,
)
from weft_reproductions.selective.units import Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def summary(measured: Tables) -> Summary:
    """Table 1, published and ours."""
    header = ["", "", "new plans:", "the paper's", "event", "time / always:", ""]
    rows = [
        ["planner", "strategy", "published", "loop", "by event", "published", "ours"],
        *(
            [row.planner.upper(), row.strategy, f"{row.published_replans:.2f}",
             f"{row.sequential_replans:.2f}", f"{row.replans:.2f}",
             f"{row.published_time_of_always:.0%}", f"{row.time_of_always:.0%}"]
            for row in measured.table1
        ),
    ]  # fmt: skip
    return Summary(f"Table 1 over {measured.table1[0].dags} DAGs", header, rows, texts=2)


def files(measured: Tables, how: Circumstances[Settings]) -> dict[str, str | bytes]:
    """All files: CSV, PNG and the report."""
    return {
        "table1.csv": to_csv(measured.table1),
        "figure3.csv": to_csv(measured.figure3),
        "figure4.csv": to_csv(measured.figure4),
        "readings.csv": to_csv(measured.readings),
        "figure3.png": figure3(measured.figure3),
        "figure3-paper-loop.png": figure3(measured.figure3, sequential=True),
        "figure4.png": figure4(measured.figure4),
        "report.md": report(measured, how),
    }


def report(measured: Tables, how: Circumstances[Settings]) -> str:
    """The whole report."""
    sizes = how.settings
    return document(
        "selective",
        [
            "Selective rescheduling, reproduced",
            "Henan Zhao and Rizos Sakellariou, *A Low-Cost Rescheduling Policy for Dependent "
            "Tasks on Grid Computing Systems*: Table 1 and Figures 3 and 4 by weft.",
            f"{how.told()}. Table 1: {sizes.table1} DAGs; Figure 3: {sizes.figure3}; Figure 4: "
            f"{sizes.figure4} per number of tasks; seed {sizes.seed}. All but the times is the "
            "same for the same seed.",
        ],
        {
            "Verdicts": claims_table(verdicts(measured), SIMULATORS),
            "Table 1: new plans and running time": _table1(measured.table1),
            "Figure 3: average makespan": _figure3(measured.figure3),
            "Figure 4: running time by number of tasks": "![Figure 4](figure4.png)\n\nIn figures: "
            "`figure4.csv`.",
            "What decides the number of new plans": _what_decides(measured.readings),
            "A new plan when there is nothing new to know": _no_error(measured.readings),
        },
    )


def _table1(rows: Sequence[Table1Row]) -> str:
    body = [
        [
            row.planner.upper(),
            row.strategy,
            f"{row.published_replans:g}",
            f"{row.sequential_replans:.2f}",
            f"{row.replans:.2f}",
            f"{row.published_time:.2f}",
            f"{row.published_time_of_always:.0%}",
            f"{row.milliseconds:.2f}",
            f"{row.time_of_always:.0%}",
        ]
        for row in rows
    ]
    header = [
        "planner", "strategy", "new plans published", "the paper's loop", "event by event",
        "time published", "of always", "ours (ms)", "of always",
    ]  # fmt: skip
    return table(header, body)


def _figure3(rows: Sequence[Figure3Row]) -> str:
    ours = "![Figure 3](figure3.png)\n\nEvent by event; mean makespan relative to always, in %:"
    theirs = "![Figure 3](figure3-paper-loop.png)\n\nThe same by the paper's loop:"
    after = "The half of the 95% interval, paired by DAG, is in `figure3.csv`."
    tables = (_figure3table(rows, False), _figure3table(rows, True))
    return "\n\n".join([ours, tables[0], theirs, tables[1], after])


def _figure3table(rows: Sequence[Figure3Row], sequential: bool) -> str:
    found = {
        (r.planner, r.strategy, r.qoi): r.sequential_of_always if sequential else r.of_always
        for r in rows
    }
    body = [
        [p.upper(), s, *(f"{100 * (found[p, s, qoi] - 1):+.1f}" for qoi in QOIS)]
        for p in PLANNERS
        for s in ("static", "ideal", "slack", "spare")
    ]
    return table(["planner", "strategy", *(f"QoI {qoi:.0%}" for qoi in QOIS)], body)


def _what_decides(rows: Sequence[ReadingRow]) -> str:
    found = {(r.reading, r.planner, r.strategy): r.replans for r in rows}
    readings = [shape_name(alpha) for alpha in SHAPES] + [KNOWN, LOOP]
    body = [
        [
            p.upper(),
            s,
            f"{PUBLISHED[p, s][1]:g}",
            *(f"{found[name, p, s]:.1f}" for name in readings),
        ]
        for p in PLANNERS
        for s in ("slack", "spare")
    ]
    return (
        f"New plans of 49, DAGs as in Table 1 ({rows[0].dags} of them), one thing changed at a "
        f"time.\n\n{table(['planner', 'strategy', 'published', *readings], body)}"
    )


def _no_error(rows: Sequence[ReadingRow]) -> str:
    found = {(r.reading, r.planner, r.strategy): r.makespan for r in rows}
    ratios = {
        (reading, p): found[reading, p, "always"] / found[reading, p, "static"] - 1
        for reading in (EXACT, EXACT_LOOP)
        for p in PLANNERS
    }
    body = [
        [p.upper(), *(f"{100 * ratios[reading, p]:+.1f}" for reading in (EXACT, EXACT_LOOP))]
        for p in PLANNERS
    ]
    header = ["planner", SIMULATORS[EVENTS], SIMULATORS[SEQUENTIAL]]
    return (
        "With QoI 0 all estimates are right, and a new plan can only be as good as the first. "
        f"Makespan of always relative to static, in %:\n\n{table(header, body)}"
    )


# Colours that stay apart for colour-blind readers; marks and dashes for those who print in grey.
STYLES: dict[str, dict[str, Any]] = {
    "static": {"color": "#555555", "marker": "s", "linestyle": ":"},
    "ideal": {"color": "#000000", "marker": "d", "linestyle": "--"},
    "always": {"color": "#0072b2", "marker": "o", "linestyle": "-"},
    "slack": {"color": "#d55e00", "marker": "^", "linestyle": "-"},
    "spare": {"color": "#009e73", "marker": "v", "linestyle": "-"},
}


def figure3(rows: Sequence[Figure3Row], sequential: bool = False) -> bytes:
    """Average makespan by QoI error, as PNG."""
    found = {
        (r.planner, r.strategy, r.qoi): r.sequential_makespan if sequential else r.makespan
        for r in rows
    }
    how = "by the paper's loop" if sequential else "event by event"
    title = f"Average makespan over {rows[0].dags} DAGs, simulated {how}"
    ticks = [f"{qoi:.0%}" for qoi in QOIS]
    return _panels(
        title, found, STRATEGIES, QOIS, ticks, ("QoI error", "average makespan"), from_zero=False
    )


def figure4(rows: Sequence[Figure4Row]) -> bytes:
    """Average running time by number of tasks, as PNG."""
    found = {(r.planner, r.strategy, float(r.tasks)): r.milliseconds for r in rows}
    title = f"Average running time over {rows[0].dags} DAGs each, 5 machines"
    tasks = [float(n) for n in FIGURE4_TASKS]
    ticks = [f"{n:g}" for n in tasks]
    return _panels(title, found, RESCHEDULING, tasks, ticks, ("tasks", "running time (ms)"), True)


def _panels(
    title: str,
    found: dict[tuple[str, str, float], float],
    lines: Sequence[str],
    at: Sequence[float],
    ticks: Sequence[str],
    labels: tuple[str, str],
    from_zero: bool,
) -> bytes:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"font.family": ["DejaVu Sans"], "text.usetex": False}):
        figure = Figure(figsize=(9, 7.2), facecolor="white")
        FigureCanvasAgg(figure)
        panels = figure.subplots(2, 2)
        for planner, axes in zip(PLANNERS, panels.flat, strict=True):
            _panel(axes, planner, found, lines, at)
            axes.set_xticks(at, labels=ticks)
            axes.set_xlabel(labels[0], fontsize=9)
            axes.set_ylabel(labels[1], fontsize=9)
            if from_zero:
                axes.set_ylim(bottom=0)
        figure.suptitle(title, x=0.015, y=0.985, ha="left", fontsize=12, fontweight="bold")
        handles, names = panels.flat[0].get_legend_handles_labels()
        figure.legend(
            handles, names, loc="upper left", bbox_to_anchor=(0.01, 0.955), ncols=len(lines),
            frameon=False, fontsize=9,
        )  # fmt: skip
        figure.tight_layout(rect=(0, 0, 1, 0.945))
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=100, metadata={"Software": None})
    return few_colours(content)


def _panel(
    axes: Axes,
    planner: str,
    found: dict[tuple[str, str, float], float],
    lines: Sequence[str],
    at: Sequence[float],
) -> None:
    for strategy in lines:
        values = [found[planner, strategy, x] for x in at]
        axes.plot(at, values, label=strategy, markersize=5, linewidth=1.4, **STYLES[strategy])
    axes.set_title(planner.upper(), fontsize=10, loc="left")
    axes.tick_params(labelsize=8)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
