"""The simulator's native loop: from one decision to the next without leaving the kernels."""

from __future__ import annotations

from weft.kernels.board import (
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
    SEND,
    START,
    WAKE_AT,
    Board,
)
from weft.kernels.rules import apply_event
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
