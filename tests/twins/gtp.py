"""GTP's planner (Hernandez, Cole: equations 1 to 13), from any situation."""

from __future__ import annotations

from math import inf

from foreplan.ends import STANDS_STILL
from foreplan.errors import PlanningError
from foreplan.model import Freedom, Reuse, Situation

from .partial_schedule import PartialSchedule, Placement
from .ranks import by_rank, mean_comm, mean_cost


def gtp(situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> dict[int, Placement]:
    """By falling rank, each task where it finishes first; what runs may stay where it is."""
    moment = Moment(situation, freedom)
    for task in by_rank(moment.partial, moment.ranks()):
        moment.place(task)
    return moment.placed


class Moment:
    """What is known now, and what has been placed so far."""

    def __init__(self, situation: Situation, freedom: Freedom) -> None:
        self.situation = situation
        self.partial = partial = PartialSchedule(situation)
        n, p = situation.platform.n_processors, range(situation.platform.n_processors)
        speed = [1.0] * n if situation.availability is None else situation.availability.tolist()
        speed = [max(rate, STANDS_STILL) for rate in speed]
        self.cost = [[row[q] / speed[q] for q in p] for row in partial.cost]
        self.placed: dict[int, Placement] = {}
        self.runs_on: dict[int, int] = {}  # tasks that may stay or move
        self.ends: dict[int, float] = {}  # by processor, when what it runs should end
        self.taken: dict[int, float] = {}  # by processor, the end of the last task placed there
        a = situation.attempts
        rows = (a.task.tolist(), a.processor.tolist(), a.start.tolist(), a.finish.tolist())
        ends = situation.expected_finish().tolist()
        for task, q, start, finish, end in zip(*rows, ends, strict=True):
            if finish != finish:
                self.ends[q] = end
                if freedom == Freedom.RESTART and q in partial.usable:
                    self.runs_on[task] = q
                    continue
            self.placed[task] = (q, start, end)
        self.stays = {t: row for t, row in partial.placed.items() if t in self.runs_on}

    def ranks(self) -> dict[int, float]:
        """Equations 1 and 2, at full availability and bandwidth."""
        partial, rank = self.partial, dict[int, float]()
        for task in reversed(self.situation.workflow.order.tolist()):
            if task not in self.placed:
                below = [
                    mean_comm(partial, i) + rank[c] for i, c in partial.uses[task] if c in rank
                ]
                rank[task] = mean_cost(partial, task) + max(below, default=0.0)
        return rank

    def transfer(self, item: int, source: int, target: int) -> float:
        """What an item takes between two hosts at the bandwidth known now."""
        if source == target:
            return 0.0
        factor = 1.0
        if self.situation.bandwidth is not None:
            factor = max(float(self.situation.bandwidth[source, target]), STANDS_STILL)
        per_unit = self.partial.time_per_unit[source][target] / factor
        return self.partial.startup[source][target] + self.partial.size[item] * per_unit

    def sources(self, item: int, producer: int) -> list[tuple[int, float]]:
        """Where the item can be sent from, and from when on."""
        s, host = self.situation, self.partial.host
        p, _, made = self.placed[producer]
        lost = s.astray is not None and bool(s.astray[item])
        sources = [] if lost else [(host[p], max(made, s.now))]
        if lost or s.reuse == Reuse.ANYWHERE:
            pairs = zip(s.copies.item.tolist(), s.copies.host.tolist(), strict=True)
            sources += [(h, s.now) for i, h in pairs if i == item]
        return sources

    def arrival(self, item: int, producer: int, p: int) -> float:
        """Equations 8, 9, 12 and 13: where it is, or on its way to, it is not sent again."""
        target = self.partial.host[p]
        if (item, target) in self.partial.known:
            return self.partial.known[item, target]
        ways = self.sources(item, producer)
        return min([time + self.transfer(item, h, target) for h, time in ways], default=inf)

    def free(self, p: int) -> float:
        """Equation 7: a processor is free when all that it has to do is done."""
        return max(self.situation.now, self.ends.get(p, 0.0), self.taken.get(p, 0.0))

    def finish(self, task: int, p: int) -> tuple[float, float]:
        """Start and finish from scratch on a processor; never if it leaves before."""
        inputs = [self.arrival(i, producer, p) for i, producer in self.partial.inputs[task]]
        start = max([self.free(p), *inputs])
        finish = start + self.cost[task][p]
        return start, finish if finish <= self.partial.leaves[p] else inf

    def place(self, task: int) -> None:
        """Where it finishes first; the first of equals, but what runs rather stays."""
        here = self.runs_on.get(task, -1)
        options = [(*self.finish(task, p)[::-1], p) for p in self.partial.usable if p != here]
        finish, start, best = min(options, key=lambda o: (o[0], o[2]), default=(inf, inf, -1))
        if here >= 0 and (
            finish == inf or self.ends[here] <= min(finish, self.partial.leaves[here])
        ):
            self.placed[task] = (here, self.stays[task][1], self.ends[here])
            return
        if finish == inf:
            raise PlanningError(f"task {task} fits nowhere")
        self.placed[task] = (best, start, finish)
        self.taken[best] = finish
        if here >= 0 and here not in self.taken:  # nobody counts on its end yet
            del self.ends[here]
