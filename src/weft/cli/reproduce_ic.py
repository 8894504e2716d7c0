"""`weft reproduce ic`: Hall, Rosenberg and Venkataramani's section 5, and volunteers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weft.cli.reproduce_output import (
    going_on,
    print_table,
    print_verdicts,
    progress_bar,
    resumable,
)

if TYPE_CHECKING:
    from weft.experiments.checkpoint import Checkpoint
    from weft.experiments.ic_tables import Tables
    from weft.experiments.ic_units import Settings

CHECKPOINT = "units.log"


def reproduce_ic(
    full: bool, out: Path, jobs: int | None, seed: int, workflows: Path | None, fresh: bool
) -> None:
    """Run what is not done yet, then write everything."""
    from weft.experiments import ic, report_files, workers
    from weft.experiments.checkpoint import Checkpoint
    from weft.experiments.ic_units import units

    folder = "" if workflows is None else str(workflows)
    settings = replace(ic.FULL if full else ic.SAMPLE, seed=seed, workflows=folder)
    of = len(units(settings))  # workflows that cannot be read are told here
    processes = jobs or workers.cores()
    report_files.prepare(out)
    checkpoint = Checkpoint.open(out / CHECKPOINT, settings.described(), fresh)
    with resumable(checkpoint, of), progress_bar("playing", going_on(checkpoint, of)) as told:
        ic.complete(settings, checkpoint, processes, told)
    _finish(out, settings, checkpoint, _command(full, seed, folder), f"{processes} processes")


def _finish(
    out: Path, settings: Settings, checkpoint: Checkpoint, command: str, where: str
) -> None:
    from weft.experiments import ic_report
    from weft.experiments.ic_tables import tables

    measured = tables(settings, checkpoint.done)
    how = ic_report.Circumstances(
        command=command,
        settings=settings,
        where=where,
        seconds=sum(seconds for seconds, _ in checkpoint.sittings),
        processor_seconds=checkpoint.seconds,
        sittings=len(checkpoint.sittings),
    )
    written = ic_report.write(out, measured, how)
    _show(measured, how.seconds)
    print(f"\nwrote {', '.join(path.name for path in written)} to {out}")


def _command(full: bool, seed: int, folder: str) -> str:
    options = (" --full" if full else "") + (f" --seed {seed}" if seed else "")
    return f"weft reproduce ic{options}{' --workflows DIR' if folder else ''}"


def _show(measured: Tables, seconds: float) -> None:
    from weft.experiments.ic_cases import name_of
    from weft.experiments.ic_claims import SIMULATORS, shown_fit, verdicts

    rows = [
        [name_of(fit.family), fit.heuristic.upper(), fit.through, shown_fit(fit)]
        for fit in measured.fits
    ]
    print(f"ICO's area less that of the heuristics, a v^b ({seconds:.0f} s in all)")
    print_table(["dags", "heuristic", "fit through", "curve"], rows, left=3)
    print()
    print_verdicts(verdicts(measured), SIMULATORS)
