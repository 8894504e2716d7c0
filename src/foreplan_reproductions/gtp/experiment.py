"""The experiment as a whole."""

from __future__ import annotations

from foreplan_reproductions.experiment import Experiment
from foreplan_reproductions.gtp.claims import SIMULATORS, verdicts
from foreplan_reproductions.gtp.report import files, summary
from foreplan_reproductions.gtp.tables import tables
from foreplan_reproductions.gtp.units import FULL, SAMPLE, measured, units

EXPERIMENT = Experiment(
    paper="gtp",
    sample=SAMPLE,
    full=FULL,
    units=units,
    measured=measured,
    tables=tables,
    verdicts=verdicts,
    simulators=SIMULATORS,
    summary=summary,
    files=files,
    folder="stg",
)
