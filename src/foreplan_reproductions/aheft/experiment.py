"""The experiment as a whole."""

from __future__ import annotations

from foreplan_reproductions.aheft.claims import SIMULATORS, verdicts
from foreplan_reproductions.aheft.report import files, summary
from foreplan_reproductions.aheft.tables import tables
from foreplan_reproductions.aheft.units import FULL, SAMPLE, measured, units
from foreplan_reproductions.experiment import Experiment

EXPERIMENT = Experiment(
    paper="aheft",
    sample=SAMPLE,
    full=FULL,
    units=units,
    measured=measured,
    tables=tables,
    verdicts=verdicts,
    simulators=SIMULATORS,
    summary=summary,
    files=files,
    at_a_time=2,
)
