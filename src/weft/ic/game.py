"""The IC Pebble Game: plays of an order, and batched plays of a discipline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.arrays import IntArray, frozen, sealed
from weft.errors import InputError, unknown_name
from weft.ic.dag import Dag
from weft.kernels import pebbles

DISCIPLINES = {"fifo": pebbles.FIFO, "lifo": pebbles.LIFO, "greedy": pebbles.GREEDY}
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
    waiting = dag.indegree.copy()
    profile = pebbles.profile_of(dag.child_ptr, dag.child, waiting, listed)
    if len(profile) and profile.min() < 0:
        step = int(np.argmin(profile))
        raise InputError(f"step {step} executes vertex {listed[step - 1]}, which is not ELIGIBLE")
    return Play(listed, sealed(profile))


def heuristic_order(dag: Dag, discipline: str, rng: np.random.Generator) -> IntArray:
    """The order in which FIFO, LIFO or GREEDY executes a dag (section 3.2), with random ties."""
    return _handed_out(dag, _discipline(discipline), _line(dag, rng), NO_REQUESTS)[0]


def listed_order(dag: Dag, line: npt.ArrayLike) -> IntArray:
    """The order of a play that always executes, of what is ELIGIBLE, the first in the line."""
    listed: IntArray = frozen(line, np.int32)
    rows = dag.child_ptr, dag.child, dag.indegree.copy()
    return pebbles.follow(*rows, places(listed), listed)


def places(order: IntArray) -> IntArray:
    """The place of each vertex in an order."""
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place


def heuristic_phases(
    dag: Dag, discipline: str, rng: np.random.Generator, requests: npt.ArrayLike
) -> int:
    """How many polls FIFO, LIFO or GREEDY need when so many clients come to each of them."""
    return _phases(dag, _discipline(discipline), _line(dag, rng), frozen(requests, np.int32))


def order_phases(dag: Dag, order: npt.ArrayLike, requests: npt.ArrayLike) -> int:
    """How many polls it takes to execute a dag by a list: of what is ELIGIBLE, the first listed."""
    line = frozen(order, np.int32)
    return _phases(dag, pebbles.LISTED, line, frozen(requests, np.int32))


def request_sizes(rng: np.random.Generator, mean: float, count: int) -> IntArray:
    """How many clients come to each of `count` polls: exponential, rounded up, so at least 1."""
    # the ceiling of an exponential variable is geometric; this scale gives it the mean asked for
    scale = -1.0 / np.log1p(-1.0 / mean) if mean > 1 else 0.0
    drawn = np.ceil(rng.exponential(scale, count)) if scale else np.ones(count)
    return sealed(np.clip(drawn, 1, np.iinfo(np.int32).max).astype(np.int32))


def _discipline(name: str) -> int:
    if name not in DISCIPLINES:
        raise InputError(unknown_name("heuristic", name, DISCIPLINES))
    return DISCIPLINES[name]


def _line(dag: Dag, rng: np.random.Generator) -> IntArray:
    """All vertices by nonincreasing outdegree, equals in random order."""
    return np.lexsort((rng.permutation(dag.n), -dag.outdegree)).astype(np.int32)


def _phases(dag: Dag, discipline: int, line: IntArray, requests: IntArray) -> int:
    done, polls = 0, 0
    if len(requests):
        order, polls = _handed_out(dag, discipline, line, requests)
        done = len(order)
    if done < dag.n:
        raise InputError(
            f"after {polls} polls {dag.n - done} of {dag.n} vertices are not executed; "
            "give more requests"
        )
    return polls


def _handed_out(
    dag: Dag, discipline: int, line: IntArray, requests: IntArray
) -> tuple[IntArray, int]:
    rows = dag.child_ptr, dag.child, dag.indegree.copy()
    arguments = *rows, discipline, places(line), line, requests
    return pebbles.play_batches(*arguments)
