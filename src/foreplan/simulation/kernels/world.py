"""The simulated world's physics: when what was started will end, under changing conditions.

Future events wait in a heap ordered by time, then by the order in which they were foreseen. When
a processor or a link changes its speed, what it works on is foreseen anew; the event foreseen
before is known by its number, and dropped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreplan.arrays import FloatArray, IntArray, LongArray
from foreplan.engine.kernels.arrays import (
    AVAILABILITY,
    BANDWIDTH,
    GONE,
    ITEM_ARRIVED,
    TASK_FINISHED,
    WAKE,
)
from foreplan.native import compiled

N_HEAP, NUMBER, NEXT_CHANGE, N_TRANSFERS, UNDER_WAY, IDLE = range(6)  # places in World.counts
COUNTS = 6
NEVER = -1
NO_EVENT = -1
OVER = -1.0  # the data left of a transfer that is no more under way


class World(NamedTuple):
    """The truth of one run: actual work, changes to come, and what is under way."""

    n_processors: int
    n_hosts: int
    work: FloatArray  # actual seconds at full availability, tasks x processors, flat
    item_size: FloatArray
    startup: FloatArray  # hosts x hosts, flat
    per_unit: FloatArray
    # what happens whatever is done: joins, losses, changes of speed; in order of time
    change_time: FloatArray
    change_kind: IntArray
    change_which: IntArray
    change_value: FloatArray
    # now
    counts: LongArray
    alarm: FloatArray  # one number: when it was asked to wake
    availability: FloatArray
    bandwidth: FloatArray  # factor of each link's bandwidth, flat
    running: IntArray  # processor -> attempt
    # the heap of foreseen events
    heap_time: FloatArray
    heap_number: LongArray
    heap_what: LongArray  # twice its subject, and one more for a transfer
    # by attempt: work left at `since`, and the number of its event
    work_on: IntArray
    work_left: FloatArray
    work_since: FloatArray
    work_event: LongArray
    # by transfer, likewise; data flows once the link has started up
    data_link: IntArray
    data_left: FloatArray
    data_since: FloatArray
    data_event: LongArray


@compiled
def begin_work(world: World, attempt: int, task: int, p: int, share: float, now: float) -> None:
    """A task starts on a processor; on several cores it takes a share of its work there."""
    world.counts[IDLE] = 0
    world.running[p] = attempt
    world.work_on[attempt] = p
    world.work_left[attempt] = world.work[task * world.n_processors + p] * share
    world.work_since[attempt] = now
    foresee_finish(world, attempt)


@compiled
def take_core(world: World, attempt: int, p: int) -> None:
    """An attempt takes one more core: it is lost with it, but goes at the pace of its first."""
    world.running[p] = attempt


@compiled
def begin_transfer(
    world: World, transfer: int, item: int, source: int, target: int, now: float
) -> None:
    """An item leaves one host for another."""
    world.counts[IDLE] = 0
    link = source * world.n_hosts + target
    world.data_link[transfer] = link
    world.data_left[transfer] = world.item_size[item] * world.per_unit[link]
    world.data_since[transfer] = now + world.startup[link]
    world.counts[N_TRANSFERS] = max(world.counts[N_TRANSFERS], transfer + 1)
    world.counts[UNDER_WAY] += 1
    foresee_arrival(world, transfer)


@compiled
def stop_work(world: World, attempt: int) -> None:
    """An attempt is cancelled or lost: it never finishes."""
    world.work_event[attempt] = NEVER
    if world.running[world.work_on[attempt]] == attempt:
        world.running[world.work_on[attempt]] = -1


@compiled
def stop_transfer(world: World, transfer: int) -> None:
    """A transfer is over: it has arrived, or was dropped and never will."""
    world.data_event[transfer] = NEVER
    world.data_left[transfer] = OVER
    world.counts[UNDER_WAY] -= 1


@compiled
def next_event(world: World) -> tuple[int, int, float, float]:
    """The next thing that happens: kind, which, time and value; NO_EVENT if nothing ever will."""
    drop_stale(world)
    change = world.counts[NEXT_CHANGE]
    if change < len(world.change_time) and (
        world.counts[N_HEAP] == 0 or comes_first(world, change, world.heap_time[0])
    ):
        if world.alarm[0] < world.change_time[change]:
            return wake(world)
        world.counts[NEXT_CHANGE] += 1
        kind, which = world.change_kind[change], world.change_which[change]
        time, value = world.change_time[change], world.change_value[change]
        happen(world, kind, which, time, value)
        return kind, which, time, value
    if world.counts[N_HEAP] == 0:
        # nothing else will ever happen: if it is no use to wake once, it is none to wake again
        if world.alarm[0] == np.inf or world.counts[IDLE] > 0:
            return NO_EVENT, -1, np.inf, 0.0
        world.counts[IDLE] = 1
        return wake(world)
    if world.alarm[0] < world.heap_time[0]:
        return wake(world)
    what, time = world.heap_what[0], world.heap_time[0]
    which = what // 2
    pop(world)
    if what % 2 == 0:
        world.work_event[which] = NEVER
        world.running[world.work_on[which]] = -1
        return TASK_FINISHED, which, time, 0.0
    stop_transfer(world, which)
    return ITEM_ARRIVED, which, time, 0.0


def wake(world: World) -> tuple[int, int, float, float]:
    """The time has come that was asked for; what happens just then has happened before."""
    time = world.alarm[0]
    world.alarm[0] = np.inf
    return WAKE, 0, time, 0.0


def comes_first(world: World, change: int, time: float) -> bool:
    """Whether a change comes before what ends at a time; what ends just then is not lost."""
    if world.change_kind[change] == GONE:
        return bool(world.change_time[change] < time)
    return bool(world.change_time[change] <= time)


def happen(world: World, kind: int, which: int, time: float, value: float) -> None:
    """Settle what was done at the old speed; foresee the rest at the new one."""
    if kind == AVAILABILITY:
        attempt = world.running[which]
        if attempt >= 0 and world.work_on[attempt] != which:
            attempt = -1  # it is not the first of its cores
        if attempt >= 0:
            done = (time - world.work_since[attempt]) * world.availability[which]
            world.work_left[attempt] = max(0.0, world.work_left[attempt] - done)
            world.work_since[attempt] = time
        world.availability[which] = value
        if attempt >= 0:
            foresee_finish(world, attempt)
    elif kind == BANDWIDTH:
        old = world.bandwidth[which]
        world.bandwidth[which] = value
        for transfer in range(world.counts[N_TRANSFERS]):
            if world.data_link[transfer] == which and world.data_left[transfer] != OVER:
                if time > world.data_since[transfer]:
                    moved = (time - world.data_since[transfer]) * old
                    world.data_left[transfer] = max(0.0, world.data_left[transfer] - moved)
                    world.data_since[transfer] = time
                foresee_arrival(world, transfer)
    elif kind == GONE and world.running[which] >= 0:
        stop_work(world, world.running[which])


@compiled
def foresee_finish(world: World, attempt: int) -> None:
    """When the attempt will finish at its processor's availability now."""
    rate = world.availability[world.work_on[attempt]]
    world.work_event[attempt] = NEVER
    if rate > 0.0:
        ends = world.work_since[attempt] + world.work_left[attempt] / rate
        world.work_event[attempt] = push(world, ends, 2 * attempt)


