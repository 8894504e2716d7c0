"""`foreplan bench plan`, `simulate`, `start`, `survey` and `expand`: how fast these are."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreplan.cli.shared.tables import progress_bar, table
from foreplan.quantities import amount
from foreplan.version import install_command

if TYPE_CHECKING:
    from foreplan_benchmarks.plain_heft import Pairs
    from foreplan_benchmarks.plan_speed import Peer, Timing

AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
GoalsOnly = Annotated[bool, typer.Option("--goals", help="Only what has a goal.")]


def plan(
    full: Annotated[
        bool, typer.Option("--full", help="Up to 100,000 tasks for every planner; minutes.")
    ] = False,
    million: Annotated[
        bool, typer.Option("--million", help="Also 1,000,000 tasks on 64 processors by HEFT.")
    ] = False,
    goals: GoalsOnly = False,
    as_json: AsJson = False,
) -> None:
    """HEFT beside a plain one in C++; times of all planners, their growth, memory; anrg-saga.

    The plain HEFT is built where there is a C++ compiler, and anrg-saga taken where it is
    installed. Example: `foreplan bench plan --full --million`, or `foreplan bench plan --goals`
    """
    from foreplan_benchmarks import plan_speed

    beside = _beside_plain(as_json)
    figures: dict[str, list[Any]] = {"plain": beside}
    if not as_json:
        _show_beside_plain(beside)
    if not goals:
        sizes = [100, 1_000, 10_000, 100_000] if full else [100, 1_000, 10_000]
        with progress_bar("planners over sizes", not as_json) as progress:
            figures["growth"] = list(plan_speed.growth(sizes, [8, 16, 64], progress=progress))
        large = [100_000, 1_000_000] if million else [100_000]
        figures["large"] = [plan_speed.large(tasks, 64, 5) for tasks in large]
        there = plan_speed.peer_installed()
        peers = (50, 100, plan_speed.PEER_LIMIT) if there else ()
        figures["peers"] = [plan_speed.against_saga(n, 8) for n in peers]
    if as_json:
        print(json.dumps({k: [_as_dict(x) for x in v] for k, v in figures.items()}, indent=1))
    elif not goals:
        _show_growth(figures["growth"])
        _show_large(figures["large"])
        _show_peers(figures["peers"])


def _as_dict(figure: Any) -> dict[str, Any]:
    """The fields of a figure, and where it has a goal, what that makes of it."""
    goal = getattr(figure, "goal", None)
    judged = {"goal": asdict(goal), "verdict": figure.verdict} if goal else {}
    return {**asdict(figure), **judged}


def _beside_plain(as_json: bool) -> list[Pairs]:
    from foreplan_benchmarks import plain_heft

    if plain_heft.compiler() is None:
        return []
    rows = [(*size, links) for size in plain_heft.SIZES for links in ("alike", "differ")]
    found = []
    with progress_bar("HEFT beside C++", not as_json) as progress, plain_heft.built() as library:
        for number, row in enumerate(rows):
            progress(number / len(rows))
            found.append(plain_heft.beside_plain(*row, library))
    return found


def _show_beside_plain(pairs: list[Pairs]) -> None:
    if not pairs:
        print("no C++ compiler (c++, g++, clang++) is found: no HEFT to measure beside\n")
        return
    print(
        'foreplan.plan(workflow, platform, "heft"), the whole call, in turns with a plain C++ HEFT'
    )
    table(
        [
            *("tasks", "processors", "links", "foreplan ms", "C++ ms"),
            *("ratio", "first", "goal", "verdict"),
        ],
        [
            [f"{x.tasks:,}", x.processors, x.links, f"{x.foreplan_milliseconds:.3f}",
             f"{x.plain_milliseconds:.3f}", f"{x.ratio:.2f}", f"{x.first_ratio:.2f}", x.goal,
             x.verdict]
            for x in pairs
        ],
    )  # fmt: skip
    print("ratio: median of the pairs; first: of the first calls in a process of their own\n")


def _show_growth(timings: list[Timing]) -> None:
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


def _show_large(plans: list[Any]) -> None:
    print("\nHEFT in a process of its own")
    table(
        ["tasks", "processors", "edges", "generate s", "plan s", "peak GB"],
        [
            [f"{x.tasks:,}", x.processors, f"{x.edges:,}", f"{x.generate_seconds:.2f}",
             f"{x.plan_seconds:.2f}", f"{x.peak_gigabytes:.2f}"]
            for x in plans
        ],
    )  # fmt: skip


def _show_peers(peers: list[Peer]) -> None:
    if not peers:
        print(f"\nto compare with anrg-saga: {install_command('bench')}")
        return
    print("\nHEFT beside anrg-saga (pure Python), same instances")
    table(
        [
            *("tasks", "processors", "foreplan ms", "saga ms", "ratio"),
            *("foreplan makespan", "saga makespan"),
        ],
        [
            [x.tasks, x.processors, f"{x.foreplan_milliseconds:.3f}", f"{x.saga_milliseconds:.1f}",
             f"{x.saga_milliseconds / x.foreplan_milliseconds:,.0f}", amount(x.foreplan_makespan),
             amount(x.saga_makespan)]
            for x in peers
        ],
    )  # fmt: skip


def simulate(
    million: Annotated[
        bool, typer.Option("--million", help="Also one run of 1,000,000 tasks on 8 processors.")
    ] = False,
    runs: Annotated[int, typer.Option(min=1, help="Seeds for each strategy.")] = 1000,
    goals: GoalsOnly = False,
    as_json: AsJson = False,
) -> None:
    """Simulated tasks per second, runs per second, and replanning in mid-run.

    Example: `foreplan bench simulate --million`, or `foreplan bench simulate --goals`
    """
    from foreplan_benchmarks import simulate_speed as speed
    from foreplan_benchmarks.plan_speed import peak_gigabytes

    sizes = list(speed.TASKS_PER_SECOND) if goals else [1_000, 10_000, 100_000]
    strategies = list(speed.RUNS_PER_SECOND) if goals else ["static", "slack", "spare"]
    fixed = [speed.fixed_plan(n, 8) for n in sizes]
    many = [speed.selective(s, runs) for s in strategies]
    middle = [] if goals else [speed.mid_run()]
    points = [] if goals else [speed.rescheduling_point(s) for s in ("gtp", "gtp/c")]
    fixed += [speed.fixed_plan(1_000_000, 8, repeats=1)] if million else []
    peak = peak_gigabytes()
    if as_json:
        figures: dict[str, list[Any]] = {"fixed": fixed, "many": many, "mid_run": middle}
        figures["rescheduling_points"] = points
        rows = {k: [_as_dict(x) for x in v] for k, v in figures.items()}
        print(json.dumps({**rows, "peak_gigabytes": peak}, indent=1))
        return
    print("A fixed plan, simulated in one process")
    table(
        ["tasks", "processors", "edges", "ms", "tasks/s", "goal", "verdict"],
        [
            [f"{x.tasks:,}", x.processors, f"{x.edges:,}", f"{1000 * x.seconds:,.1f}",
             f"{x.tasks_per_second:,.0f}", x.goal or "", x.verdict]
            for x in fixed
        ],
    )  # fmt: skip
    print(f"peak memory {peak:.2f} GB\n\n100 tasks on 5 processors, QoI 20%, one process")
    table(
        ["strategy", "runs", "runs/s", "plans asked for", "goal", "verdict"],
        [
            [x.strategy, x.runs, f"{x.runs_per_second:,.0f}", f"{x.mean_considered:.1f}",
             x.goal or "", x.verdict]
            for x in many
        ],
    )  # fmt: skip
    for m in middle:
        print(
            f"\nPlanning {m.tasks:,} tasks with {m.planner}: "
            f"{m.start_milliseconds:.1f} ms at the start, {m.mid_run_milliseconds:.1f} ms "
            f"in mid-run with {m.still_to_plan:,} left "
            f"({m.mid_run_milliseconds / m.start_milliseconds:.2f} times)"
        )
    for x in points:
        print(
            f"A rescheduling point of {x.strategy}, {x.tasks:,} tasks on {x.processors} processors "
            f"with {x.still_to_plan:,} left: {x.milliseconds:.2f} ms (worst of 50: "
            f"{x.worst_milliseconds:.2f} ms)"
        )


def start(
    processes: Annotated[int, typer.Option(min=1, help="Processes for each figure.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Whole commands from their start, as on a machine that never ran foreplan.

    Each in processes of its own, with empty caches and without a history; medians.
    Example: `foreplan bench start`
    """
    from foreplan_benchmarks.start_speed import start_times

    with progress_bar("commands", not as_json) as progress:
        found = start_times(processes, progress)
    if as_json:
        print(json.dumps([_as_dict(x) for x in found], indent=1))
        return
    print("Whole processes, with empty caches and without a history; medians")
    table(
        ["what", "processes", "measured", "", "goal", "verdict"],
        [[x.what, x.processes, f"{x.measured:,.2f}", x.unit, x.goal, x.verdict] for x in found],
    )


