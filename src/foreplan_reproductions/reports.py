"""What the reports of all papers share: their folder, their files, tables, pictures."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from foreplan import files
from foreplan.arrays import FloatArray
from foreplan.comparison import t_quantile
from foreplan.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in a simulator, and by which figures."""

    claim: str
    simulator: str
    holds: bool
    figures: str
    published: str = ""  # where the paper says so, and its figures

    @property
    def word(self) -> str:
        """The verdict in one word."""
        return "holds" if self.holds else "differs"


class Figure(NamedTuple):
    """A figure, half its 95% interval, and the number of graphs."""

    value: float
    margin: float
    graphs: int

    @property
    def above(self) -> bool:
        """Whether it is above 0 for all that the interval tells."""
        return self.value - self.margin > 0

    @property
    def below(self) -> bool:
        """Whether it is below 0 for all that the interval tells."""
        return self.value + self.margin < 0


def mean_of(values: FloatArray) -> Figure:
    """The mean, and half its 95% interval by Student's t."""
    n = len(values)
    if n == 0:
        return Figure(np.nan, np.nan, 0)
    half = t_quantile(n - 1) * float(values.std(ddof=1)) / np.sqrt(n) if n > 1 else np.nan
    return Figure(float(values.mean()), float(half), n)


def prepare(folder: Path) -> None:
    """Make the folder, before anything is run for nothing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make this folder: {error.strerror}", source=str(folder)) from None


def write_files(folder: Path, content: Mapping[str, str | bytes]) -> list[Path]:
    """Write each under its name; their paths."""
    for name, value in content.items():
        raw = value.encode("utf-8") if isinstance(value, str) else value
        files.write_bytes(folder / name, raw)
    return [folder / name for name in content]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(_lines(header, rows))


def _lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def claims_table(found: Sequence[Verdict], simulators: Mapping[str, str]) -> str:
    """The claims with their verdicts; how each was simulated, if there is more than one way."""
    ways, published = len(simulators) > 1, any(v.published for v in found)
    rows = [
        [
            v.claim,
            *([simulators[v.simulator]] if ways else []),
            *([v.published] if published else []),
            f"**{v.word}**",
            v.figures,
        ]
        for v in found
    ]
    more = [*(["simulated"] if ways else []), *(["published"] if published else [])]
    return table(["claim", *more, "verdict", "ours" if published else "figures"], rows)


def document(paper: str, head: Sequence[str], sections: Mapping[str, str]) -> str:
    """A report: what was run, then figures under headings; what they mean stands elsewhere."""
    title, *about = head
    meaning = f"`docs/results/{paper}/README.md` in foreplan's sources"
    where = f"What the figures mean, and how they were measured: {meaning}."
    parts = [f"## {heading}\n\n{text}" for heading, text in sections.items()]
    return "\n\n".join([f"# {title}", *about, where, *parts]) + "\n"


Styles = Mapping[str, Mapping[str, Any]]  # how each line of the legend is drawn


@contextmanager
def figure_of(title: str, shape: tuple[int, int], styles: Styles) -> Iterator[tuple[Picture, Any]]:
    """A figure of rows x columns of panels, with a title and one legend for all."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Picture
    from matplotlib.lines import Line2D

    with matplotlib.rc_context({"font.family": ["DejaVu Sans"], "text.usetex": False}):
        figure = Picture(figsize=(11, 7), facecolor="white")
        FigureCanvasAgg(figure)
        panels = figure.subplots(*shape)
        figure.suptitle(title, x=0.015, y=0.985, ha="left", fontsize=12, fontweight="bold")
        handles = [Line2D([], [], label=name, **style) for name, style in styles.items()]
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.01, 0.955)}
        figure.legend(handles=handles, ncols=len(styles), frameon=False, fontsize=9, **place)
        yield figure, panels


def png_of(figure: Picture) -> bytes:
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


def to_csv(rows: Sequence[Any], without: Sequence[str] = ()) -> str:
    """Dataclasses as CSV, with six digits; `without` leaves columns out."""
    content = io.StringIO()
    columns = [name for name in asdict(rows[0]) if name not in without]
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = (getattr(row, name) for name in columns)
        writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in values])
    return content.getvalue()


def few_colours(png: io.BytesIO) -> bytes:
    """A third of the size, and no difference to the eye."""
    from PIL import Image

    full = Image.open(png).convert("RGB")
    small = full.quantize(128, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    content = io.BytesIO()
    small.save(content, format="png", optimize=True)
    return content.getvalue()
