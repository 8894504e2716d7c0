"""Makespans among volunteers: by workflow, and what changes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weft.experiments.gtp_tables import Figure
from weft.experiments.ic_fits import mean_of
from weft.experiments.ic_plays import ICO, Columns
from weft.experiments.ic_units import VOLUNTEERS, Settings, units
from weft.experiments.ic_volunteers import STRATEGIES, Volunteers

USUAL = ""  # not a sweep
ALIKE = 1.0  # %: what differs by less is a draw


@dataclass(frozen=True)
class RunRow:
    """One run: its makespan in spans, and the attempts that were lost."""

    workflow: str
    tasks: int
    world: int
    sweep: str
    processors: int
    churn: float
    error: float
    seen: bool
    strategy: str
    makespan: float
    lost: int

    @property
    def point(self) -> tuple[str, int, int, float, bool]:
        """What two runs in the same world have in common; estimates do not change a world."""
        return self.workflow, self.world, self.processors, self.churn, self.seen


def runs_of(settings: Settings, done: Mapping[int, Columns]) -> Iterator[RunRow]:
    """All runs among volunteers."""
    for unit in units(settings):
        if unit.part == VOLUNTEERS and unit.volunteers is not None:
            yield from _rows(unit.volunteers, unit.sweep, done[unit.number])


def _rows(case: Volunteers, sweep: str, columns: Columns) -> Iterator[RunRow]:
    for name in STRATEGIES:
        if f"{name}|makespan" in columns:
            yield RunRow(
                case.workflow, int(columns["n"][0]), case.world, sweep, case.processors,
                case.churn, case.error, case.seen, name, columns[f"{name}|makespan"][0],
                int(columns[f"{name}|lost"][0]),
            )  # fmt: skip


def usual(runs: Sequence[RunRow], workflow: str = "") -> list[RunRow]:
    """The runs on the usual platform, of one workflow or of all."""
    return [r for r in runs if r.sweep == USUAL and workflow in ("", r.workflow)]


def workflows(runs: Sequence[RunRow]) -> list[str]:
    """The workflows, as they were run."""
    return list(dict.fromkeys(run.workflow for run in runs))


def makespan(runs: Sequence[RunRow], strategy: str) -> Figure:
    """The mean over runs."""
    return mean_of(np.array([run.makespan for run in runs if run.strategy == strategy]))


def against(runs: Sequence[RunRow], strategy: str, base: Sequence[RunRow] | None = None) -> Figure:
    """How much longer a strategy takes than `ico` in the same world, in % of the latter.

    `base` are the runs among which that of `ico` is found: all of them, if it is not given.
    """
    mine = {run.point: run.makespan for run in base or runs if run.strategy == ICO}
    theirs = [run for run in runs if run.strategy == strategy and run.point in mine]
    return mean_of(np.array([100 * (run.makespan / mine[run.point] - 1) for run in theirs]))


def winners(runs: Sequence[RunRow]) -> list[str]:
    """The strategies with the least mean makespan, and those that are alike."""
    found = {name: makespan(runs, name) for name in STRATEGIES}
    means = {name: figure.value for name, figure in found.items() if figure.graphs}
    if not means:
        return []
    least = min(means.values())
    return [name for name, value in means.items() if value <= least * (1 + ALIKE / 100)]
