"""LOSS and GAIN (Sakellariou, Zhao, Tsiakkouri, Dikaiakos, figure 2), where costs add up.

The readings: a pair of a task and a machine is tried once; ties go to the first task, then to the
first machine; after a reassignment the schedule is rebuilt in HEFT's order on the given machines,
with insertion. A task that does not fit before its machine leaves goes where it ends first.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from foreplan.model import Situation

from .heft import heft
from .partial_schedule import PartialSchedule, Placement
from .ranks import by_rank, rank_u

Start = Callable[[Situation], dict[int, Placement]]
Plan = dict[int, Placement]
Pair = tuple[int, int]  # a task and a machine
Where = dict[int, int]  # the machine of every task that can be moved


class Unaffordable(Exception):  # noqa: N818
    """Even the cheapest assignment costs more than there is."""

    def __init__(self, cost: float) -> None:
        self.cost = cost
        super().__init__(cost)


def within(cost: float, budget: float) -> bool:
    """Whether it can be paid, but for rounding."""
    return cost <= budget or cost - budget <= 1e-9 * abs(budget)


def makespan(plan: Plan) -> float:
    """When the last task finishes."""
    return max(finish for _, _, finish in plan.values())


class Shop:
    """What tasks take and cost on every machine, and how a schedule is rebuilt."""

    def __init__(self, situation: Situation) -> None:
        self.situation, partial = situation, PartialSchedule(situation)
        self.time, self.machines = partial.cost, partial.usable
        self.price: list[float] = situation.platform.price.tolist()
        self.order = by_rank(partial, rank_u(situation))
        self.pairs = [(task, p) for task in sorted(self.order) for p in self.machines]

    def charge(self, task: int, p: int) -> float:
        """Equation 2."""
        return self.time[task][p] * self.price[p]

    def bill(self, plan: Plan) -> float:
        """Equation 1."""
        return sum((finish - start) * self.price[p] for p, start, finish in plan.values())

    def build(self, where: Where) -> Plan:
        """The tasks in HEFT's order, each on its machine."""
        partial = PartialSchedule(self.situation)
        for task in self.order:
            fits = partial.finish(task, where[task], insertion=True) < inf
            partial.place_earliest(task, [where[task]] if fits else self.machines, insertion=True)
        return partial.placed

    def cheapest_machines(self) -> Where:
        """Every task's cheapest machine; of equals the fastest, then the first."""
        found: Where = {}
        for task in self.order:
            least = min(self.charge(task, p) for p in self.machines)
            cheap = [p for p in self.machines if self.charge(task, p) <= least * (1 + 1e-12)]
            found[task] = min(cheap, key=lambda p: (self.time[task][p], p))
        return found

    def cheapest(self) -> Plan:
        """Every task on its cheapest machine."""
        return self.build(self.cheapest_machines())

    def better(self, one: Plan, other: Plan) -> Plan:
        """The plan that ends earlier, the cheaper one of equals, the first if nothing differs."""
        ends = [(makespan(plan), self.bill(plan)) for plan in (one, other)]
        return other if ends[1] < ends[0] else one

    def helps(self, variant: int, task: int, p: int, where: Where, old: Plan, new: Plan) -> bool:
        """Whether a careful move is kept: the task is faster, or (variant 2) everything is."""
        if variant == 2:
            return makespan(new) < makespan(old) * (1 - 1e-12)
        return self.time[task][p] < self.time[task][where[task]]

    def changes(self, plan: Plan, where: Where, variant: int) -> dict[Pair, tuple[float, float]]:
        """Tnew - Told and Cnew - Cold of every reassignment: of the task, or of all (variant 2)."""
        found: dict[Pair, tuple[float, float]] = {}
        for task, p in self.pairs:
            old = where[task]
            if p == old:
                continue
            if variant == 2:
                new = self.build(where | {task: p})
                slower = makespan(new) - makespan(plan)
                found[task, p] = (slower, self.bill(new) - self.bill(plan))
            else:
                slower = self.time[task][p] - self.time[task][old]
                found[task, p] = (slower, self.charge(task, p) - self.charge(task, old))
        return found


def loss_weights(changes: dict[Pair, tuple[float, float]], faithful: bool) -> dict[Pair, float]:
    """Equation 3 of what saves money; to the letter a weight of 0 is none."""
    weights = {pair: slower / -dearer for pair, (slower, dearer) in changes.items() if dearer < 0}
    return {pair: weight for pair, weight in weights.items() if weight != 0 or not faithful}


def gain_weights(changes: dict[Pair, tuple[float, float]], faithful: bool) -> dict[Pair, float]:
    """Equation 4 of what saves time; carefully, what costs no more comes first.

    To the letter what costs as much is passed over, and what costs less, whose weight is below 0,
    comes last.
    """
    faster = {pair: change for pair, change in changes.items() if change[0] < 0}
    weights = {pair: -slower / dearer for pair, (slower, dearer) in faster.items() if dearer != 0}
    if not faithful:
        weights |= {pair: inf for pair, (_, dearer) in faster.items() if dearer <= 0}
    return weights


def loss(
    situation: Situation,
    variant: int,
    budget: float = inf,
    start: Start = heft,
    faithful: bool = False,
) -> Plan:
    """Saves money from a fast plan on, by what costs the least time for it."""
    shop, plan = Shop(situation), start(situation)
    if within(shop.bill(plan), budget):
        return plan if faithful else shop.better(plan, shop.cheapest())
    where = {task: plan[task][0] for task in shop.order}
    weights = loss_weights(shop.changes(plan, where, variant), faithful)
    tried: set[Pair] = set()
    while not within(shop.bill(plan), budget):
        if variant == 3:
            weights = loss_weights(shop.changes(plan, where, variant), faithful)
        left = [pair for pair in weights if pair not in tried]
        if not left:
            break
        task, p = min(left, key=lambda pair: (weights[pair], pair))
        tried.add((task, p))
        if faithful or shop.charge(task, p) < shop.charge(task, where[task]):
            where[task] = p
            plan = shop.build(where)
    cheapest = shop.cheapest()
    if not within(shop.bill(cheapest), budget):
        raise Unaffordable(shop.bill(cheapest))
    if not within(shop.bill(plan), budget):
        plan = cheapest
    if faithful:
        return plan
    to_the_letter = loss(situation, variant, budget, start, faithful=True)
    return shop.better(shop.better(plan, to_the_letter), cheapest)


def gain(
    situation: Situation,
    variant: int,
    budget: float = inf,
    start: Start = heft,
    faithful: bool = False,
) -> Plan:
    """Buys time from the cheapest plan on, by what costs the least money for it."""
    shop = Shop(situation)
    where, plan = shop.cheapest_machines(), shop.cheapest()
    if not within(shop.bill(plan), budget):
        raise Unaffordable(shop.bill(plan))
    weights = gain_weights(shop.changes(plan, where, variant), faithful)
    tried: set[Pair] = set()
    while True:
        if variant == 3:
            weights = gain_weights(shop.changes(plan, where, variant), faithful)
        left = [pair for pair in weights if pair not in tried]
        if not left:
            break
        task, p = min(left, key=lambda pair: (-weights[pair], pair))
        tried.add((task, p))
        new = shop.build(where | {task: p})
        kept = faithful or shop.helps(variant, task, p, where, plan, new)
        if kept and within(shop.bill(new), budget):
            plan, where = new, where | {task: p}
    if faithful:
        return plan
    plan = shop.better(plan, gain(situation, variant, budget, start, faithful=True))
    plan, first = shop.better(plan, shop.cheapest()), start(situation)
    return shop.better(first, plan) if within(shop.bill(first), budget) else plan
