"""Slack and spare time by their definitions (Zhao, Sakellariou, section 2), pair by pair.

The successors of a task are those that its end can delay. In the middle of a run these are fewer
than in the graph: a task that has begun is delayed by nothing, nor is one that will not run, and
one whose input is at hand, or coming from elsewhere, does not need it made again.
"""

from __future__ import annotations

from foreplan.model import Schedule, Situation


def spare(plan: Schedule, i: int, j: int, at: Situation | None = None) -> float | None:
    """Spare(i,j) over the items from i to j and the machine order; None if j does not follow i."""
    wf, pf = plan.workflow, plan.platform
    found: list[float] = []
    a, b = int(pf.host[plan.processor[i]]), int(pf.host[plan.processor[j]])
    for item in items_between(plan, i, j, at):
        takes = float(pf.startup[a, b]) + float(wf.item_size[item] * per_unit(plan, a, b, at))
        found.append(float(plan.start[j]) - (float(plan.finish[i]) + takes))
    if j in follows(plan, i):
        found.append(float(plan.start[j] - plan.finish[i]))
    return min(found) if found else None


def items_between(plan: Schedule, i: int, j: int, at: Situation | None) -> list[int]:
    """The items that j waits for until i has made them."""
    links = zip(*(column.tolist() for column in plan.workflow.dependencies()), strict=True)
    items = [item for item, producer, consumer in links if (producer, consumer) == (i, j)]
    if at is None:
        return items
    if j in at.attempts.task.tolist() or (at.given_up is not None and at.given_up[j]):
        return []
    there = int(plan.platform.host[plan.processor[j]])
    at_hand = set(zip(at.copies.item.tolist(), at.copies.host.tolist(), strict=True))
    coming = set(zip(at.transfers.item.tolist(), at.transfers.host.tolist(), strict=True))
    return [item for item in items if (item, there) not in at_hand | coming]


def per_unit(plan: Schedule, a: int, b: int, at: Situation | None) -> float:
    """What a unit of data takes from one host to another."""
    known = plan.platform.time_per_unit if at is None else at.time_per_unit
    return float(known[a, b])


def follows(plan: Schedule, i: int) -> set[int]:
    """The tasks after i on its processors."""
    found = set()
    for p in held(plan, i):
        row = [t for t in plan.in_time.tolist() if p in held(plan, t)]
        found.update(row[row.index(i) + 1 :][:1])
    return found


def held(plan: Schedule, i: int) -> list[int]:
    """The processors of a task."""
    return [int(plan.processor[i])] if plan.cores is None else plan.cores.of(i).tolist()


def min_spare(plan: Schedule, i: int, at: Situation | None = None) -> float:
    """The least spare time to any successor; an exit has the makespan for one."""
    pairs = [spare(plan, i, j, at) for j in range(plan.workflow.n_tasks)]
    return min([x for x in pairs if x is not None] + _exit(plan, i, at))


def slack(plan: Schedule, i: int, at: Situation | None = None) -> float:
    """Slack(i) = min over j of Slack(j) + Spare(i,j), 0 at the exit."""
    found = []
    for j in range(plan.workflow.n_tasks):
        between = spare(plan, i, j, at)
        if between is not None:
            found.append(slack(plan, j, at) + between)
    return min(found + _exit(plan, i, at))


def _exit(plan: Schedule, i: int, at: Situation | None) -> list[float]:
    if any(items_between(plan, i, j, at) for j in range(plan.workflow.n_tasks)):
        return []
    return [plan.makespan - float(plan.finish[i])]
