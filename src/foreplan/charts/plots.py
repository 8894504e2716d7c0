"""What plots have in common: how they look, what their axes say, and how they are written."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from foreplan.charts.chart import unit_for
from foreplan.errors import InputError
from foreplan.files import write_bytes
from foreplan.quantities import amount

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg")
Target = str | os.PathLike[str] | io.BytesIO  # a .png or .svg file, or where a PNG is to go
# matplotlib reads these only from its settings; a user's own style must not change the picture
SETTINGS: Any = {
    "font.family": ["DejaVu Sans"],  # it comes with matplotlib, so pictures are the same anywhere
    "text.usetex": False,
    "text.parse_math": False,  # a task may be called $x_1$
    "svg.fonttype": "none",  # text stays text: smaller, and it can be searched
    "svg.hashsalt": "foreplan",
    "axes.unicode_minus": False,
}


def check_plot(path: str | os.PathLike[str]) -> None:
    """A plot of an unknown kind is told before the work."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InputError(
            f"cannot draw a plot of this kind; known: {', '.join(SUFFIXES)}", source=str(path)
        )


@contextmanager
def plot(target: Target, size: tuple[float, float], title: str) -> Iterator[Figure]:
    """A figure of so many inches to draw in, written to its target in the end."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    kind, content = "png", io.BytesIO()
    if not isinstance(target, io.BytesIO):
        check_plot(target)
        kind = Path(target).suffix.lower()[1:]
    with matplotlib.rc_context({**SETTINGS, "font.size": 9}):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        figure.suptitle(title, fontsize=10.5, fontweight="bold")
        metadata = {"Software": None} if kind == "png" else {"Date": None, "Creator": "foreplan"}
        figure.savefig(content, format=kind, dpi=130, metadata=metadata)
    if isinstance(target, io.BytesIO):
        target.write(content.getvalue())
    else:
        write_bytes(target, content.getvalue())


def strip_frame(axes: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """No frame above and at the right, and a faint grid."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(visible=True, axis=grid, color="#e2e2e2", linewidth=0.7)
    axes.set_axisbelow(True)


def show_time(axis: Axis, what: str, longest: float, more: str = "") -> None:
    """Label an axis of seconds in the unit that reads well."""
    from matplotlib.ticker import AutoLocator, FuncFormatter

    unit = unit_for(longest)

    class Ticks(AutoLocator):
        def tick_values(self, vmin: float, vmax: float) -> Any:
            ticks = super().tick_values(vmin / unit.seconds, vmax / unit.seconds)
            return [tick * unit.seconds for tick in ticks]

    axis.set_major_locator(Ticks())
    axis.set_major_formatter(FuncFormatter(lambda time, _: amount(time / unit.seconds)))
    axis.set_label_text(f"{what} ({unit.name}){more}")


def show_money(axis: Axis) -> None:
    """Label an axis of money, without exponents."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: amount(value)))
    axis.set_label_text("cost")


def note(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[int, int], **look: Any
) -> None:
    """A few words beside a point."""
    style: dict[str, Any] = {"fontsize": 7.5, "color": "#333333", **look}
    axes.annotate(text, at, xytext=offset, textcoords="offset points", **style)


def shortened(text: str, longest: int = 34) -> str:
    """A name of others, for a picture: a box for what cannot be printed, and not too long."""
    clean = "".join(c if c.isprintable() else "\u25a1" for c in text)
    return clean if len(clean) <= longest else clean[: longest - 1] + "\u2026"
