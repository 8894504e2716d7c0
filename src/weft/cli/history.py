"""`weft history`: what tasks took before, on which machine; shown, exported, forgotten."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.errors import InputError, unknown_name
from weft.quantities import duration

if TYPE_CHECKING:
    from weft.history.summary import Row

app = typer.Typer(
    help="What tasks took before: the performance history that estimates are made of.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command()
def show(
    category: Annotated[str | None, typer.Option(help="Only this category.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """What each category takes on each machine, and how sure that is.

    The median and the spread are those of the newest records; "by size" says that predictions
    follow the size of the input.

    Example: `weft history show --category align`
    """
    rows = _rows()
    if category is not None:
        known = {row.category for row in rows}
        if category not in known:
            raise InputError(unknown_name("category", category, known))
        rows = [row for row in rows if row.category == category]
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    elif not rows:
        print(f"no history yet in {_path()}; `weft run` writes it")
    else:
        _show(rows)


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="The file to write: .csv or .json.")],
) -> None:
    """Write every record to a file, as CSV or JSON by its suffix.

    Example: `weft history export history.csv`
    """
    from weft.history.export import check_suffix
    from weft.history.repository import Repository

    check_suffix(file)
    with Repository(_existing()) as repository:
        tasks, transfers = repository.export(file)
    print(f"wrote {file}: {_told(tasks, transfers)}")


@app.command()
def forget(
    category: Annotated[str | None, typer.Option(help="Tasks of this category.")] = None,
    machine: Annotated[
        str | None, typer.Option(help="Tasks on this machine, and transfers from and to it.")
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="What is older: 2026-01-31, or 2026-01-31T12:00."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All there is.")] = False,
) -> None:
    """Delete records: those that all the options given agree on.

    Example: `weft history forget --machine old-laptop --before 2026-01-31`
    """
    from weft.history.repository import Repository

    narrowed = any(option is not None for option in (category, machine, before))
    if narrowed == everything:
        raise InputError(
            "say which records: --category, --machine or --before, or --all for all of them"
            if not everything
            else "--all is for all records; leave it out to forget some"
        )
    until = None if before is None else _moment(before)
    with Repository(_existing()) as repository:
        tasks, transfers = repository.forget(category, machine, until)
    print(f"forgot {_told(tasks, transfers)}")


@app.command()
def path() -> None:
    """Where the history is; the variable WEFT_HOME moves it.

    Example: `ls -l "$(weft history path)"`
    """
    print(_path())


def _path() -> Path:
    from weft.history.database import FILE, home

    return home() / FILE


def _existing() -> Path:
    """The database; looking at a history that is not there does not make one."""
    where = _path()
    if not where.exists():
        raise InputError(f"no history yet in {where}; `weft run` writes it")
    return where


def _rows() -> list[Row]:
    from weft.history.repository import Repository
    from weft.history.summary import summarise

    if not _path().exists():
        return []
    with Repository() as repository:
        return summarise(repository.history(), repository.counts())


def _moment(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()  # local time, unless it says otherwise
    except (ValueError, OverflowError):
        raise InputError(
            f"{text!r} is not a date; write it as 2026-01-31 or 2026-01-31T12:00",
            place="--before",
        ) from None


def _told(tasks: int, transfers: int) -> str:
    records = "record" if tasks == 1 else "records"
    return f"{tasks:,} {records} of tasks, {transfers:,} of transfers"


def _show(rows: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("category", "machine", box=None, header_style="dim")
    for heading in ("n", "median", "spread"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("last seen", no_wrap=True)
    table.add_column("by size")
    above = None
    for row in rows:
        table.add_row(
            Text("" if row.category == above else row.category),
            Text(row.machine),
            f"{row.count:,}",
            duration(row.median),
            f"{row.spread:.0%}" if row.count > 1 else "-",
            datetime.fromtimestamp(row.last).strftime("%Y-%m-%d %H:%M"),
            "yes" if row.by_size else "",
        )
        above = row.category
    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=200)
    console.print(table)
