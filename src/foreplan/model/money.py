"""Money: what machines and transfers cost, of a plan before it runs and of a run in progress.

Sakellariou, Zhao, Tsiakkouri, Dikaiakos, "Scheduling Workflows with Budget Constraints": equations
1 and 2 are a price per second of use. Billing units and prices of transfers go beyond the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, FrozenArrays, IntArray
from foreplan.model.platform import Platform
from foreplan.model.resources import held

if TYPE_CHECKING:
    from foreplan.model.schedule import Schedule
    from foreplan.model.situation import Situation

MONEY_GONE = "the money is gone"  # why work was cancelled
ROUNDING = 1e-9  # of a sum: what differs by less is the same money


def affordable(cost: float, budget: float) -> bool:
    """Whether it is within the budget, but for rounding."""
    return cost <= budget + ROUNDING * abs(budget)


@dataclass(frozen=True, eq=False)
class Usage(FrozenArrays):
    """The use of every processor: seconds, the first moment and the last; and money for transfers.

    `first` is infinite and `last` minus infinite for one that was never used.
    """

    seconds: FloatArray
    first: FloatArray
    last: FloatArray
    transfers: float = 0.0

    @staticmethod
    def none(n_processors: int) -> Usage:
        """Nothing was used yet."""
        seconds = np.zeros(n_processors)
        return Usage(seconds, np.full(n_processors, np.inf), np.full(n_processors, -np.inf))

    def and_then(
        self, processor: IntArray, start: FloatArray, finish: FloatArray, transfers: float = 0.0
    ) -> Usage:
        """The same and these uses more."""
        seconds, first, last = self.seconds.copy(), self.first.copy(), self.last.copy()
        np.add.at(seconds, processor, finish - start)
        np.minimum.at(first, processor, start)
        np.maximum.at(last, processor, finish)
        return Usage(seconds, first, last, self.transfers + transfers)

    def with_running(self, processor: IntArray, now: float, ends: FloatArray) -> Usage:
        """The same once what runs there now has ended: that is committed."""
        return self.and_then(processor, np.full(len(processor), now), ends)

    def by_processor(self, platform: Platform) -> FloatArray:
        """What the use of every processor costs: per second, or per begun billing unit."""
        n = len(self.seconds)  # processors that are found later were not used then
        price, unit = platform.price[:n], platform.billing[:n]
        billed = (unit > 0) & (self.last >= self.first)
        if not billed.any():
            return self.seconds * price
        cost = np.where(unit > 0, 0.0, self.seconds * price)
        units = (self.last[billed] - self.first[billed]) / unit[billed]
        begun = np.maximum(1.0, np.ceil(units * (1 - ROUNDING)))
        cost[billed] = begun * unit[billed] * price[billed]
        return cost

    def cost(self, platform: Platform) -> float:
        """All the money."""
        return float(self.by_processor(platform).sum()) + self.transfers


class Bill(NamedTuple):
    """What the money was for: processors, with what tasks held of their hosts, and transfers."""

    processors: FloatArray
    transfers: float

    @staticmethod
    def of(usage: Usage, platform: Platform, shares: FloatArray) -> Bill:
        """Of a use whose `transfers` hold what was paid beyond cores, too: these `shares`."""
        paid = usage.transfers - float(shares.sum())
        paid = paid if paid > ROUNDING * usage.transfers else 0.0
        return Bill(usage.by_processor(platform) + shares, paid)


@dataclass(frozen=True)
class Money:
    """The money of a run: spent by now, committed to what runs, planned for what is to come."""

    spent: float
    committed: float
    planned: float

    @staticmethod
    def of(platform: Platform, used: Usage, ended: Usage, planned: Usage | None = None) -> Money:
        """Of the use by now, once what runs has ended, and of all that is planned, if it is."""
        spent, begun = used.cost(platform), ended.cost(platform)
        to_come = float("nan") if planned is None else planned.cost(platform) - begun
        return Money(spent, begun - spent, to_come)

    @property
    def projected(self) -> float:
        """What all of it is expected to cost in the end."""
        return self.spent + self.committed + self.planned

    def to_dict(self) -> dict[str, Any]:
        """The figures by name."""
        names = ("spent", "committed", "planned", "projected")
        return {name: float(getattr(self, name)) for name in names}


def forecast(schedule: Schedule, situation: Situation) -> Money:
    """What has been spent, and what a plan of this situation costs from now on.

    A running task that the plan moves costs nothing more where it runs now.
    """
    attempts = situation.attempts
    stays = np.isnan(attempts.finish) & (schedule.processor[attempts.task] == attempts.processor)
    ended = situation.committed(stays)
    new = situation.waiting()
    new[attempts.task[np.isnan(attempts.finish) & ~stays]] = True
    tasks, processors = held(schedule.processor, schedule.cores)
    of_new = new[tasks]
    tasks, processors = tasks[of_new], processors[of_new]
    more = transfers_to_come(schedule, situation, new) + schedule.shares_cost(new)
    everything = ended.and_then(processors, schedule.start[tasks], schedule.finish[tasks], more)
    return Money.of(situation.platform, situation.used, ended, everything)


def transfers_to_come(schedule: Schedule, situation: Situation, new: BoolArray) -> float:
    """What it costs to send what the new tasks need, once to each host, and is not there yet."""
    platform, workflow = situation.platform, schedule.workflow
    if not platform.link_price.any():
        return 0.0
    items, producers, consumers = workflow.dependencies()
    wanted = new[consumers]
    items, producers, consumers = items[wanted], producers[wanted], consumers[wanted]
    target = platform.host[schedule.processor[consumers]]
    source = _sources(schedule, situation, items, producers, target)
    hosts = platform.n_hosts
    keys = items.astype(np.int64) * hosts + target
    known_item, known_host, _ = situation.known_arrivals()
    away = (source != target) & ~np.isin(keys, known_item.astype(np.int64) * hosts + known_host)
    _, once = np.unique(keys[away], return_index=True)
    items, source, target = items[away][once], source[away][once], target[away][once]
    return float(np.dot(workflow.item_size[items], platform.link_price[source, target]))


def _sources(
    schedule: Schedule, situation: Situation, items: IntArray, producers: IntArray, target: IntArray
) -> IntArray:
    """Where each item is sent from: its producer's host, or the copy that gets there soonest.

    Copies are sources of what its producer's host has lost, and of all where they are reused
    anywhere; of equals the producer's host is first, then the first host.
    """
    platform, copies, astray = situation.platform, situation.copies, situation.astray
    source: IntArray = platform.host[schedule.processor[producers]].copy()
    lost = np.zeros(len(items), dtype=np.bool_) if astray is None else astray[items]
    chosen = lost if situation.reuse.name != "ANYWHERE" else np.ones_like(lost)
    for e in np.flatnonzero(chosen & np.isin(items, copies.item)):
        hosts = np.sort(copies.host[copies.item == items[e]])
        if not lost[e]:
            hosts = np.concatenate([source[e : e + 1], hosts])
        takes = platform.startup[hosts, target[e]]
        per_unit = situation.time_per_unit[hosts, target[e]]
        source[e] = hosts[np.argmin(takes + schedule.workflow.item_size[items[e]] * per_unit)]
    return source
