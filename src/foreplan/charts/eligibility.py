"""Eligibility curves as a picture: how many tasks are ready after each step."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from foreplan.charts.plots import plot, strip_frame
from foreplan.ic.game import Curve

# Colours that stay apart for colour-blind readers; dashes for those who print in grey.
_STYLES = {
    "ico": ("#1f5fa8", "-"),
    "fifo": ("#b5651d", "--"),
    "lifo": ("#777777", ":"),
    "greedy": ("#2a8f5d", "-."),
    "hops": ("#8a4fa3", "-"),
}
_MOST_POINTS = 2_000  # of a curve; more cannot be seen


def write_plot(curves: Sequence[Curve], title: str, path: str | os.PathLike[str]) -> None:
    """Draw the curves to a .png or .svg file; the first one is what the others are held against."""
    with plot(path, (8, 4.5), title) as figure:
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
        strip_frame(axes)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("tasks executed")
        axes.set_ylabel("tasks eligible")
        axes.legend(frameon=False)


def _steps(count: int) -> list[int]:
    """The steps that are drawn: all, or evenly spread ones."""
    spread = np.linspace(0, count - 1, min(count, _MOST_POINTS))
    return [int(step) for step in np.unique(spread.round())]
