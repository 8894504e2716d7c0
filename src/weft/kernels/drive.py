"""The simulator's native loop: from one decision to the next without leaving the kernels."""

from __future__ import annotations

from weft.kernels.board import (
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
    Board,
)
from weft.kernels.decisions import (
    LEFT_OVER,
    Conduct,
    Taken,
    Ways,
    can_note,
    has_room_for_a_plan,
    plan_anew,
    stranded,
)
from weft.kernels.rules import apply_event, dispatch_all
from weft.kernels.world import (
    N_HEAP,
    NO_EVENT,
    UNDER_WAY,
    World,
    begin_transfer,
    begin_work,
    next_event,
    stop_transfer,
    stop_work,
)
from weft.native import compiled


@compiled
def drive(board: Board, world: World) -> tuple[int, int, int, int]:
    """Run until done, or until something must be decided.

    Returns why it stopped (NOTHING: all tasks are done, or nothing will ever happen), the late
    task or -1, and the kind and subject of the last event.
    """
    kind, which = NO_EVENT, -1
    perform(board, world)
    while board.counts[N_DONE] < board.n_tasks and not halted(board):
        if not has_room(board, world):
            return ROOM, -1, kind, which
        kind, which, time, value = next_event(world)
        if kind == NO_EVENT:
            break
        late, changed = apply_event(board, kind, which, time, value)
        perform(board, world)
        if changed:
            return CHANGED, late, kind, which
        if late >= 0:
            return LATE, late, kind, which
    return NOTHING, -1, kind, which


def halted(board: Board) -> bool:
    """Whether the run is held back and nothing runs any more."""
    runs = board.counts[HELD_BACK] == 0
    for p in range(board.n_processors):
        runs = runs or board.running[p] >= 0
    return not runs


def perform(board: Board, world: World) -> None:
    """Carry out the commands on the board, and empty them."""
    now = board.clock[0]
    for k in range(board.counts[N_COMMANDS]):
        kind, which = board.commands[2 * k], board.commands[2 * k + 1]
        if kind == START:
            begin_work(world, which, board.attempt_task[which], board.attempt_on[which], now)
        elif kind == SEND:
            begin_transfer(
                world,
                which,
                board.transfer_item[which],
                board.transfer_from[which],
                board.transfer_to[which],
                now,
            )
        elif kind == CANCEL:
            stop_work(world, which)
        elif kind == WAKE_AT:
            world.alarm[0] = board.wake[0]
        else:
            stop_transfer(world, which)
    board.counts[N_COMMANDS] = 0


def has_room(board: Board, world: World) -> bool:
    """Whether the logs and the heap can take whatever one event may bring.

    A loss can make all that is under way be sent again.
    """
    burst = board.burst + world.counts[UNDER_WAY]
    return bool(
        board.counts[N_ATTEMPTS] + board.burst <= len(board.attempt_task)
        and board.counts[N_TRANSFERS] + burst <= len(board.transfer_item)
        and world.counts[N_HEAP] + world.counts[UNDER_WAY] + burst <= len(world.heap_time)
    )


@compiled
def drive_deciding(
    board: Board, world: World, conduct: Conduct, ways: Ways, taken: Taken, first: bool, late: int
) -> tuple[int, int, int, int]:
    """Run until done, with new plans made on the way; or until something must be decided elsewhere.

    At `first` a plan is made to begin with. Else it goes on with a task that would start late, or
    -1. Returns as `drive` does; UNSETTLED if a plan left tasks over.
    """
    kind, which, wanted = NO_EVENT, -1, first or late >= 0
    why = LATE if wanted else NOTHING
    while True:
        while wanted:
            if late >= 0 and not (has_room_for_a_plan(board) and can_note(taken)):
                return ROOM, late, kind, which
            if not plan_anew(board, conduct, ways, taken, first, late, kind, which):
                return why, late, kind, which
            first = False
            late = dispatch_all(board)
            kind, which, why = NO_EVENT, -1, LATE
            if taken.counts[LEFT_OVER] > 0:
                return UNSETTLED, late, kind, which
            wanted = late >= 0
        if not has_room_to_perform(board, world):
            return ROOM, -1, kind, which
        why, late, kind, which = drive(board, world)
        if why in (NOTHING, ROOM):
            return why, late, kind, which
        if why == CHANGED:
            late = -1
            if kind not in (TASK_FINISHED, AVAILABILITY, WAKE):
                return why, late, kind, which
            if stranded(board):
                return why, late, kind, which
        else:
            kind, which = NO_EVENT, -1
        wanted = why == LATE or anything_to_plan(board, ways)


def anything_to_plan(board: Board, ways: Ways) -> bool:
    """Whether a new plan could move any task."""
    found = False
    for task in range(board.n_tasks):
        found = found or board.status[task] == WAITING
        found = found or (ways.restart and board.status[task] == RUNNING)
    return found


def has_room_to_perform(board: Board, world: World) -> bool:
    """Whether the heap can take what is to be performed, and what may follow."""
    coming = board.counts[N_COMMANDS] + 2 * board.burst + 2 * world.counts[UNDER_WAY]
    return bool(world.counts[N_HEAP] + coming <= len(world.heap_time))
