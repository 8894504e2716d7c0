"""The tables of the GTP experiment: means over the graphs, and paired gains, with 95% intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np

from foreplan.arrays import FloatArray
from foreplan_reproductions.gtp.cases import MAIN_CCR
from foreplan_reproductions.gtp.runs import DLS, DLS_PEAK, GTP, GTPC, GTPCR, GTPR, HEFT, METRICS
from foreplan_reproductions.gtp.units import BY_PLANNER, CALM, FAILURE, Settings, Unit, units
from foreplan_reproductions.reports import Figure, mean_of

NSL, OVERHEAD = "nsl", "overhead"
COUNTED = (  # in the order of a row's columns
    "remappings",
    "migrated",
    "restarts",
    "copies",
    "lost",
    "resent",
    OVERHEAD,
    "rewound",
    "levels",
)
PUBLISHED = {  # gains in %: the text of section 7
    (CALM, 0.4, GTPC, HEFT): 14.0,
    (CALM, 0.4, GTPC, DLS): 7.0,
    (BY_PLANNER, 0.4, GTPC, DLS_PEAK): 7.0,
    (CALM, 0.4, GTPC, GTP): 3.0,
    (FAILURE, 0.2, GTPCR, GTPR): 5.0,
}


class Key(NamedTuple):
    """Where figures come from: a part, a size and CCR, and the value of what is varied there."""

    part: str
    size: int
    ccr: float
    value: float


@dataclass(frozen=True)
class Row:
    """The means of one strategy at one point.

    Lost is in % of the work, resent of the data that had to be sent, overhead of both together.
    """

    part: str
    size: int
    ccr: float
    value: float
    strategy: str
    graphs: int
    nsl: float
    nsl_margin: float
    remappings: float
    migrated: float
    restarts: float
    copies: float
    lost: float
    resent: float
    overhead: float
    rewound: float
    levels: float


@dataclass(frozen=True)
class Gain:
    """By how much one strategy's NSL is below another's, in %: on average, and by graph."""

    part: str
    size: int
    ccr: float
    value: float
    strategy: str
    over: str
    graphs: int
    nsl: float
    over_nsl: float
    gain: float
    margin: float
    best_of_ten: float
    maximum: float
    published: float


class Best(NamedTuple):
    """Gains by graph in %: the greatest of ten that are drawn, in the mean, and of all."""

    of_ten: float
    of_all: float


Sample = dict[str, FloatArray]  # "strategy|metric" -> one figure per graph


@dataclass(frozen=True)
class Tables:
    """Everything that was measured, by key."""

    samples: dict[Key, Sample]
    main_size: int

    def main(self, part: str, value: float) -> Key:
        """The key of the main size and CCR."""
        return Key(part, self.main_size, MAIN_CCR, value)

    def keys(self, part: str, size: int = 0, ccr: float = 0.0) -> list[Key]:
        """All keys of a part, in order; of one size or CCR, if given."""
        return sorted(
            key
            for key in self.samples
            if key.part == part and size in (0, key.size) and ccr in (0.0, key.ccr)
        )

    def sweep(self, part: str) -> list[Key]:
        """All keys of a part by what is varied."""
        return sorted(self.keys(part), key=lambda key: key.value)

    def strategies(self, key: Key) -> list[str]:
        """All that were run there."""
        return [name.partition("|")[0] for name in self.samples[key] if name.endswith("|nsl")]

    def mean(self, key: Key, strategy: str, metric: str = NSL) -> Figure:
        """The mean over the graphs."""
        return mean_of(self.samples[key][f"{strategy}|{metric}"])

    def gain(self, key: Key, strategy: str, over: str, metric: str = NSL) -> Figure:
        """By how much less a strategy has of something than another, in % of the other's mean."""
        return self.pooled([key], strategy, over, metric)

    def pooled(self, keys: list[Key], strategy: str, over: str, metric: str) -> Figure:
        """The same over several keys that have the same graphs."""
        mine, base = (
            np.sum([self.samples[key][f"{name}|{metric}"] for key in keys], axis=0)
            for name in (strategy, over)
        )
        n, whole = len(base), float(base.mean())
        if whole == 0:
            return Figure(0.0 if not mine.any() else -np.inf, 0.0, n)
        ratio = float(mine.mean()) / whole
        return Figure(100 * (1 - ratio), 100 * mean_of(mine - ratio * base).margin / whole, n)

    def best(self, key: Key, strategy: str, over: str) -> Best:
        """By how much a strategy is better than another where it does best."""
        mine, base = (self.samples[key][f"{name}|{NSL}"] for name in (strategy, over))
        gains = np.sort(100 * (1 - mine / base))
        n, drawn = len(gains), min(10, len(gains))
        # how many draws have the k-th gain for their greatest
        ways = np.array([comb(k, drawn - 1) for k in range(n)], dtype=np.float64)
        return Best(float(ways @ gains) / comb(n, drawn), float(gains[-1]))

    def slope(self, part: str, strategy: str, over: str) -> Figure:
        """How much the gain grows per 10% of variability, in points: a line fitted per graph."""
        keys = self.keys(part, self.main_size, MAIN_CCR)
        bounds = np.array([key.value for key in keys])
        rates = np.array(
            [
                1 - self.samples[k][f"{strategy}|{NSL}"] / self.samples[k][f"{over}|{NSL}"]
                for k in keys
            ]
        )
        centred = bounds - bounds.mean()
        return mean_of(100 * 0.1 * (centred @ rates) / (centred @ centred))

    def rows(self) -> Iterator[Row]:
        """All means."""
        for key in sorted(self.samples):
            for strategy in self.strategies(key):
                nsl = self.mean(key, strategy)
                means = [self.mean(key, strategy, metric).value for metric in COUNTED]
                yield Row(*key, strategy, nsl.graphs, nsl.value, nsl.margin, *means)

    def gains(self) -> Iterator[Gain]:
        """GTP/c over the others wherever they met, and GTP/c/r over GTP/r."""
        for key in sorted(self.samples):
            found = self.strategies(key)
            pairs = [(GTPC, over) for over in (HEFT, DLS, DLS_PEAK, GTP)] + [(GTPCR, GTPR)]
            for mine, over in pairs:
                if mine in found and over in found:
                    yield self._gain(key, mine, over)

    def _gain(self, key: Key, mine: str, over: str) -> Gain:
        value, margin, graphs = self.gain(key, mine, over)
        nsls = (self.mean(key, mine).value, self.mean(key, over).value)
        main = key[1:3] == (self.main_size, MAIN_CCR)
        published = PUBLISHED.get((key.part, key.value, mine, over), np.nan) if main else np.nan
        best = self.best(key, mine, over)
        return Gain(*key, mine, over, graphs, *nsls, value, margin, *best, published)


