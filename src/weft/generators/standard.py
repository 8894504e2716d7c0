"""Random graphs by the four methods of the Standard Task Graph set.

Tobita, Kasahara: A standard task graph set for fair evaluation of multiprocessor scheduling
algorithms. Every pair of tasks that may have an edge has one with the same probability, whatever
else it has: a task without predecessors is an entry, one without successors an exit, and late
tasks have more predecessors than early ones. So it is in the set's own files, for all four
methods: `samepred` and `layrpred` give the mean over the tasks, from which the probability
follows. The defaults lie in the middle of these files: probabilities from 0.05 to 0.2, means from
1 to 19 predecessors, and ten tasks to a layer. `dummies` adds their two dummy tasks: an entry
before all entries and an exit after all exits, of cost 0, and with edges that carry nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.generators.graph import Graph, edge_list, family, numbered
from weft.generators.limits import MAX_EDGES, MAX_TASKS, check_size, flag, number, whole

Counts = npt.NDArray[np.int64]

TASKS, PROBABILITY, PREDECESSORS = 100, 0.12, 10.0
LAYER_WIDTH = 10  # tasks, in the mean, where the number of layers is not given


@family
def sameprob(
    rng: np.random.Generator,
    tasks: int = TASKS,
    probability: float = PROBABILITY,
    dummies: bool = False,
) -> Graph:
    """Standard task graph: every two tasks have an edge with the same probability.

    The tasks are numbered, and an edge leads from the lower number to the higher.
    """
    earlier = _all_earlier(tasks)
    return _graph(rng, earlier, number("probability", probability, 0, 1), dummies)


@family
def samepred(
    rng: np.random.Generator,
    tasks: int = TASKS,
    predecessors: float = PREDECESSORS,
    dummies: bool = False,
) -> Graph:
    """Standard task graph: as sameprob, with a mean number of predecessors instead.

    The mean is over all tasks. Where there are too few tasks for it, all pairs have an edge.
    """
    earlier = _all_earlier(tasks)
    return _graph(rng, earlier, _probability(earlier, predecessors), dummies)


@family
def layrprob(
    rng: np.random.Generator,
    tasks: int = TASKS,
    probability: float = PROBABILITY,
    layers: int = 0,
    dummies: bool = False,
) -> Graph:
    """Standard task graph in layers: tasks of unlike layers have an edge with one probability.

    Each task picks its layer at random; one that none picks is no layer. Edges lead from any
    layer to any later one. 0 layers: one for every ten tasks.
    """
    earlier = _earlier_layers(rng, tasks, layers)
    return _graph(rng, earlier, number("probability", probability, 0, 1), dummies)


@family
def layrpred(
    rng: np.random.Generator,
    tasks: int = TASKS,
    predecessors: float = PREDECESSORS,
    layers: int = 0,
    dummies: bool = False,
) -> Graph:
    """Standard task graph in layers: as layrprob, with a mean number of predecessors instead.

    The mean is over all tasks, those of the first layer too. Where there are too few pairs for
    it, all have an edge.
    """
    earlier = _earlier_layers(rng, tasks, layers)
    return _graph(rng, earlier, _probability(earlier, predecessors), dummies)


def _all_earlier(tasks: int) -> Counts:
    """How many tasks may precede each: all before it."""
    return np.arange(whole("tasks", tasks, 1, MAX_TASKS), dtype=np.int64)


def _earlier_layers(rng: np.random.Generator, tasks: int, layers: int) -> Counts:
    """How many tasks may precede each: those of the layers before its own; layer by layer."""
    n = whole("tasks", tasks, 1, MAX_TASKS)
    wanted = whole("layers", layers, 0, MAX_TASKS)
    if wanted == 0:  # two at least: one layer would be a graph without edges
        wanted = max(2, round(n / LAYER_WIDTH))
    widths = np.bincount(rng.integers(0, wanted, size=n), minlength=wanted)
    return np.repeat(np.cumsum(widths) - widths, widths)


def _probability(earlier: Counts, predecessors: float) -> float:
    """The probability that gives the tasks this many predecessors in the mean."""
    edges = number("predecessors", predecessors, 0, MAX_TASKS) * len(earlier)
    return min(1.0, edges / max(1, int(earlier.sum())))


def _graph(rng: np.random.Generator, earlier: Counts, probability: float, dummies: bool) -> Graph:
    """Task j gets each of the first earlier[j] tasks as a predecessor with the probability."""
    ends = np.cumsum(earlier)
    pairs = int(ends[-1])
    check_size("edges", round(probability * pairs), MAX_EDGES)
    chosen = _choose(rng, pairs, probability)
    consumers = np.searchsorted(ends, chosen, side="right")
    producers = chosen - (ends - earlier)[consumers]
    names = numbered("n", len(earlier))
    if flag("dummies", dummies):
        return _between_dummies(names, producers, consumers)
    return Graph(names, *edge_list((producers, consumers)))


def _between_dummies(names: list[str], producers: Counts, consumers: Counts) -> Graph:
    """The graph with one entry before all its entries, and one exit after all its exits."""
    n = len(names)
    entries = 1 + np.flatnonzero(np.bincount(consumers, minlength=n) == 0)
    exits = 1 + np.flatnonzero(np.bincount(producers, minlength=n) == 0)
    edges = edge_list(
        (np.zeros_like(entries), entries),
        (producers + 1, consumers + 1),
        (exits, np.full_like(exits, n + 1)),
    )
    return Graph(["entry", *names, "exit"], *edges, dummies=True)


def _choose(rng: np.random.Generator, count: int, probability: float) -> Counts:
    """Each of 0 .. count - 1 with the probability, in order: the gaps between them are drawn."""
    if probability == 0:
        return np.empty(0, dtype=np.int64)
    mean = count * probability
    batch = int(mean + 4 * np.sqrt(mean)) + 16  # enough but once in many thousand times
    chosen, last = [np.empty(0, dtype=np.int64)], -1
    while last < count:
        gaps = np.minimum(rng.geometric(probability, size=batch), count + 1)  # no overflow
        chosen.append(last + np.cumsum(gaps))
        last = int(chosen[-1][-1])
    found = np.concatenate(chosen)
    return found[found < count]
