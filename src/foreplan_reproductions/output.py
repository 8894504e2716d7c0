"""What `foreplan reproduce` shows of any paper: progress, tables and verdicts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from foreplan.quantities import duration

if TYPE_CHECKING:
    from foreplan_reproductions.reports import Verdict

EVERY = 60.0  # seconds between two lines of progress where there is no terminal


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> None:
    """A table on standard output; the first columns stand left, the others right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False)
    for number, heading in enumerate(header):
        table.add_column(heading, justify="left" if number < left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(highlight=False).print(table)


def print_verdicts(found: Sequence[Verdict], simulators: Mapping[str, str]) -> None:
    """Each claim with its verdict and figures."""
    from rich.console import Console

    console = Console(highlight=False)
    for verdict in found:
        colour = "green" if verdict.holds else "yellow"
        where = simulators[verdict.simulator]
        console.print(f"[{colour}]{verdict.word:<7}[/] {verdict.claim} ({where})", soft_wrap=True)
        console.print(f"        [dim]{verdict.figures}[/]", soft_wrap=True)


@contextmanager
def progress_bar(what: str, done: float = 0.0) -> Iterator[Callable[[float], None]]:
    """Progress on standard error: a bar if that is a terminal, else a line a minute.

    What is told is the share of what was left to do when `done` was done. The bar has no thread
    of its own: processes are forked while it is shown.
    """
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(what, done)
        return
    begun = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    left = TextColumn("[dim]{task.fields[left]}[/]")
    with Bar(*columns, left, console=console, transient=True, auto_refresh=False) as bar:
        job = bar.add_task(what, total=1.0, left="")
        bar.update(job, completed=done, refresh=True)

        def tell(share: float) -> None:
            words = time_left(time.monotonic() - begun, share)
            bar.update(job, completed=done + (1 - done) * share, left=words, refresh=True)

        yield tell


def _lines(what: str, done: float) -> Callable[[float], None]:
    begun = said = time.monotonic()

    def tell(share: float) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said >= EVERY and share < 1:
            said = now
            percent = 100 * (done + (1 - done) * share)
            print(
                f"foreplan: {what}: {percent:.0f}%, {time_left(now - begun, share)}",
                file=sys.stderr,
            )

    return tell


def time_left(elapsed: float, share: float) -> str:
    """How long it will take from now, if it goes on like this."""
    if share <= 0:
        return ""
    seconds = elapsed * (1 - share) / share
    return f"about {duration(round(seconds))} left"
