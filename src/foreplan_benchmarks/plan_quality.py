"""How good the planners are: makespans relative to HEFT, and HEFT against best known results."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foreplan import formats, registry
from foreplan.checks.schedules import check_schedule
from foreplan.errors import InputError
from foreplan.generators import generate
from foreplan.model import Platform, Processor, Situation

CCRS = (0.1, 1.0, 5.0)
# What we expect of each planner's mean makespan relative to HEFT's (None: only reported).
EXPECTED: dict[str, tuple[float, float] | None] = {
    "cpop": (0.97, 1.08),
    "dls": (0.97, 1.08),
    "peft": (0.97, 1.08),
    "hbmct": (0.0, 1.08),
    "min-min": (0.0, 1.12),
    "fcp": (0.0, 1.45),
}

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Quality:
    """A planner's mean makespan relative to HEFT's, over all instances and by CCR."""

    planner: str
    mean: float
    by_ccr: dict[float, float]

    @property
    def verdict(self) -> str:
        """Whether the mean is where it should be."""
        bounds = EXPECTED.get(self.planner)
        if bounds is None:
            return "reported"
        low, high = bounds
        text = f"{low:g} to {high:g}" if low else f"at most {high:g}"
        return f"{'as expected' if low <= self.mean <= high else 'OFF'} ({text})"


def relative_to_heft(
    instances: int = 120, seed: int = 0, progress: Progress = lambda share: None
) -> list[Quality]:
    """Every planner on random layered workflows: 30-100 tasks, 4-8 processors, three CCRs."""
    ratios: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number, (ccr, situation) in enumerate(_instances(instances, seed)):
        makespans = {}
        for name in registry.planner_names():
            schedule = registry.planner(name).plan(situation)
            check_schedule(schedule, situation)
            makespans[name] = schedule.makespan
        for name, makespan in makespans.items():
            ratios[name][ccr].append(makespan / makespans["heft"])
        progress((number + 1) / instances)
    return [
        Quality(
            planner=name,
            mean=float(np.mean([r for rs in by_ccr.values() for r in rs])),
            by_ccr={ccr: float(np.mean(rs)) for ccr, rs in by_ccr.items()},
        )
        for name, by_ccr in ratios.items()
    ]


def _instances(count: int, seed: int) -> Iterator[tuple[float, Situation]]:
    rng = np.random.default_rng(seed)
    for number in range(count):
        processors = int(rng.integers(4, 9))
        workflow = generate(
            "random_layered",
            seed=int(rng.integers(2**31)),
            tasks=int(rng.integers(30, 101)),
            alpha=float(rng.choice([0.5, 1.0, 2.0])),
            out_degree=int(rng.integers(2, 6)),
            ccr=CCRS[number % len(CCRS)],
            beta=float(rng.choice([0.25, 0.5, 1.0])),
            processors=processors,
        )
        platform = Platform.build([Processor(f"p{p}") for p in range(processors)])
        yield CCRS[number % len(CCRS)], Situation.at_start(workflow, platform)


@dataclass(frozen=True)
class StgQuality:
    """HEFT's mean makespan relative to the best known one, without communication."""

    size: str
    processors: int
    graphs: int
    mean: float
    worst: float


def against_best_known(
    folder: Path, planner: str = "heft", progress: Progress = lambda share: None
) -> list[StgQuality]:
    """The Standard Task Graphs in a folder with optimal.csv (graph,processors,optimal_makespan)."""
    table = folder / "optimal.csv"
    if not table.is_file():
        raise InputError("there is no optimal.csv in this folder", source=str(folder))
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    ratios: dict[tuple[str, int], list[float]] = defaultdict(list)
    for number, row in enumerate(rows):
        processors = int(row["processors"])
        # one host: transfers are free, as the best known makespans have it
        platform = Platform.build([Processor(f"p{p}", host="h") for p in range(processors)])
        situation = Situation.at_start(
            formats.load(folder / row["graph"], resources=False), platform
        )
        schedule = registry.planner(planner).plan(situation)
        check_schedule(schedule, situation)
        size = row["graph"].split("/")[0]
        ratios[size, processors].append(schedule.makespan / float(row["optimal_makespan"]))
        progress((number + 1) / len(rows))
    return [
        StgQuality(size, processors, len(rs), float(np.mean(rs)), float(np.max(rs)))
        for (size, processors), rs in sorted(ratios.items(), key=lambda kv: (int(kv[0][0]), kv[0]))
    ]
