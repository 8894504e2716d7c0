"""The experiment as a whole."""

from __future__ import annotations

from weft_reproductions.budget.claims import SIMULATORS, verdicts
from weft_reproductions.budget.report import files, summary
from weft_reproductions.budget.tables import tables
from weft_reproductions.budget.units import FULL, SAMPLE, measured, units
from weft_reproductions.experiment import Experiment

EXPERIMENT = Experiment(
    paper="budget",
    sample=SAMPLE,
    full=FULL,
    units=units,
    measured=measured,
    tables=tables,
    verdicts=verdicts,
    simulators=SIMULATORS,
    summary=summary,
    files=files,
    doing="planning",
)
