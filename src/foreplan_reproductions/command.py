"""`foreplan reproduce`: a paper's experiments once more, with its figures beside ours."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreplan.errors import InputError, unknown_name
from foreplan.quantities import duration, many
from foreplan_reproductions.output import print_table, print_verdicts, progress_bar

if TYPE_CHECKING:
    from foreplan_reproductions.experiment import Checkpoint, Experiment

PAPERS = ("selective", "aheft", "gtp", "budget", "ic")  # in foreplan_reproductions.<paper>
OPTIONS = {"on": "aheft", "stg": "gtp", "workflows": "ic"}  # those of one paper only
CHECKPOINT = "units.log"


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
        typer.Option(
            help="`aheft` on a Dask cluster: dask://host:port or tls://host:port.", metavar="WHERE"
        ),
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

    All but `selective` keep what is done in their folder: a call that was stopped is resumed by
    the same command.

    Example: `foreplan reproduce selective --full --out results/selective`
    """
    if paper not in PAPERS:
        raise InputError(unknown_name("paper", paper, PAPERS))
    given = {"on": on, "stg": stg, "workflows": workflows}
    for option, owner in OPTIONS.items():
        if given[option] is not None and paper != owner:
            raise InputError(f"--{option} is for `{owner}` only")
    if fresh and paper == "selective":
        raise InputError("--fresh is for all papers but `selective`")
    experiment = importlib.import_module(f"foreplan_reproductions.{paper}.experiment").EXPERIMENT
    folder = given.get(experiment.folder)
    settings = experiment.settings(full, seed, "" if folder is None else str(folder))
    more = f" --{experiment.folder} DIR" if folder is not None else ""
    options = (" --full" if full else "") + (f" --seed {seed}" if seed else "") + more
    command = f"foreplan reproduce {paper}{options}"
    _carry_out(experiment, settings, command, out or Path("results") / paper, jobs, on, fresh)


def _carry_out(
    experiment: Experiment[Any, Any, Any],
    settings: Any,
    command: str,
    out: Path,
    jobs: int | None,
    on: str | None,
    fresh: bool,
) -> None:
    """Run what is not done yet, then write everything, and show the most of it."""
    from foreplan import workers
    from foreplan_reproductions import cluster, reports
    from foreplan_reproductions.experiment import circumstances

    if on is not None:
        cluster.find_cluster(on)
    processes = jobs or workers.cores()
    of = len(experiment.units(settings))  # files that cannot be read are told here
    reports.prepare(out)
    with _checkpoint(experiment, settings, out / CHECKPOINT, of, fresh) as checkpoint:
        done = len(checkpoint.done)
        if done:
            print(f"foreplan: going on: {done} of {of} units are done already", file=sys.stderr)
        with progress_bar(experiment.doing, done / of) as told:
            experiment.complete(settings, checkpoint, processes, told, on)
    measured = experiment.tables(settings, checkpoint.done)
    where = "a Dask cluster" if on else many(processes, "process", "processes")
    how = circumstances(command, settings, where, checkpoint)
    written = reports.write_files(out, experiment.files(measured, how))
    title, header, rows, texts = experiment.summary(measured)
    print(f"{title} ({duration(how.seconds)} in all)")
    print_table(header, rows, texts)
    print()
    print_verdicts(experiment.verdicts(measured), experiment.simulators)
    print(f"\nwrote {', '.join(path.name for path in written)} to {out}")


@contextmanager
def _checkpoint(
    experiment: Experiment[Any, Any, Any], settings: Any, path: Path, of: int, fresh: bool
) -> Iterator[Checkpoint]:
    """What is done of so many units; Ctrl-C says how much of it is kept."""
    from foreplan_reproductions.experiment import Checkpoint

    checkpoint = Checkpoint(path)
    if experiment.kept:
        checkpoint = Checkpoint.open(path, settings.described(), fresh)
    try:
        yield checkpoint
    except KeyboardInterrupt:
        kept = (
            f"{len(checkpoint.done)} of {of} units are done and kept in {path}; the same command "
            "goes on from there"
        )
        print(
            f"foreplan: stopped; {kept if experiment.kept else 'nothing was written'}",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    finally:
        checkpoint.close()
