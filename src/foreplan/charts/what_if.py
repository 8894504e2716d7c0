"""The answers of what-if as a picture: a curve over how many are added, or bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from foreplan.charts.plots import Target, note, plot, shortened, show_money, show_time, strip_frame
from foreplan.quantities import amount, duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from foreplan.whatif import Alternative, WhatIf

_TIME, _MONEY, _KNEE, _GREY = "#1f5fa8", "#b5651d", "#c22f2f", "#999999"
_SHOWN = 60  # bars; more cannot be read


def write_plot(answer: WhatIf, target: Target) -> None:
    """Draw the answer to a .png or .svg file, or as PNG into memory."""
    rows, curve = min(_SHOWN, len(answer.alternatives)), answer.counts is not None
    with plot(target, (8, 5 if curve else 1.6 + 0.3 * rows), _title(answer)) as figure:
        if curve:
            _curves(figure.subplots(2, 1, sharex=True, height_ratios=(2, 1)), answer)
        else:
            _bars(figure.subplots(1, 2, sharey=True, width_ratios=(2, 1)), answer)


def _title(answer: WhatIf) -> str:
    when = "now" if answer.at == answer.now else f"at {duration(answer.at)}"
    return f"{shortened(answer.name, 50)}: what if, {when} ({shortened(answer.by)})"


def _figures(
    answer: WhatIf, rows: Sequence[Alternative]
) -> tuple[tuple[str, str, list[float], float], ...]:
    """What is drawn, its colour, its values, and how it is without a change."""
    return (
        ("makespan", _TIME, [row.makespan for row in rows], answer.present.makespan),
        ("cost", _MONEY, [row.cost for row in rows], answer.present.cost),
    )


def _curves(axes: Any, answer: WhatIf) -> None:
    """Makespan and cost over how many are added, with the present and the knee."""
    assert answer.counts is not None
    figures = _figures(answer, answer.alternatives)
    for ax, (label, colour, values, present) in zip(axes, figures, strict=True):
        strip_frame(ax, "y")
        if math.isfinite(present):
            ax.axhline(present, color=_GREY, linewidth=0.8, linestyle="--")
            place = {"xycoords": ("axes fraction", "data"), "ha": "right", "color": "#555555"}
            note(ax, "as it is", (1, present), (0, 3), **place)
        ax.plot(answer.counts, _drawn(values), "o-", color=colour, markersize=4)
        _label(ax.yaxis, label, [*values, present])
    axes[1].set_xlabel(_added(answer))
    axes[1].xaxis.get_major_locator().set_params(integer=True)
    if answer.knee is not None and answer.knee in answer.counts:
        knee = answer.knee, figures[0][2][answer.counts.index(answer.knee)]
        axes[0].plot(*([at] for at in knee), "o", color=_KNEE, markersize=9, zorder=4)
        note(axes[0], f"knee: {answer.knee}", knee, (8, 8), fontsize=9, color=_KNEE)


def _added(answer: WhatIf) -> str:
    """What the axis counts."""
    counts = answer.counts or ()
    first, last = answer.alternatives[0].add, answer.alternatives[-1].add
    spans = [spec for spec in last if first[spec] != last[spec]]
    others = [f"{n} {spec}" for spec, n in last.items() if spec not in spans and n]
    others += [f"without {name}" for name in answer.alternatives[0].remove]
    beside = f" (and {', '.join(others)})" if others else ""
    return shortened(f"{spans[0]} added{beside}" if spans and counts else "added", 90)


def _bars(axes: Any, answer: WhatIf) -> None:
    rows = answer.alternatives[:_SHOWN]
    at, names = range(len(rows)), [shortened(row.change) for row in rows]
    figures = _figures(answer, rows)
    for ax, (label, colour, values, present) in zip(axes, figures, strict=True):
        strip_frame(ax, "x")
        ax.barh(at, _drawn(values), height=0.6, color=colour, alpha=0.9)
        if math.isfinite(present):
            ax.axvline(present, color="#333333", linewidth=0.9, linestyle="--")
        longest = max([0.0, *(v for v in values if math.isfinite(v))])
        for y, value in enumerate(values):
            words = duration(value) if label == "makespan" else amount(value, 5)
            _number(ax, value, words, y, inside=value > 0.25 * longest)
        _label(ax.xaxis, label, [*values, present])
    axes[0].set_xlabel(f"{axes[0].get_xlabel()}; dashed: as it is")
    axes[0].set_yticks(at, labels=names)
    axes[0].set_ylim(len(rows) - 0.4, -0.6)


def _label(axis: Axis, what: str, values: list[float]) -> None:
    """Name an axis, and say its ticks as people do."""
    if what == "makespan":
        show_time(axis, what, max([0.0, *(v for v in values if math.isfinite(v))]))
    else:
        show_money(axis)


def _number(axes: Axes, value: float, words: str, y: int, inside: bool) -> None:
    """The figure of a bar, in it if it is long enough: at its foot, clear of the dashed line."""
    words = words if math.isfinite(value) else "cannot be done"
    inside = inside and math.isfinite(value)
    place = (0.0 if inside or not math.isfinite(value) else value, y)
    note(axes, words, place, (4, 0), va="center", color="white" if inside else "#333333")


def _drawn(values: list[float]) -> list[float]:
    return [value if math.isfinite(value) else math.nan for value in values]
