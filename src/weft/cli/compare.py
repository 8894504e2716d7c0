"""`weft compare`: strategies side by side, over many seeds."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.expected import DataDirectory, NoHistory, On, PlatformFile, Prices, expected
from weft.cli.money import Budget, Reserve
from weft.cli.simulate import EventRate, FailureRate, Failures, ReturnAfter, Variability
from weft.executors.scenario import EVENT_RATE
from weft.quantities import amount, duration

if TYPE_CHECKING:
    from rich.table import Table

    from weft.experiments.comparison import Comparison, Figures, Mean


def compare(
    workflows: Annotated[
        list[Path], typer.Argument(help="Workflows: YAML, JSON, WfFormat, STG, DOT, DAGMan.")
    ],
    strategies: Annotated[
        str,
        typer.Option(
            help="Strategies, separated by commas: `static,slack[planner=dls],always`. "
            "The first is what the others are compared with."
        ),
    ],
    platform: PlatformFile = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each strategy, each a new seed.")] = 100,
    qoi: Annotated[
        float, typer.Option(help="Draw durations within +-QoI of the estimates: 0.2 is 20%.")
    ] = 0.2,
    variability: Variability = 0.0,
    event_rate: EventRate = EVENT_RATE,
    failures: Failures = 0,
    failure_rate: FailureRate = 0.0,
    return_after: ReturnAfter = math.inf,
    budget: Budget = None,
    reserve: Reserve = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the first run.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes to use. Default: one per core.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw it: .png or .svg.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    on: On = None,
    price: Prices = None,
    directory: DataDirectory = Path(),
    no_history: NoHistory = False,
) -> None:
    """Compare strategies in the same simulated worlds: run r of each has the seed S + r.

    Intervals are of the mean, 95%, over the runs. The result is the same for any number of jobs.

    Example: `weft compare wf.yaml -p cluster.yaml --strategies static,slack,always --runs 200`

    On machines that change: `weft compare wf.yaml -p cluster.yaml --strategies static,aheft
    --variability 0.4 --failures 1`
    """
    from weft import api
    from weft.experiments import comparison, comparison_plot

    if plot is not None:
        comparison_plot.check_plot(plot)
    file = None if platform is None else api.load_platform(platform)
    loaded = [api.load(path) for path in workflows]
    told = [
        expected(path, wf, file, on, price, directory, no_history)
        for path, wf in zip(workflows, loaded, strict=True)
    ]
    with _progress("runs") as progress:
        result = comparison.compare(
            loaded,
            told[0].platform,
            strategies,
            runs,
            qoi,
            seed,
            jobs,
            progress,
            variability=variability,
            event_rate=event_rate,
            failures=failures,
            failure_rate=failure_rate,
            return_after=return_after,
            estimates=[each.estimates for each in told],
            budget=budget,
            reserve=reserve,
        )
    if as_json:
        print(json.dumps(result.to_dict(), indent=1))
    else:
        show(result)
    if plot is not None:
        comparison_plot.write_plot(result, plot)
        if not as_json:
            print(f"wrote {plot}")


def show(result: Comparison) -> None:
    """Print a table of all workflows together, and one of each where they are several."""
    from rich.console import Console

    console = Console(highlight=False)
    console = Console(highlight=False, width=max(110, console.width))
    several = len(result.by_workflow) > 1
    what = f"{len(result.by_workflow)} workflows" if several else result.by_workflow[0][0]
    scenario = "" if result.scenario.calm else f", {result.scenario}"
    console.print(
        f"{what}: {result.runs:,} run{'s' if result.runs != 1 else ''} of each strategy, "
        f"QoI {result.qoi:g}{scenario}, seeds {result.seed} to {result.seed + result.runs - 1}",
        markup=False,
        style="bold",
    )
    console.print(_table(result.overall))
    for name, figures in result.by_workflow if several else ():
        console.print(f"\n{name}", markup=False, style="bold")
        console.print(_table(figures))


def _table(rows: tuple[Figures, ...]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("strategy", box=None, header_style="dim")
    for heading in ("makespan", "+-", "ratio", "95% interval", "considered", "taken", "cost"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("planning", justify="right", no_wrap=True)
    for f in rows:
        table.add_row(
            Text(f.strategy),
            "-" if f.makespan.mean is None else duration(f.makespan.mean, 3),
            "-" if f.makespan.high is None else duration(_half(f.makespan)),
            "-" if f.ratio.mean is None else f"{f.ratio.mean:.4f}",
            "-" if f.ratio.low is None else f"{f.ratio.low:.4f} to {f.ratio.high:.4f}",
            amount(f.considered, 4),
            amount(f.replans, 4),
            "-" if f.cost.mean is None else amount(f.cost.mean),
            duration(f.planning_milliseconds / 1000),
        )
    return table


def _half(mean: Mean) -> float:
    assert mean.high is not None
    assert mean.mean is not None
    return mean.high - mean.mean


@contextmanager
def _progress(what: str) -> Iterator[Callable[[float], None]]:
    """A progress bar on standard error, if that is a terminal.

    It draws only when told and has no thread of its own: a process with threads should not fork.
    """
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda share: None
        return
    with Bar(console=console, transient=True, auto_refresh=False) as bar:
        job, shown = bar.add_task(what, total=1.0), 0.0

        def update(share: float) -> None:
            nonlocal shown
            if share - shown >= 0.005:
                shown = share
                bar.update(job, completed=share, refresh=True)

        yield update
