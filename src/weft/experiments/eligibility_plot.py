"""Eligibility curves as a picture: how many tasks are ready after each step."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from weft.experiments.comparison_plot import SETTINGS, check_plot
from weft.experiments.eligibility import Curve
from weft.files import write_bytes

# Colours that stay apart for colour-blind readers; dashes for those who print in grey.
_STYLES = {
    "ico": ("#1f5fa8", "-"),
    "fifo": ("#b5651d", "--"),
    "lifo": ("#777777", ":"),
    "greedy": ("#2a8f5d", "-."),
}
_MOST_POINTS = 2_000  # of a curve; more cannot be seen


def write_plot(curves: Sequence[Curve], title: str, path: str | os.PathLike[str]) -> None:
    """Draw the curves to a .png or .svg file; the first one is what the others are held against."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    check_plot(path)
    kind = Path(path).suffix.lower()[1:]
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        for curve in curves:
            colour, dashes = _STYLES[curve.name]
            steps = _steps(len(curve.profile))
            label = f"{curve.name.upper()}, normalised area {curve.area:,.5g}"
            broad = curve is curves[0]  # so that it is seen under one that equals it
            axes.plot(
                steps, curve.profile[steps], dashes, color=colour, label=label,
                linewidth=4.5 if broad else 1.3, alpha=0.45 if broad else 1.0,
            )  # fmt: skip
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.grid(visible=True, color="#e2e2e2", linewidth=0.7)
        axes.set_axisbelow(True)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("tasks executed")
        axes.set_ylabel("tasks eligible")
        axes.legend(frameon=False)
        figure.suptitle(title, fontsize=10.5, fontweight="bold")
        content = io.BytesIO()
        metadata = {"Software": None} if kind == "png" else {"Date": None, "Creator": "weft"}
        figure.savefig(content, format=kind, dpi=130, metadata=metadata)
    write_bytes(path, content.getvalue())


def _steps(count: int) -> list[int]:
    """The steps that are drawn: all, or evenly spread ones."""
    spread = np.linspace(0, count - 1, min(count, _MOST_POINTS))
    return [int(step) for step in np.unique(spread.round())]
