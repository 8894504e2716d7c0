"""Means, ranks, and the order they give (Topcuoglu, Hariri, Wu, section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping

from weft.model import Situation

from .board import Board


def mean_cost(board: Board, task: int) -> float:
    """The mean cost of the task over the usable processors."""
    return sum(board.cost[task][p] for p in board.usable) / len(board.usable)


def mean_comm(board: Board, item: int) -> float:
    """The mean transfer time of the item over all ordered pairs of two usable processors."""
    pairs = [(p, q) for p in board.usable for q in board.usable if p != q]
    if not pairs:
        return 0.0
    return sum(board.transfer_time(item, p, q) for p, q in pairs) / len(pairs)


def rank_u(situation: Situation) -> dict[int, float]:
    """The upward rank of every task without an attempt (Topcuoglu et al., eq. 8)."""
    board = Board(situation)
    rank: dict[int, float] = {}
    for task in reversed(board.todo):
        below = [mean_comm(board, item) + rank[c] for item, c in board.uses[task] if c in rank]
        rank[task] = mean_cost(board, task) + max(below, default=0.0)
    return rank


def rank_d(situation: Situation) -> dict[int, float]:
    """The downward rank of every task without an attempt (Topcuoglu et al., eq. 10)."""
    board = Board(situation)
    rank: dict[int, float] = {}
    for task in board.todo:
        above = [
            rank[producer] + mean_cost(board, producer) + mean_comm(board, item)
            for item, producer in board.inputs[task]
            if producer in rank
        ]
        rank[task] = max(above, default=0.0)
    return rank


def rounded(rank: Mapping[int, float]) -> dict[int, int]:
    """Ranks in units of 1e-12 of the largest one: equal up to rounding errors becomes equal."""
    unit = max(rank.values(), default=0.0) * 1e-12
    return {task: round(value / unit) if unit > 0 else 0 for task, value in rank.items()}


def by_rank(board: Board, rank: Mapping[int, float]) -> list[int]:
    """The tasks by falling rank; equal ones by position."""
    steps = rounded(rank)
    return sorted(rank, key=lambda task: (-steps[task], board.position[task]))
