"""`weft reproduce aheft`: Yu and Shi's section 4, in a sample or in full, to be gone on with."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weft.cli.reproduce_output import print_table, print_verdicts, progress_bar

if TYPE_CHECKING:
    from weft.experiments.aheft import Settings
    from weft.experiments.aheft_checkpoint import Checkpoint
    from weft.experiments.aheft_tables import Tables

CHECKPOINT = "units.log"


def reproduce_aheft(
    full: bool, out: Path, jobs: int | None, seed: int, on: str | None, fresh: bool
) -> None:
    """Run what is not done yet, then write everything."""
    from weft.experiments import aheft, aheft_work, report_files, workers
    from weft.experiments.aheft_checkpoint import Checkpoint

    settings = replace(aheft.PAPER if full else aheft.SAMPLE, seed=seed)
    processes = jobs or workers.cores()
    command = _command(full, seed)
    aheft_work.check_place(on)
    report_files.prepare(out)
    checkpoint = Checkpoint.open(out / CHECKPOINT, settings.described(), fresh)
    try:
        _complete(settings, checkpoint, processes, on)
    except KeyboardInterrupt:
        done, of = len(checkpoint.done), len(aheft.units(settings))
        print(
            f"weft: stopped; {done} of {of} units are done and kept in {checkpoint.path}; "
            "the same command goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    finally:
        checkpoint.close()
    _finish(
        out, settings, checkpoint, command, "a Dask cluster" if on else f"{processes} processes"
    )


def _complete(settings: Settings, checkpoint: Checkpoint, processes: int, on: str | None) -> None:
    from weft.experiments import aheft, aheft_work

    kept, of = len(checkpoint.done), len(aheft.units(settings))
    if kept:
        print(f"weft: going on: {kept} of {of} units are done already", file=sys.stderr)
    with progress_bar("simulating", kept / of) as progress:
        aheft_work.complete(settings, checkpoint, processes, on, progress)


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
