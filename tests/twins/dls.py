"""DLS, dynamic level scheduling (Sih, Lee)."""

from __future__ import annotations

from math import inf
from statistics import median

from weft.errors import PlanningError
from weft.model import Situation

from .board import Board, Placement
from .ranks import by_rank, rank_u


def dls(situation: Situation) -> dict[int, Placement]:
    """Of all pairs of a ready task and a processor, the one with the greatest dynamic level."""
    board = Board(situation)
    order = by_rank(board, rank_u(situation))
    usual = {t: median(board.cost[t][p] for p in board.usable) for t in board.todo}
    static = static_levels(board, usual)
    while ready := set(board.ready()):
        best, choice = -inf, None
        for task in [t for t in order if t in ready]:
            for p in board.usable:
                if board.finish(task, p, insertion=False) == inf:
                    continue
                start = board.start(task, p, insertion=False)
                level = static[task] - start + (usual[task] - board.cost[task][p])
                if level > best:
                    best, choice = level, (task, p)
        if choice is None:
            raise PlanningError("no ready task fits on any processor before it leaves")
        board.place(*choice, insertion=False)
    return board.placed


def static_levels(board: Board, usual: dict[int, float]) -> dict[int, float]:
    """The longest way down from each task, itself included, without communication."""
    level: dict[int, float] = {}
    for task in reversed(board.todo):
        below = [level[c] for _, c in board.uses[task] if c in level]
        level[task] = usual[task] + max(below, default=0.0)
    return level
