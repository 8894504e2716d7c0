"""`foreplan bench`: honest numbers, measured side by side in one run."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from foreplan.cli.shared.tables import progress_bar, table
from foreplan_benchmarks.commands import budget, fit, memory, real, speed, strategy

app = typer.Typer(no_args_is_help=True)
app.command()(speed.plan)
app.command()(speed.simulate)
app.command()(speed.start)
app.command()(speed.survey)
app.command()(speed.expand)
app.command()(budget.budget)
app.command()(fit.fit)
app.command()(real.dask)
app.command()(real.joins)
app.command()(real.overhead)
app.command()(real.events)
app.command()(real.again)
app.command()(real.snakefile)
app.command()(strategy.strategy)
app.command()(memory.memory)


@app.callback(help="Measure speed and quality, side by side in one run.")
def _begin(context: typer.Context) -> None:
    """Take SIGTERM for Ctrl-C, so that all that was started is stopped."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    context.call_on_close(lambda: signal.signal(signal.SIGTERM, before))


AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


@app.command()
def quality(
    instances: Annotated[int, typer.Option(min=3, help="Random instances.")] = 120,
    seed: Annotated[int, typer.Option(help="Same seed, same figures.")] = 0,
    stg: Annotated[
        Path | None,
        typer.Option(help="A folder of Standard Task Graphs with optimal.csv: HEFT against it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Mean makespan of every planner relative to HEFT's, and whether it is where it should be.

    Example: `foreplan bench quality --stg path/to/stg`
    """
    from foreplan_benchmarks import plan_quality

    with progress_bar("random instances", not as_json) as progress:
        ours = plan_quality.relative_to_heft(instances, seed, progress)
    with progress_bar("standard task graphs", not as_json and stg is not None) as progress:
        best_known = plan_quality.against_best_known(stg, progress=progress) if stg else []
    if as_json:
        rows = [{**asdict(q), "verdict": q.verdict} for q in ours]
        print(json.dumps({"planners": rows, "stg": [asdict(s) for s in best_known]}, indent=1))
        return
    print(f"Mean makespan relative to HEFT over {instances} random instances")
    print("(30-100 tasks, 4-8 processors)")
    header = ["planner", "mean", *(f"CCR {ccr:g}" for ccr in plan_quality.CCRS), "verdict"]
    table(
        header,
        [
            [q.planner, f"{q.mean:.3f}", *(f"{r:.3f}" for r in q.by_ccr.values()), q.verdict]
            for q in sorted(ours, key=lambda q: q.mean)
        ],
    )
    if best_known:
        print("\nHEFT relative to the best known makespan, Standard Task Graphs, no communication")
        table(
            ["tasks", "processors", "graphs", "mean", "worst"],
            [
                [s.size, s.processors, s.graphs, f"{s.mean:.4f}", f"{s.worst:.4f}"]
                for s in best_known
            ],
        )
        graphs = sum(s.graphs for s in best_known)
        mean = sum(s.mean * s.graphs for s in best_known) / graphs
        print(f"mean of all {graphs}: {mean:.4f}")
