"""The experiment as a whole."""

from __future__ import annotations

from foreplan_reproductions.budget.claims import SIMULATORS, verdicts
from foreplan_reproductions.budget.report import files, summary
from foreplan_reproductions.budget.tables import tables
from foreplan_reproductions.budget.units import FULL, SAMPLE, measured, units
from foreplan_reproductions.experiment import Experiment

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
