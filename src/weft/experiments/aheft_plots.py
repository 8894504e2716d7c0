"""Figure 8 and the tables of improvement as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft.experiments.aheft_cases import APPLICATIONS, BLAST, KINDS, WIEN2K
from weft.experiments.aheft_claims import NAMES, PARAMETER_NAMES
from weft.experiments.aheft_tables import EVENTS, LETTER, Row, Tables
from weft.experiments.plot_panels import figure_of, plain, png_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def figure8(measured: Tables) -> bytes:
    """Average makespan of the applications against each of the six parameters, as PNG."""
    title = "Average makespan (1: BLAST, 2: WIEN2K), event by event"
    with figure_of(title, (2, 3), LINES) as (figure, panels):
        for letter, parameter, axes in zip("abcdef", PANELS, panels.flat, strict=True):
            for number, kind in enumerate((BLAST, WIEN2K), 1):
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
    with figure_of(title, (2, 3), RATES) as (figure, panels):
        for column, kind in enumerate(KINDS):
            for line, parameter in enumerate(("size", "ccr")):
                axes = panels[line, column]
                _rates(axes, measured, kind, parameter)
                name = "parallelism" if kind in APPLICATIONS else "number of jobs"
                name = name if parameter == "size" else "CCR"
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
