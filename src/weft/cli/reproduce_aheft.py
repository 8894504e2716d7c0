"""`weft reproduce aheft`: Yu and Shi's section 4, in a sample or in full, to be gone on with."""

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
    from weft.experiments.aheft import Settings
    from weft.experiments.aheft_tables import Tables
    from weft.experiments.checkpoint import Checkpoint

CHECKPOINT = "units.log"


def reproduce_aheft(
    full: bool, out: Path, jobs: int | None, seed: int, on: str | None, fresh: bool
) -> None:
    """Run what is not done yet, then write everything."""
    from weft.experiments import aheft, aheft_work, report_files, workers
    from weft.experiments.checkpoint import Checkpoint

    settings = replace(aheft.PAPER if full else aheft.SAMPLE, seed=seed)
    processes = jobs or workers.cores()
    command = _command(full, seed)
    aheft_work.check_place(on)
    report_files.prepare(out)
    checkpoint = Checkpoint.open(out / CHECKPOINT, settings.described(), fresh)
    of = len(aheft.units(settings))
    with resumable(checkpoint, of), progress_bar("simulating", going_on(checkpoint, of)) as told:
        aheft_work.complete(settings, checkpoint, processes, on, told)
    _finish(
        out, settings, checkpoint, command, "a Dask cluster" if on else f"{processes} processes"
    )


def _finish(
    out: Path, settings: Settings, checkpoint: Checkpoint, command: str, where: str
) -> None:
    from weft.experiments import aheft_report
    from weft.experiments.aheft_tables import tables

    measured = tables(settings, checkpoint.done)
    how = aheft_report.Circumstances(
        command=command,
        settings=settings,
        where=where,
        seconds=sum(seconds for seconds, _ in checkpoint.sittings),
        processor_seconds=checkpoint.seconds,
        sittings=len(checkpoint.sittings),
    )
    written = aheft_report.write(out, measured, how)
    _show(measured, how.seconds)
    print(f"\nwrote {', '.join(path.name for path in written)} to {out}")


def _command(full: bool, seed: int) -> str:
    options = (" --full" if full else "") + (f" --seed {seed}" if seed else "")
    return f"weft reproduce aheft{options}"


def _show(measured: Tables, seconds: float) -> None:
    from weft.experiments.aheft_cases import KINDS, RANDOM
    from weft.experiments.aheft_claims import NAMES, SIMULATORS, verdicts
    from weft.experiments.aheft_tables import AVERAGES

    rows = []
    for kind in KINDS:
        row, (heft, aheft, minmin) = measured.main_row(kind), AVERAGES[kind]
        last = [f"{minmin:.0f}", f"{row.minmin:.0f}"] if kind == RANDOM else ["", ""]
        rows.append(
            [NAMES[kind], f"{heft:.0f}", f"{row.heft:.0f}", f"{aheft:.0f}", f"{row.aheft:.0f}",
             f"{row.published:.1f}%", f"{row.improvement:.1f}%", *last]
        )  # fmt: skip
    print(f"Average makespans, published and ours ({seconds:.0f} s in all)")
    header = ["", "HEFT", "ours", "AHEFT", "ours", "better by", "ours", "Min-Min", "ours"]
    print_table(header, rows, left=1)
    print()
    print_verdicts(verdicts(measured), SIMULATORS)
