"""The frontier of money and time: what more money would buy, each point a plan to ask for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

from foreplan import registry
from foreplan.contracts import Planner
from foreplan.errors import InputError, UnaffordableError, rounded_up
from foreplan.lazy import drawn_by
from foreplan.model import Schedule, Situation, affordable, forecast
from foreplan.quantities import amount, duration, many
from foreplan.scheduling.projection import ROUNDING, ends_earlier
from foreplan.scheduling.search_progress import report_to

POINTS = 25
# Of the range of costs: budgets that are nearer to each other are not told apart, and every budget
# is a multiple of at most a tenth of it, so that it has few digits.
FINEST = 1e-3
_DIGITS = 4

Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Point:
    """A plan, what it costs, and the budget to ask for to be given exactly this plan."""

    budget: float
    cost: float
    schedule: Schedule

    def __repr__(self) -> str:
        ends = f"{duration(self.makespan)} for {amount(self.cost)}"
        return f"<Point: {ends}, given for a budget of {self.budget:.15g}>"

    @property
    def makespan(self) -> float:
        """When it ends."""
        return self.schedule.makespan

    def to_dict(self) -> dict[str, Any]:
        """What `foreplan plan --pareto out.png --json` prints of it."""
        return {
            "budget": self.budget,
            "cost": self.cost,
            "makespan": self.makespan,
            "planner": self.schedule.planner,
        }


@dataclass(frozen=True, eq=False)
class Frontier:
    """Plans by cost, each dearer and faster than the one before, and the knee among them."""

    points: tuple[Point, ...]
    free: bool = False  # nothing has a price

    def __repr__(self) -> str:
        ends = self.points if len(self.points) < 2 else (self.points[0], self.points[-1])
        said = " to ".join(f"{duration(p.makespan)} for {amount(p.cost)}" for p in ends)
        return f"<Frontier: {many(len(self.points), 'plan')}, {said}>"

    _repr_html_ = drawn_by("foreplan.charts.html", "of_frontier")

    @property
    def knee(self) -> int | None:
        """The point from which on more money buys less."""
        return knee([p.cost for p in self.points], [p.makespan for p in self.points])

    def within(self, budget: float) -> int | None:
        """The fastest point within a budget."""
        fits = [k for k, point in enumerate(self.points) if affordable(point.cost, budget)]
        return fits[-1] if fits else None

    def buys(self, k: int) -> float | None:
        """The seconds that a unit of money saves from the point before to this one."""
        if k == 0:
            return None
        before, point = self.points[k - 1], self.points[k]
        return (before.makespan - point.makespan) / (point.cost - before.cost)

    def to_dict(self) -> dict[str, Any]:
        """What `foreplan plan --pareto out.png --json` prints."""
        return {"points": [point.to_dict() for point in self.points], "knee": self.knee}


def frontier(
    situation: Situation,
    planner: Planner | None = None,
    points: int = POINTS,
    progress: Progress | None = None,
    budget: float | None = None,
) -> Frontier:
    """The plans of `best-affordable`, or another planner that keeps a budget, over all budgets.

    They lie between the cheapest plan and the fastest one known. Half of the `points` are budgets
    at equal distances, the others are where neighbours differ most; a `budget` that is given is
    tried too.
    """
    if points < 2:
        raise InputError(f"a frontier has at least 2 points, not {points}")
    chosen = registry.within_budget(planner or registry.planner("best-affordable"))
    platform = situation.platform
    free = not platform.price.any() and not platform.link_price.any()
    search = _FrontierSearch(situation, chosen, points, progress or (lambda share: None))
    return Frontier(tuple(search.find(budget)), free)


class _FrontierSearch:
    """Budgets asked so far, and what plan each gives."""

    def __init__(
        self, situation: Situation, planner: Planner, points: int, progress: Progress
    ) -> None:
        self.situation, self.points, self.progress = situation, points, progress
        self.plan = _for_budgets(planner, situation)
        self.answers: dict[float, Point] = {}
        self.low = self.high = self.slower = 0.0

    def find(self, wanted: float | None) -> list[Point]:
        """The plans that no other is better than."""
        self._find_ends()
        if wanted is not None and self.low < wanted < self.high:
            self.ask(wanted)
        if self.high > self.low and self.slower > 0:
            even = (self.points + 1) // 2
            for k in range(1, even - 1):
                self.ask(self._short(self.low + (self.high - self.low) * k / (even - 1)))
            while len(self.answers) < self.points and (budget := self._between()) is not None:
                self.ask(budget)
            for point in _best(self.answers.values()):
                if point.budget - point.cost > FINEST * (self.high - self.low):
                    with suppress(UnaffordableError):  # where costs do not add up
                        self.ask(self._short(point.cost))  # maybe it is given for what it costs
        self.progress(1.0)
        return self._apart(_best(self.answers.values()))

    def ask(self, budget: float) -> Point:
        """The plan that this budget gives."""
        if budget not in self.answers:
            self.answers[budget] = self._planned(budget)
            self.progress(min(1.0, len(self.answers) / (1.3 * self.points)))
        return self.answers[budget]

    def _planned(self, budget: float) -> Point:
        with report_to(None):  # one plan of many
            schedule = self.plan(budget)
        return Point(budget, forecast(schedule, self.situation).projected, schedule)

    def _find_ends(self) -> None:
        """The cheapest plan, and the fastest one if money is no object."""
        fastest = self._planned(math.inf)
        try:
            cheapest = self.ask(0.0)
        except UnaffordableError as error:
            self.low, self.high = error.cost, fastest.cost
            cheapest = self.ask(self._short(error.cost))
        self.low, self.high = cheapest.cost, max(cheapest.cost, fastest.cost)
        fastest = self.ask(self._short(fastest.cost))
        self.slower = cheapest.makespan - fastest.makespan

    def _short(self, budget: float) -> float:
        """A budget that is no smaller, with as few digits as tell it from its neighbours."""
        width = self.high - self.low
        if budget <= 0 or width <= ROUNDING * budget:
            return float(rounded_up(budget))
        digits = Decimal(budget).adjusted() - Decimal(width).adjusted() + _DIGITS + 1
        return float(rounded_up(budget, digits))

    def _between(self) -> float | None:
        """A budget between the two neighbours that differ most, if any differ enough.

        What may lie between them is a rectangle; the largest one is looked into.
        """
        most, budget = 0.0, None
        width = self.high - self.low
        for a, b in pairwise(sorted(self.answers.values(), key=lambda p: p.budget)):
            until = min(b.budget, b.cost)  # from there on, b is what is given
            dearer = (until - a.budget) / width
            faster = (a.makespan - b.makespan) / self.slower
            if dearer > FINEST and faster > FINEST and dearer * faster > most:
                most, budget = dearer * faster, (a.budget + until) / 2
        return None if budget is None else self._short(budget)

    def _apart(self, points: list[Point]) -> list[Point]:
        """Of points that lie on each other the one of the smallest budget; the fastest stays."""
        kept: list[Point] = []
        for point in points:
            if kept and self._near(kept[-1], point):
                if len(kept) > 1 and (point is points[-1] or point.budget < kept[-1].budget):
                    kept[-1] = point
            else:
                kept.append(point)
        return kept

    def _near(self, one: Point, other: Point) -> bool:
        dearer, faster = other.cost - one.cost, one.makespan - other.makespan
        return dearer <= FINEST * (self.high - self.low) and faster <= FINEST * self.slower


def _for_budgets(planner: Planner, situation: Situation) -> Callable[[float], Schedule]:
    """The plans for one budget after another; some planners share work between them."""
    if hasattr(planner, "for_budgets"):
        shared: Callable[[float], Schedule] = planner.for_budgets(situation)
        return shared
    return lambda budget: planner.plan(replace(situation, budget=budget))


def _best(points: Iterable[Point]) -> list[Point]:
    """Those that no other is better than, by cost; of equals the one of the smallest budget."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: (p.cost, p.makespan, p.budget)):
        if kept and not ends_earlier(point.makespan, kept[-1].makespan):
            continue
        if kept and affordable(point.cost, kept[-1].cost):
            kept.pop()  # the same money, but for rounding, and faster
        kept.append(point)
    return kept


def knee(x: Sequence[float], y: Sequence[float]) -> int | None:
    """The index of the point that lies farthest below the chord from the first to the last one.

    Measured straight down; with both axes scaled to 1, the distance to the chord has its greatest
    value at the same point. None if the last is no better than the first, or none lies below.
    """
    if len(x) < 3 or not all(map(math.isfinite, (*x, *y))) or x[-1] <= x[0]:
        return None
    if not y[-1] < y[0] * (1 - ROUNDING):
        return None
    slope = (y[-1] - y[0]) / (x[-1] - x[0])
    below = [y[0] + slope * (x_k - x[0]) - y_k for x_k, y_k in zip(x, y, strict=True)]
    best = max(range(len(below)), key=below.__getitem__)  # the first of equals
    return best if below[best] > ROUNDING * y[0] else None
