"""Slack and spare time by their definitions (Zhao, Sakellariou, section 2), pair by pair."""

from __future__ import annotations

from weft.model import Schedule


def spare(plan: Schedule, i: int, j: int) -> float | None:
    """Spare(i,j) over the items from i to j and the machine order; None if j does not follow i."""
    wf, pf = plan.workflow, plan.platform
    found: list[float] = []
    a, b = int(pf.host[plan.processor[i]]), int(pf.host[plan.processor[j]])
    for item, producer, consumer in zip(*wf.dependencies(), strict=True):
        if (producer, consumer) == (i, j):
            takes = float(pf.startup[a, b]) + float(wf.item_size[item] * pf.time_per_unit[a, b])
            found.append(float(plan.start[j]) - (float(plan.finish[i]) + takes))
    if follows(plan, i) == j:
        found.append(float(plan.start[j] - plan.finish[i]))
    return min(found) if found else None


def follows(plan: Schedule, i: int) -> int | None:
    """The task after i on its processor."""
    row = [t for t in plan.in_time.tolist() if plan.processor[t] == plan.processor[i]]
    at = row.index(i) + 1
    return row[at] if at < len(row) else None


def min_spare(plan: Schedule, i: int) -> float:
    """The least spare time to any successor; an exit has the makespan for one."""
    found = [x for j in range(plan.workflow.n_tasks) if (x := spare(plan, i, j)) is not None]
    return min(found + _exit(plan, i))


def slack(plan: Schedule, i: int) -> float:
    """Slack(i) = min over j of Slack(j) + Spare(i,j), 0 at the exit."""
    found = []
    for j in range(plan.workflow.n_tasks):
        between = spare(plan, i, j)
        if between is not None:
            found.append(slack(plan, j) + between)
    return min(found + _exit(plan, i))


def _exit(plan: Schedule, i: int) -> list[float]:
    if i in plan.workflow.dependencies()[1]:
        return []
    return [plan.makespan - float(plan.finish[i])]
