"""The experiment as a whole."""

from __future__ import annotations

from weft_reproductions.aheft.claims import SIMULATORS, verdicts
from weft_reproductions.aheft.report import files, summary
from weft_reproductions.aheft.tables import tables
from weft_reproductions.aheft.units import FULL, SAMPLE, measured, units
from weft_reproductions.experiment import Experiment

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
