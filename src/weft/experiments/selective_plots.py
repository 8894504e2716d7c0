"""Figures 3 and 4 as pictures: one panel per planner, as in the paper."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.experiments.selective import (
    FIGURE4_TASKS,
    PLANNERS,
    QOIS,
    RESCHEDULING,
    STRATEGIES,
)
from weft.experiments.selective_tables import Figure3Row, Figure4Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def few_colours(png: io.BytesIO) -> bytes:
    """A third of the size, and no difference to the eye."""
    from PIL import Image

    full = Image.open(png).convert("RGB")
    small = full.quantize(128, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    content = io.BytesIO()
    small.save(content, format="png", optimize=True)
    return content.getvalue()


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
