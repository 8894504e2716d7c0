"""The experiment as a whole."""

from __future__ import annotations

from foreplan_reproductions.experiment import Experiment
from foreplan_reproductions.ic.claims import SIMULATORS, verdicts
from foreplan_reproductions.ic.report import files, summary
from foreplan_reproductions.ic.tables import tables
from foreplan_reproductions.ic.units import FULL, SAMPLE, measured, units

EXPERIMENT = Experiment(
    paper="ic",
    sample=SAMPLE,
    full=FULL,
    units=units,
    measured=measured,
    tables=tables,
    verdicts=verdicts,
    simulators=SIMULATORS,
    summary=summary,
    files=files,
    doing="playing",
    folder="workflows",
)
