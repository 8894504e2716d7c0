"""Which events can have happened in a state of a run."""

from __future__ import annotations

import math

import numpy as np

from weft.errors import WeftError
from weft.kernels import board as b
from weft.kernels.board import Board
from weft.model.events import Event, EventKind


class IllegalEventError(WeftError):
    """An event that cannot have happened in this state; the state is as it was."""


def check_event(board: Board, event: Event) -> None:
    """Refuse an event that cannot have happened; nothing is changed by it."""
    now = float(board.clock[0])
    if not math.isfinite(event.time) or event.time < now:
        raise IllegalEventError(f"{event} lies before the last event, at {now:g}")
    if not _is_legal(board, event):
        raise IllegalEventError(f"{event} cannot happen now")


def _is_legal(board: Board, event: Event) -> bool:
    which = event.which
    match event.kind:
        case EventKind.TASK_FINISHED | EventKind.TASK_FAILED:
            known = 0 <= which < board.counts[b.N_ATTEMPTS]
            return bool(known and board.attempt_end[which] == b.OPEN)
        case EventKind.ITEM_ARRIVED:
            known = 0 <= which < board.counts[b.N_TRANSFERS]
            return bool(known and np.isnan(board.transfer_arrival[which]))
        case EventKind.BANDWIDTH:
            return 0 <= which < board.n_hosts**2 and 0 <= event.value < np.inf
        case EventKind.ITEM_LOST:
            return 0 <= which < len(board.held)
        case EventKind.WAKE:
            return which == 0
        case EventKind.PAUSED:
            return event.value in (0.0, 1.0)
        case EventKind.BUDGET:
            return which == 0 and event.value >= 0
    if not 0 <= which < board.n_processors:
        return False
    match event.kind:
        case EventKind.JOINED:
            return not board.present[which]
        case EventKind.GONE:
            return bool(board.present[which])
        case EventKind.LEAVING:
            return bool(board.present[which]) and not math.isnan(event.value)
    return 0 <= event.value <= 1  # an availability
