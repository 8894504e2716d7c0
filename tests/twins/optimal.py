"""The optimum of a tiny instance, by branch and bound."""

from __future__ import annotations

from math import inf

from foreplan.model import Situation

from .heft import heft
from .partial_schedule import PartialSchedule, Placement


def optimal(situation: Situation) -> dict[int, Placement]:
    """A schedule of least makespan; for up to about 10 tasks on 3 processors."""
    search = _Search(situation)
    search.extend(-inf)
    return search.best


def optimum(situation: Situation) -> float:
    """The least makespan there is."""
    return makespan(optimal(situation))


def makespan(placements: dict[int, Placement]) -> float:
    """When the last task finishes."""
    return max((finish for _, _, finish in placements.values()), default=0.0)


class _Search:
    """Places tasks in the order of their starts, each as early as its processor allows.

    Some optimal schedule is built that way: shifting every task to the left, in the order of
    the starts, never delays a finish.
    """

    def __init__(self, situation: Situation) -> None:
        self.partial = PartialSchedule(situation)
        self.best = heft(situation)
        self.bound = makespan(self.best)
        self.tail: dict[int, dict[int, float]] = {}  # task -> processor -> least time from start
        for task in reversed(self.partial.todo):
            self.tail[task] = {
                p: self.partial.cost[task][p] + self.after(task, p) for p in self.partial.usable
            }

    def after(self, task: int, p: int) -> float:
        """The least time from the finish of the task on p to the end of all that follows."""
        ways = [
            min(
                self.partial.transfer_time(item, p, q) + self.tail[c][q]
                for q in self.partial.usable
            )
            for item, c in self.partial.uses[task]
        ]
        return max(ways, default=0.0)

    def extend(self, last_start: float) -> None:
        """Try all ways to place the rest, where nothing starts before the last start."""
        partial = self.partial
        ready = partial.ready()
        if not ready:
            if makespan(partial.placed) < self.bound:
                self.best, self.bound = dict(partial.placed), makespan(partial.placed)
            return
        if self.hopeless(last_start, ready):
            return
        tries = []
        for task in ready:
            for p in partial.usable:
                start = partial.start(task, p, insertion=False)
                fits = start + partial.cost[task][p] <= partial.leaves[p]
                if fits and start >= last_start and start + self.tail[task][p] < self.bound:
                    tries.append((start, task, p))
        for start, task, p in sorted(tries):
            partial.place(task, p, insertion=False)
            self.extend(start)
            del partial.placed[task]
            partial.busy[p].pop()

    def hopeless(self, last_start: float, ready: list[int]) -> bool:
        """Whether some ready task, or the work that is left, must end too late anyway."""
        partial = self.partial
        free: dict[int, float] = {p: max(partial.free(p), last_start) for p in partial.usable}
        for task in ready:
            starts = {p: max(free[p], partial.data_ready(task, p)) for p in partial.usable}
            if min(starts[p] + self.tail[task][p] for p in partial.usable) >= self.bound:
                return True
        left = [task for task in partial.todo if task not in partial.placed]
        work: float = sum(min(partial.cost[task][p] for p in partial.usable) for task in left)
        average: float = (sum(free.values()) + work) / len(free)
        return average >= self.bound
