"""`foreplan machines`: the processors of a run, more of them, or fewer."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreplan.cli.shared.options import RunDirectory, RunId, json_option
from foreplan.cli.shared.tables import table
from foreplan.cli.shared.terminal import command
from foreplan.errors import InputError
from foreplan.files import clean
from foreplan.quantities import amount, duration

if TYPE_CHECKING:
    from foreplan.runs.home import RunHome


@dataclass(frozen=True)
class MachineRow:
    """A processor of a run."""

    name: str
    host: str
    present: bool
    leaving: float | None  # when, in the run's seconds
    drained: bool  # it is to go, and nothing runs there
    running: str | None  # the task
    price: float = 0.0  # per second
    billing: float = 0.0  # paid per begun unit of so many seconds


def machines(
    run: RunId = "last",
    add: Annotated[
        int, typer.Option(min=0, metavar="N", help="Let it use N processors more (local runs).")
    ] = 0,
    drain: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Start nothing new on this processor; what runs there is finished. Repeatable.",
        ),
    ] = None,
    after: Annotated[
        float,
        typer.Option("--in", min=0.0, metavar="SECONDS", help="With --drain: only then."),
    ] = 0.0,
    directory: RunDirectory = Path(),
    as_json: Annotated[bool, json_option("the processors")] = False,
) -> None:
    """Show the processors of a run; let one under way have more of them, or let some go.

    Of a run that nobody drives it says so, and shows them as they were when it was last heard of.

    A processor that is drained gets no new tasks, and the results that others need are sent away
    from it. With `--in` it still gets what can be done there before.

    Example: `foreplan machines last --drain local-2 --in 60`
    """
    from foreplan.runs.home import RunHome
    from foreplan.runs.journal import resume_words
    from foreplan.runs.requests import RunRequest, ask
    from foreplan.runs.summary import summarise

    _check(add, drain or [], after)
    home, said = RunHome.find(directory, run), None
    if add or drain:
        said = ask(home, RunRequest(add, tuple(drain or ()), after))
    status = summarise(home).status
    now, rows = machines_of(home)
    if as_json:
        found = {"run": home.id, "status": status, "time": now}
        found["processors"] = [asdict(row) for row in rows]
        print(json.dumps(found if said is None else {**found, "said": said}, indent=1))
        return
    if said is not None:
        print(clean(said))
    if status != "running":
        typed = command("resume", home.id, directory)
        resume = f"; {resume_words(home.journal, typed)} resumes it"
        again = "" if status == "finished" else resume
        print(f"run {home.id} is {status}, no machine works for it{again}")
        print(f"its machines when it was last heard of, at {duration(now)}:")
    _show(now, rows, "runs" if status == "running" else "was running")


def _check(add: int, drain: list[str], after: float) -> None:
    if add and drain:
        raise InputError("add or drain, one thing at a time", place="--add and --drain")
    if after and not drain:
        raise InputError("it says when a drained processor goes", place="--in without --drain")
    if not math.isfinite(after):
        raise InputError("the seconds must be a number", place="--in")


def machines_of(home: RunHome) -> tuple[float, list[MachineRow]]:
    """The last time in a run's journal, and its processors then."""
    from foreplan.runs.journal import read
    from foreplan.runs.replay import replay

    replayed = replay(read(home.journal), home.data)
    coordinator = replayed.driver.coordinator
    coordinator.pass_time(replayed.until)
    state, platform = coordinator.state, coordinator.platform
    tasks, rows = coordinator.workflow.task_names, list[MachineRow]()
    there, goes, running = state.present(), state.leaves(), state.running()
    for p, name in enumerate(platform.processor_names):
        runs = [tasks[attempt.task] for attempt in running if attempt.processor == p]
        leaves = float(goes[p])
        present, now = bool(there[p]), leaves <= coordinator.now
        rows.append(
            MachineRow(
                name=name,
                host=platform.host_names[platform.host[p]],
                present=present,
                leaving=leaves if present and math.isfinite(leaves) else None,
                drained=present and now and not runs,
                running=runs[0] if runs else None,
                price=float(platform.price[p]),
                billing=float(platform.billing[p]),
            )
        )
    return coordinator.now, rows


def _show(now: float, rows: list[MachineRow], running: str) -> None:
    paid = any(row.price for row in rows)
    header = ["processor", "host", "state", running] + ["price"] * paid
    lines = [
        [row.name, row.host, _state(row, now), row.running or "-"] + [_price(row)] * paid
        for row in rows
    ]
    table(header, lines, texts=5)


def _price(row: MachineRow) -> str:
    unit = f", per begun {duration(row.billing)}" if row.billing else ""
    return f"{amount(row.price)} per s{unit}"


def _state(row: MachineRow, now: float) -> str:
    if not row.present:
        return "gone"
    if row.leaving is None:
        return "present"
    if row.drained:
        return "drained"
    if row.leaving <= now:
        return "draining"
    return f"leaves at {duration(row.leaving)} (now {duration(now)})"
