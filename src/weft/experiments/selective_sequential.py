"""The simulation of Zhao and Sakellariou's Figure 2: one task after the other, in planned order.

It is not how weft runs things. It is here to tell what in our figures comes from the policies, and
what from the simulator. Two things differ from a run event by event:

- a task's real finish is known as soon as the task has started, since the loop executes it at once;
- there is no "now": a task that is moved gets its data as if they had been sent to the new machine
  when they were made, and a machine that was idle can be used from when it became so.
"""

from __future__ import annotations

import numpy as np

from weft import registry
from weft.arrays import FloatArray, IntArray
from weft.model import Attempts, Estimates, Platform, Schedule, Situation, Workflow
from weft.robustness import ROUNDING, slack_and_spare


def simulate_in_order(
    workflow: Workflow, platform: Platform, strategy: str, planner: str, work: FloatArray
) -> tuple[float, int]:
    """Makespan and number of new plans by the loop of Figure 2; `work` are the real durations."""
    estimates = Estimates.declared(workflow, platform)
    loop = _Loop(workflow, platform, Estimates(work) if strategy == "ideal" else estimates, work)
    chosen = registry.planner(planner)
    replans, before = 0, 0
    plan = chosen.plan(loop.situation())
    line, latest = _line(plan), _latest(plan, strategy)
    for executed in range(workflow.n_tasks):
        task = int(line[executed - before])
        if executed > 0 and loop.real_start(task, plan) > latest[task]:
            plan = chosen.plan(loop.situation())
            replans += 1
            line, latest = _line(plan), _latest(plan, strategy)
            line, before = line[~loop.executed[line]], executed
            task = int(line[0])
        loop.execute(task, plan)
    return float(loop.finish.max()), replans


class _Loop:
    """S2 of Figure 2: what has been executed so far, where and when."""

    def __init__(
        self, workflow: Workflow, platform: Platform, estimates: Estimates, work: FloatArray
    ) -> None:
        self.workflow, self.platform, self.estimates = workflow, platform, estimates
        self.work = work
        self.executed = np.zeros(workflow.n_tasks, dtype=np.bool_)
        self.processor = np.zeros(workflow.n_tasks, dtype=np.int32)
        self.start = np.zeros(workflow.n_tasks)
        self.finish = np.zeros(workflow.n_tasks)
        self.free = np.zeros(platform.n_processors)

    def real_start(self, task: int, plan: Schedule) -> float:
        """When the task's machine is free and its data have arrived there."""
        wf, pf, p = self.workflow, self.platform, plan.processor[task]
        items = wf.in_item[wf.in_ptr[task] : wf.in_ptr[task + 1]]
        producers = wf.item_producer[items]
        items, producers = items[producers >= 0], producers[producers >= 0]
        source, target = pf.host[self.processor[producers]], pf.host[p]
        takes = pf.startup[source, target] + wf.item_size[items] * pf.time_per_unit[source, target]
        arrival = (self.finish[producers] + takes).max(initial=0.0)
        return float(max(self.free[p], arrival))

    def execute(self, task: int, plan: Schedule) -> None:
        """The task runs on its planned machine, and its real finish is known."""
        p = int(plan.processor[task])
        self.start[task] = self.real_start(task, plan)
        self.finish[task] = self.start[task] + self.work[task, p]
        self.processor[task] = p
        self.free[p] = self.finish[task]
        self.executed[task] = True

    def situation(self) -> Situation:
        """What the planner is given: no time has passed, and all work executed ends when it does.

        An attempt with nothing left to do since its real finish is expected to end just then.
        """
        tasks = np.flatnonzero(self.executed).astype(np.int32)
        attempts = Attempts(
            task=tasks,
            processor=self.processor[tasks],
            start=self.start[tasks],
            finish=np.full(len(tasks), np.nan),
            worked=np.full(len(tasks), np.inf),
            since=self.finish[tasks],
        )
        return Situation(self.workflow, self.platform, self.estimates, attempts=attempts)


def _line(plan: Schedule) -> IntArray:
    """The tasks by planned start; a topological order breaks ties."""
    position = plan.workflow.position
    return np.lexsort((position, plan.finish, plan.start)).astype(np.int32)


def _latest(plan: Schedule, strategy: str) -> FloatArray:
    """The latest start of each task that needs no new plan."""
    if strategy in ("static", "ideal", "always"):
        return np.full(len(plan.start), -np.inf if strategy == "always" else np.inf)
    slack, spare = slack_and_spare(plan)
    allowed = slack if strategy == "slack" else spare
    latest: FloatArray = plan.start + allowed + ROUNDING * plan.makespan
    return latest
