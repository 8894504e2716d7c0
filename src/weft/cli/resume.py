"""`weft resume`: go on with a run that was stopped, failed, or died."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.money import Deadline
from weft.cli.terminal import leave_terminal
from weft.errors import InputError

if TYPE_CHECKING:
    from weft.cli.display import Display
    from weft.journal.places import RunHome
    from weft.live import Outcome
    from weft.model import Workflow


def resume(
    run: Annotated[
        str, typer.Argument(help="The run: its id, the beginning of its id, or `last`.")
    ],
    on: Annotated[
        str | None,
        typer.Option(help="Elsewhere than it began: `local`, or `dask://host:port`."),
    ] = None,
    as_started: Annotated[
        bool,
        typer.Option(
            "--as-started", help="With the workflow as it was, even if its file has changed."
        ),
    ] = False,
    budget: Annotated[
        float | None,
        typer.Option(help="Another budget, for all of it: what is spent already is part of it."),
    ] = None,
    over_budget: Annotated[
        str | None,
        typer.Option(
            metavar="continue|stop|cut",
            help="When even the cheapest way to finish is over the budget, as for `weft run`.",
            show_default="as before",
        ),
    ] = None,
    deadline: Deadline = None,
    directory: Annotated[
        Path, typer.Option("--dir", help="The directory of the run, as for `weft run`.")
    ] = Path(),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print how it ended as JSON; messages go to stderr.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, only messages and the summary.")
    ] = False,
    detach: Annotated[
        bool,
        typer.Option("--detach", help="Return once the run has begun; it goes on by itself."),
    ] = False,
) -> None:
    """Go on with a run where it was.

    What is finished, and has its outputs still, is not repeated; what was under way or has failed
    is tried again. A run that was stopped for its budget needs another one, or
    `--over-budget continue`. Exit codes are those of `weft run`; `weft runs` lists the runs.

    Example: `weft resume last`, or `weft resume last --budget 60`
    """
    begun = leave_terminal(directory, as_json) if detach else None
    from weft import live
    from weft.cli.ending import drive
    from weft.journal.places import RunHome

    home = RunHome.find(directory, run)
    workflow = None if as_started else _from_source(home)

    def sit(shown: Display) -> Outcome:
        return live.resume(
            home, workflow, on=on, listener=shown,
            budget=budget, over_budget=over_budget, deadline=deadline,
        )  # fmt: skip

    drive(sit, directory, as_json, quiet, begun)


def _from_source(home: RunHome) -> Workflow | None:
    """The workflow as its file is now, so that a change is found; None if there is none."""
    from weft import api
    from weft.journal.log import read

    header: dict[str, Any] = read(home.journal).header
    source = header.get("source")
    if not isinstance(source, str) or header.get("functions"):
        return None
    if not Path(source).exists():
        print(f"{source} is gone: the run goes on with the workflow as it was", file=sys.stderr)
        return None
    try:
        return api.load(source)
    except InputError as error:
        raise InputError(
            f"{error}; to go on with the workflow as it was: `weft resume {home.id} --as-started`"
        ) from None
