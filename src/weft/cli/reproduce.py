"""`weft reproduce`: a paper's experiments once more, with its figures beside ours."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.reproduce_aheft import reproduce_aheft
from weft.cli.reproduce_budget import reproduce_budget
from weft.cli.reproduce_gtp import reproduce_gtp
from weft.cli.reproduce_ic import reproduce_ic
from weft.cli.reproduce_output import (
    command_of,
    print_table,
    print_verdicts,
    print_written,
    progress_bar,
)
from weft.errors import InputError, unknown_name
from weft.quantities import duration

if TYPE_CHECKING:
    from weft.experiments.selective_tables import Tables

PAPERS = ("selective", "aheft", "gtp", "budget", "ic")


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            help="The paper: `selective`, `aheft`, `gtp`, `budget` or `ic`.", metavar="PAPER"
        ),
    ],
    full: Annotated[
        bool, typer.Option("--full", help="As many DAGs as the paper: minutes, or an hour.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="The folder of the results.  [default: results/PAPER]")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="Processes.  [default: one per core]"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same figures; times differ.")] = 0,
    on: Annotated[
        str | None,
        typer.Option(help="`aheft` on a Dask cluster: dask://host:port.", metavar="WHERE"),
    ] = None,
    stg: Annotated[
        Path | None,
        typer.Option(help="`gtp` with the shapes of the .stg files in this folder.", metavar="DIR"),
    ] = None,
    workflows: Annotated[
        Path | None,
        typer.Option(help="`ic` with the workflows in this folder, too.", metavar="DIR"),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Begin anew, not where a call was stopped; not `selective`."),
    ] = False,
) -> None:
    """Repeat a paper's experiments: tables, plots, and a verdict on each of its claims.

    All but `selective` keep what is done in their folder: a call that was stopped is gone on with
    by the same command.

    Example: `weft reproduce selective --full --out results/selective`
    """
    if paper not in PAPERS:
        raise InputError(unknown_name("paper", paper, PAPERS))
    folder = out or Path("results") / paper
    _check_options(paper, on, stg, workflows, fresh)
    if paper == "aheft":
        reproduce_aheft(full, folder, jobs, seed, on, fresh)
        return
    if paper == "gtp":
        reproduce_gtp(full, folder, jobs, seed, stg, fresh)
        return
    if paper == "budget":
        reproduce_budget(full, folder, jobs, seed, fresh)
        return
    if paper == "ic":
        reproduce_ic(full, folder, jobs, seed, workflows, fresh)
        return
    try:
        _selective(full, folder, jobs, seed)
    except KeyboardInterrupt:
        print("weft: stopped; nothing was written", file=sys.stderr)
        raise typer.Exit(130) from None


def _check_options(
    paper: str, on: str | None, stg: Path | None, workflows: Path | None, fresh: bool
) -> None:
    """Not every paper has every option."""
    if on is not None and paper != "aheft":
        raise InputError("--on is for `aheft` only")
    if stg is not None and paper != "gtp":
        raise InputError("--stg is for `gtp` only")
    if workflows is not None and paper != "ic":
        raise InputError("--workflows is for `ic` only")
    if fresh and paper == "selective":
        raise InputError("--fresh is for all papers but `selective`")


def _selective(full: bool, out: Path, jobs: int | None, seed: int) -> None:
    """Zhao and Sakellariou: Table 1, Figure 3 and Figure 4."""
    from weft.experiments import (
        report_files,
        selective,
        selective_report,
        selective_tables,
        workers,
    )

    sizes = selective.PAPER if full else selective.QUICK
    processes = jobs or workers.cores()
    report_files.prepare(out)
    begun = time.perf_counter()
    with progress_bar("simulating") as progress:
        outcomes = selective.run_all(selective.jobs(sizes, seed), processes, progress)
    measured = selective_tables.tables(outcomes)
    how = selective_report.Circumstances(
        command=command_of("selective", full, seed),
        sizes=sizes,
        seed=seed,
        processes=processes,
        seconds=time.perf_counter() - begun,
    )
    written = selective_report.write(out, measured, how)
    _show(measured, how.seconds)
    print_written(written, out)


def _show(measured: Tables, seconds: float) -> None:
    from weft.experiments.selective_claims import SIMULATORS, verdicts

    print(f"Table 1 over {measured.table1[0].dags} DAGs ({duration(seconds)} in all)")
    print_table(
        ["", "", "new plans:", "the paper's", "event", "time / always:", ""],
        [
            ["planner", "strategy", "published", "loop", "by event", "published", "ours"],
            *(
                [row.planner.upper(), row.strategy, f"{row.published_replans:.2f}",
                 f"{row.sequential_replans:.2f}", f"{row.replans:.2f}",
                 f"{row.published_time_of_always:.0%}", f"{row.time_of_always:.0%}"]
                for row in measured.table1
            ),
        ],
    )  # fmt: skip
    print()
    print_verdicts(verdicts(measured), SIMULATORS)
