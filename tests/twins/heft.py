"""HEFT (Topcuoglu, Hariri, Wu, figure 2)."""

from __future__ import annotations

from weft.model import Situation

from .board import Board, Placement
from .ranks import by_rank, rank_u


def heft(situation: Situation, insertion: bool = True) -> dict[int, Placement]:
    """By falling upward rank, each task where it finishes first."""
    board = Board(situation)
    for task in by_rank(board, rank_u(situation)):
        board.place_earliest(task, board.usable, insertion)
    return board.placed
