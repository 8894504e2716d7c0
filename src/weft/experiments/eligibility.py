"""How many tasks are ready at each step: an order against FIFO, LIFO and GREEDY."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.arrays import FloatArray
from weft.ic import DISCIPLINES, Dag, heuristic_order, play

PLAYS = 50  # of each heuristic, as in the paper


@dataclass(frozen=True, eq=False)
class Curve:
    """E(0), ..., E(n), averaged over plays, and the normalised area of each play."""

    name: str
    profile: FloatArray
    areas: FloatArray

    @property
    def area(self) -> float:
        """The mean of the normalised areas."""
        return float(self.areas.mean())

    @property
    def deviation(self) -> float:
        """Their standard deviation."""
        if len(self.areas) < 2 or np.ptp(self.areas) == 0:  # which std() makes 1e-16 of
            return 0.0
        return float(self.areas.std(ddof=1))


def heuristic_curves(dag: Dag, plays: int = PLAYS, seed: int = 0) -> list[Curve]:
    """FIFO, LIFO and GREEDY with random ties, each played so many times."""
    return [_curve(dag, name, plays, seed) for name in DISCIPLINES]


def _curve(dag: Dag, name: str, plays: int, seed: int) -> Curve:
    rng = np.random.default_rng([seed, list(DISCIPLINES).index(name)])
    total, areas = np.zeros(dag.n + 1), np.empty(plays)
    for k in range(plays):
        played = play(dag, heuristic_order(dag, name, rng))
        total += played.profile
        areas[k] = played.normalised_area
    return Curve(name, total / plays, areas)
