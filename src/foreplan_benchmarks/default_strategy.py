"""The default strategy of real runs beside those of the papers, in cells of the same worlds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from foreplan import api, registry
from foreplan.arrays import FloatArray
from foreplan.comparison import Mean
from foreplan.errors import InputError
from foreplan.model import Estimates, Link, Platform, Processor, Workflow
from foreplan.simulation import reality, scenarios
from foreplan.simulation.reality import Reality
from foreplan.simulation.scenario import Scenario
from foreplan.simulation.simulate import simulate_run
from foreplan.workers import in_order

OTHERS = ("slack", "aheft")
PROCESSORS = (2, 4, 8, 16)
SPEEDS = ("equal", "mixed")
QOIS = (0.1, 0.3, 0.5)
EVENTS = ("quiet", "joins", "losses")
LARGE = 300  # tasks
LUCK = 3  # times as many worlds
Z = 1.96  # standard errors to either side of a mean, for 95%
BEHIND = 0.01  # of the makespan, that no cell may be behind on average
NETWORK = Link(time_per_unit=8e-9, startup=0.001)  # a gigabit per second, sizes in bytes
JOINS = 0x6A6F  # so that the seed of the durations does not draw the same numbers here

Progress = Callable[[float], None]
Planned = dict[tuple[int, str, int], float]  # by processors, speeds and workflow


class Cell(NamedTuple):
    """One kind of world."""

    processors: int
    speeds: str
    qoi: float
    events: str


CELLS = tuple(Cell(p, s, q, e) for e in EVENTS for p in PROCESSORS for s in SPEEDS for q in QOIS)
QUICK = tuple(cell for cell in CELLS if cell.processors in (2, 8) and cell.qoi in (0.1, 0.5))


@dataclass(frozen=True)
class Load:
    """What a strategy asks for, per run."""

    considered: float
    taken: float
    migrations: float


@dataclass(frozen=True)
class Result:
    """The default beside the others in one cell, or in all of them."""

    cell: Cell | None  # None: all
    ratio: dict[str, Mean]  # geometric means of makespans over the other's in the same world
    load: dict[str, Load]

    @property
    def worst(self) -> float:
        """How far behind the better one of the others it is."""
        return max(ratio.mean or math.nan for ratio in self.ratio.values()) - 1

    @property
    def verdict(self) -> str:
        """Whether it is where it should be: never behind by more than 1%, ahead of both overall."""
        goal = BEHIND if self.cell else 0.0
        if self.worst <= goal:
            return "as it should be"
        sure = any((ratio.low or 0.0) > 1 + goal for ratio in self.ratio.values())
        return "missed" if sure else "missed, within the interval"


def compare(
    workflows: Sequence[Workflow],
    worlds: int,
    cells: Sequence[Cell] = CELLS,
    strategy: str = "adaptive",
    seed: int = 0,
    jobs: int | None = None,
    progress: Progress = lambda share: None,
) -> list[Result]:
    """All cells, and last of all their mean: so many worlds of its own for each workflow in each.

    The strategies see the same worlds. Intervals are over the worlds; the workflows are given.
    """
    if not workflows:
        raise InputError("there is no workflow to compare on")
    registry.strategy(strategy)  # which may be a wrong one
    names, planned = [strategy, *OTHERS], _planned(workflows, cells)
    units = [
        (c, w, r)
        for c in range(len(cells))
        for w, wf in enumerate(workflows)
        for r in range(worlds_of(wf, cells[c], worlds))
    ]

    def one(unit: int) -> list[tuple[float, ...]]:
        c, w, r = units[unit]
        of_its_own = seed + r * len(workflows) + w
        platform, known, truth = _world(workflows[w], cells[c], of_its_own, planned)
        rows: list[tuple[float, ...]] = []
        for name in names:
            run = simulate_run(workflows[w], platform, known, *registry.strategy(name), truth)
            rows.append((run.makespan, run.considered, run.replans, run.migrations))
        return rows

    strata: dict[tuple[int, int], list[list[tuple[float, ...]]]] = {}
    for (c, w, _), rows in zip(units, in_order(one, len(units), jobs, progress), strict=True):
        strata.setdefault((c, w), []).append(rows)
    tables = {key: np.array(rows, dtype=np.float64) for key, rows in strata.items()}
    found = [
        _result(cell, names, [table for (k, _), table in tables.items() if k == c])
        for c, cell in enumerate(cells)
    ]
    return [*found, _result(None, names, list(tables.values()))]


def worlds_of(workflow: Workflow, cell: Cell, worlds: int) -> int:
    """A quarter for large workflows, which cost most and vary least; more where machines die.

    What a machine takes with it is a matter of luck, much more than of strategy.
    """
    if workflow.n_tasks > LARGE:
        return -(-worlds // 4)
    return worlds * (LUCK if cell.events == "losses" else 1)


def _platform(cell: Cell) -> Platform:
    """Hosts of two processors, where there are more than two; mixed speeds from 0.5 to 2."""
    n = cell.processors
    speed = np.geomspace(0.5, 2.0, n) if cell.speeds == "mixed" else np.ones(n)
    hosts = [f"h{p // 2 if n > 2 else p}" for p in range(n)]
    speeds = np.random.default_rng(JOINS).permutation(speed).tolist()
    return Platform.build([Processor(f"p{p}", hosts[p], speeds[p]) for p in range(n)], NETWORK)


def _planned(workflows: Sequence[Workflow], cells: Sequence[Cell]) -> Planned:
    """The makespans to which the times of joins and losses refer."""
    platforms = {(cell.processors, cell.speeds): _platform(cell) for cell in cells}
    return {
        (*key, id(wf)): api.plan(wf, platform, "heft").makespan
        for key, platform in platforms.items()
        for wf in workflows
    }


def _world(
    workflow: Workflow, cell: Cell, seed: int, planned: Planned
) -> tuple[Platform, Estimates, Reality]:
    """Half of the processors join on the way, a quarter (one at least) die, or neither."""
    platform, lasts = _platform(cell), planned[cell.processors, cell.speeds, id(workflow)]
    n = cell.processors
    if cell.events == "joins":
        rng = np.random.default_rng([seed, JOINS])
        late = rng.permutation(n)[: n // 2]
        joins = np.zeros(n)
        joins[late] = lasts * rng.random(len(late))
        platform = replace(platform, joins=joins)
    known = Estimates.declared(workflow, platform)
    truth = reality.draw(workflow, platform, known, cell.qoi, seed)
    if cell.events == "losses":
        scenario = Scenario(failures=max(1, n // 4))
        truth = scenarios.with_scenario(truth, platform, scenario, lasts, seed)
    return platform, known, truth


def _result(cell: Cell | None, names: list[str], tables: list[FloatArray]) -> Result:
    """From worlds x strategies x columns for each workflow, which count alike."""
    means = np.mean([table.mean(axis=0) for table in tables], axis=0)
    return Result(
        cell,
        {
            name: _stratified([np.log(table[:, 0, 0] / table[:, s, 0]) for table in tables])
            for s, name in enumerate(names)
            if s > 0
        },
        {name: Load(*means[s, 1:].tolist()) for s, name in enumerate(names)},
    )


def _stratified(logs: list[FloatArray]) -> Mean:
    """The geometric mean and its 95% interval; worlds are drawn, workflows are not."""
    mean = float(np.mean([values.mean() for values in logs]))
    spreads = [float(values.var(ddof=1)) for values in logs if len(values) > 1]
    if not spreads:
        return Mean(math.exp(mean))
    usual = float(np.mean(spreads))  # of what was seen once only
    parts = [values.var(ddof=1) if len(values) > 1 else usual for values in logs]
    error = math.sqrt(sum(v / len(x) for v, x in zip(parts, logs, strict=True))) / len(logs)
    return Mean(*(math.exp(mean + k * Z * error) for k in (0, -1, 1)))
