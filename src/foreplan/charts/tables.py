"""What plans, runs and answers come to, in rows: commands print them, notebooks show them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from foreplan.arrays import BoolArray, IntArray
from foreplan.model.profiles import amounts_held, host_profiles, kinds_held, rows_of
from foreplan.model.resources import MEMORY, held
from foreplan.quantities import amount, data_size, duration

if TYPE_CHECKING:
    from foreplan.comparison import Figures
    from foreplan.model import Run, Schedule, Workflow
    from foreplan.scheduling.frontier import Frontier
    from foreplan.whatif import Alternative, WhatIf

MANY = 16  # processors; of more, their hosts are told


class Rows(NamedTuple):
    """A table: so many columns are texts, and those further on whose heading begins with <."""

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    texts: int = 1


def by_processor(shown: Schedule | Run, counted: Mapping[str, BoolArray]) -> Rows:
    """What every processor does, and what it costs; so many of these tasks or attempts use it.

    Many processors on fewer hosts are told host by host.
    """
    pf, went = shown.platform, shown.processor_time
    if pf.n_hosts < pf.n_processors > MANY:
        return _by_host(shown, counted)
    rows_shown = rows_of(shown)
    task, on = held(rows_shown.processor, rows_shown.cores)
    counts = {name: _counts(on[chosen[task]], pf.n_processors) for name, chosen in counted.items()}
    shares, bill = went.utilisations, shown.bill
    rows = [
        [
            name,
            pf.host_names[pf.host[p]],
            *(numbers[p] for numbers in counts.values()),
            duration(went.busy[p], 3),
            f"{shares[p]:.0%}" if went.present[p] > 0 else "-",
            amount(bill.processors[p]),
        ]
        for p, name in enumerate(pf.processor_names)
    ]
    if pf.link_price.any():
        rows.append(["transfers", *[""] * (len(counts) + 3), amount(bill.transfers)])
    return Rows(["processor", "host", *counts, "busy", "busy %", "cost"], rows, texts=2)


def peaks_in_words(shown: Schedule | Run) -> str:
    """The most memory that is held of each host, where the table is of processors; or nothing."""
    pf = shown.platform
    if pf.n_hosts < pf.n_processors > MANY or not (peaks := _peaks(shown)):
        return ""
    used = [f"{peak} on {pf.host_names[h]}" for h, peak in enumerate(peaks) if peak != "-"]
    return f"memory held at most: {', '.join(used)}"


def _by_host(shown: Schedule | Run, counted: Mapping[str, BoolArray]) -> Rows:
    """What every host does, with the most of its memory that is held at once."""
    pf, went, n = shown.platform, shown.processor_time, shown.platform.n_hosts
    host, peaks, cores = pf.host[rows_of(shown).processor], _peaks(shown), _counts(pf.host, n)
    counts = {name: _counts(host[chosen], n) for name, chosen in counted.items()}
    bill = shown.bill
    sums = [
        np.bincount(pf.host, weights=seconds, minlength=n)
        for seconds in (went.busy, went.present, bill.processors)
    ]
    rows = [
        [
            name,
            cores[h],
            *(numbers[h] for numbers in counts.values()),
            f"{busy / present:.0%}" if present > 0 else "-",
            *peaks[h : h + 1],
            amount(cost),
        ]
        for h, (name, busy, present, cost) in enumerate(zip(pf.host_names, *sums, strict=True))
    ]
    memory = ["memory at most"] if peaks else []
    if pf.link_price.any():
        blank = [""] * (len(counts) + 2 + len(memory))
        rows.append(["transfers", *blank, amount(bill.transfers)])
    return Rows(["host", "cores", *counts, "busy %", *memory, "cost"], rows)


def _peaks(shown: Schedule | Run) -> list[str]:
    """The most memory that is held of every host at once; empty where no task asks for any."""
    if MEMORY not in kinds_held(shown):
        return []
    sizes = shown.platform.host_amounts(MEMORY).tolist()
    peaks = [steps.most for steps in host_profiles(shown, amounts_held(shown, MEMORY))]
    return [
        f"{data_size(peak)} of {data_size(size)}"
        if peak > 0 and math.isfinite(size)
        else (data_size(peak) if peak else "-")
        for peak, size in zip(peaks, sizes, strict=True)
    ]


def _counts(numbers: IntArray, n: int) -> list[int]:
    """How often each number below n occurs."""
    counts: list[int] = np.bincount(numbers, minlength=n).tolist()
    return counts


def of_categories(workflow: Workflow) -> Rows:
    """How many tasks each category has, and what they cost together, in the order of the graph."""
    from foreplan.charts.graph import known_costs, labels_of

    costs = known_costs(workflow)
    members: dict[str, list[int]] = {}
    for task, label in enumerate(labels_of(workflow)):
        members.setdefault(label, []).append(task)
    rows = []
    for label, tasks in members.items():
        seconds = float(costs[tasks].sum())
        cost = "-" if math.isnan(seconds) else duration(seconds, 3)
        rows.append([label or "-", len(tasks), cost])
    return Rows(["category", "tasks", "cost"], rows)


def of_strategies(figures: Sequence[Figures]) -> Rows:
    """What each strategy of a comparison came to."""
    header = (
        "strategy", "makespan", "+-", "ratio", "95% interval",
        "NSL", "considered", "taken", "cost", "planning",
    )  # fmt: skip
    return Rows(header, [_of_strategy(f) for f in figures])


def _of_strategy(f: Figures) -> list[str]:
    mean, high = f.makespan.mean, f.makespan.high
    return [
        f.strategy,
        "-" if mean is None else duration(mean, 3),
        "-" if mean is None or high is None else duration(high - mean),
        "-" if f.ratio.mean is None else f"{f.ratio.mean:.4f}",
        "-" if f.ratio.low is None else f"{f.ratio.low:.4f} to {f.ratio.high:.4f}",
        "-" if f.nsl.mean is None else f"{f.nsl.mean:.3f}",
        amount(f.considered, 4),
        amount(f.replans, 4),
        "-" if f.cost.mean is None else amount(f.cost.mean),
        duration(f.planning_milliseconds / 1000),
    ]


def of_plans(frontier: Frontier, budget: float | None = None) -> Rows:
    """The plans of a frontier by cost; the knee and the best within the budget are marked."""
    knee, chosen, rows = frontier.knee, None if budget is None else frontier.within(budget), []
    for k, point in enumerate(frontier.points):
        marks = ["<- knee"] * (k == knee) + ["<- within the budget"] * (k == chosen)
        buys = frontier.buys(k)
        rows.append(
            [
                f"{point.budget:.15g}",  # to be copied: no thousands separators, no rounding
                amount(point.cost),
                duration(point.makespan, 3),
                "-" if buys is None else duration(buys),
                "  ".join(marks),
            ]
        )
    return Rows(["budget", "cost", "makespan", "a unit more buys", "<"], rows, texts=0)


def of_alternatives(answer: WhatIf) -> Rows:
    """What is expected of each alternative."""
    when = "now" if answer.at == answer.now else f"at {duration(answer.at)}"
    when = "from the start" if answer.before_start and answer.at == 0 else when
    counts, rows = answer.counts or [None] * len(answer.alternatives), []
    for count, row in zip(counts, answer.alternatives, strict=True):
        mark = "  <- knee" if count is not None and count == answer.knee else ""
        rows.append([row.change, *_figures(answer, row), _plan(row) + mark])
    header = [f"change, {when}", "makespan", "saves", "saves %", "cost", "more cost", "<plan"]
    return Rows(header, rows)


def _figures(answer: WhatIf, row: Alternative) -> list[str]:
    if not math.isfinite(row.makespan):
        return ["-"] * 5
    whole, more = answer.present.makespan, row.cost - answer.present.cost
    share = f"{row.saves / whole:+.1%}" if whole > 0 and math.isfinite(whole) else "-"
    saves = _signed(_zero(row.saves, whole), partial(duration, parts=3))
    return [
        duration(row.makespan, 3),
        saves,
        share.replace("-0.0%", "+0.0%"),
        amount(row.cost),
        _signed(_zero(more, answer.present.cost), amount),
    ]


def _signed(value: float, words: Callable[[float], str]) -> str:
    """A difference with its sign."""
    return ("+" if value >= 0 else "") + words(value) if math.isfinite(value) else "-"


def _zero(value: float, whole: float) -> float:
    """What is nothing but rounding is nothing."""
    return 0.0 if abs(value) <= 1e-9 * abs(whole) else value


def _plan(row: Alternative) -> str:
    if not math.isfinite(row.makespan):
        return "it cannot be done"
    return "-" if row.taken is None else "new" if row.taken else "kept"
