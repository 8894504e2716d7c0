"""LMT, levelized min time (Iverson, Ozguner, Follen)."""

from __future__ import annotations

from weft.model import Situation

from .board import Board, Placement
from .ranks import by_rank, mean_cost


def lmt(situation: Situation) -> dict[int, Placement]:
    """Level by level, the costly tasks first, each where it finishes first."""
    board = Board(situation)
    level: dict[int, int] = {}
    for task in situation.workflow.order.tolist():
        above = [level[producer] for _, producer in board.inputs[task] if producer in level]
        level[task] = 1 + max(above, default=-1)
    costly_first = by_rank(board, {task: mean_cost(board, task) for task in board.todo})
    for task in sorted(costly_first, key=lambda t: level[t]):  # sorted() keeps equals in order
        board.place_earliest(task, board.usable, insertion=False)
    return board.placed