@compiled
def foresee_arrival(world: World, transfer: int) -> None:
    """When the transfer will arrive at its link's bandwidth now."""
    rate = world.bandwidth[world.data_link[transfer]]
    world.data_event[transfer] = NEVER
    if rate > 0.0:
        ends = world.data_since[transfer] + world.data_left[transfer] / rate
        world.data_event[transfer] = push(world, ends, 2 * transfer + 1)


@compiled
def drop_stale(world: World) -> None:
    """Let the heap begin with an event that is still to come."""
    while world.counts[N_HEAP] > 0 and stale(world):
        pop(world)


def stale(world: World) -> bool:
    """Whether the first event of the heap was foreseen anew since, or stopped."""
    which = world.heap_what[0] // 2
    if world.heap_what[0] % 2 == 0:
        return bool(world.work_event[which] != world.heap_number[0])
    return bool(world.data_event[which] != world.heap_number[0])


def push(world: World, time: float, what: int) -> int:
    """Put an event into the heap; its number."""
    number = world.counts[NUMBER]
    world.counts[NUMBER] += 1
    at = world.counts[N_HEAP]
    world.counts[N_HEAP] += 1
    while at > 0:
        above = (at - 1) // 2
        if world.heap_time[above] <= time:
            break
        move(world, above, at)
        at = above
    world.heap_time[at] = time
    world.heap_number[at] = number
    world.heap_what[at] = what
    return int(number)


def pop(world: World) -> None:
    """Take the first event out of the heap: the earlier ones below it rise, down to a leaf.

    There the last one of the heap goes, and rises from there, which is seldom far.
    """
    world.counts[N_HEAP] -= 1
    last = world.counts[N_HEAP]
    at, below = 0, 1
    while below < last:
        if below + 1 < last and before(world, below + 1, below):
            below += 1
        move(world, below, at)
        at, below = below, 2 * below + 1
    while at > 0 and before(world, last, (at - 1) // 2):
        move(world, (at - 1) // 2, at)
        at = (at - 1) // 2
    move(world, last, at)


def before(world: World, a: int, b: int) -> bool:
    """Whether the event at a comes before the one at b."""
    if world.heap_time[a] == world.heap_time[b]:
        return bool(world.heap_number[a] < world.heap_number[b])
    return bool(world.heap_time[a] < world.heap_time[b])


def move(world: World, source: int, target: int) -> None:
    """Copy an event within the heap."""
    world.heap_time[target] = world.heap_time[source]
    world.heap_number[target] = world.heap_number[source]
    world.heap_what[target] = world.heap_what[source]
