"""`weft reproduce budget`: section 4 of Sakellariou and others, and runs under a budget."""

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
    from weft.experiments.budget import Settings
    from weft.experiments.budget_tables import Tables
    from weft.experiments.checkpoint import Checkpoint

CHECKPOINT = "units.log"


def reproduce_budget(full: bool, out: Path, jobs: int | None, seed: int, fresh: bool) -> None:
    """Run what is not done yet, then write everything."""
    from weft.experiments import budget, report_files, workers
    from weft.experiments.checkpoint import Checkpoint

    settings = replace(budget.FULL if full else budget.SAMPLE, seed=seed)
    of = len(budget.units(settings))
    processes = jobs or workers.cores()
    report_files.prepare(out)
    checkpoint = Checkpoint.open(out / CHECKPOINT, settings.described(), fresh)
    with resumable(checkpoint, of), progress_bar("planning", going_on(checkpoint, of)) as told:
        budget.complete(settings, checkpoint, processes, told)
    _finish(out, settings, checkpoint, _command(full, seed), f"{processes} processes")


def _finish(
    out: Path, settings: Settings, checkpoint: Checkpoint, command: str, where: str
) -> None:
    from weft.experiments import budget_report
    from weft.experiments.budget_tables import tables

    measured = tables(settings, checkpoint.done)
    how = budget_report.Circumstances(
        command=command,
        settings=settings,
        where=where,
        seconds=sum(seconds for seconds, _ in checkpoint.sittings),
        processor_seconds=checkpoint.seconds,
        sittings=len(checkpoint.sittings),
    )
    written = budget_report.write(out, measured, how)
    _show(measured, how.seconds)
    print(f"\nwrote {', '.join(path.name for path in written)} to {out}")


def _command(full: bool, seed: int) -> str:
    options = (" --full" if full else "") + (f" --seed {seed}" if seed else "")
    return f"weft reproduce budget{options}"


def _show(measured: Tables, seconds: float) -> None:
    from weft.experiments.budget import COMPARED, SWEEP_KS
    from weft.experiments.budget_claims import SIMULATORS, verdicts
    from weft.experiments.budget_tables import INDEPENDENT

    rows = []
    for name, wanted in INDEPENDENT.items():
        ours = [measured.figures.mean(name, COMPARED, (k,)).value for k in SWEEP_KS]
        off = [f"{mine - other:+.2f}" for mine, other in zip(ours, wanted, strict=True)]
        rows.append([name, *(_slashed(some) for some in (wanted, ours)), " / ".join(off)])
    print(f"Average normalised difference at k = .1 / .5 / .9 ({seconds:.0f} s in all)")
    print_table(["", "independent", "ours", "difference"], rows, left=1)
    print()
    print_verdicts(verdicts(measured), SIMULATORS)


def _slashed(values: tuple[float, ...] | list[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in values)
