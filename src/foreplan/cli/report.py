"""`foreplan report`: what happened in a run, from its journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreplan.cli.shared.options import RunDirectory, RunGantt, RunId, json_option
from foreplan.cli.shared.pictures import check_gantts, draw_gantt
from foreplan.cli.shared.tables import say, table
from foreplan.errors import InputError

if TYPE_CHECKING:
    from foreplan.report.data import Report

PAGE = (".html", ".htm")
TAILS = 5  # tasks whose last lines are shown


def report(
    run: RunId = "last",
    html: Annotated[
        Path | None,
        typer.Option(help="Write all of it as one page (.html) that needs nothing else."),
    ] = None,
    gantt: RunGantt = None,
    wfformat: Annotated[
        Path | None,
        typer.Option(
            help="Write what ran, where and for how long, as a WfFormat 1.6 trace (.json)."
        ),
    ] = None,
    as_json: Annotated[bool, json_option("the report")] = False,
    directory: RunDirectory = Path(),
) -> None:
    """Tell what happened in a run: times against the plan, failures, new plans, processors.

    It reads the journal and changes nothing, so it may be asked for while the run is under way.

    Example: `foreplan report last --html report.html --gantt run.svg`
    """
    from foreplan.report.data import report_of
    from foreplan.runs.home import RunHome

    charts = check_gantts(gantt)
    if html is not None and html.suffix.lower() not in PAGE:
        raise InputError("the page's name must end in .html", source=str(html))
    if wfformat is not None and wfformat.suffix.lower() != ".json":
        raise InputError("the name of a trace must end in .json", source=str(wfformat))
    told = report_of(RunHome.find(directory, run))
    if html is not None:
        from foreplan.report.page import write_page

        write_page(told, html)
    for path in charts:
        draw_gantt(told.run, path)
    if wfformat is not None:
        from foreplan.report.wfformat_trace import write_wfformat

        write_wfformat(told, wfformat)
    if as_json:
        print(json.dumps(told.to_dict(), indent=1, allow_nan=False))
        return
    show(told)
    written = [html, *charts, wfformat]
    for name in filter(None, written):
        print(f"wrote {name}")


def show(told: Report) -> None:
    """Print the report."""
    from foreplan.report.tables import facts_of, sheets_of
    from foreplan.report.words import about_command

    say(f"run {told.id}", "bold")
    if told.damage is not None:
        say(f"note: {told.damage}", "yellow")
    for label, value in facts_of(told):
        say(f"{label + ':':<11}{value}")
    for sheet in sheets_of(told):
        say(f"\n{sheet.title}", "bold")
        table(sheet.columns, sheet.rows, texts=0)
        if sheet.note:
            say(sheet.note, "dim")
    for failure in [f for f in told.failures if f.final][:TAILS]:
        kept = Path(told.home) / failure.scratch if failure.scratch else None
        if lines := about_command(failure.command, failure.unlisted, kept):
            say(f"\n{failure.task}", "bold")
            say("\n".join(lines))
        if failure.tail:
            say(f"\nlast lines of {failure.task}", "bold")
            say(failure.tail)
