"""The ready queue: a heap of the tasks whose producers are all done, the first to go first."""

from __future__ import annotations

from foreplan.engine.kernels.arrays import N_READY, TURN, RunArrays
from foreplan.native import compiled


def get_ready(state: RunArrays, task: int) -> None:
    """Put a task into the heap of ready ones; one that was there before keeps its turn."""
    if state.turn[task] < 0:
        state.turn[task] = state.counts[TURN]
    at = state.counts[N_READY]
    state.counts[N_READY] += 1
    while at > 0 and goes_before(state, task, state.ready[(at - 1) // 2]):
        state.ready[at] = state.ready[(at - 1) // 2]
        at = (at - 1) // 2
    state.ready[at] = task


@compiled
def goes_before(state: RunArrays, one: int, other: int) -> bool:
    """Whether a ready task is handed out before another one."""
    if state.rank[one] != state.rank[other]:
        return bool(state.rank[one] < state.rank[other])
    if state.turn[one] != state.turn[other]:
        return bool((state.turn[one] < state.turn[other]) != state.last_come)
    return bool(state.tie[one] < state.tie[other])


def take_first_ready(state: RunArrays) -> int:
    """Take the first task out of the heap."""
    first = state.ready[0]
    state.counts[N_READY] -= 1
    last = state.counts[N_READY]
    task = state.ready[last]
    at, below = 0, 1
    while below < last:
        if below + 1 < last and goes_before(state, state.ready[below + 1], state.ready[below]):
            below += 1
        if not goes_before(state, state.ready[below], task):
            break
        state.ready[at] = state.ready[below]
        at, below = below, 2 * below + 1
    state.ready[at] = task
    return int(first)
