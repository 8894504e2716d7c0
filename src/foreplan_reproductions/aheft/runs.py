"""HEFT, AHEFT and Min-Min on one DAG for its resource models, and other readings of the paper.

The loop of Yu and Shi's Figure 2 is not how foreplan runs things. Nothing is executed: at each
event the jobs that have ended or begun are those that should have by the plan's own times, the rest
is planned anew by HEFT, and the new plan is taken if its makespan is smaller than the old one's.
What differs between the readings is when the output of a finished job is on a machine other than
its own (equation 1). A column is named "shape|reading"; that of HEFT without insertion is what the
readings without insertion are compared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from foreplan import registry
from foreplan.arrays import FloatArray, IntArray
from foreplan.contracts import Order, Planner, Policy
from foreplan.model import (
    Attempts,
    Estimates,
    Link,
    Platform,
    Processor,
    Run,
    Schedule,
    Situation,
    Transfers,
    Workflow,
)
from foreplan.scheduling.planners.heft import Heft
from foreplan.scheduling.projection import ends_earlier
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulate import simulate_run
from foreplan_reproductions.aheft.cases import (
    APPLICATIONS,
    NO_LEVELS,
    RANDOM,
    SHAPES,
    Dag,
    Instance,
    Model,
    machines,
    waves,
)

HEFT, AHEFT, MIN_MIN = "static", "aheft[learn=false]", "min-min"
ONE_PLAN = "aheft[learn=false,second=false]"
FIVE = ("heft", "peft", "cpop", "dls", "hbmct")

Columns = dict[str, list[float]]  # a column has one figure per resource model


def compare(dag: Dag, some: tuple[Model, ...]) -> Columns:
    """HEFT, AHEFT and, on random DAGs, Min-Min on each resource model."""
    instance = Instance(dag)
    found: Columns = {"heft": [], "aheft": [], "replans": []}
    if dag.kind not in APPLICATIONS:
        found["minmin"] = []
    known: dict[tuple[str, Model], tuple[float, int]] = {}
    for model in some:
        heft, _ = _cached(known, instance, HEFT, model)
        aheft, replans = _cached(known, instance, AHEFT, model)
        found["heft"].append(heft)
        found["aheft"].append(aheft)
        found["replans"].append(replans)
        if "minmin" in found:
            found["minmin"].append(_cached(known, instance, MIN_MIN, model)[0])
    return found


def _cached(
    known: dict[tuple[str, Model], tuple[float, int]],
    instance: Instance,
    strategy: str,
    model: Model,
) -> tuple[float, int]:
    """Makespan and number of new plans; what must be the same is simulated once.

    HEFT uses none that join, nor does any run that ends before the first does. And a share of a
    small pool is rounded, so that some models are the same.
    """
    alone = (strategy, Model(model.pool, 0.0, 0.0))
    if alone not in known:
        known[alone] = _figures(simulate(instance, Model(model.pool, 1.0, 0.0), strategy, 0.0))
    if strategy == HEFT or known[alone][0] <= model.interval:
        return known[alone]
    each = max(1, round(model.share * model.pool))
    alike = (strategy, Model(model.pool, model.interval, each))
    if alike not in known:
        known[alike] = _figures(simulate(instance, model, strategy, known[alone][0]))
    return known[alike]


def _figures(run: Run) -> tuple[float, int]:
    return float(run.makespan), run.replans


def simulate(instance: Instance, model: Model, strategy: str, until: float) -> Run:
    """One run; machines join as long as it lasts, at first until a time that should be enough."""
    policy, planner = _strategy(strategy)
    while True:
        times = waves(model.interval, until) if model.share > 0 else 0
        platform, joins = machines(model, times)
        estimates = instance.estimates(platform.n_processors)
        truth = Reality(estimates.cost, joins)
        run = simulate_run(instance.workflow, platform, estimates, policy, planner, truth)
        if model.share == 0 or run.makespan <= model.interval * (times + 1):
            return run
        until = run.makespan + model.interval  # the links of many machines take much memory


@cache
def _strategy(strategy: str) -> tuple[Policy | Order, Planner | None]:
    return registry.strategy(strategy)


LETTER = "clock + c"  # case 2 of equation (1) as printed, even where it has been sent before
SENT = "sent"  # where the plan had it sent it arrives when it arrives; elsewhere clock + c
FREE_TO_NEW = "free to new"  # the same, but on machines that joined it is at once
FREE_TO_OTHERS = "free to others"  # the same, but where it was not sent it is at once
FREE = "free"  # it is everywhere at once
OUTPUTS = {
    LETTER: "case 2 of (1) as printed: clock + c",
    SENT: "what was sent arrives when it arrives, the rest: clock + c",
    FREE_TO_NEW: "the same, but at once on machines that joined",
    FREE_TO_OTHERS: "the same, but at once where it was not sent",
    FREE: "at once everywhere",
}


@dataclass(frozen=True)
class Reading:
    """A way to read equations (1) and (2), and whether machines that join are used at all."""

    outputs: str = LETTER
    insertion: bool = True
    newcomers: bool = True


def run_loop(
    workflow: Workflow, platform: Platform, estimates: Estimates, reading: Reading
) -> tuple[float, float, int]:
    """The makespans of the first and the last plan, and the number of new plans taken."""
    heft = Heft(reading.insertion)
    plan = heft.plan(Situation(workflow, platform, estimates))
    first, taken, since = plan.makespan, 0, 0.0
    outputs = _Outputs(workflow, platform, reading)
    for now in np.unique(platform.joins[platform.joins > 0]).tolist():
        if now >= plan.makespan:
            break
        outputs.send(plan, since, now)
        situation = Situation(
            workflow,
            platform,
            estimates,
            now=now,
            attempts=_begun(plan, now),
            transfers=outputs.known(plan, now),
            present=platform.joins <= (now if reading.newcomers else 0.0),
        )
        candidate = heft.plan(situation)
        if ends_earlier(candidate.makespan, plan.makespan):
            plan, since, taken = candidate, now, taken + 1
    return float(first), float(plan.makespan), taken


def _begun(plan: Schedule, now: float) -> Attempts:
    """What should have begun before now stays; an end is known once it is there."""
    tasks = np.flatnonzero((plan.start < now) | (plan.finish <= now)).astype(np.int32)
    finish = np.where(plan.finish[tasks] <= now, plan.finish[tasks], np.nan)
    return Attempts(tasks, plan.processor[tasks], plan.start[tasks], finish)


class _Outputs:
    """When each item is on each machine but its producer's, as far as that is settled."""

    def __init__(self, workflow: Workflow, platform: Platform, reading: Reading) -> None:
        self.workflow, self.platform, self.reading = workflow, platform, reading
        self.arrival: FloatArray = np.full((workflow.n_items, platform.n_processors), np.inf)
        users = np.diff(workflow.use_ptr)
        self.used_item: IntArray = np.repeat(np.arange(workflow.n_items, dtype=np.int32), users)

    def send(self, plan: Schedule, since: float, now: float) -> None:
        """Under the plan followed since then, outputs leave for their users as soon as made."""
        wf, pf, item = self.workflow, self.platform, self.used_item
        producer = wf.item_producer[item]
        made, target = plan.finish[producer], pf.host[plan.processor[wf.use_task]]
        source = pf.host[plan.processor[producer]]
        takes = pf.startup[source, target] + wf.item_size[item] * pf.time_per_unit[source, target]
        leaves = (producer >= 0) & (made <= now) & (target != source)
        at = (item[leaves], target[leaves])
        np.minimum.at(self.arrival, at, (np.maximum(made, since) + takes)[leaves])

    def known(self, plan: Schedule, now: float) -> Transfers:
        """What a plan made now is told of the outputs of finished jobs."""
        if self.reading.outputs == LETTER:
            return Transfers()
        producer = self.workflow.item_producer
        here = self.platform.joins <= now
        done = ((producer >= 0) & (plan.finish[producer] <= now))[:, None]
        joined = here & (self.platform.joins > 0)
        free = {SENT: ~here & here, FREE_TO_NEW: joined}.get(self.reading.outputs, here)
        arrival = self.arrival if self.reading.outputs != FREE else np.full_like(self.arrival, now)
        if self.reading.outputs != FREE:
            arrival = np.where(free & done & np.isinf(arrival), now, arrival)
        item, host = np.nonzero(np.isfinite(arrival) & here & done)
        when = np.maximum(arrival[item, host], now)
        return Transfers(item.astype(np.int32), host.astype(np.int32), when)


