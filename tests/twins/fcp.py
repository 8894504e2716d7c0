"""FCP, fast critical path (Radulescu, van Gemund), read for unequal processors."""

from __future__ import annotations

from math import inf

from weft.model import Situation

from .board import Board, Placement
from .ranks import by_rank, mean_comm, rank_u


def fcp(situation: Situation) -> dict[int, Placement]:
    """Ready tasks by rank, each on the processor free first or on its enabling processor."""
    board = Board(situation)
    order = by_rank(board, rank_u(situation))
    while ready := set(board.ready()):
        task = next(t for t in order if t in ready)
        first = min(board.free(p) for p in board.usable)
        candidates = {p for p in board.usable if board.free(p) == first} | enabling(board, task)
        if all(board.finish(task, p, insertion=False) == inf for p in candidates):
            candidates = set(board.usable)
        board.place_earliest(task, sorted(candidates), insertion=False)
    return board.placed


def enabling(board: Board, task: int) -> set[int]:
    """The processor whose data would come last to any other host, if there is one."""
    best, chosen = -inf, set[int]()
    for item, producer in sorted(board.inputs[task], key=lambda ip: board.position[ip[1]]):
        made_on, _, finish = board.placed[producer]
        arrival = max(finish, board.now) + mean_comm(board, item)
        if made_on in board.usable and arrival > best:
            best, chosen = arrival, {made_on}
    return chosen
