"""Plain tables and progress bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[float], None]


def table(header: list[str], rows: list[list[Any]]) -> None:
    """Print a table without lines; the first column is text."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="dim")
    for number, heading in enumerate(header):
        table.add_column(heading, justify="left" if number == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    Console(width=max(100, Console().width), highlight=False).print(table)


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
