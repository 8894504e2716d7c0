"""`weft reproduce`: a paper's experiments once more, with its figures beside ours."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.errors import InputError, unknown_name

if TYPE_CHECKING:
    from rich.console import Console

    from weft.experiments.selective_tables import Tables

PAPERS = ("selective",)


def reproduce(
    paper: Annotated[str, typer.Argument(help="The paper: `selective`.", metavar="PAPER")],
    full: Annotated[
        bool, typer.Option("--full", help="The paper's number of DAGs; minutes.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="The folder of the results.  [default: results/PAPER]")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="Processes.  [default: one per core]"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same figures; times differ.")] = 0,
) -> None:
    """Repeat a paper's experiments: tables, plots, and a verdict on each of its claims.

    Example: `weft reproduce selective --full --out results/selective`
    """
    if paper not in PAPERS:
        raise InputError(unknown_name("paper", paper, PAPERS))
    try:
        _selective(full, out or Path("results") / paper, jobs, seed)
    except KeyboardInterrupt:
        print("weft: stopped; nothing was written", file=sys.stderr)
        raise typer.Exit(130) from None


def _selective(full: bool, out: Path, jobs: int | None, seed: int) -> None:
    """Zhao and Sakellariou: Table 1, Figure 3 and Figure 4."""
    from weft.experiments import selective, selective_report, selective_tables, workers

    sizes = selective.PAPER if full else selective.QUICK
    processes = jobs or workers.cores()
    selective_report.prepare(out)
    begun = time.perf_counter()
    with _progress("compiling"):
        selective.warm_up()  # before the processes part, so that they share it
    with _progress("simulating") as progress:
        outcomes = selective.run_all(selective.jobs(sizes, seed), processes, progress)
    measured = selective_tables.tables(outcomes)
    how = selective_report.Circumstances(
        command=_command(full, seed),
        sizes=sizes,
        seed=seed,
        processes=processes,
        seconds=time.perf_counter() - begun,
    )
    written = selective_report.write(out, measured, how)
    _show(measured, how.seconds)
    print(f"\nwrote {', '.join(path.name for path in written)} to {out}")


def _command(full: bool, seed: int) -> str:
    options = (" --full" if full else "") + (f" --seed {seed}" if seed else "")
    return f"weft reproduce selective{options}"


def _show(measured: Tables, seconds: float) -> None:
    from rich.console import Console

    from weft.experiments.selective_claims import SIMULATORS, verdicts

    console = Console(highlight=False)
    console.print(f"Table 1 over {measured.table1[0].dags} DAGs ({seconds:.0f} s in all)")
    _table(
        console,
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
    for verdict in verdicts(measured):
        colour = "green" if verdict.holds else "yellow"
        where = SIMULATORS[verdict.simulator]
        console.print(f"[{colour}]{verdict.word:<7}[/] {verdict.claim} ({where})", soft_wrap=True)
        console.print(f"        [dim]{verdict.figures}[/]", soft_wrap=True)


def _table(console: Console, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False)
    for number, heading in enumerate(header):
        table.add_column(heading, justify="left" if number < 2 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table)


@contextmanager
def _progress(what: str) -> Iterator[Callable[[float], None]]:
    """A progress bar on standard error, if that is a terminal.

    It has no thread of its own: processes are forked while it is shown.
    """
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda share: None
        return
    with Bar(console=console, transient=True, auto_refresh=False) as bar:
        job = bar.add_task(what, total=1.0)
        bar.refresh()
        yield lambda share: bar.update(job, completed=share, refresh=True)
