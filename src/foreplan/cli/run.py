"""`foreplan run`: the commands of a workflow, run for real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreplan.cli.shared.options import (
    Assigned,
    Detach,
    Notify,
    ParamOptions,
    ParamsFile,
    Quiet,
    RunJson,
    with_run_options,
)
from foreplan.cli.shared.terminal import leave_terminal

if TYPE_CHECKING:
    from foreplan.display.display import Display
    from foreplan.runs import Options, Rest, Session


@with_run_options()
def run(
    workflow: Annotated[
        Path,
        typer.Argument(
            help="The workflow, its tasks with commands (`run:`): YAML or JSON; - is stdin."
        ),
    ],
    targets: Annotated[
        list[str] | None,
        typer.Argument(help="Tasks or files to make, with what they need; else all."),
    ] = None,
    dry: Annotated[
        bool,
        typer.Option(
            "--dry-run", "-n", help="Only tell what would run, why, how long, where, at what cost."
        ),
    ] = False,
    as_json: RunJson = False,
    quiet: Quiet = False,
    detach: Detach = False,
    notify: Notify = None,
    assigned: Assigned = None,
    params: ParamsFile = None,
    **options: Any,
) -> None:
    """Run the commands of a workflow on this machine or on a Dask cluster.

    What is up to date, by its command and the content of its files, is not run again, unless
    `--force` says so. Each task runs in a directory of its own with its inputs; its outputs appear
    in `--dir` when it has succeeded. Ctrl-C or SIGTERM once finishes what runs and stops, twice
    stops at once; either way, and after a crash, `foreplan resume last` resumes it. After a
    failure, once that is repaired, `foreplan run` does what is left. If the terminal is
    closed, the run continues without, as with `--detach`; `foreplan attach` shows it. The exit code
    is 0 if all is done, 1 if tasks failed, 130 if it was stopped, 2 if it could not begin or
    continue; 3 if all is done but cost more than the budget, 4 if it was done after the deadline.

    With a budget nothing begins that cannot be paid, and plans keep to what is left. If slow
    machines make that impossible, the run says so at once, and is finished the cheapest way; with
    `--over-budget stop` it stops; `foreplan resume last --budget MORE` resumes it. With
    `--over-budget cut` the budget is a limit: what runs is cancelled when the money is gone.

    With a deadline the cheapest plan that ends by then is followed, and another one is made when it
    comes to end later. If no plan ends by then, nothing begins.

    Example: `foreplan run pipeline.yaml --on local:4 --retries 1`

    Example: `foreplan run pipeline.yaml report.txt -n` (what would be done for that file, and why)

    Example: `foreplan run pipeline.yaml --set depth=50 --params samples.yaml`

    Example: `foreplan run pipeline.yaml --price 0.02 --price 'fast*=0.05' --budget 40`
    """
    directory = options["directory"]
    begun = leave_terminal(directory, as_json) if detach else None
    from foreplan import api, runs
    from foreplan.cli.shared.ending import drive
    from foreplan.executors.paths import check_paths
    from foreplan.files import in_file, is_stdin, label

    values = ParamOptions(assigned, params).values()
    wf = api.load(workflow, params=values, dir=directory)
    with in_file(label(workflow)):
        check_paths(wf, options["absolute"])
    asked = runs.Options.from_flags(options | {"targets": targets or (), "params": values})
    source = None if is_stdin(workflow) else str(workflow.absolute())
    rest = runs.find_rest(wf, asked, only_look=dry, source=source or "-")
    if dry:
        from foreplan.cli.shared.dry_run import tell_dry

        with in_file(label(workflow)):
            tell_dry(rest, asked, as_json)
        return
    if not rest.numbers:
        _tell_nothing(rest, asked, source, as_json)
        return

    def opened(shown: Display) -> Session:
        return runs.open_run(wf, asked, source=source, listener=shown, rest=rest)

    drive(opened, directory, as_json, quiet, begun, notify)


def _tell_nothing(rest: Rest, options: Options, source: str | None, as_json: bool) -> None:
    """All is up to date: there is no run."""
    from foreplan.runs import nothing_to_do

    warnings = nothing_to_do(rest, options, source).warnings
    if as_json:
        done = {"run": None, "status": "up to date", "up_to_date": [*rest.up_to_date]}
        print(json.dumps({**done, "warnings": warnings}))
        return
    of_store = len(rest.warnings)
    for line in (*rest.notes, *warnings[:of_store], rest.summary, *warnings[of_store:]):
        print(line)
