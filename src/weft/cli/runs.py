"""`weft runs`: the runs of a directory and what became of them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.wording import clean, moment, near, took

if TYPE_CHECKING:
    from weft.journal.places import RunHome
    from weft.journal.summary import Summary

STYLES = {"finished": "green", "running": "cyan", "failed": "red", "unreadable": "red"}


def runs(
    directory: Annotated[
        Path, typer.Option("--dir", help="The directory of the runs, as for `weft run`.")
    ] = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """List the runs of a directory, the newest first.

    A run that is neither finished nor running can be gone on with: `weft resume ID`. It is
    interrupted if the process that drove it died.

    Example: `weft runs --dir data`
    """
    from weft.journal.places import runs as find
    from weft.journal.summary import summarise

    rows = [(summarise(home), _about(home)) for home in find(directory)]
    if as_json:
        print(json.dumps([asdict(summary) | about for summary, about in rows], indent=1))
    elif not rows:
        print(f"no runs in {near(directory.absolute() / '.weft' / 'runs')}; `weft run` makes one")
    else:
        _show(rows)


def _about(home: RunHome) -> dict[str, Any]:
    """Strategy and place, from the journal's first line; nothing if that is not readable."""
    from weft.journal.lines import decode

    about: dict[str, Any] = {"strategy": None, "on": None}
    try:
        with home.journal.open("rb") as file:
            header = decode(file.readline().partition(b" ")[2])
    except (OSError, ValueError, KeyError):
        return about
    return {key: str(header[key]) if key in header else None for key in about}


def _show(rows: list[tuple[Summary, dict[str, Any]]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("run", "status", box=None, header_style="dim")
    table.add_column("done", justify="right", no_wrap=True)
    table.add_column("started", no_wrap=True)
    table.add_column("took", justify="right", no_wrap=True)
    for heading in ("strategy", "on"):
        table.add_column(heading)
    for summary, about in rows:
        table.add_row(
            Text(summary.id, no_wrap=True),
            Text(summary.status, style=STYLES.get(summary.status, "yellow")),
            f"{summary.done}/{'?' if summary.total is None else summary.total}",
            moment(summary.created),
            "-" if summary.seconds is None else took(summary.seconds),
            Text(clean(about["strategy"] or "-")),
            Text(clean(about["on"] or "-")),
        )
    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=200)
    console.print(table)
    for summary, _ in rows:
        if summary.problem is not None:
            console.print(Text(f"{summary.id}: the journal: {summary.problem}", style="yellow"))
