"""A slow, obvious twin of following a plan to its end: no events, just earliest times."""

from __future__ import annotations

from foreplan.arrays import FloatArray
from foreplan.model import Schedule


def follow(plan: Schedule, work: FloatArray) -> tuple[list[float], list[float]]:
    """Starts and finishes of all tasks if each starts as soon as it can, in the plan's order."""
    wf, pf = plan.workflow, plan.platform
    start, finish = [-1.0] * wf.n_tasks, [-1.0] * wf.n_tasks
    free = [0.0] * pf.n_processors
    for task in plan.in_time.tolist():  # every task after its producers and its processor's last
        p = int(plan.processor[task])
        begins = free[p]
        for item in wf.in_item[wf.in_ptr[task] : wf.in_ptr[task + 1]].tolist():
            producer = int(wf.item_producer[item])
            if producer < 0:
                continue
            a, b = int(pf.host[plan.processor[producer]]), int(pf.host[p])
            arrives = finish[producer]
            if a != b:
                takes = float(wf.item_size[item]) * float(pf.time_per_unit[a, b])
                arrives = arrives + float(pf.startup[a, b]) + takes
            begins = max(begins, arrives)
        start[task], finish[task] = begins, begins + float(work[task, p])
        free[p] = finish[task]
    return start, finish
