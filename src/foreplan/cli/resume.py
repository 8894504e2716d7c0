"""`foreplan resume`: a run that was stopped, failed or died is resumed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreplan.cli.shared.options import (
    Detach,
    Notify,
    Quiet,
    RunDirectory,
    RunId,
    RunJson,
    with_run_options,
)
from foreplan.cli.shared.terminal import leave_terminal
from foreplan.errors import InputError

if TYPE_CHECKING:
    from foreplan.display.display import Display
    from foreplan.model import Workflow
    from foreplan.runs import Session
    from foreplan.runs.home import RunHome


@with_run_options(resuming=True)
def resume(
    run: RunId,
    as_started: Annotated[
        bool,
        typer.Option(
            "--as-started", help="With the workflow as it was, even if its file has changed."
        ),
    ] = False,
    directory: RunDirectory = Path(),
    as_json: RunJson = False,
    quiet: Quiet = False,
    detach: Detach = False,
    notify: Notify = None,
    **changes: Any,
) -> None:
    """Resume a run where it was.

    What is finished, and has its outputs still, is not repeated; what was under way or has failed
    is tried again. A run that was stopped for its budget needs another one, or
    `--over-budget continue`. Exit codes are those of `foreplan run`; `foreplan runs` lists the
    runs.

    Example: `foreplan resume last`, or `foreplan resume last --budget 60`
    """
    begun = leave_terminal(directory, as_json) if detach else None
    from foreplan import runs
    from foreplan.cli.shared.ending import drive
    from foreplan.runs.home import RunHome

    home = RunHome.find(directory, run)
    workflow = None if as_started else _from_source(home)

    def opened(shown: Display) -> Session:
        return runs.reopen_run(home, workflow, listener=shown, **changes)

    drive(opened, directory, as_json, quiet, begun, notify)


def _from_source(home: RunHome) -> Workflow | None:
    """The workflow as its file is now, so that a change is found; None if there is none."""
    from foreplan import api
    from foreplan.runs import kept_params
    from foreplan.runs.journal import read

    header: dict[str, Any] = read(home.journal).header
    source = header.get("source")
    if not isinstance(source, str) or header.get("functions"):
        return None
    if not Path(source).exists():
        print(f"{source} is gone: the run is resumed with the workflow as it was", file=sys.stderr)
        return None
    try:
        return api.load(source, params=kept_params(home), dir=home.data)
    except InputError as error:
        raise InputError(
            f"{error}; to resume with the workflow as it was: "
            f"`foreplan resume {home.id} --as-started`"
        ) from None
