"""Plain tables and progress bars."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

Progress = Callable[[float], None]


def table(header: list[str], rows: list[list[Any]], texts: int = 1) -> None:
    """Print a table without lines; the first columns are texts, the others numbers.

    To a pipe or a file it goes as wide as it is, without the 20 ms that loading rich takes.
    """
    lines = [header, *([str(cell) for cell in row] for row in rows)]
    if not sys.stdout.isatty():
        _print_plain(lines, texts)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="dim")
    for number, heading in enumerate(header):
        table.add_column(heading, justify="left" if number < texts else "right", no_wrap=True)
    for line in lines[1:]:
        table.add_row(*line)
    width = max(100, Console().width)
    Console(width=width, highlight=False, markup=False, emoji=False).print(table)


def say(text: str, style: str = "") -> None:
    """Print a line; on a terminal in a style, such as `bold`."""
    if not sys.stdout.isatty():
        print(text)
        return
    from rich.console import Console

    Console(highlight=False).print(text, markup=False, emoji=False, style=style)


def _print_plain(lines: list[list[str]], texts: int) -> None:
    widths = [max(map(_cells, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = []
        for number, (cell, width) in enumerate(zip(line, widths, strict=True)):
            space = " " * (width - _cells(cell))
            padded.append(f" {cell}{space} " if number < texts else f" {space}{cell} ")
        print("".join(padded))


def _cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text)


@contextmanager
def progress_bar(what: str, shown: bool) -> Iterator[Progress]:
    """A progress bar on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield lambda share: None
        return
    with Bar(console=console, transient=True) as bar:
        job = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(job, completed=share)


SLOW = 2.0  # seconds from which on something is said
PAUSE = 5.0  # seconds between two lines where there is no terminal


@contextmanager
def told_when_slow(what: str, after: float | None = None) -> Iterator[Progress]:
    """Say on standard error how far it is, once it takes long: a line now and then, or a live one.

    A thread of its own says so: a kernel may be busy for longer than that.
    """
    from weft.search_progress import heard_by

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
        with heard_by(listen):
            yield listen
    finally:
        over.set()
        thread.join()
