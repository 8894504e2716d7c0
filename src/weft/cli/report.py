"""`weft report`: what happened in a run, from its journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.plan import check_suffix
from weft.cli.wording import about_command, clean
from weft.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from weft.cli.report_data import Report
    from weft.cli.report_tables import Sheet

PAGE = (".html", ".htm")
TAILS = 5  # tasks whose last lines are shown


def report(
    run: Annotated[
        str, typer.Argument(help="The run: its id, the beginning of its id, or `last`.")
    ] = "last",
    html: Annotated[
        Path | None,
        typer.Option(help="Write all of it as one page (.html) that needs nothing else."),
    ] = None,
    gantt: Annotated[
        list[Path] | None,
        typer.Option(
            help="Draw plan against fact: .svg, .png, .html (zoom and hover), .json (for Perfetto)."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    directory: Annotated[
        Path, typer.Option("--dir", help="The directory of the run, as for `weft run`.")
    ] = Path(),
) -> None:
    """Tell what happened in a run: times against the plan, failures, new plans, processors.

    It reads the journal and changes nothing, so it may be asked for while the run goes on.

    Example: `weft report last --html report.html --gantt run.svg`
    """
    from weft.cli.report_data import report_of
    from weft.cli.simulate import draw
    from weft.journal.places import RunHome

    for path in gantt or []:
        check_suffix(path)
    if html is not None and html.suffix.lower() not in PAGE:
        raise InputError("the page's name must end in .html", source=str(html))
    told = report_of(RunHome.find(directory, run))
    if html is not None:
        from weft.cli.report_page import write_page

        write_page(told, html)
    for path in gantt or []:
        draw(told.run, path)
    if as_json:
        print(json.dumps(told.to_dict(), indent=1, allow_nan=False))
        return
    show(told)
    for path in [*([html] if html else []), *(gantt or [])]:
        print(f"wrote {path}")


def show(told: Report) -> None:
    """Print the report."""
    from rich.console import Console
    from rich.text import Text

    from weft.cli.report_tables import facts_of, sheets_of

    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=200)
    console.print(Text(f"run {told.id}", style="bold"))
    if told.damage is not None:
        console.print(Text(clean(f"note: {told.damage}"), style="yellow"))
    for label, value in facts_of(told):
        console.print(Text(f"{label + ':':<11}").append(clean(value)))
    for sheet in sheets_of(told):
        console.print(Text(f"\n{sheet.title}", style="bold"))
        console.print(_table(sheet))
        if sheet.note:
            console.print(Text(sheet.note, style="dim"))
    for failure in [f for f in told.failures if f.final][:TAILS]:
        if lines := about_command(failure.command, failure.unlisted):
            console.print(Text(f"\n{clean(failure.task)}", style="bold"))
            console.print(Text(clean("\n".join(lines))))
        if failure.tail:
            console.print(Text(f"\nlast words of {clean(failure.task)}", style="bold"))
            console.print(Text(clean(failure.tail)))


def _table(sheet: Sheet) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="dim")
    for heading in sheet.columns:
        right = heading.startswith(">")
        table.add_column(heading.lstrip(">"), justify="right" if right else "left", no_wrap=right)
    for row in sheet.rows:
        table.add_row(*(Text(clean(cell)) for cell in row))
    return table
