"""`weft runs`: the runs of a directory and what became of them."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.wording import clean, moment, near, took
from weft.errors import WeftError
from weft.quantities import amount

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

    rows = [(found := summarise(home), _about(home, found.status)) for home in find(directory)]
    if as_json:
        print(json.dumps([asdict(summary) | about for summary, about in rows], indent=1))
    elif not rows:
        print(f"no runs in {near(directory.absolute() / '.weft' / 'runs')}; `weft run` makes one")
    else:
        _show(rows)


def _about(home: RunHome, status: str) -> dict[str, Any]:
    """Strategy, place and money; nothing if the journal's first line is not readable."""
    from weft.journal.lines import decode

    about: dict[str, Any] = {"strategy": None, "on": None}
    try:
        with home.journal.open("rb") as file:
            header = decode(file.readline().partition(b" ")[2])
    except (OSError, ValueError, KeyError):
        return about
    known = {key: str(header[key]) if key in header else None for key in about}
    return known | (_money(home, status) if _has_prices(header) else {})


def _has_prices(header: dict[str, Any]) -> bool:
    options = header.get("options")
    return isinstance(options, dict) and bool(options.get("price") or options.get("transfer_price"))


def _money(home: RunHome, status: str) -> dict[str, Any]:
    """What a run cost, and what was expected if it is not finished; nothing if nobody can tell."""
    from weft.journal.log import read
    from weft.live.replay import replay

    try:
        contents = read(home.journal)
        last = contents.entries[-1] if contents.entries else {}
        if status == "finished" and "cost" in last:
            return {"cost": last["cost"], "budget": last.get("budget")}
        replayed = replay(contents, home.data)
        coordinator = replayed.progress.coordinator
        coordinator.pass_time(replayed.until)  # what was running has cost until then
    except WeftError:
        return {}
    money, budget = coordinator.money(), coordinator.purse.budget
    amounts = {"cost": money.spent, "committed": money.committed, "projected": money.projected}
    known = {name: a if math.isfinite(a) else None for name, a in amounts.items()}
    return known | {"budget": budget if math.isfinite(budget) else None}


def _show(rows: list[tuple[Summary, dict[str, Any]]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("run", "status", box=None, header_style="dim")
    table.add_column("done", justify="right", no_wrap=True)
    table.add_column("started", no_wrap=True)
    table.add_column("took", justify="right", no_wrap=True)
    paid = ["cost", "projected", "budget"] if any("cost" in about for _, about in rows) else []
    for heading in paid:
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("strategy", "on"):
        table.add_column(heading)
    for summary, about in rows:
        table.add_row(
            Text(summary.id, no_wrap=True),
            Text(summary.status, style=STYLES.get(summary.status, "yellow")),
            f"{summary.done}/{'?' if summary.total is None else summary.total}",
            moment(summary.created),
            "-" if summary.seconds is None else took(summary.seconds),
            *(_amount(about.get(name)) for name in paid),
            Text(clean(about["strategy"] or "-")),
            Text(clean(about["on"] or "-")),
        )
    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=200)
    console.print(table)
    for summary, _ in rows:
        if summary.problem is not None:
            console.print(Text(f"{summary.id}: the journal: {summary.problem}", style="yellow"))


def _amount(value: Any) -> str:
    return amount(value, 4) if isinstance(value, int | float) else "-"
