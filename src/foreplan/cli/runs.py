"""`foreplan runs`: the runs of a directory and what became of them."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreplan.cli.shared.options import json_option
from foreplan.cli.shared.tables import say, table
from foreplan.errors import ForeplanError
from foreplan.files import near
from foreplan.quantities import amount, duration
from foreplan.report.words import moment

if TYPE_CHECKING:
    from foreplan.runs.home import RunHome
    from foreplan.runs.summary import Summary

STYLES = {"finished": "green", "running": "cyan", "failed": "red", "unreadable": "red"}


def runs(
    directory: Annotated[
        Path, typer.Option("--dir", help="The directory of the runs, as for `foreplan run`.")
    ] = Path(),
    as_json: Annotated[bool, json_option("the rows")] = False,
) -> None:
    """List the runs of a directory, the newest first.

    A run that is neither finished nor running can be resumed: `foreplan resume ID`, or, if it is
    of Python functions, `foreplan.run(flow, resume=ID)`. It is interrupted if the process that
    drove it died. After a failure, `foreplan run` does what is left.

    Example: `foreplan runs --dir data`
    """
    from foreplan.runs.home import runs as find
    from foreplan.runs.summary import summarise

    rows = [(found := summarise(home), _about(home, found.status)) for home in find(directory)]
    if as_json:
        print(json.dumps([asdict(summary) | about for summary, about in rows], indent=1))
    elif not rows:
        print(
            f"no runs in {near(directory.absolute() / '.foreplan' / 'runs')}; "
            "`foreplan run` makes one"
        )
    else:
        _show(rows)


def _about(home: RunHome, status: str) -> dict[str, Any]:
    """Strategy, place and money; nothing if the journal's first line is not readable."""
    from foreplan.runs.journal import read_header

    about: dict[str, Any] = {"strategy": None, "on": None}
    try:
        header = read_header(home.journal)
    except (OSError, ValueError, KeyError):
        return about
    known = {key: str(header[key]) if key in header else None for key in about}
    return known | (_money(home, status) if _has_prices(header) else {})


def _has_prices(header: dict[str, Any]) -> bool:
    options = header.get("options")
    return isinstance(options, dict) and bool(options.get("price") or options.get("transfer_price"))


def _money(home: RunHome, status: str) -> dict[str, Any]:
    """What a run cost, and what was expected if it is not finished; nothing if nobody can tell."""
    from foreplan.runs.journal import read
    from foreplan.runs.replay import replay

    try:
        contents = read(home.journal)
        last = contents.entries[-1] if contents.entries else {}
        if status == "finished" and "cost" in last:
            return {"cost": last["cost"], "budget": last.get("budget")}
        replayed = replay(contents, home.data)
        coordinator = replayed.driver.coordinator
        coordinator.pass_time(replayed.until)  # what was running has cost until then
    except ForeplanError:
        return {}
    money = coordinator.money()
    amounts = {"cost": money.spent, "committed": money.committed, "projected": money.projected}
    amounts["budget"] = coordinator.tracker.budget
    return {name: a if math.isfinite(a) else None for name, a in amounts.items()}


def _show(rows: list[tuple[Summary, dict[str, Any]]]) -> None:
    paid = ["cost", "projected", "budget"] if any("cost" in about for _, about in rows) else []
    header = ["run", "status", "done", "<started", "took", *paid, "<strategy", "<on"]
    lines = [
        [
            found.id,
            (found.status, STYLES.get(found.status, "yellow")),
            f"{found.done}/{'?' if found.total is None else found.total}",
            moment(found.created),
            "-" if found.seconds is None else duration(found.seconds),
            *(_amount(about.get(name)) for name in paid),
            about["strategy"] or "-",
            about["on"] or "-",
        ]
        for found, about in rows
    ]
    table(header, lines, texts=2)
    for found, _ in rows:
        if found.problem is not None:
            say(f"{found.id}: the journal: {found.problem}", "yellow")


def _amount(value: Any) -> str:
    return amount(value, 4) if isinstance(value, int | float) else "-"
