"""The loop of Yu and Shi's Figure 2: plans alone, with the FEA of equation (1) in several readings.

It is not how weft runs things. Nothing is executed: at each event the jobs that have ended or begun
are those that should have by the plan's own times, the rest is planned anew by HEFT, and the new
plan is taken if its makespan is smaller than the old one's. What differs between the readings is
when the output of a finished job is on a machine other than its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.model import Attempts, Estimates, Platform, Schedule, Situation, Transfers, Workflow
from weft.planners.heft import Heft
from weft.projection import ends_earlier

LETTER = "clock + c"  # case 2 of equation (1) as printed, even where it has been sent before
SENT = "sent"  # where the plan had it sent it arrives when it arrives; elsewhere clock + c
FREE_TO_NEW = "free to new"  # the same, but on machines that joined it is at once
FREE_TO_OTHERS = "free to others"  # the same, but where it was not sent it is at once
FREE = "free"  # it is everywhere at once


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
