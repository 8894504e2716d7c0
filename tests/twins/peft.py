"""PEFT (Arabnejad, Barbosa: the optimistic cost table)."""

from __future__ import annotations

from foreplan.model import Situation

from .partial_schedule import PartialSchedule, Placement
from .ranks import by_rank, mean_comm


def peft(situation: Situation) -> dict[int, Placement]:
    """Ready tasks by mean optimistic cost, each where finish + optimistic cost is least."""
    partial = PartialSchedule(situation)
    oct_ = optimistic_cost(partial)
    rank = {task: sum(oct_[task].values()) / len(partial.usable) for task in partial.todo}
    order = by_rank(partial, rank)
    while ready := set(partial.ready()):
        task = next(t for t in order if t in ready)
        outlook = {
            p: partial.finish(task, p, insertion=True) + oct_[task][p] for p in partial.usable
        }
        partial.place(task, min(partial.usable, key=lambda p: outlook[p]), insertion=True)
    return partial.placed


def optimistic_cost(partial: PartialSchedule) -> dict[int, dict[int, float]]:
    """OCT(task, p): the least that follows the task if it runs on p (eq. 4)."""
    table: dict[int, dict[int, float]] = {}
    for task in reversed(partial.todo):
        after = [(mean_comm(partial, item), c) for item, c in partial.uses[task] if c in table]
        table[task] = {}
        for p in partial.usable:
            ways = []
            for comm, c in after:
                on: list[float] = []
                for q in partial.usable:
                    sent = 0.0 if partial.host[q] == partial.host[p] else comm
                    on.append(table[c][q] + partial.cost[c][q] + sent)
                ways.append(min(on))
            table[task][p] = max(ways, default=0.0)
    return table
