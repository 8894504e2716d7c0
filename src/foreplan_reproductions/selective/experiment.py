"""The experiment as a whole."""

from __future__ import annotations

from foreplan import workers
from foreplan_reproductions.experiment import Experiment
from foreplan_reproductions.selective.claims import SIMULATORS, verdicts
from foreplan_reproductions.selective.report import files, summary
from foreplan_reproductions.selective.tables import tables
from foreplan_reproductions.selective.units import FULL, SAMPLE, measured, units

EXPERIMENT = Experiment(
    paper="selective",
    sample=SAMPLE,
    full=FULL,
    units=units,
    measured=measured,
    tables=tables,
    verdicts=verdicts,
    simulators=SIMULATORS,
    summary=summary,
    files=files,
    kept=False,
    timed=True,
    at_a_time=workers.LARGEST,
)