def paper_sample() -> tuple[Workflow, Platform, Estimates]:
    """Figure 4: three resources, and r4 at 15."""
    edges = {
        (1, 2): 18, (1, 3): 12, (1, 4): 9, (1, 5): 11, (1, 6): 14, (2, 8): 19, (2, 9): 16,
        (3, 7): 23, (4, 8): 27, (4, 9): 23, (5, 9): 13, (6, 8): 15, (7, 10): 17, (8, 10): 11,
        (9, 10): 13,
    }  # fmt: skip
    cost = [
        [14, 16, 9, 14], [13, 19, 18, 17], [11, 13, 19, 14], [13, 8, 17, 15], [12, 13, 10, 14],
        [13, 16, 9, 16], [7, 15, 11, 15], [5, 11, 14, 20], [18, 12, 20, 13], [21, 7, 16, 15],
    ]  # fmt: skip
    producers, consumers = (np.array([e[k] - 1 for e in edges], dtype=np.int32) for k in (0, 1))
    workflow = Workflow.from_edges(
        "sample",
        [f"n{k}" for k in range(1, 11)],
        producers,
        consumers,
        np.array(list(edges.values()), dtype=np.float64),
        base_cost=np.ones(10),
    )
    there = [Processor(f"r{k}") for k in (1, 2, 3)]
    platform = Platform.build([*there, Processor("r4", joins=15.0)], network=Link(1.0))
    return workflow, platform, Estimates(np.array(cost, dtype=np.float64))


