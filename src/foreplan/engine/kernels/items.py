"""Items: where they are sent from, what a task still lacks, and what is left behind."""

from __future__ import annotations

import numpy as np

from foreplan.ends import STANDS_STILL
from foreplan.engine.kernels.arrays import (
    ABSENT,
    ANYWHERE,
    DONE,
    DROP,
    HERE,
    MOVING,
    N_COMMANDS,
    N_TRANSFERS,
    NEVER,
    RUNNING,
    SEND,
    RunArrays,
)
from foreplan.native import compiled


def command(state: RunArrays, kind: int, which: int) -> None:
    """Write down what the executor is to do."""
    at = 2 * state.counts[N_COMMANDS]
    state.commands[at] = kind
    state.commands[at + 1] = which
    state.counts[N_COMMANDS] += 1


def home_of(state: RunArrays, item: int) -> int:
    """The host on which an item was made last; -1: it never was."""
    producer = state.item_producer[item]
    if producer < 0 or state.attempt[producer] < 0:
        return -1
    return int(state.host[state.attempt_on[state.attempt[producer]]])


def at_home(state: RunArrays, item: int) -> bool:
    """Whether the host that made the item holds it."""
    home = home_of(state, item)
    return bool(home >= 0 and state.held[item * state.n_hosts + home] == HERE)


def holder(state: RunArrays, item: int) -> int:
    """A host that holds the item whole: its producer's where it can, else the first; -1: none."""
    if at_home(state, item):
        return home_of(state, item)
    for host in range(state.n_hosts):
        if state.held[item * state.n_hosts + host] == HERE:
            return host
    return -1


def source_for(state: RunArrays, item: int, there: int) -> int:
    """Where to send the item from: its producer's host; else, or with /c, the cheapest copy.

    Hernandez, Cole: equation 12, the producer's own host among the copies, and before its equals.
    """
    best = home_of(state, item) if at_home(state, item) else -1
    if best >= 0 and state.reuse != ANYWHERE:
        return best
    least = np.inf if best < 0 else sending_time(state, item, best, there)
    for host in range(state.n_hosts):
        if state.held[item * state.n_hosts + host] == HERE:
            takes = sending_time(state, item, host, there)
            if takes < least:
                best, least = host, takes
    return best


def sending_time(state: RunArrays, item: int, source: int, there: int) -> float:
    """Seconds that an item takes from one host to another at the bandwidth known now."""
    link = source * state.n_hosts + there
    rate = max(state.bandwidth[link], STANDS_STILL)
    return float(state.startup[link] + state.item_size[item] * state.per_unit[link] / rate)


def can_have(state: RunArrays, item: int, consumer: int, anywhere: bool) -> bool:
    """Whether a waiting task can get an item that is made: from anywhere, or as copies are reused.

    Where they are not, only from its producer's host, if it has not come whole yet.
    """
    if anywhere or state.reuse != NEVER:
        return holder(state, item) >= 0
    if at_home(state, item):
        return True
    p = state.on[consumer]
    return bool(p >= 0 and state.held[item * state.n_hosts + state.host[p]] == HERE)


def is_placed(state: RunArrays, task: int) -> bool:
    """Whether a waiting task has begun to gather inputs at its processor (Hernandez, Cole)."""
    p = state.on[task]
    if p < 0:
        return False
    for e in range(state.in_ptr[task], state.in_ptr[task + 1]):
        item = state.in_item[e]
        made = state.item_producer[item] >= 0
        if made and state.held[item * state.n_hosts + state.host[p]] != ABSENT:
            return True
    return False


def leave_behind(state: RunArrays) -> None:
    """Forget what was sent to hosts where no task is left that reads it.

    So a migrated task gathers its inputs from the very beginning (Hernandez, Cole: section 3.3).
    The last copy of an item that its producer's host has lost is kept.
    """
    for transfer in range(state.counts[N_TRANSFERS]):
        item, there = state.transfer_item[transfer], state.transfer_to[transfer]
        where = item * state.n_hosts + there
        gone = state.transfer_forgotten[transfer] < np.inf or state.held[where] == ABSENT
        gone |= state.transfer_arrival[transfer] == np.inf
        # it may have come, been lost, and be on its way again
        again = state.held[where] == MOVING and not np.isnan(state.transfer_arrival[transfer])
        if gone or again or there == home_of(state, item):
            continue
        if state.status[state.item_producer[item]] != DONE or not at_home(state, item):
            continue
        if wanted_at(state, item, there):
            continue
        state.transfer_forgotten[transfer] = state.clock[0]
        if np.isnan(state.transfer_arrival[transfer]):
            state.transfer_arrival[transfer] = np.inf
            command(state, DROP, transfer)
        state.held[where] = ABSENT


def wanted_at(state: RunArrays, item: int, host: int) -> bool:
    """Whether a task that is not done reads the item on this host."""
    for u in range(state.use_ptr[item], state.use_ptr[item + 1]):
        task = state.use_task[u]
        open_here = state.status[task] <= RUNNING and state.on[task] >= 0
        if open_here and state.host[state.on[task]] == host:
            return True
    return False


@compiled
def send(state: RunArrays, item: int, source: int, target: int) -> None:
    """Begin to move an item to a host; one move per item and host."""
    transfer = state.counts[N_TRANSFERS]
    state.counts[N_TRANSFERS] += 1
    state.transfer_item[transfer] = item
    state.transfer_from[transfer] = source
    state.transfer_to[transfer] = target
    state.transfer_sent[transfer] = state.clock[0]
    state.transfer_arrival[transfer] = np.nan
    state.transfer_forgotten[transfer] = np.inf
    state.moved[transfer] = 0.0
    link = source * state.n_hosts + target
    state.moved_since[transfer] = state.clock[0] + state.startup[link]
    state.held[item * state.n_hosts + target] = MOVING
    command(state, SEND, transfer)


def gather(state: RunArrays, task: int) -> None:
    """Count the inputs that are not on the task's host, and send those that are made."""
    there = state.host[state.on[task]]
    missing = 0
    for e in range(state.in_ptr[task], state.in_ptr[task + 1]):
        item = state.in_item[e]
        producer = state.item_producer[item]
        if producer < 0 or state.held[item * state.n_hosts + there] == HERE:
            continue
        missing += 1
        if state.status[producer] == DONE and state.held[item * state.n_hosts + there] == ABSENT:
            source = source_for(state, item, there)
            if source >= 0:
                send(state, item, source, there)
    state.missing[task] = missing
