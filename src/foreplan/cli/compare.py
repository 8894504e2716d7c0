"""`foreplan compare`: strategies side by side, over many seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreplan.cli.shared.options import (
    Budget,
    ParamOptions,
    PlaceOptions,
    PlatformFile,
    Plot,
    Qoi,
    Reserve,
    WorldOptions,
    expected,
    json_option,
    load_workflow,
    with_groups,
)
from foreplan.cli.shared.pictures import check_plot
from foreplan.cli.shared.tables import progress_bar, say, table
from foreplan.quantities import many

if TYPE_CHECKING:
    from foreplan.comparison import Comparison, Figures


@with_groups
def compare(
    workflows: Annotated[
        list[Path], typer.Argument(help="Workflows: YAML, JSON, WfFormat, STG, DOT, DAGMan.")
    ],
    *,
    strategies: Annotated[
        str,
        typer.Option(
            help="Strategies, separated by commas: `static,slack[planner=dls],always`. "
            "The first is what the others are compared with."
        ),
    ],
    platform: PlatformFile = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each strategy, each a new seed.")] = 100,
    qoi: Qoi = 0.2,
    machines: WorldOptions,
    budget: Budget = None,
    reserve: Reserve = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the first run.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes to use. Default: one per core.")
    ] = None,
    plot: Plot = None,
    as_json: Annotated[bool, json_option("the figures")] = False,
    place: PlaceOptions,
    params: ParamOptions,
) -> None:
    """Compare strategies in the same simulated worlds: run r of each has the seed S + r.

    Intervals are of the mean, 95%, over the runs. The result is the same for any number of jobs.

    Example: `foreplan compare wf.yaml -p cluster.yaml --strategies static,slack,always --runs 200`

    On machines that change: `foreplan compare wf.yaml -p cluster.yaml --strategies static,aheft
    --variability 0.4 --failures 1`
    """
    from foreplan import api, comparison

    check_plot(plot)
    file = None if platform is None else api.load_platform(platform)
    loaded = [load_workflow(path, params, place) for path in workflows]
    told = [expected(path, wf, file, place) for path, wf in zip(workflows, loaded, strict=True)]
    with progress_bar("runs") as progress:
        result = comparison.compare(
            loaded,
            told[0].platform,
            strategies,
            runs,
            qoi,
            seed,
            jobs,
            progress,
            **machines._asdict(),
            estimates=[each.estimates for each in told],
            budget=budget,
            reserve=reserve,
        )
    if plot is not None:
        from foreplan.charts.comparison import write_plot

        write_plot(result, plot)
    if as_json:
        print(json.dumps(result.to_dict(), indent=1))
        return
    show(result)
    if plot is not None:
        print(f"wrote {plot}")


def show(result: Comparison) -> None:
    """Print a table of all workflows together, and one of each where they are several."""
    several = len(result.by_workflow) > 1
    what = f"{len(result.by_workflow)} workflows" if several else result.by_workflow[0][0]
    scenario = "" if result.scenario.calm else f", {result.scenario}"
    say(
        f"{what}: {many(result.runs, 'run')} of each strategy, "
        f"QoI {result.qoi:g}{scenario}, seeds {result.seed} to {result.seed + result.runs - 1}",
        "bold",
    )
    _show(result.overall)
    for name, figures in result.by_workflow if several else ():
        say(f"\n{name}", "bold")
        _show(figures)


def _show(figures: tuple[Figures, ...]) -> None:
    from foreplan.charts.tables import of_strategies

    table(*of_strategies(figures))
