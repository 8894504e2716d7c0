"""`weft bench`: honest numbers, measured side by side in one run."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli import bench_budget, bench_real
from weft.cli.tables import progress_bar, table
from weft.quantities import amount

app = typer.Typer(help="Measure speed and quality, side by side in one run.", no_args_is_help=True)
app.command()(bench_budget.budget)
app.command()(bench_real.dask)
app.command()(bench_real.joins)
app.command()(bench_real.overhead)

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

    Example: `weft bench quality --stg path/to/stg`
    """
    from weft.experiments import plan_quality

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


@app.command()
def plan(
    full: Annotated[
        bool, typer.Option("--full", help="Up to 100,000 tasks for every planner; minutes.")
    ] = False,
    million: Annotated[
        bool, typer.Option("--million", help="Also 1,000,000 tasks on 64 processors by HEFT.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Warm planning times, their growth, memory, and HEFT beside anrg-saga where installed.

    Example: `weft bench plan --full --million`
    """
    from weft.experiments import plan_speed

    sizes = [100, 1_000, 10_000, 100_000] if full else [100, 1_000, 10_000]
    with progress_bar("planners over sizes", not as_json) as progress:
        timings = list(plan_speed.growth(sizes, [8, 16, 64], progress=progress))
    plans = [plan_speed.large(100_000, 64, 5)]
    plans += [plan_speed.large(1_000_000, 64, 5)] if million else []
    peers = []
    if plan_speed.peer_installed():
        peers = [plan_speed.against_saga(n, 8) for n in (50, 100, plan_speed.PEER_LIMIT)]
    if as_json:
        figures: dict[str, list[Any]] = {"growth": timings, "large": plans, "peers": peers}
        print(json.dumps({k: [asdict(x) for x in v] for k, v in figures.items()}, indent=1))
        return
    _show_growth(timings)
    print("\nHEFT in a process of its own")
    table(
        ["tasks", "processors", "edges", "generate s", "plan s", "peak GB"],
        [
            [f"{x.tasks:,}", x.processors, f"{x.edges:,}", f"{x.generate_seconds:.2f}",
             f"{x.plan_seconds:.2f}", f"{x.peak_gigabytes:.2f}"]
            for x in plans
        ],
    )  # fmt: skip
    if not peers:
        print("\nanrg-saga is not installed; pip install 'weft[bench]' to compare")
        return
    print("\nHEFT beside anrg-saga (pure Python), same instances")
    table(
        ["tasks", "processors", "weft ms", "saga ms", "ratio", "weft makespan", "saga makespan"],
        [
            [x.tasks, x.processors, f"{x.weft_milliseconds:.3f}", f"{x.saga_milliseconds:.1f}",
             f"{x.saga_milliseconds / x.weft_milliseconds:,.0f}", amount(x.weft_makespan),
             amount(x.saga_makespan)]
            for x in peers
        ],
    )  # fmt: skip


@app.command()
def simulate(
    million: Annotated[
        bool, typer.Option("--million", help="Also one run of 1,000,000 tasks on 8 processors.")
    ] = False,
    runs: Annotated[int, typer.Option(min=1, help="Seeds for each strategy.")] = 1000,
    as_json: AsJson = False,
) -> None:
    """Simulated tasks per second, runs per second, and replanning in mid-run.

    Example: `weft bench simulate --million`
    """
    from weft.experiments import simulate_speed
    from weft.experiments.plan_speed import peak_gigabytes

    fixed = [simulate_speed.fixed_plan(n, 8) for n in (1_000, 10_000, 100_000)]
    many = [simulate_speed.selective(s, runs) for s in ("static", "slack", "spare")]
    middle = simulate_speed.mid_run()
    points = [simulate_speed.rescheduling_point(s) for s in ("gtp", "gtp/c")]
    fixed += [simulate_speed.fixed_plan(1_000_000, 8, repeats=1)] if million else []
    peak = peak_gigabytes()
    if as_json:
        figures: dict[str, Any] = {"fixed": fixed, "many": many, "mid_run": [middle]}
        figures["rescheduling_points"] = points
        rows = {k: [asdict(x) for x in v] for k, v in figures.items()}
        print(json.dumps({**rows, "peak_gigabytes": peak}, indent=1))
        return
    print("A fixed plan, simulated in one process")
    table(
        ["tasks", "processors", "edges", "ms", "tasks/s"],
        [
            [f"{x.tasks:,}", x.processors, f"{x.edges:,}", f"{1000 * x.seconds:,.1f}",
             f"{x.tasks_per_second:,.0f}"]
            for x in fixed
        ],
    )  # fmt: skip
    print(f"peak memory {peak:.2f} GB\n\n100 tasks on 5 processors, QoI 20%, one process")
    table(
        ["strategy", "runs", "runs/s", "plans asked for"],
        [
            [x.strategy, x.runs, f"{x.runs_per_second:,.0f}", f"{x.mean_considered:.1f}"]
            for x in many
        ],
    )
    ratio = middle.mid_run_milliseconds / middle.start_milliseconds
    print(
        f"\nPlanning {middle.tasks:,} tasks with {middle.planner}: "
        f"{middle.start_milliseconds:.1f} ms at the start, {middle.mid_run_milliseconds:.1f} ms "
        f"in mid-run with {middle.still_to_plan:,} left ({ratio:.2f} times)"
    )
    for x in points:
        print(
            f"A rescheduling point of {x.strategy}, {x.tasks:,} tasks on {x.processors} processors "
            f"with {x.still_to_plan:,} left: {x.milliseconds:.2f} ms (worst of 50: "
            f"{x.worst_milliseconds:.2f} ms)"
        )


def _show_growth(timings: list[Any]) -> None:
    """One row per planner, one column per size: milliseconds, warm."""
    columns = list(dict.fromkeys((t.tasks, t.processors) for t in timings))
    by_planner: dict[str, dict[tuple[int, int], float]] = {}
    for t in timings:
        by_planner.setdefault(t.planner, {})[t.tasks, t.processors] = t.milliseconds
    print("Milliseconds per plan, warm, tasks x processors (- where the size before took too long)")
    table(
        ["planner", *(f"{n:,}x{p}" for n, p in columns)],
        [
            [name, *(f"{row[c]:,.2f}" if c in row else "-" for c in columns)]
            for name, row in sorted(by_planner.items())
        ],
    )
