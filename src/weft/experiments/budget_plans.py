"""The plans of the budget experiment: every variant at every budget, and how long each took."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from weft import registry
from weft.experiments.budget_cases import KS, STARTS, Dag, Ends, Instance
from weft.model import affordable

Columns = dict[str, list[float]]  # "variant|metric" has one figure per budget

LOSSES, GAINS = ("LOSS1", "LOSS2", "LOSS3"), ("GAIN1", "GAIN2", "GAIN3")
BEST = "best-affordable"
MAKESPAN, SECONDS, MOVED = "makespan", "seconds", "moved"
TIMED, REPEATS = "fft", 3  # whose times are shown: the shortest of so many


@dataclass(frozen=True)
class Variant:
    """A planner under a budget between the cheapest assignment and the start's plan."""

    name: str
    start: str
    spec: str

    def of(self, budget: float) -> str:
        """The spec string for a budget."""
        return self.spec.replace("BUDGET", repr(budget))


def careful(name: str) -> str:
    """The name of the default, beside the faithful one's."""
    return f"{name} careful"


def from_hbmct(name: str) -> str:
    """The name of LOSS from HBMCT, beside that from HEFT."""
    return f"{name} from HBMCT"


def _variants() -> Iterable[Variant]:
    for letter in (True, False):
        named = str if letter else careful
        options = f"faithful={str(letter).lower()},budget=BUDGET"
        for loss in LOSSES:
            yield Variant(named(loss), "heft", f"{loss.lower()}[{options}]")
        for loss in LOSSES:
            spec = f"{loss.lower()}[start=hbmct,{options}]"
            yield Variant(named(from_hbmct(loss)), "hbmct", spec)
        for gain in GAINS:
            yield Variant(named(gain), "heft", f"{gain.lower()}[{options}]")
    yield Variant(BEST, "heft", f"{BEST}[budget=BUDGET]")


VARIANTS = {variant.name: variant for variant in _variants()}
FROM_HBMCT = tuple(from_hbmct(loss) for loss in LOSSES)
FAITHFUL = (*LOSSES, *FROM_HBMCT, *GAINS)


def measured(dag: Dag, names: Sequence[str] = tuple(VARIANTS), ks: Sequence[float] = KS) -> Columns:
    """The plans of one DAG; nothing where there is nothing between the two ends."""
    instance = Instance(dag)
    columns: Columns = {"over": [0.0]}
    for start in STARTS:
        ends = instance.ends(start)
        columns["cheapest"], columns[start] = list(ends.cheapest), list(ends.start)
        if ends.degenerate:
            continue
        for variant in (VARIANTS[name] for name in names):
            if variant.start == start:
                repeats = REPEATS if dag.family == TIMED and variant.name != BEST else 1
                _plans(instance, ends, variant, ks, repeats, columns)
    return columns


def ends_of(columns: Columns, start: str) -> Ends:
    """The two ends, as they stand in the columns of a DAG."""
    cheapest, other = columns["cheapest"], columns[start]
    return Ends((cheapest[0], cheapest[1]), (other[0], other[1]))


def _plans(
    instance: Instance,
    ends: Ends,
    variant: Variant,
    ks: Sequence[float],
    repeats: int,
    columns: Columns,
) -> None:
    """All plans of one variant; a plan that costs more than its budget is counted."""
    loss = variant.name.startswith("LOSS")
    origin = instance.starts[variant.start] if loss else instance.cheapest
    found: Columns = {MAKESPAN: [], SECONDS: [], MOVED: []}
    for budget in map(ends.budget, ks):
        planner = registry.planner(variant.of(budget))
        seconds = []
        for _ in range(repeats):
            situation = instance.situation()
            begun = time.perf_counter()
            schedule = planner.plan(situation)
            seconds.append(time.perf_counter() - begun)
        found[SECONDS].append(round(min(seconds), 7))
        found[MAKESPAN].append(schedule.makespan)
        moved = np.count_nonzero(schedule.processor != origin.processor)
        found[MOVED].append(float(moved))
        columns["over"][0] += not affordable(schedule.cost, budget)
    columns.update({f"{variant.name}|{metric}": values for metric, values in found.items()})
