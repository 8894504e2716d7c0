"""`weft reproduce gtp`: Hernandez and Cole's section 7, in a sample or in full."""

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
    from weft.experiments.gtp import Settings
    from weft.experiments.gtp_tables import Tables

CHECKPOINT = "units.log"


def reproduce_gtp(
    full: bool, out: Path, jobs: int | None, seed: int, stg: Path | None, fresh: bool
) -> None:
    """Run what is not done yet, then write everything."""
    from weft.experiments import gtp, report_files, workers
    from weft.experiments.checkpoint import Checkpoint

    folder = "" if stg is None else str(stg)
    settings = replace(gtp.FULL if full else gtp.SAMPLE, seed=seed, stg=folder)
    of = len(gtp.units(settings))  # shapes that cannot be read are told here
    processes = jobs or workers.cores()
    report_files.prepare(out)
    checkpoint = Checkpoint.open(out / CHECKPOINT, settings.described(), fresh)
    with resumable(checkpoint, of), progress_bar("simulating", going_on(checkpoint, of)) as told:
        gtp.complete(settings, checkpoint, processes, told)
    _finish(out, settings, checkpoint, _command(full, seed, folder), f"{processes} processes")


def _finish(
    out: Path, settings: Settings, checkpoint: Checkpoint, command: str, where: str
) -> None:
    from weft.experiments import gtp_report
    from weft.experiments.gtp_tables import tables

    measured = tables(settings, checkpoint.done)
    how = gtp_report.Circumstances(
        command=command,
        settings=settings,
        where=where,
        seconds=sum(seconds for seconds, _ in checkpoint.sittings),
        processor_seconds=checkpoint.seconds,
        sittings=len(checkpoint.sittings),
    )
    written = gtp_report.write(out, measured, how)
    _show(measured, how.seconds)
    print(f"\nwrote {', '.join(path.name for path in written)} to {out}")


def _command(full: bool, seed: int, stg: str) -> str:
    options = (" --full" if full else "") + (f" --seed {seed}" if seed else "")
    return f"weft reproduce gtp{options}{' --stg DIR' if stg else ''}"


def _show(measured: Tables, seconds: float) -> None:
    from weft.experiments.gtp_claims import SIMULATORS, published_words, shown, verdicts
    from weft.experiments.gtp_tables import PUBLISHED

    rows = [
        [
            f"{mine} over {over}",
            f"{bound:.0%}",
            published_words(part, value),
            shown(measured.gain(measured.main(part, bound), mine, over)),
        ]
        for (part, bound, mine, over), value in PUBLISHED.items()
    ]
    print(f"Gains in NSL, {measured.main_size} tasks ({seconds:.0f} s in all)")
    print_table(["", "variability", "published", "ours"], rows, left=1)
    print()
    print_verdicts(verdicts(measured), SIMULATORS)
