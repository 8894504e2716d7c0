"""`foreplan bench dask`, `joins`, `overhead`, `events`, `again`, `snakefile`: real runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreplan.cli.shared.tables import progress_bar, table
from foreplan.errors import InputError

if TYPE_CHECKING:
    from foreplan_benchmarks import dask_joins as joining
    from foreplan_benchmarks.dask_speed import Pair, Ratios
    from foreplan_benchmarks.overhead import Overhead

AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


def dask(
    speeds: Annotated[
        str,
        typer.Option(
            help="How the 8 workers differ: `strong`, `mild`, `equal`; or several. `few`: 60 "
            "tasks of 0.1 s on three equal workers, whatever the shapes."
        ),
    ] = "strong,mild,equal,few",
    shapes: Annotated[
        str, typer.Option(help="The workflows: `montage`, `fork_join`; or both.")
    ] = "montage,fork_join",
    pairs: Annotated[int, typer.Option(min=1, help="Pairs for every kind and shape.")] = 5,
    unit: Annotated[
        float, typer.Option(min=0.01, help="Tasks take 0.1 to 1 s times this at speed 1.")
    ] = 1.0,
    cpu: Annotated[
        bool, typer.Option("--cpu", help="Also real work under CPU quotas (cgroup v1, root).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Makespans of foreplan and of Dask's own scheduler, side by side on workers of unequal speed.

    foreplan is not told the speeds: it runs blind first, then with the history of that run. The
    whole takes about 20 minutes.

    Example: `foreplan bench dask --speeds strong --pairs 2 --unit 0.5`
    """
    from foreplan_benchmarks import dask_cluster, dask_speed

    kinds, graphs = _chosen(speeds, dask_speed.SPEEDS), _chosen(shapes, dask_speed.SHAPES)
    with progress_bar("pairs", not as_json) as progress:
        measured = dask_speed.compare(kinds, graphs, pairs, unit, progress)
    if cpu and dask_cluster.quotas_possible():
        with progress_bar("pairs under CPU quotas", not as_json) as progress:
            measured += dask_speed.under_quotas(pairs, progress)
    found = dask_speed.ratios(measured)
    if as_json:
        _print_json(measured, found)
        return
    print("Makespan of foreplan over that of Dask's own scheduler, medians of pairs (worst)")
    table(
        ["workers", "workflow", "tasks", "pairs", "Dask s", "blind", "with history", "verdict"],
        [
            [r.speeds, r.shape, r.tasks, r.pairs, f"{r.dask:.2f}",
             f"{r.blind:.3f} ({r.worst_blind:.3f})", f"{r.history:.3f} ({r.worst_history:.3f})",
             r.verdict]
            for r in found
        ],
    )  # fmt: skip
    if cpu and not dask_cluster.quotas_possible():
        print("CPU quotas cannot be set here: they need cgroup version 1 and root")


def _chosen(text: str, known: Iterable[str]) -> list[str]:
    """Names from a list with commas."""
    chosen = [name.strip() for name in text.split(",") if name.strip()]
    for name in chosen:
        if name not in known:
            raise InputError(f"{name!r} is none of {', '.join(known)}")
    return chosen


def _print_json(measured: list[Pair], found: list[Ratios]) -> None:
    rows = [{**asdict(r), "verdict": r.verdict} for r in found]
    print(json.dumps({"pairs": [asdict(p) for p in measured], "ratios": rows}, indent=1))


