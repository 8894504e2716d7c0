"""The game played in the slow and obvious way: all sets of executed vertices of a small dag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from foreplan.ic import Dag

Arcs = list[tuple[int, int]]


def dag_of(n: int, arcs: Arcs) -> Dag:
    return Dag.from_arcs(n, [a for a, _ in arcs], [b for _, b in arcs])


def arcs_of(dag: Dag) -> set[tuple[int, int]]:
    return set(zip(dag.tails.tolist(), dag.child.tolist(), strict=True))


def all_dags(n: int) -> Iterator[Arcs]:
    """All dags of n vertices that are numbered in a topological order."""
    pairs = list(combinations(range(n), 2))
    for bits in range(1 << len(pairs)):
        yield [pair for i, pair in enumerate(pairs) if bits >> i & 1]


def shuffled(n: int, arcs: Arcs, rng: np.random.Generator) -> Arcs:
    """The same dag with other numbers."""
    number = rng.permutation(n).tolist()
    return [(number[a], number[b]) for a, b in arcs]


def random_dag(rng: np.random.Generator, least: int, most: int, sorts: int = 3) -> tuple[int, Arcs]:
    """One of three sorts: two rows, few parents, or any arcs; of the first of these sorts only.

    Of those in two rows more have no IC-optimal schedule.
    """
    n, sort, p = int(rng.integers(least, most + 1)), int(rng.integers(sorts)), rng.random() * 0.6
    if sort == 2:
        arcs = [pair for pair in combinations(range(n), 2) if rng.random() < p]
    elif sort == 1:
        drawn = {(int(rng.integers(j)), j) for j in range(1, n) for _ in range(rng.integers(3))}
        arcs = sorted(drawn)
    else:
        s = max(1, n // 2)
        drawn = {(int(rng.integers(s)), j) for j in range(s, n) for _ in range(rng.integers(1, 4))}
        arcs = sorted(drawn)
    return n, shuffled(n, arcs, rng)


@st.composite
def dags(draw: st.DrawFn, least: int = 1, most: int = 9) -> tuple[int, Arcs]:
    """Dags that Hypothesis can make smaller."""
    n = draw(st.integers(least, most))
    pairs = list(combinations(range(n), 2))
    return n, [pair for pair in pairs if draw(st.booleans())]


class Twin:
    """Every set of executed vertices, step by step."""

    def __init__(self, n: int, arcs: Arcs) -> None:
        self.n = n
        self.parents = [{a for a, b in arcs if b == v} for v in range(n)]
        self.best: list[int] = []  # the most ELIGIBLE vertices after each step
        self.exists = True  # whether one schedule has the most after every step
        self.most_area = 0
        self._explore()

    def eligible(self, done: frozenset[int]) -> list[int]:
        return [v for v in range(self.n) if v not in done and self.parents[v] <= done]

    def _explore(self) -> None:
        layer, optimal = {frozenset[int](): 0}, {frozenset[int]()}
        for _ in range(self.n + 1):
            eligible = {done: self.eligible(done) for done in layer}
            self.best.append(max(len(able) for able in eligible.values()))
            optimal = {done for done in optimal if len(eligible[done]) == self.best[-1]}
            following: dict[frozenset[int], int] = {}
            for done, area in layer.items():
                total = area + len(eligible[done])
                self.most_area = max(self.most_area, total)
                for v in eligible[done]:
                    more = done | {v}
                    following[more] = max(following.get(more, 0), total)
            self.exists = self.exists and bool(optimal)
            optimal = {done | {v} for done in optimal for v in eligible[done]}
            layer = following

    def profile(self, order: Sequence[int]) -> list[int]:
        done: frozenset[int] = frozenset()
        profile = [len(self.eligible(done))]
        for v in order:
            assert v in self.eligible(done)
            done |= {int(v)}
            profile.append(len(self.eligible(done)))
        return profile
