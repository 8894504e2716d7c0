"""What commands print: lines and tables, on a terminal and in a pipe, and how far they are."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from foreplan.files import clean

if TYPE_CHECKING:
    from foreplan.arrays import BoolArray
    from foreplan.model import Platform, Run, Schedule, Workflow

Progress = Callable[[float], None]
WRAPPED = 16  # columns that a text has at least, if it is so long


def table(header: Sequence[str], rows: Iterable[Sequence[Any]], texts: int = 1) -> None:
    """Print a table without lines; the first columns are texts, the others numbers.

    A column further on whose heading begins with < is of texts, too. A cell may be a pair of text
    and style. To a pipe or a file it goes as wide as it is, without the 20 ms that loading rich
    takes; on a terminal texts are wrapped, and numbers are never cut.
    """
    left = [number < texts or name.startswith("<") for number, name in enumerate(header)]
    lines = [[_cell(cell) for cell in row] for row in rows]
    names = [name.removeprefix("<") for name in header]
    plain = [names, *([text for text, _ in line] for line in lines)]
    if not sys.stdout.isatty():
        _print_plain(plain, left)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, header_style="dim")
    for name, to_left in zip(names, left, strict=True):
        shown.add_column(name, justify="left" if to_left else "right", no_wrap=not to_left)
    for line in lines:
        shown.add_row(*(Text(text, style) for text, style in line))
    widths = (max(map(_cells, column)) for column in zip(*plain, strict=True))
    needed = sum(2 + (min(w, WRAPPED) if t else w) for w, t in zip(widths, left, strict=True))
    Console(width=max(needed, Console().width), highlight=False).print(shown)


def processor_table(shown: Schedule | Run, counted: Mapping[str, BoolArray]) -> None:
    """Print what every processor or host does, and the most memory that is held of each."""
    from foreplan.charts.tables import by_processor, peaks_in_words

    table(*by_processor(shown, counted))
    if text := peaks_in_words(shown):
        say(text)


def say_size(workflow: Workflow, platform: Platform) -> None:
    """Print how many tasks and processors there are."""
    say(
        f"{workflow.name}: {workflow.n_tasks} tasks, {workflow.n_edges} dependencies, "
        f"{platform.n_processors} processors on {platform.n_hosts} hosts"
    )


def _cell(cell: Any) -> tuple[str, str]:
    """The text of a cell, and its style."""
    text, style = cell if isinstance(cell, tuple) else (cell, "")
    return clean(str(text)), style


def say(text: str, style: str = "") -> None:
    """Print a line; on a terminal in a style, such as `bold`."""
    text = clean(text)
    if not sys.stdout.isatty():
        print(text)
        return
    from rich.console import Console

    Console(highlight=False).print(text, markup=False, emoji=False, style=style)


def _print_plain(lines: list[list[str]], left: list[bool]) -> None:
    """Every cell in its column; a text of several lines takes as many."""
    split = [[cell.expandtabs().splitlines() or [""] for cell in line] for line in lines]
    columns = zip(*split, strict=True)
    widths = [max(_cells(part) for cell in column for part in cell) for column in columns]
    for line in split:
        for number in range(max(map(len, line))):
            padded = []
            for cell, width, to_left in zip(line, widths, left, strict=True):
                text = cell[number] if number < len(cell) else ""
                space = " " * (width - _cells(text))
                padded.append(f" {text}{space} " if to_left else f" {space}{text} ")
            print("".join(padded))


def _cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text)


@contextmanager
def progress_bar(what: str, shown: bool = True) -> Iterator[Progress]:
    """A progress bar on standard error, if that is a terminal.

    It draws only when told and has no thread of its own: a process with threads should not fork.
    """
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield lambda share: None
        return
    with Bar(console=console, transient=True, auto_refresh=False) as bar:
        job, drawn = bar.add_task(what, total=1.0), 0.0

        def update(share: float) -> None:
            nonlocal drawn
            if share - drawn >= 0.005:
                drawn = share
                bar.update(job, completed=share, refresh=True)

        yield update


SLOW = 2.0  # seconds from which on something is said
PAUSE = 5.0  # seconds between two lines where there is no terminal


@contextmanager
def tell_when_slow(what: str, after: float | None = None) -> Iterator[Progress]:
    """Say on standard error how far it is, once it takes long: a line now and then, or a live one.

    A thread of its own says so: a kernel may be busy for longer than that.
    """
    from foreplan.scheduling.search_progress import report_to

    share, over, begun = [0.0], Event(), time.monotonic()
    live = sys.stderr.isatty()

    def say() -> None:
        wait, said = SLOW if after is None else after, False
        while not over.wait(wait):
            line = f"{what}: {share[0]:.0%} after {time.monotonic() - begun:.0f} s"
            text = f"\r{line}\x1b[K" if live else f"{line}\n"
            print(text, end="", file=sys.stderr, flush=True)
            wait, said = (0.5 if live else PAUSE), True
        if live and said:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def listen(done: float) -> None:
        share[0] = done

    thread = Thread(target=say, daemon=True)
    thread.start()
    try:
        with report_to(listen):
            yield listen
    finally:
        over.set()
        thread.join()
