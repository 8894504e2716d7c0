"""`foreplan bench budget`: planners under a budget beside the optimum that CP-SAT finds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreplan.cli.shared.tables import table
from foreplan.errors import InputError
from foreplan_reproductions.output import progress_bar

if TYPE_CHECKING:
    from foreplan_benchmarks.budget_optimum import Result, Settings

DEFAULT_KS = "0.1,0.3,0.5,0.7,0.9"


def budget(
    tasks: Annotated[int, typer.Option(min=9, max=20, help="The most tasks.")] = 16,
    runs: Annotated[int, typer.Option(min=1, help="Instances of each of four families.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same figures.")] = 0,
    ks: Annotated[
        str, typer.Option(help="Budgets between the cheapest (0) and HEFT's (1).")
    ] = DEFAULT_KS,
    time_limit: Annotated[
        float,
        typer.Option(
            min=0.001,
            help="For each optimum, in CP-SAT's deterministic time: a unit is a few seconds.",
        ),
    ] = 10.0,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Processes.  [default: one per core]")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A folder for tables and a picture.", metavar="DIR")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """How much longer than the optimum plans under a budget are, on small instances.

    The optimum is found by OR-tools, which the extra `optimum` installs. The default takes a
    minute or two. Example: `foreplan bench budget --tasks 12 --runs 3 --out results/optimum`
    """
    from foreplan_benchmarks import budget_optimum, budget_optimum_report
    from foreplan_reproductions import reports as report_files

    settings = budget_optimum.Settings(tasks, runs, seed, time_limit, _numbers(ks))
    if out is not None:
        report_files.prepare(out)
    results = _measured(settings, jobs)
    if as_json:
        print(budget_optimum_report.to_json(settings, results))
    else:
        _show(results)
    if out is not None:
        written = budget_optimum_report.write(out, settings, results, _command(settings, ks))
        names = ", ".join(path.name for path in written)
        print(f"\nwrote {names} to {out}", file=sys.stderr if as_json else sys.stdout)


def _measured(settings: Settings, jobs: int | None) -> list[Result]:
    from foreplan_benchmarks import budget_optimum

    try:
        with progress_bar("instances under budgets") as progress:
            return budget_optimum.run(settings, jobs, progress)
    except KeyboardInterrupt:
        print("foreplan: stopped; nothing was written", file=sys.stderr)
        raise typer.Exit(130) from None


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise InputError(f"{text!r} is not a list of numbers with commas", place="--ks") from None


def _command(settings: Settings, ks: str) -> str:
    words = [f"--tasks {settings.tasks}", f"--runs {settings.runs}"]
    words += [f"--seed {settings.seed}"] if settings.seed else []
    words += [f"--ks {ks}"] if ks != DEFAULT_KS else []
    words += [f"--time-limit {settings.limit:g}"] if settings.limit != 10 else []
    return " ".join(["foreplan bench budget", *words])


def _show(results: Sequence[Result]) -> None:
    from foreplan_benchmarks import budget_optimum_report as report
    from foreplan_benchmarks.budget_optimum import ORDER_ONLY, gaps

    found = gaps(results)
    print(f"Makespan / optimum - 1, means; {report.proven_words(results)}")
    table(*report.gap_table(found))
    print(f"\nWhere best-affordable loses (in brackets: {ORDER_ONLY})")
    table(*report.part_table(results))
    header, rows = report.open_table(found)
    if rows:
        print("\nNot proven: between the gap to the best found and that to the bound (instances)")
        table(header, rows)