def survey(
    tasks: Annotated[int, typer.Option(min=2, help="Tasks, with two files each.")] = 10_000,
    tries: Annotated[int, typer.Option(min=1, help="Tries, of which the best counts.")] = 3,
    snakemake: Annotated[
        str | None, typer.Option(help="The program beside it; if not given, that on the PATH.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What it takes to see that everything is up to date, warm and cold, by Snakemake too.

    Snakemake takes some minutes to be told of 10,000 tasks. Example: `foreplan bench survey --tasks
    2000`
    """
    from foreplan_benchmarks.again import NO_SNAKEMAKE, find_snakemake
    from foreplan_benchmarks.survey_speed import survey_times

    other = find_snakemake(snakemake)
    with progress_bar("survey", not as_json) as progress:
        found = survey_times(tasks, tries, progress, None if other is None else other.program)
    if as_json:
        print(json.dumps([_as_dict(x) for x in found], indent=1))
        return
    print(f"{tasks:,} tasks with {2 * tasks:,} files; the best of {tries}")
    rows = [[x.what, f"{x.seconds:.2f}", f"{x.cpu:.2f}", x.goal or "", x.verdict] for x in found]
    table(["what", "seconds", "s of CPU", "goal", "verdict"], rows)
    if other is None:
        print(NO_SNAKEMAKE)


def expand(
    tasks: Annotated[int, typer.Option(min=4, help="Tasks, a quarter of each loop.")] = 100_000,
    tries: Annotated[int, typer.Option(min=1, help="Tries, of which the best counts.")] = 3,
    as_json: AsJson = False,
) -> None:
    """What it takes to load a short file of many tasks, and the same written out.

    Example: `foreplan bench expand --tasks 20000`
    """
    from foreplan_benchmarks.expand_speed import expand_times

    with progress_bar("loading", not as_json) as progress:
        found = expand_times(tasks, tries, progress)
    if as_json:
        print(json.dumps([_as_dict(x) for x in found], indent=1))
        return
    print(f"{tasks:,} tasks of four loops; the best of {tries}")
    rows = [[x.what, f"{x.seconds:.2f}", f"{x.cpu:.2f}", x.goal or "", x.verdict] for x in found]
    table(["what", "seconds", "s of CPU", "goal", "verdict"], rows)
