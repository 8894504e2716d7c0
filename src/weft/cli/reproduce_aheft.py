"""`weft reproduce aheft`: Yu and Shi's section 4, in a sample or in full, to be gone on with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weft.cli.reproduce_output import (
    all_units,
    command_of,
    print_table,
    print_verdicts,
    print_written,
)
from weft.quantities import duration

if TYPE_CHECKING:
    from weft.experiments.aheft_tables import Tables


def reproduce_aheft(
    full: bool, out: Path, jobs: int | None, seed: int, on: str | None, fresh: bool
) -> None:
    """Run what is not done yet, then write everything."""
    from weft.experiments import aheft, aheft_report, aheft_tables, aheft_work, workers
    from weft.experiments.units import circumstances

    settings = replace(aheft.PAPER if full else aheft.SAMPLE, seed=seed)
    processes = jobs or workers.cores()
    aheft_work.check_place(on)
    checkpoint = all_units(
        out, settings, len(aheft.units(settings)), fresh, "simulating",
        lambda kept, told: aheft_work.complete(settings, kept, processes, on, told),
    )  # fmt: skip
    measured = aheft_tables.tables(settings, checkpoint.done)
    command = command_of("aheft", full, seed)
    where = "a Dask cluster" if on else f"{processes} processes"
    how = circumstances(command, settings, where, checkpoint)
    written = aheft_report.write(out, measured, how)
    _show(measured, how.seconds)
    print_written(written, out)


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
    print(f"Average makespans, published and ours ({duration(seconds)} in all)")
    header = ["", "HEFT", "ours", "AHEFT", "ours", "better by", "ours", "Min-Min", "ours"]
    print_table(header, rows, left=1)
    print()
    print_verdicts(verdicts(measured), SIMULATORS)
