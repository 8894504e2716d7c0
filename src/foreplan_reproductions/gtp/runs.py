"""One run of the GTP experiment, and what is counted of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from foreplan import registry
from foreplan.contracts import Order, Planner, Policy, Watch
from foreplan.engine.policies.planned import DlsSr
from foreplan.model import Freedom, Run, Schedule, Situation
from foreplan.model.record import ENDS
from foreplan.scheduling.planners.dls import Dls
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulate import simulate_run
from foreplan_reproductions.gtp.cases import Case, Instance
from foreplan_reproductions.gtp.shared_links import simulate_shared

# The strategies by the paper's names, and ours beside them.
HEFT, DLS, GTP, GTPC, AHEFT = "HEFT", "DLS/sr", "GTP", "GTP/c", "AHEFT"
DLS_PEAK = "DLS/sr at peak"
GTPC_HEFT, GTPC_DLS = "GTP/c by HEFT", "GTP/c by DLS"
SPARE_GTP = "DLS/sr by GTP"  # its policy with the other planner
GTPR, GTPCR, GTPCR_HEFT = "GTP/r", "GTP/c/r", "GTP/c/r by HEFT"
AT_PEAK = "dls/sr at peak"  # no strategy of foreplan: see AtPeak
SPECS = {
    HEFT: "static",
    DLS: "dls/sr",
    DLS_PEAK: AT_PEAK,
    GTP: "gtp",
    GTPC: "gtp/c",
    AHEFT: "aheft[learn=false]",
    GTPC_HEFT: "gtp/c[planner=heft]",
    GTPC_DLS: "gtp/c[planner=dls]",
    SPARE_GTP: "spare[planner=gtp]",
    GTPR: "gtp/r",
    GTPCR: "gtp/c/r",
    GTPCR_HEFT: "gtp/c/r[planner=heft]",
}
PAPER, PAPER_R = (HEFT, DLS, GTP, GTPC), (GTPR, GTPCR)
WITH_OURS, WITH_OURS_R = (*PAPER, AHEFT, GTPC_HEFT), (*PAPER_R, AHEFT, GTPCR_HEFT)

METRICS = (
    "makespan",
    "remappings",
    "migrated",
    "restarts",
    "copies",
    "lost",  # seconds of processors that came to nothing
    "needed",  # seconds that the data take that had to be sent, at the mean link's peak
    "resent",  # the same of what was sent beyond
    "rewound",  # finished tasks computed again, and attempts that died
    "levels",
)


def simulate(instance: Instance, truth: Reality, spec: str, shared: bool = False) -> Run:
    """One run in a world that is drawn already."""
    policy, planner = _strategy(spec)
    if shared:
        return simulate_shared(instance, truth, policy, planner)
    return simulate_run(
        instance.workflow, instance.platform, instance.estimates, policy, planner, truth
    )


def figures(run: Run) -> dict[str, float]:
    """All metrics of a run."""
    died = int(np.count_nonzero(run.attempts.end == ENDS.index("failed")))
    values = (
        run.makespan, run.replans, run.migrations, run.restarts, run.copies_used,
        run.lost_seconds, *data_seconds(run), run.rewound + died, run.rewound_levels,
    )  # fmt: skip
    return {name: float(value) for name, value in zip(METRICS, values, strict=True)}


def data_seconds(run: Run) -> tuple[float, float]:
    """The time of the data that had to be sent, and of those sent again, or where nobody read them.

    Needed is each item once on each host where a reader finished, other than the one where it was
    made. Transfers that were cut count in full.
    """
    wf, hosts = run.workflow, run.platform.n_hosts
    host = run.platform.host[run.attempts.processor[run.final_attempts()]]  # of each task
    items, producers, consumers = wf.dependencies()
    away = host[producers] != host[consumers]
    pairs = np.unique(items[away].astype(np.int64) * hosts + host[consumers[away]])
    needed = float(wf.item_size[pairs // hosts].sum())
    sent = float(wf.item_size[run.transfers.item].sum())
    unit = run.platform.mean_link.time_per_unit
    # what is made again where its readers are needs no transfer in the end, but may have had one
    return needed * unit, max(0.0, sent - needed) * unit


def measure(instance: Instance, case: Case, specs: tuple[str, ...]) -> list[dict[str, float]]:
    """Every strategy in the same world."""
    truth = instance.truth(case)
    return [figures(simulate(instance, truth, spec, case.shared)) for spec in specs]


@cache
def _strategy(spec: str) -> tuple[Policy | Order, Planner | None]:
    return (AtPeak(), DlsAtPeak()) if spec == AT_PEAK else registry.strategy(spec)


@dataclass(frozen=True)
class AtPeak(DlsSr):
    """DLS/sr that replans as in its own paper: nobody tells it that a speed has changed."""

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        """The spare time, with all links at their peak."""
        return super().watch(plan, _at_peak(situation))


@dataclass(frozen=True)
class DlsAtPeak(Dls):
    """DLS with every processor and link at its peak."""

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """What is done is known, and what is left takes as long as at the peak."""
        return super().plan(_at_peak(situation), freedom)


def _at_peak(situation: Situation) -> Situation:
    return replace(situation, availability=None, bandwidth=None)
