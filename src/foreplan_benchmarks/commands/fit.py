"""`foreplan bench fit`: plans of tasks that need several cores and memory."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreplan.cli.shared.tables import progress_bar, table

if TYPE_CHECKING:
    from foreplan_benchmarks.fit import Gain, Ratio
    from foreplan_benchmarks.fit_optimum import Gap

PLANNERS = "heft,cpop,peft,dls,min-min,max-min,gtp"


def fit(
    tasks: Annotated[int, typer.Option(min=100, help="Tasks of the large workflows.")] = 10_000,
    planners: Annotated[str, typer.Option(help="Planners to measure the speed of.")] = PLANNERS,
    pairs: Annotated[int, typer.Option(min=0, help="Pairs of calls; 0: no speed.")] = 5,
    instances: Annotated[
        int, typer.Option(min=0, help="Small instances of each of two kinds; 0: no optimum.")
    ] = 40,
    most: Annotated[int, typer.Option(min=8, max=20, help="Their most tasks.")] = 14,
    time_limit: Annotated[
        float,
        typer.Option(min=0.001, help="For each optimum, in CP-SAT's deterministic time."),
    ] = 10.0,
    traces: Annotated[
        Path | None, typer.Option(help="A folder of traces: what fitting tasks together gains.")
    ] = None,
    worlds: Annotated[int, typer.Option(min=1, help="Simulated worlds for each trace.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same cores and instances.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Planning with cores and memory: its speed, its distance to the optimum, and what it gains.

    Speed: beside planning the same tasks with one core each. The optimum is found by OR-tools,
    which the extra `optimum` installs. Example: `foreplan bench fit --traces path/to/traces`
    """
    from foreplan_benchmarks import fit as measured
    from foreplan_benchmarks import fit_optimum

    names = [name.strip() for name in planners.split(",") if name.strip()]
    figures: dict[str, Any] = {"speed": measured.speeds(names, tasks, pairs) if pairs else []}
    figures["gaps"], figures["open"] = [], 0
    if instances:
        with progress_bar("optima", not as_json) as progress:
            figures["gaps"], figures["open"] = fit_optimum.gaps(
                most, instances, seed, time_limit, progress
            )
    figures["gains"] = []
    if traces is not None:
        from foreplan import formats

        workflows = [formats.load(path) for path in sorted(traces.glob("*.json"))]
        figures["gains"] = measured.gains(workflows, seed, worlds)
    if as_json:
        print(json.dumps(figures, default=_as_dict, indent=1))
        return
    _show_speed(figures["speed"])
    _show_gaps(figures["gaps"], figures["open"])
    _show_gains(figures["gains"])


def _as_dict(figure: Any) -> dict[str, Any]:
    judged = {"verdict": figure.verdict} if hasattr(figure, "verdict") else {}
    return {**asdict(figure), **judged}


def _show_speed(ratios: list[Ratio]) -> None:
    if not ratios:
        return
    print("Plans with 1, 2, 4 or 8 cores and memory beside plans of the same tasks with one core")
    table(
        ["planner", "workflow", "one core ms", "ms", "ratio", "goal", "verdict"],
        [
            [r.planner, r.workflow, f"{r.plain_milliseconds:.1f}", f"{r.milliseconds:.1f}",
             f"{r.ratio:.2f}", r.goal, r.verdict]
            for r in ratios
        ],
    )  # fmt: skip
    print("CPU time; ratio: median of the pairs\n")


def _show_gaps(gaps: list[Gap], open_ones: int) -> None:
    if not gaps:
        return
    print("Makespans above the optimum, cores, memory and a pool at every instant")
    table(
        ["planner", "tasks", "instances", "optimal", "mean", "worst"],
        [
            [g.planner, g.kind, g.instances, g.optimal, f"{g.mean:.1%}", f"{g.worst:.1%}"]
            for g in gaps
        ],
    )
    print(f"instances without a proven optimum, left out: {open_ones}\n")


def _show_gains(gains: list[Gain]) -> None:
    if not gains:
        return
    print("Traces with cores drawn by category, simulated; makespans over those of the other ways")
    table(
        ["trace", "tasks", "memory", "makespan s", "over whole hosts", "over first fit"],
        [
            [g.workflow, f"{g.tasks:,}", "of the trace" if g.memory else "", f"{g.fitted:,.1f}",
             f"{g.by_whole:.2f}", f"{g.by_first_fit:.2f}"]
            for g in gains
        ],
    )  # fmt: skip