def joins(
    shapes: Annotated[
        str, typer.Option(help="The workflows: `montage`, `fork_join`; or both.")
    ] = "montage,fork_join",
    pairs: Annotated[int, typer.Option(min=1, help="Pairs for every shape.")] = 5,
    speed: Annotated[
        float, typer.Option(min=0.1, help="Of the workers that join; the others have 1.")
    ] = 1.0,
    unit: Annotated[
        float, typer.Option(min=0.01, help="Tasks take 0.15 to 0.8 s times this at speed 1.")
    ] = 1.0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small workflows: to see whether it works.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Makespans of `aheft` and `static` on a Dask cluster that two workers join halfway.

    Both runs of a pair are on one cluster of three workers; beside them stands the same,
    simulated. The whole takes about 5 minutes. Example: `foreplan bench joins --pairs 2 --speed 2`
    """
    from foreplan_benchmarks import dask_joins

    graphs = _chosen(shapes, dask_joins.SHAPES)
    sizes = dask_joins.QUICK if quick else dask_joins.SHAPES
    with progress_bar("pairs", not as_json) as progress:
        measured = dask_joins.compare(graphs, pairs, unit, speed, sizes, progress)
    found = dask_joins.ratios(measured)
    if as_json:
        print(json.dumps(_joins_as_data(measured, found), indent=1))
        return
    show_joins(measured, found)


def show_joins(measured: list[joining.Pair], found: list[joining.Ratios]) -> None:
    """Every pair, then the medians."""
    print("Makespan of aheft over that of static; workers join at half of what static promises")
    table(
        ["workflow", "first", "joined", "static s", "aheft s", "ratio", "simulated", "at least",
         "tasks there", "new plans"],
        [
            [p.shape, p.went_first, f"{p.aheft.joined:.2f} s", f"{p.static.makespan:.2f}",
             f"{p.aheft.makespan:.2f}", f"{p.ratio:.3f}", f"{p.simulated:.3f}", f"{p.least:.3f}",
             f"{p.aheft.on_joiners} of {p.tasks}", f"{p.aheft.taken} of {p.aheft.considered}"]
            for p in measured
        ],
    )  # fmt: skip
    print("\nMedians of the pairs (worst)")
    table(
        ["workflow", "pairs", "ratio", "simulated", "at least", "joined after", "used after",
         "verdict"],
        [
            [r.shape, r.pairs, f"{r.ratio:.3f} ({r.worst:.3f})", f"{r.simulated:.3f}",
             f"{r.least:.3f}", f"{r.told_to_joined:.2f} s",
             "-" if r.joined_to_first is None else f"{r.joined_to_first:.2f} s", r.verdict]
            for r in found
        ],
    )  # fmt: skip


def _joins_as_data(measured: list[joining.Pair], found: list[joining.Ratios]) -> dict[str, Any]:
    pairs = [
        {**asdict(p), "ratio": p.ratio, "simulated": p.simulated, "least": p.least}
        for p in measured
    ]
    return {"pairs": pairs, "ratios": [{**asdict(r), "verdict": r.verdict} for r in found]}


def overhead(
    tasks: Annotated[
        int, typer.Option(min=0, help="Functions that do nothing, on Dask; 0: none.")
    ] = 10_000,
    commands: Annotated[int, typer.Option(min=1, help="Commands `true`, on this machine.")] = 1_000,
    processors: Annotated[
        int, typer.Option(min=1, help="Of this machine: threads of a loop, and foreplan's.")
    ] = 2,
    as_json: AsJson = False,
) -> None:
    """Throughput of foreplan with tasks that do nothing, beside plain Dask futures and bare loops.

    A loop of threads gives the same shell the same flags, in a directory for each command as
    foreplan does, or in one for all. Example: `foreplan bench overhead`
    """
    from foreplan_benchmarks import overhead as experiment

    parts: list[tuple[str, Callable[[], list[Overhead]]]] = [
        ("commands on this machine", lambda: experiment.local_commands(commands, processors)),
        ("functions on Dask", lambda: [experiment.dask_functions(tasks)] if tasks else []),
    ]
    found = []
    for what, measure in parts:
        with progress_bar(what, not as_json):
            found += measure()
    if as_json:
        rows = [{**asdict(o), "ratio": o.ratio, "verdict": o.verdict} for o in found]
        print(json.dumps(rows, indent=1))
        return
    print("Tasks that do nothing, per second: the best turn of each, and the median of the ratios")
    table(
        ["what", "tasks", "bare", "foreplan", "ratio", "foreplan's CPU per task", "verdict"],
        [
            [o.what, f"{o.tasks:,}", f"{o.bare:,.0f}", f"{o.foreplan:,.0f}", f"{o.ratio:.2f}",
             f"{o.cpu_milliseconds:.2f} ms", o.verdict]
            for o in found
        ],
    )  # fmt: skip


def events(
    tasks: Annotated[
        str, typer.Option(help="How many short commands a run has: one number, or several.")
    ] = "1000,2000,4000",
    turns: Annotated[int, typer.Option(min=1, help="Runs with each strategy.")] = 3,
    as_json: AsJson = False,
) -> None:
    """CPU time of planned runs beside runs without a plan, and of their reports, as runs grow.

    Every command makes a file; all runs have a history. Example: `foreplan bench events --turns 1`
    """
    from foreplan.report.data import report_of
    from foreplan.runs.home import RunHome
    from foreplan_benchmarks import per_event

    sizes = [_number(word) for word in tasks.split(",")]
    with progress_bar("runs", not as_json) as progress:
        found = per_event.compare(sizes, turns, lambda home: report_of(RunHome(home)), progress)
    if as_json:
        print(json.dumps([{**asdict(c), "verdict": c.verdict} for c in found], indent=1))
        return
    print("CPU time per task, the medians of all turns; ratios are to `fifo`, turn by turn")
    table(
        ["tasks", "strategy", "foreplan's own", "commands'", "ratio", "with commands'", "new plans",
         "report", "verdict"],
        [
            [f"{c.tasks:,}", c.strategy, f"{c.own:.2f} ms", f"{c.commands:.2f} ms",
             f"{c.ratio:.2f}", f"{c.ratio_in_all:.2f}", c.considered, f"{c.report:.2f} s",
             c.verdict]
            for c in found
        ],
    )  # fmt: skip


def _number(word: str) -> int:
    if not word.strip().isdecimal() or int(word) < 1:
        raise InputError(f"{word.strip()!r} is no number of tasks", place="tasks")
    return int(word)


def again(
    snakemake: Annotated[
        str | None, typer.Option(help="The program beside it; if not given, that on the PATH.")
    ] = None,
    changes: Annotated[
        str, typer.Option(help="Only changes with this in their name, as `command`.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """How many of 122 tasks run again after a change, by foreplan and by Snakemake if it is here.

    Each change is made in a directory in which all was done before. About a minute for foreplan,
    two for Snakemake, which knows no functions. Example: `foreplan bench again --changes input`
    """
    from foreplan_benchmarks import again as bench
    from foreplan_benchmarks import again_functions as functions

    tools: list[bench.Tool] = [bench.ForeplanTool()]
    tools += [] if (found := bench.find_snakemake(snakemake)) is None else [found]
    chosen = [name for name in bench.CHANGES if changes in name]
    of_functions = [name for name in functions.CHANGES if changes in name]
    if not (chosen or of_functions):
        known = ", ".join([*bench.CHANGES, *functions.CHANGES])
        raise InputError(f"{changes!r} is in none of these: {known}")
    with progress_bar("changes of workflows", not as_json) as progress:
        measured = list(bench.measure(tools, chosen, progress))
    with progress_bar("changes of programs", not as_json) as progress:
        measured += functions.measure(of_functions, progress)
    if as_json:
        print(json.dumps([asdict(row) for row in measured], indent=1))
        return
    print("Tasks of 122 that run again after a change (seconds of the whole command)")
    rows = []
    for change in (*chosen, *of_functions):
        own = [row for row in measured if row.change == change]
        told = [f"{r.ran} ({r.seconds:.1f} s)" if r.exit == 0 else "refused" for r in own]
        rows.append([change, *told, *[""] * (len(tools) - len(told))])
    table(["change", *(tool.name for tool in tools)], rows)
    if found is None:
        print(bench.NO_SNAKEMAKE)


def snakefile(
    snakemake: Annotated[
        str | None, typer.Option(help="The program; if not given, that on the PATH.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, max=99, help="6 jobs each, and 3 more.")] = 20,
    repeats: Annotated[int, typer.Option(min=1, help="How often, from nothing.")] = 3,
    as_json: AsJson = False,
) -> None:
    """A Snakefile by Snakemake, and imported and run by foreplan: the same files, and the times.

    123 jobs with wildcards, threads, params and logs, on two processors. All files that they make
    are compared by content; a difference is an error.

    Example: `foreplan bench snakefile --repeats 1`
    """
    from statistics import median

    from foreplan_benchmarks import again, imported

    if (found := again.find_snakemake(snakemake)) is None:
        raise InputError(again.NO_SNAKEMAKE)
    with progress_bar("runs", not as_json) as progress:
        taken = list(imported.measure(found.program, samples, repeats, progress))
    if as_json:
        print(json.dumps([asdict(row) for row in taken], indent=1))
        return
    print(f"{6 * samples + 3} jobs of a Snakefile on two processors, seconds of whole commands")
    steps = dict.fromkeys((row.tool, row.what) for row in taken)
    rows = []
    for tool, what in steps:
        seconds = [row.seconds for row in taken if (row.tool, row.what) == (tool, what)]
        rows.append([f"{tool}, {what}", f"{median(seconds):.2f}", f"{min(seconds):.2f}"])
    table(["command", "median", "fastest"], rows)
    print(f"the files are the same, {repeats} of {repeats} times")