def tables(settings: Settings, done: Mapping[int, dict[str, list[float]]]) -> Tables:
    """The figures of all units, by what they have in common."""
    lists: dict[Key, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for unit in units(settings):
        for key, name, value in _figures(unit, done[unit.number]):
            lists[key][name].append(value)
    samples = {
        key: {name: np.array(values, dtype=np.float64) for name, values in sample.items()}
        for key, sample in lists.items()
    }
    return Tables(samples, settings.main_size)


def _figures(unit: Unit, columns: dict[str, list[float]]) -> Iterator[tuple[Key, str, float]]:
    """All figures of a unit; the NSL, and what is thrown away in % of the work."""
    [path], [work] = columns["path"], columns["work"]
    for k, point in enumerate(unit.points):
        key = Key(unit.part, unit.graph.size, unit.graph.ccr, point.value)
        for strategy in point.specs:
            found = {metric: columns[f"{strategy}|{metric}"][k] for metric in METRICS}
            yield key, f"{strategy}|{NSL}", found.pop("makespan") / path
            wasted, needed = found["lost"] + found["resent"], found.pop("needed")
            found[OVERHEAD] = 100 * wasted / (work + needed)
            found["lost"] *= 100 / work
            found["resent"] *= 100 / needed if needed > 0 else 0.0
            for metric, value in found.items():
                yield key, f"{strategy}|{metric}", value
