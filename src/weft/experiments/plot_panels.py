"""Figures of several panels under one title and legend: the look of the reproductions."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from weft.experiments.selective_plots import few_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Styles = Mapping[str, Mapping[str, Any]]  # how each line of the legend is drawn


@contextmanager
def figure_of(title: str, shape: tuple[int, int], styles: Styles) -> Iterator[tuple[Figure, Any]]:
    """A figure of rows x columns of panels, with a title and one legend for all."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    with matplotlib.rc_context({"font.family": ["DejaVu Sans"], "text.usetex": False}):
        figure = Figure(figsize=(11, 7), facecolor="white")
        FigureCanvasAgg(figure)
        panels = figure.subplots(*shape)
        figure.suptitle(title, x=0.015, y=0.985, ha="left", fontsize=12, fontweight="bold")
        handles = [Line2D([], [], label=name, **style) for name, style in styles.items()]
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.01, 0.955)}
        figure.legend(handles=handles, ncols=len(styles), frameon=False, fontsize=9, **place)
        yield figure, panels


def png_of(figure: Figure) -> bytes:
    """The picture, in few colours."""
    content = io.BytesIO()
    figure.tight_layout(rect=(0, 0, 1, 0.945))
    figure.savefig(content, format="png", dpi=100, metadata={"Software": None})
    return few_colours(content)


def plain(axes: Axes, title: str) -> None:
    """A panel's title, a faint grid, no frame."""
    axes.set_title(title, fontsize=10, loc="left")
    axes.tick_params(labelsize=8)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
