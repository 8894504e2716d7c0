"""`weft reproduce budget`: section 4 of Sakellariou and others, and runs under a budget."""

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
    from weft.experiments.budget_tables import Tables


def reproduce_budget(full: bool, out: Path, jobs: int | None, seed: int, fresh: bool) -> None:
    """Run what is not done yet, then write everything."""
    from weft.experiments import budget, budget_report, budget_tables, workers
    from weft.experiments.units import circumstances

    settings = replace(budget.FULL if full else budget.SAMPLE, seed=seed)
    processes = jobs or workers.cores()
    checkpoint = all_units(
        out, settings, len(budget.units(settings)), fresh, "planning",
        lambda kept, told: budget.complete(settings, kept, processes, told),
    )  # fmt: skip
    measured = budget_tables.tables(settings, checkpoint.done)
    command = command_of("budget", full, seed)
    how = circumstances(command, settings, f"{processes} processes", checkpoint)
    written = budget_report.write(out, measured, how)
    _show(measured, how.seconds)
    print_written(written, out)


def _show(measured: Tables, seconds: float) -> None:
    from weft.experiments.budget import COMPARED, SWEEP_KS
    from weft.experiments.budget_claims import SIMULATORS, verdicts
    from weft.experiments.budget_tables import INDEPENDENT

    rows = []
    for name, wanted in INDEPENDENT.items():
        ours = [measured.figures.mean(name, COMPARED, (k,)).value for k in SWEEP_KS]
        off = [f"{mine - other:+.2f}" for mine, other in zip(ours, wanted, strict=True)]
        rows.append([name, *(_slashed(some) for some in (wanted, ours)), " / ".join(off)])
    print(f"Average normalised difference at k = .1 / .5 / .9 ({duration(seconds)} in all)")
    print_table(["", "independent", "ours", "difference"], rows, left=1)
    print()
    print_verdicts(verdicts(measured), SIMULATORS)


def _slashed(values: tuple[float, ...] | list[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in values)