LOOPS = {
    "letter": Reading(LETTER),
    "append": Reading(LETTER, insertion=False),
    "append, none join": Reading(LETTER, insertion=False, newcomers=False),
    "free to new": Reading(FREE_TO_NEW),
    "free": Reading(FREE),
}
BASE = {"append": "heft append", "append, none join": "heft append", "aheft append": "heft append"}


def compare_readings(dag: Dag, some: tuple[Model, ...]) -> Columns:
    """All readings of one DAG on some resource models."""
    found: Columns = {}
    for shape in SHAPES if dag.kind == RANDOM else (NO_LEVELS,):
        instance = Instance(dag, shape)
        for model in some:
            for name, makespan in _read(instance, model):
                found.setdefault(f"{shape}|{name}", []).append(makespan)
    return found


def _read(instance: Instance, model: Model) -> Iterator[tuple[str, float]]:
    alone = Model(model.pool, 1.0, 0.0)
    heft = float(simulate(instance, alone, HEFT, 0.0).makespan)
    yield "heft", heft
    yield "aheft", float(simulate(instance, model, AHEFT, heft).makespan)
    yield "one plan", float(simulate(instance, model, ONE_PLAN, heft).makespan)
    yield "best of five", _best_of_five(instance, alone)
    if instance.dag.kind == RANDOM:
        yield "minmin", float(simulate(instance, model, MIN_MIN, heft).makespan)
    for name, reading in LOOPS.items():
        first, last = _loop(instance, model, reading, heft)
        if name == "append":
            yield "heft append", first
        yield name, last


def _best_of_five(instance: Instance, alone: Model) -> float:
    """The shortest plan at time 0, for the machines that are there."""
    platform, _ = machines(alone, 0)
    situation = Situation(instance.workflow, platform, instance.estimates(platform.n_processors))
    return min(float(registry.planner(name).plan(situation).makespan) for name in FIVE)


def _loop(instance: Instance, model: Model, reading: Reading, until: float) -> tuple[float, float]:
    """First and last makespan; machines join as long as the last plan lasts."""
    while True:
        times = waves(model.interval, until)
        platform, _ = machines(model, times)
        estimates = instance.estimates(platform.n_processors)
        first, last, _ = run_loop(instance.workflow, platform, estimates, reading)
        if last <= model.interval * (times + 1):
            return first, last
        until = 2 * model.interval * (times + 1)
