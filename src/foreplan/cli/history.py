"""`foreplan history`: what tasks took before, on which machine; shown, exported, forgotten."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreplan.cli.shared.options import json_option
from foreplan.cli.shared.tables import table
from foreplan.errors import InputError, unknown_name
from foreplan.quantities import data_size, duration, many

if TYPE_CHECKING:
    from foreplan.history.memory import Suggestion
    from foreplan.history.report import SummaryRow

app = typer.Typer(
    help="What tasks took before: the performance history that estimates are made of.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command()
def show(
    category: Annotated[str | None, typer.Option(help="Only this category.")] = None,
    as_json: Annotated[bool, json_option("the rows")] = False,
) -> None:
    """What each category takes on each machine, and how sure that is.

    The median and the spread are those of the newest records; "by size" says that predictions
    follow the size of the input. Below it stands what tasks could ask for by the memory that they
    had.

    Example: `foreplan history show --category align`
    """
    rows, suggestions = _rows()
    if category is not None:
        known = {row.category for row in rows}
        if category not in known:
            raise InputError(unknown_name("category", category, known))
        rows = [row for row in rows if row.category == category]
        suggestions = [said for said in suggestions if said.category == category]
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    elif not rows:
        print(f"no history yet in {_path()}; `foreplan run` writes it")
    else:
        _show(rows)
        for said in suggestions:
            print(said.words)


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="The file to write: .csv or .json.")],
) -> None:
    """Write every record to a file, as CSV or JSON by its suffix.

    Example: `foreplan history export history.csv`
    """
    from foreplan.history.report import check_suffix
    from foreplan.history.repository import Repository

    check_suffix(file)
    with Repository(_existing()) as repository:
        tasks, transfers = repository.export(file)
    print(f"wrote {file}: {_told(tasks, transfers)}")


@app.command("import")
def import_times(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="trace.txt of Nextflow; benchmark files of Snakemake, or its directory "
            ".snakemake; WfFormat traces (.json).",
        ),
    ],
    category: Annotated[
        str | None, typer.Option(help="The category of all of them, whatever the files say.")
    ] = None,
    machine: Annotated[
        str | None, typer.Option(help="The machine that they ran on, whatever the files say.")
    ] = None,
    workflow: Annotated[
        str | None,
        typer.Option(
            help="The `name:` of the workflow they are for.", show_default="the directory's"
        ),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            help="The data directory they are for, as in `foreplan run`.",
            show_default="the current one, or that of .snakemake",
        ),
    ] = None,
) -> None:
    """Take over what other tools have measured: Nextflow, Snakemake, WfFormat.

    Tasks of the same category, run in that directory, are then estimated by it. Cached and failed
    tasks are left out. What is there already is not added again, so a file may be imported twice,
    or again when it has grown.

    Example: `foreplan history import trace.txt benchmarks/align/*.tsv --category align`
    """
    from foreplan.history.repository import Repository
    from foreplan.imports.times import ImportOptions, origin_of, read_times

    found = [  # all are read before anything is kept
        read_times(file, ImportOptions(origin_of(file, directory, workflow), machine, category))
        for file in files
    ]
    with Repository() as repository:
        for file, told in zip(files, found, strict=True):
            new = repository.add_new(told.records)
            print(f"{file}: {_imported(len(told.records), new, told.left_out)}")


def _imported(total: int, new: int, left_out: dict[str, int]) -> str:
    """What became of a file, in words."""
    said = f"{many(new, 'record')} added"
    if new < total:
        said += f", {total - new:,} there already"
    return said + "".join(f", {count:,} {why} left out" for why, count in left_out.items())


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

    Example: `foreplan history forget --machine old-laptop --before 2026-01-31`
    """
    from foreplan.history.repository import Repository

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
    """Where the history is; the variable FOREPLAN_HOME moves it.

    Example: `ls -l "$(foreplan history path)"`
    """
    print(_path())


def _path() -> Path:
    from foreplan.history.database import FILE, home

    return home() / FILE


def _existing() -> Path:
    """The database; looking at a history that is not there does not make one."""
    where = _path()
    if not where.exists():
        raise InputError(f"no history yet in {where}; `foreplan run` writes it")
    return where


def _rows() -> tuple[list[SummaryRow], list[Suggestion]]:
    from foreplan.history.report import suggest, summarise
    from foreplan.history.repository import Repository

    if not _path().exists():
        return [], []
    with Repository() as repository:
        known = repository.history()
        return summarise(known, repository.counts()), suggest(known, repository.asked())


def _moment(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()  # local time, unless it says otherwise
    except (ValueError, OverflowError):
        raise InputError(
            f"{text!r} is not a date; write it as 2026-01-31 or 2026-01-31T12:00",
            place="--before",
        ) from None


def _told(tasks: int, transfers: int) -> str:
    return f"{many(tasks, 'record')} of tasks, {transfers:,} of transfers"


def _show(rows: list[SummaryRow]) -> None:
    lines, above = [], None
    for row in rows:
        lines.append(
            [
                "" if row.category == above else row.category,
                row.machine,
                f"{row.count:,}",
                duration(row.median),
                f"{row.spread:.0%}" if row.count > 1 else "-",
                "-" if row.memory is None else f"{'<' * row.at_most}{data_size(row.memory)}",
                "-" if row.cores is None else f"{row.cores:.2g}",
                datetime.fromtimestamp(row.last).strftime("%Y-%m-%d %H:%M"),
                "yes" if row.by_size else "",
            ]
        )
        above = row.category
    header = ["category", "machine", "n", "median", "spread", "memory", "cores"]
    header += ["<last seen", "<by size"]
    table(header, lines, texts=2)
