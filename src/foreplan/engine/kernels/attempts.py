"""Attempts at tasks: how they start and how they end."""

from __future__ import annotations

import numpy as np

from foreplan.engine.kernels.amounts import occupy, vacate
from foreplan.engine.kernels.arrays import (
    CANCEL,
    CANCELLED,
    FINISHED,
    N_ATTEMPTS,
    OPEN,
    RUNNING,
    START,
    WAITING,
    RunArrays,
)
from foreplan.engine.kernels.items import command
from foreplan.native import compiled


@compiled
def start(state: RunArrays, task: int, p: int) -> None:
    """A new attempt at the task on an idle processor, and on the other cores that it takes."""
    attempt = state.counts[N_ATTEMPTS]
    state.counts[N_ATTEMPTS] += 1
    state.attempt_task[attempt] = task
    state.attempt_on[attempt] = p
    state.attempt_start[attempt] = state.clock[0]
    state.attempt_finish[attempt] = np.nan
    state.attempt_end[attempt] = OPEN
    state.worked[attempt] = 0.0
    state.since[attempt] = state.clock[0]
    state.status[task] = RUNNING
    state.attempt[task] = attempt
    state.running[p] = attempt
    state.queue_at[p] += 1
    state.turn[task] = -1
    if state.most_cores > 0:
        occupy(state, task, attempt)
    command(state, START, attempt)


def estimated(state: RunArrays, attempt: int) -> float:
    """Seconds that the task was expected to take there, at full availability."""
    row = state.attempt_task[attempt] * state.n_processors
    full = state.estimate[row + state.attempt_on[attempt]]
    return float(full if state.most_cores == 0 else full * state.attempt_factor[attempt])


def worked_by_now(state: RunArrays, attempt: int) -> float:
    """Seconds at full availability that an open attempt is believed to have done."""
    rate = state.availability[state.attempt_on[attempt]]
    return float(state.worked[attempt] + (state.clock[0] - state.since[attempt]) * rate)


@compiled
def end_attempt(state: RunArrays, attempt: int, how: int) -> None:
    """The attempt is over and its processor idle; unless finished, its task waits again.

    All that it held is free.
    """
    state.worked[attempt] = worked_by_now(state, attempt)
    state.since[attempt] = state.clock[0]
    state.attempt_finish[attempt] = state.clock[0]
    state.attempt_end[attempt] = how
    state.running[state.attempt_on[attempt]] = -1
    if state.most_cores > 0:
        vacate(state, attempt)
    if how != FINISHED:
        state.status[state.attempt_task[attempt]] = WAITING
        state.on[state.attempt_task[attempt]] = -1


@compiled
def cancel(state: RunArrays, attempt: int) -> None:
    """Stop an attempt that runs: it is over, its partial output discarded."""
    end_attempt(state, attempt, CANCELLED)
    command(state, CANCEL, attempt)
