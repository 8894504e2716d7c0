"""GTP (Hernandez, Cole): HEFT, DLS/sr, GTP and GTP/c where machines vary and fail; its section 7.

A unit of work is one graph of one part, with all its cases. Its figures depend on nothing but the
settings and its number: not on who does it, nor when.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import Any

from weft.experiments import gtp_runs
from weft.experiments import units as work
from weft.experiments.checkpoint import Checkpoint
from weft.experiments.gtp_cases import (
    BOUNDS,
    CCRS,
    EVENT_RATE,
    MAIN_CCR,
    MAIN_SIZE,
    SIZES,
    Case,
    Graph,
    Instance,
)
from weft.experiments.gtp_runs import METRICS, PAPER, PAPER_R, SPECS, WITH_OURS, WITH_OURS_R
from weft.experiments.gtp_shapes import digest, shapes
from weft.experiments.gtp_sweeps import FAILING_SWEEPS, SWEEPS, Point
from weft.version import __version__

CALM, FAILURE = "calm", "failure"  # Figures 4 and 5; the other parts are the sweeps
GRID_BOUND, GRID_BOUND_FAILURE = 0.4, 0.2  # of which the paper's text speaks

Columns = dict[str, list[float]]  # "strategy|metric" has one figure per point


@dataclass(frozen=True)
class Settings:
    """What the figures depend on: how many graphs for each part, and where shapes come from."""

    full: bool
    seed: int = 0
    main: int = 24  # SCE10-300 with all bounds
    grid: int = 4  # per other size and CCR
    sweeps: int = 12
    stg: str = ""  # a folder of .stg files

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of tasks."""
        return tuple(shapes(self.stg)) if self.stg else SIZES

    @property
    def main_size(self) -> int:
        """That of Figures 4 and 5: 300, or the largest that the files have."""
        return MAIN_SIZE if MAIN_SIZE in self.sizes else self.sizes[-1]

    def described(self) -> dict[str, Any]:
        """As the head of a checkpoint says it."""
        files = digest(self.stg) if self.stg else ""
        return {**asdict(self), "stg": files, "event_rate": EVENT_RATE, "weft": __version__}


FULL = Settings(full=True, main=100, grid=40, sweeps=60)
SAMPLE = Settings(full=False)


@dataclass(frozen=True)
class Unit:
    """One graph of one part: at every point the same strategies in one world."""

    number: int
    part: str
    graph: Graph
    points: tuple[Point, ...]


@lru_cache(maxsize=4)
def units(settings: Settings) -> tuple[Unit, ...]:
    """All units, by number."""
    found = [*_figures(settings), *_sweeps(settings)]
    return tuple(Unit(number, *unit) for number, unit in enumerate(found))


def _figures(settings: Settings) -> Iterator[tuple[str, Graph, tuple[Point, ...]]]:
    """Figures 4 and 5 for the main size, then for the others and the other CCRs."""
    for size in settings.sizes:
        for ccr in CCRS:
            main = (size, ccr) == (settings.main_size, MAIN_CCR)
            every = main or settings.full
            calm = BOUNDS if every else (GRID_BOUND,)
            failing = BOUNDS if every else (GRID_BOUND_FAILURE,)
            names, names_r = (WITH_OURS, WITH_OURS_R) if main else (PAPER, PAPER_R)
            for number in range(settings.main if main else settings.grid):
                graph = Graph(size, ccr, number, settings.seed, stg=settings.stg)
                yield CALM, graph, tuple(_point(names, Case(b)) for b in calm)
                points = tuple(_point(names_r, Case(b, failures=1)) for b in failing)
                yield FAILURE, graph, points


def _point(names: tuple[str, ...], case: Case) -> Point:
    return Point(case.bound, case, {name: SPECS[name] for name in names})


def _sweeps(settings: Settings) -> Iterator[tuple[str, Graph, tuple[Point, ...]]]:
    """What decides the figures, on the first graphs of the main part."""
    for part, sweep in {**SWEEPS, **FAILING_SWEEPS}.items():
        for number in range(settings.sweeps):
            graph = Graph(settings.main_size, MAIN_CCR, number, settings.seed, stg=settings.stg)
            for variant, points in sweep(graph):
                yield part, variant, points


def perform(settings: Settings, number: int) -> tuple[Columns, float]:
    """The figures of one unit, and the processor time they took."""
    begun = time.process_time()
    columns = measured(units(settings)[number])
    return columns, time.process_time() - begun


def measured(unit: Unit) -> Columns:
    """All strategies at all points; what must be the same is simulated once."""
    instance = Instance(unit.graph)
    columns: Columns = {"path": [instance.path], "work": [instance.work]}
    known: dict[tuple[Case, str], dict[str, float]] = {}
    for point in unit.points:
        new = [s for s in dict.fromkeys(point.specs.values()) if (point.case, s) not in known]
        found = gtp_runs.measure(instance, point.case, tuple(new))
        known |= {(point.case, spec): one for spec, one in zip(new, found, strict=True)}
        for name, spec in point.specs.items():
            for metric in METRICS:
                value = known[point.case, spec][metric]
                columns.setdefault(f"{name}|{metric}", []).append(value)
    return columns


def complete(
    settings: Settings,
    checkpoint: Checkpoint,
    processes: int,
    progress: Callable[[float], None] = lambda share: None,
) -> None:
    """Do all units that are not done yet."""
    do = partial(perform, settings)
    work.complete(len(units(settings)), do, checkpoint, processes, progress)
