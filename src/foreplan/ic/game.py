"""The IC Pebble Game: plays of an order, of disciplines in batches, and their mean curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foreplan.arrays import FloatArray, IntArray, frozen, sealed
from foreplan.errors import InputError, unknown_name
from foreplan.ic.dag import Dag, places
from foreplan.ic.kernels import pebbles

DISCIPLINES = {
    "fifo": pebbles.FIFO,
    "lifo": pebbles.LIFO,
    "greedy": pebbles.GREEDY,
    "hops": pebbles.LISTED,  # by the longest path, in tasks, that waits for each
}
NO_REQUESTS = frozen([], np.int32)


@dataclass(frozen=True, eq=False)
class Play:
    """One play of the game: the order of the executions, and E(0), ..., E(n)."""

    order: IntArray
    profile: IntArray

    @property
    def area(self) -> int:
        """The sum of E(t) over t = 0 .. n."""
        return int(self.profile.sum(dtype=np.int64))

    @property
    def normalised_area(self) -> float:
        """The area over n: the average number of ELIGIBLE vertices (equation 4.1)."""
        return self.area / max(1, len(self.order))


def play(dag: Dag, order: npt.ArrayLike) -> Play:
    """Execute the vertices in this order; an order that breaks a rule is an InputError."""
    listed = frozen(order, np.int32)
    if len(listed) != dag.n or not np.array_equal(np.sort(listed), np.arange(dag.n)):
        raise InputError(f"an order of this dag must hold each of 0 .. {dag.n - 1} once")
    profile = pebbles.profile_of(dag.child_ptr, dag.child, dag.indegree, listed)
    if len(profile) and profile.min() < 0:
        step = int(np.argmin(profile))
        raise InputError(f"step {step} executes vertex {listed[step - 1]}, which is not ELIGIBLE")
    return Play(listed, sealed(profile))


def heuristic_order(dag: Dag, discipline: str, rng: np.random.Generator) -> IntArray:
    """The order in which FIFO, LIFO or GREEDY executes a dag (section 3.2), with random ties.

    HOPS, which is not the paper's, executes first what the longest path waits for.
    """
    return _handed_out(dag, *_discipline(dag, discipline, rng), NO_REQUESTS)[0]


def listed_order(dag: Dag, ranking: npt.ArrayLike) -> IntArray:
    """The order of a play that always executes, of what is ELIGIBLE, the first by a ranking."""
    listed: IntArray = frozen(ranking, np.int32)
    return pebbles.follow(dag.child_ptr, dag.child, dag.indegree, places(listed), listed)


def heuristic_phases(
    dag: Dag, discipline: str, rng: np.random.Generator, requests: npt.ArrayLike
) -> int:
    """How many polls a discipline needs when so many clients come to each of them."""
    return _phases(dag, *_discipline(dag, discipline, rng), frozen(requests, np.int32))


def order_phases(dag: Dag, order: npt.ArrayLike, requests: npt.ArrayLike) -> int:
    """How many polls it takes to execute a dag by a list: of what is ELIGIBLE, the first listed."""
    ranking = frozen(order, np.int32)
    return _phases(dag, pebbles.LISTED, ranking, frozen(requests, np.int32))


def request_sizes(rng: np.random.Generator, mean: float, count: int) -> IntArray:
    """How many clients come to each of `count` polls: exponential, rounded up, so at least 1."""
    # the ceiling of an exponential variable is geometric; this scale gives it the mean asked for
    scale = -1.0 / np.log1p(-1.0 / mean) if mean > 1 else 0.0
    drawn = np.ceil(rng.exponential(scale, count)) if scale else np.ones(count)
    return sealed(np.clip(drawn, 1, np.iinfo(np.int32).max).astype(np.int32))


def _discipline(dag: Dag, name: str, rng: np.random.Generator) -> tuple[int, IntArray]:
    """A discipline, and its list: by nonincreasing outdegree, for HOPS by paths before that."""
    if name not in DISCIPLINES:
        raise InputError(unknown_name("heuristic", name, DISCIPLINES))
    keys = (-dag.outdegree, -dag.hops) if name == "hops" else (-dag.outdegree,)
    ranking = np.lexsort((rng.permutation(dag.n), *keys)).astype(np.int32)
    return DISCIPLINES[name], ranking


def _phases(dag: Dag, discipline: int, ranking: IntArray, requests: IntArray) -> int:
    done, polls = 0, 0
    if len(requests):
        order, polls = _handed_out(dag, discipline, ranking, requests)
        done = len(order)
    if done < dag.n:
        raise InputError(
            f"after {polls} polls {dag.n - done} of {dag.n} vertices are not executed; "
            "give more requests"
        )
    return polls


def _handed_out(
    dag: Dag, discipline: int, ranking: IntArray, requests: IntArray
) -> tuple[IntArray, int]:
    rows = dag.child_ptr, dag.child, dag.indegree
    return pebbles.play_batches(*rows, discipline, places(ranking), ranking, requests)


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
    """FIFO, LIFO, GREEDY and HOPS with random ties, each played so many times."""
    return [_curve(dag, name, plays, seed) for name in DISCIPLINES]


def _curve(dag: Dag, name: str, plays: int, seed: int) -> Curve:
    rng = np.random.default_rng([seed, list(DISCIPLINES).index(name)])
    total, areas = np.zeros(dag.n + 1), np.empty(plays)
    for k in range(plays):
        played = play(dag, heuristic_order(dag, name, rng))
        total += played.profile
        areas[k] = played.normalised_area
    return Curve(name, total / plays, areas)
