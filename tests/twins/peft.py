"""PEFT (Arabnejad, Barbosa: the optimistic cost table)."""

from __future__ import annotations

from weft.model import Situation

from .board import Board, Placement
from .ranks import by_rank, mean_comm


def peft(situation: Situation) -> dict[int, Placement]:
    """Ready tasks by mean optimistic cost, each where finish + optimistic cost is least."""
    board = Board(situation)
    oct_ = optimistic_cost(board)
    rank = {task: sum(oct_[task].values()) / len(board.usable) for task in board.todo}
    order = by_rank(board, rank)
    while ready := set(board.ready()):
        task = next(t for t in order if t in ready)
        outlook = {p: board.finish(task, p, insertion=True) + oct_[task][p] for p in board.usable}
        board.place(task, min(board.usable, key=lambda p: outlook[p]), insertion=True)
    return board.placed


def optimistic_cost(board: Board) -> dict[int, dict[int, float]]:
    """OCT(task, p): the least that follows the task if it runs on p (eq. 4)."""
    table: dict[int, dict[int, float]] = {}
    for task in reversed(board.todo):
        after = [(mean_comm(board, item), c) for item, c in board.uses[task] if c in table]
        table[task] = {}
        for p in board.usable:
            ways = []
            for comm, c in after:
                on: list[float] = []
                for q in board.usable:
                    sent = 0.0 if board.host[q] == board.host[p] else comm
                    on.append(table[c][q] + board.cost[c][q] + sent)
                ways.append(min(on))
            table[task][p] = max(ways, default=0.0)
    return table
