"""Cores and amounts: what a task takes, all of it or nothing, and gives back when it ends.

A column is a kind of amount that hosts have (memory, GPUs, named ones) or a pool, which all hosts
share; pools come last.
"""

from __future__ import annotations

from foreplan.arrays import FloatArray
from foreplan.engine.kernels.arrays import READY_QUEUE, RunArrays

ROUNDING = 1e-10  # of a capacity: what is short by less is there


def columns(state: RunArrays) -> int:
    """How many kinds of amounts and pools there are."""
    return state.n_kinds + state.n_pools


def place_of(state: RunArrays, host: int, column: int) -> int:
    """Where the column of a host stands among the capacities; that of a pool, whatever the host."""
    if column < state.n_kinds:
        return host * state.n_kinds + column
    return state.n_hosts * state.n_kinds + column - state.n_kinds


def suffices(state: RunArrays, place: int, wanted: float, free: float) -> bool:
    """Whether so much is enough, but for rounding."""
    return bool(wanted <= free or wanted - free <= ROUNDING * state.capacity[place])


def fits(state: RunArrays, task: int, host: int) -> bool:
    """Whether all that the task needs beside cores is free on the host now."""
    row = task * columns(state)
    for k in range(columns(state)):
        place = place_of(state, host, k)
        if not suffices(state, place, state.need[row + k], state.free[place]):
            return False
    return True


def hold(state: RunArrays, host: int, amounts: FloatArray, row: int, sign: float) -> None:
    """Take amounts of a host and of the pools, or give them back."""
    for k in range(columns(state)):
        if amounts[row + k] > 0.0:
            place = place_of(state, host, k)
            state.free[place] -= sign * amounts[row + k]


def claim(state: RunArrays, task: int) -> None:
    """Hold what a task needs on the host that was chosen for it, before it starts."""
    row = task * columns(state)
    for k in range(columns(state)):
        state.claim[row + k] = state.need[row + k]
    hold(state, state.host[state.on[task]], state.claim, row, 1.0)


def disclaim(state: RunArrays, task: int) -> None:
    """Give back what a task holds that waits on its host."""
    if state.dispatch == READY_QUEUE:
        row = task * columns(state)
        hold(state, state.host[state.on[task]], state.claim, row, -1.0)
        for k in range(columns(state)):
            state.claim[row + k] = 0.0


def factor_of(state: RunArrays, task: int, wide: int) -> float:
    """The share of its cost that a task takes on so many cores."""
    share = 1.0
    for k in range(state.width_ptr[task], state.width_ptr[task + 1]):
        if state.width[k] == wide:
            share = state.factor[k]
    return share


def occupy(state: RunArrays, task: int, attempt: int) -> None:
    """The attempt holds the cores of its task, beside the first, and the amounts."""
    wide, host = state.wide[task], state.host[state.on[task]]
    state.attempt_wide[attempt] = wide
    for j in range(wide):
        core = state.core[task * state.most_cores + j]
        state.attempt_core[attempt * state.most_cores + j] = core
        if j > 0:
            state.running[core] = attempt
            state.queue_at[core] += 1
    width, row, its = columns(state), task * columns(state), attempt * columns(state)
    if state.dispatch == READY_QUEUE:
        for k in range(width):
            state.attempt_amount[its + k] = state.claim[row + k]
            state.claim[row + k] = 0.0
    else:
        for k in range(width):
            state.attempt_amount[its + k] = state.need[row + k]
        hold(state, host, state.attempt_amount, its, 1.0)
    state.attempt_factor[attempt] = factor_of(state, task, wide)
    paid = state.paid[task * state.n_hosts + host]
    state.attempt_beyond[attempt] = max(0.0, paid - wide)


def vacate(state: RunArrays, attempt: int) -> None:
    """All that the attempt held is free."""
    for j in range(state.attempt_wide[attempt]):
        state.running[state.attempt_core[attempt * state.most_cores + j]] = -1
    host = state.host[state.attempt_on[attempt]]
    hold(state, host, state.attempt_amount, attempt * columns(state), -1.0)


def price_of(state: RunArrays, attempt: int) -> float:
    """What a second of an attempt costs: all of its cores, and those that it pays for beyond."""
    first = state.price[state.attempt_on[attempt]]
    if state.most_cores == 0:
        return float(first)
    price = first * state.attempt_beyond[attempt]
    for j in range(state.attempt_wide[attempt]):
        price += state.price[state.attempt_core[attempt * state.most_cores + j]]
    return float(price)
