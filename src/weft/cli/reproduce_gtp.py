"""`weft reproduce gtp`: Hernandez and Cole's section 7, in a sample or in full."""

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
    from weft.experiments.gtp_tables import Tables


def reproduce_gtp(
    full: bool, out: Path, jobs: int | None, seed: int, stg: Path | None, fresh: bool
) -> None:
    """Run what is not done yet, then write everything."""
    from weft.experiments import gtp, gtp_report, gtp_tables, workers
    from weft.experiments.units import circumstances

    folder = "" if stg is None else str(stg)
    settings = replace(gtp.FULL if full else gtp.SAMPLE, seed=seed, stg=folder)
    of = len(gtp.units(settings))  # shapes that cannot be read are told here
    processes = jobs or workers.cores()
    checkpoint = all_units(
        out, settings, of, fresh, "simulating",
        lambda kept, told: gtp.complete(settings, kept, processes, told),
    )  # fmt: skip
    measured = gtp_tables.tables(settings, checkpoint.done)
    command = command_of("gtp", full, seed, " --stg DIR" if folder else "")
    how = circumstances(command, settings, f"{processes} processes", checkpoint)
    written = gtp_report.write(out, measured, how)
    _show(measured, how.seconds)
    print_written(written, out)


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
    print(f"Gains in NSL, {measured.main_size} tasks ({duration(seconds)} in all)")
    print_table(["", "variability", "published", "ours"], rows, left=1)
    print()
    print_verdicts(verdicts(measured), SIMULATORS)
