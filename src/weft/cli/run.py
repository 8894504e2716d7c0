"""`weft run`: the commands of a workflow, run for real."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.money import OWN_RESERVE, Budget, Deadline, OverBudget, OwnReserve
from weft.cli.terminal import leave_terminal

if TYPE_CHECKING:
    from weft.cli.display import Display
    from weft.live import Outcome


def run(
    workflow: Annotated[
        Path, typer.Argument(help="The workflow, its tasks with commands (`run:`): YAML or JSON.")
    ],
    on: Annotated[
        str,
        typer.Option(
            help="Where: `local`, `local:4` (so many at a time), or `dask://host:port` "
            "(a running Dask scheduler)."
        ),
    ] = "local",
    strategy: Annotated[
        str,
        typer.Option(
            help="When to replan, and with which planner: `slack[planner=dls]`; see "
            "`weft strategies`. `auto`: planned once anything is known of the tasks' times."
        ),
    ] = "auto",
    directory: Annotated[
        Path,
        typer.Option(
            "--dir", help="Files are read and written here; `.weft/runs` in it keeps the run."
        ),
    ] = Path(),
    shared: Annotated[
        bool, typer.Option("--shared", help="Dask: the workers see that directory, too.")
    ] = False,
    retries: Annotated[
        int, typer.Option(min=0, help="Tries more for a task that fails and says nothing itself.")
    ] = 0,
    timeout: Annotated[
        float | None,
        typer.Option(min=0.001, help="Seconds for a task that says nothing itself."),
    ] = None,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going", "-k", help="After a failure do all that does not depend on it."
        ),
    ] = False,
    absolute_paths: Annotated[
        bool,
        typer.Option("--absolute-paths", help="Files may lie outside of the directory."),
    ] = False,
    no_history: Annotated[
        bool,
        typer.Option("--no-history", help="Neither learn from former runs nor for later ones."),
    ] = False,
    price: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]PRICE[/UNIT]",
            help="Money per second of use, of all processors or of those with that name, host or "
            "machine (`fast*=0.02`); `/3600`: paid per begun 3600 s. Repeatable, the last that "
            "fits counts.",
        ),
    ] = None,
    transfer_price: Annotated[
        float, typer.Option(help="Money per unit of data (byte) sent to another host.")
    ] = 0.0,
    budget: Budget = None,
    over_budget: OverBudget = "continue",
    reserve: OwnReserve = None,
    deadline: Deadline = None,
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
    """Run the commands of a workflow on this machine or on a Dask cluster.

    Each task runs in a directory of its own with its inputs; its outputs appear in `--dir` when it
    has succeeded. Ctrl-C or SIGTERM once finishes what runs and stops, twice stops at once; either
    way, and after a crash, `weft resume last` goes on. If the terminal is closed, the run goes on
    without, as with `--detach`; `weft attach` shows it. The exit code is 0 if all is done, 1 if
    tasks failed, 130 if it was stopped, 2 if it could not begin or go on; 3 if all is done but cost
    more than the budget, 4 if it was done after the deadline.

    With a budget nothing begins that cannot be paid, and plans keep to what is left. If slow
    machines make that impossible, the run says so at once, and is finished the cheapest way; with
    `--over-budget stop` it stops, and goes on with `weft resume last --budget MORE`. With
    `--over-budget cut` the budget is a limit: what runs is cancelled when the money is gone.

    With a deadline the cheapest plan that ends by then is followed, and another one is made when it
    comes to end later. If no plan ends by then, nothing begins.

    Example: `weft run pipeline.yaml --on local:4 --retries 1`

    Example: `weft run pipeline.yaml --price 0.02 --price 'fast*=0.05' --budget 40`
    """
    begun = leave_terminal(directory, as_json) if detach else None
    from weft import api, live
    from weft.cli.ending import drive
    from weft.executors.paths import check_paths
    from weft.files import in_file
    from weft.live.prices import read_price

    wf = api.load(workflow)
    with in_file(workflow):
        check_paths(wf, absolute_paths)
    options = live.Options(
        on=on,
        strategy=strategy,
        directory=directory,
        shared=shared,
        retries=retries,
        timeout=timeout,
        keep_going=keep_going,
        absolute=absolute_paths,
        use_history=not no_history,
        price=[read_price(text) for text in price or []],
        transfer_price=transfer_price,
        budget=budget,
        over_budget=over_budget,
        reserve=reserve if reserve is not None else OWN_RESERVE if budget is not None else 0.0,
        deadline=deadline,
    )

    def sit(shown: Display) -> Outcome:
        return live.start(wf, options, source=str(workflow.absolute()), listener=shown)

    drive(sit, directory, as_json, quiet, begun)
