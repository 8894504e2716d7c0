"""CPOP (Topcuoglu, Hariri, Wu, figure 4)."""

from __future__ import annotations

from math import inf

from weft.model import Situation

from .board import Board, Placement
from .ranks import by_rank, mean_comm, rank_d, rank_u


def cpop(situation: Situation) -> dict[int, Placement]:
    """The critical path on one processor, the rest where it finishes first."""
    board = Board(situation)
    up, down = rank_u(situation), rank_d(situation)
    order = by_rank(board, {task: up[task] + down[task] for task in board.todo})
    path = critical_path(board, order, up)
    path_cost = {p: sum(board.cost[task][p] for task in path) for p in board.usable}
    while ready := set(board.ready()):
        task = next(t for t in order if t in ready)
        best = min(board.usable, key=lambda p: path_cost[p])
        fits = task in path and board.finish(task, best, insertion=True) < inf
        board.place_earliest(task, [best] if fits else board.usable, insertion=True)
    return board.placed


def critical_path(board: Board, order: list[int], up: dict[int, float]) -> list[int]:
    """From the first entry task on, always the successor with the longest way down."""
    entries = [t for t in order if not any(producer in up for _, producer in board.inputs[t])]
    path = entries[:1]
    while path:
        way: dict[int, float] = {}
        for item, c in board.uses[path[-1]]:
            if c in up:
                way[c] = max(way.get(c, 0.0), mean_comm(board, item) + up[c])
        if not way:
            break
        path.append(by_rank(board, way)[0])
    return path
