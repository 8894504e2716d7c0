"""A slow, obvious twin of the money: task by task, unit by unit, item by item."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isnan

from foreplan.model import Platform, Reuse, Schedule, Situation

SAME = 1 - 1e-9  # a unit that is begun only by a rounding error is not begun

Use = tuple[int, float, float]  # processor, from, to


@dataclass(frozen=True)
class Twin:
    """What `forecast` should say."""

    spent: float
    committed: float
    planned: float


def cost_of_uses(uses: Iterable[Use], platform: Platform) -> float:
    """What these uses of the processors cost together."""
    total = 0.0
    by_processor: dict[int, list[Use]] = {}
    for use in uses:
        by_processor.setdefault(use[0], []).append(use)
    for p, here in sorted(by_processor.items()):
        price, unit = float(platform.price[p]), float(platform.billing[p])
        if unit > 0:
            until = max(end for _, _, end in here)
            paid_to, units = min(start for _, start, _ in here) + unit, 1
            span = until - (paid_to - unit)
            while units * unit < span * SAME:
                units += 1
            total += units * unit * price
        else:
            for _, start, end in here:
                total += (end - start) * price
    return total


def cost_of_transfers(
    schedule: Schedule, platform: Platform, tasks: Iterable[int], situation: Situation | None = None
) -> float:
    """What it costs that these tasks get their inputs, once to a host, if they are not there."""
    wf, there = schedule.workflow, set[tuple[int, int]]()
    if situation is not None:
        for pairs in (situation.copies, situation.transfers):
            there |= set(zip(pairs.item.tolist(), pairs.host.tolist(), strict=True))
    total = 0.0
    for task in tasks:
        target = int(platform.host[schedule.processor[task]])
        for item in wf.in_item[wf.in_ptr[task] : wf.in_ptr[task + 1]].tolist():
            if wf.item_producer[item] < 0 or (item, target) in there:
                continue
            source = _source(schedule, platform, item, target, situation)
            if source != target:
                total += float(wf.item_size[item]) * float(platform.link_price[source, target])
                there.add((item, target))
    return total


def _source(
    schedule: Schedule, platform: Platform, item: int, target: int, situation: Situation | None
) -> int:
    """The producer's host; where that has lost it, or copies are sources too, the quickest."""
    home = int(platform.host[schedule.processor[schedule.workflow.item_producer[item]]])
    if situation is None:
        return home
    lost = situation.astray is not None and bool(situation.astray[item])
    sources = [] if lost else [home]
    if lost or situation.reuse == Reuse.ANYWHERE:
        pairs = zip(situation.copies.item.tolist(), situation.copies.host.tolist(), strict=True)
        sources += sorted(host for what, host in pairs if what == item)
    best, least = home, inf
    for host in sources:
        takes = float(platform.startup[host, target])
        takes += float(schedule.workflow.item_size[item] * situation.time_per_unit[host, target])
        if host == target:
            takes = 0.0
        if takes < least:
            best, least = host, takes
    return best


def cost_of_schedule(schedule: Schedule) -> float:
    """The cost of a plan from the very start."""
    tasks = range(schedule.workflow.n_tasks)
    uses = [
        (int(schedule.processor[t]), float(schedule.start[t]), float(schedule.finish[t]))
        for t in tasks
    ]
    transfers = cost_of_transfers(schedule, schedule.platform, tasks)
    return cost_of_uses(uses, schedule.platform) + transfers


def past_uses(situation: Situation) -> list[Use]:
    """What the attempts that hold have used by now."""
    a = situation.attempts
    rows = zip(a.processor.tolist(), a.start.tolist(), a.finish.tolist(), strict=True)
    return [(p, start, situation.now if isnan(end) else end) for p, start, end in rows]


def forecast_of(
    schedule: Schedule, situation: Situation, past: list[Use], paid_for_transfers: float = 0.0
) -> Twin:
    """What was spent for the past, and what the plan adds to it."""
    platform, a = situation.platform, situation.attempts
    stays: list[Use] = []
    begun: set[int] = set()
    for task, p, end in zip(a.task.tolist(), a.processor.tolist(), a.finish.tolist(), strict=True):
        if isnan(end) and schedule.processor[task] == p:
            until = max(situation.now, float(schedule.finish[task]))
            stays.append((p, situation.now, until))
        if not isnan(end) or schedule.processor[task] == p:
            begun.add(task)
    gone = situation.given_up
    to_come = [
        task
        for task in range(schedule.workflow.n_tasks)
        if task not in begun and (gone is None or not gone[task])
    ]
    later = [
        (int(schedule.processor[t]), float(schedule.start[t]), float(schedule.finish[t]))
        for t in to_come
    ]
    spent = cost_of_uses(past, platform)
    running = cost_of_uses(past + stays, platform)
    everything = cost_of_uses(past + stays + later, platform)
    transfers = cost_of_transfers(schedule, platform, to_come, situation)
    return Twin(spent + paid_for_transfers, running - spent, everything - running + transfers)
