"""`weft reproduce ic`: Hall, Rosenberg and Venkataramani's section 5, and volunteers."""

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
    from weft.experiments.ic_tables import Tables


def reproduce_ic(
    full: bool, out: Path, jobs: int | None, seed: int, workflows: Path | None, fresh: bool
) -> None:
    """Run what is not done yet, then write everything."""
    from weft.experiments import ic, ic_report, ic_tables, workers
    from weft.experiments.ic_units import units
    from weft.experiments.units import circumstances

    folder = "" if workflows is None else str(workflows)
    settings = replace(ic.FULL if full else ic.SAMPLE, seed=seed, workflows=folder)
    of = len(units(settings))  # workflows that cannot be read are told here
    processes = jobs or workers.cores()
    checkpoint = all_units(
        out, settings, of, fresh, "playing",
        lambda kept, told: ic.complete(settings, kept, processes, told),
    )  # fmt: skip
    measured = ic_tables.tables(settings, checkpoint.done)
    command = command_of("ic", full, seed, " --workflows DIR" if folder else "")
    how = circumstances(command, settings, f"{processes} processes", checkpoint)
    written = ic_report.write(out, measured, how)
    _show(measured, how.seconds)
    print_written(written, out)


def _show(measured: Tables, seconds: float) -> None:
    from weft.experiments.ic_cases import name_of
    from weft.experiments.ic_claims import SIMULATORS, shown_fit, verdicts

    rows = [
        [name_of(fit.family), fit.heuristic.upper(), fit.through, shown_fit(fit)]
        for fit in measured.fits
    ]
    print(f"ICO's area less that of the heuristics, a v^b ({duration(seconds)} in all)")
    print_table(["dags", "heuristic", "fit through", "curve"], rows, left=3)
    print()
    print_verdicts(verdicts(measured), SIMULATORS)
