"""Which of equal processors has each task: slowly, one list of idle ones after another."""

from __future__ import annotations

from foreplan.model import Schedule, Situation

ROUNDING = 1e-9


def slow_staying(candidate: Schedule, current: Schedule, situation: Situation) -> list[int]:
    """The processor of every task: of the idle equals the one of before, its own, or the first."""
    pf, cost = situation.platform, situation.cost
    begun = set(situation.attempts.task.tolist())
    tasks = [t for t in range(len(cost)) if t not in begun]
    if situation.given_up is not None:
        tasks = [t for t in tasks if not situation.given_up[t]]
    usable = situation.usable() & (pf.billing * pf.price == 0)

    def alike(p: int, q: int) -> bool:
        if p == q or not (usable[p] and usable[q]):
            return p == q
        same = pf.host[p] == pf.host[q] and pf.leaves[p] == pf.leaves[q]
        return bool(
            same and pf.price[p] == pf.price[q] and (cost[tasks, p] == cost[tasks, q]).all()
        )

    free = [situation.now] * pf.n_processors
    for k, end in enumerate(situation.expected_finish().tolist()):
        if situation.attempts.finish[k] != situation.attempts.finish[k]:
            p = int(situation.attempts.processor[k])
            free[p] = max(free[p], end)
    chosen, slop = candidate.processor.tolist(), ROUNDING * max(1.0, candidate.makespan)
    for task in [t for t in candidate.in_time.tolist() if t in set(tasks)]:
        own, before = chosen[task], int(current.processor[task])
        idle = [q for q in range(pf.n_processors) if alike(own, q)]
        idle = [q for q in idle if free[q] <= candidate.start[task] + slop]
        if not idle:
            return [int(p) for p in candidate.processor]
        p = next((q for q in (before, own) if q in idle), idle[0])
        chosen[task], free[p] = p, float(candidate.finish[task])
    return [int(p) for p in chosen]
