"""The simulator's native loop: from one decision to the next without leaving the kernels."""

from __future__ import annotations

from foreplan.engine.kernels.arrays import (
    AVAILABILITY,
    CANCEL,
    CHANGED,
    HELD_BACK,
    LATE,
    N_ATTEMPTS,
    N_COMMANDS,
    N_DONE,
    N_TRANSFERS,
    NOTHING,
    ROOM,
    RUNNING,
    SEND,
    START,
    TASK_FINISHED,
    UNSETTLED,
    WAITING,
    WAKE,
    WAKE_AT,
    RunArrays,
)
from foreplan.engine.kernels.decisions import (
    LEFT_OVER,
    Conduct,
    Taken,
    Ways,
    can_note,
    has_room_for_a_plan,
    plan_anew,
    stranded,
)
from foreplan.engine.kernels.dispatch import dispatch_all
from foreplan.engine.kernels.rules import apply_event
from foreplan.native import compiled
from foreplan.simulation.kernels.world import (
    N_HEAP,
    NO_EVENT,
    UNDER_WAY,
    World,
    begin_transfer,
    begin_work,
    next_event,
    stop_transfer,
    stop_work,
    take_core,
)


@compiled
def drive(state: RunArrays, world: World) -> tuple[int, int, int, int]:
    """Run until done, or until something must be decided.

    Returns why it stopped (NOTHING: all tasks are done, or nothing will ever happen), the late
    task or -1, and the kind and subject of the last event.
    """
    kind, which = NO_EVENT, -1
    perform(state, world)
    while state.counts[N_DONE] < state.n_tasks and not halted(state):
        if not has_room(state, world):
            return ROOM, -1, kind, which
        kind, which, time, value = next_event(world)
        if kind == NO_EVENT:
            break
        late, changed = apply_event(state, kind, which, time, value)
        perform(state, world)
        if changed:
            return CHANGED, late, kind, which
        if late >= 0:
            return LATE, late, kind, which
    return NOTHING, -1, kind, which


def halted(state: RunArrays) -> bool:
    """Whether the run is held back and nothing runs any more."""
    runs = state.counts[HELD_BACK] == 0
    for p in range(state.n_processors):
        runs = runs or state.running[p] >= 0
    return not runs


def perform(state: RunArrays, world: World) -> None:
    """Carry out the commands on the state, and empty them."""
    now = state.clock[0]
    for k in range(state.counts[N_COMMANDS]):
        kind, which = state.commands[2 * k], state.commands[2 * k + 1]
        if kind == START:
            task, p, share = state.attempt_task[which], state.attempt_on[which], 1.0
            if state.most_cores > 0:
                share = state.attempt_factor[which]
                for j in range(1, state.attempt_wide[which]):
                    take_core(world, which, state.attempt_core[which * state.most_cores + j])
            begin_work(world, which, task, p, share, now)
        elif kind == SEND:
            begin_transfer(
                world,
                which,
                state.transfer_item[which],
                state.transfer_from[which],
                state.transfer_to[which],
                now,
            )
        elif kind == CANCEL:
            stop_work(world, which)
        elif kind == WAKE_AT:
            world.alarm[0] = state.wake[0]
        else:
            stop_transfer(world, which)
    state.counts[N_COMMANDS] = 0


def has_room(state: RunArrays, world: World) -> bool:
    """Whether the logs and the heap can take whatever one event may bring.

    A loss can make all that is under way be sent again.
    """
    burst = state.burst + world.counts[UNDER_WAY]
    return bool(
        state.counts[N_ATTEMPTS] + state.burst <= len(state.attempt_task)
        and state.counts[N_TRANSFERS] + burst <= len(state.transfer_item)
        and world.counts[N_HEAP] + world.counts[UNDER_WAY] + burst <= len(world.heap_time)
    )


@compiled
def drive_deciding(
    state: RunArrays,
    world: World,
    conduct: Conduct,
    ways: Ways,
    taken: Taken,
    first: bool,
    late: int,
) -> tuple[int, int, int, int]:
    """Run until done, with new plans made on the way; or until something must be decided elsewhere.

    At `first` a plan is made to begin with. Else it goes on with a task that would start late, or
    -1. Returns as `drive` does; UNSETTLED if a plan left tasks over.
    """
    kind, which, wanted = NO_EVENT, -1, first or late >= 0
    why = LATE if wanted else NOTHING
    while True:
        while wanted:
            if late >= 0 and not (has_room_for_a_plan(state) and can_note(taken)):
                return ROOM, late, kind, which
            if not plan_anew(state, conduct, ways, taken, first, late, kind, which):
                return why, late, kind, which
            first = False
            late = dispatch_all(state)
            kind, which, why = NO_EVENT, -1, LATE
            if taken.counts[LEFT_OVER] > 0:
                return UNSETTLED, late, kind, which
            wanted = late >= 0
        if not has_room_to_perform(state, world):
            return ROOM, -1, kind, which
        why, late, kind, which = drive(state, world)
        if why in (NOTHING, ROOM):
            return why, late, kind, which
        if why == CHANGED:
            late = -1
            if kind not in (TASK_FINISHED, AVAILABILITY, WAKE):
                return why, late, kind, which
            if stranded(state):
                return why, late, kind, which
        else:
            kind, which = NO_EVENT, -1
        wanted = why == LATE or anything_to_plan(state, ways)


def anything_to_plan(state: RunArrays, ways: Ways) -> bool:
    """Whether a new plan could move any task."""
    found = False
    for task in range(state.n_tasks):
        found = found or state.status[task] == WAITING
        found = found or (ways.restart and state.status[task] == RUNNING)
    return found


def has_room_to_perform(state: RunArrays, world: World) -> bool:
    """Whether the heap can take what is to be performed, and what may follow."""
    coming = state.counts[N_COMMANDS] + 2 * state.burst + 2 * world.counts[UNDER_WAY]
    return bool(world.counts[N_HEAP] + coming <= len(world.heap_time))
