"""Random graphs in layers (Topcuoglu, Hariri, Wu), and those of the Standard Task Graph set.

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

import math

import numpy as np
import numpy.typing as npt

from foreplan.arrays import IntArray
from foreplan.generators.graph import Graph, edge_list, family, numbered
from foreplan.generators.limits import (
    MAX_EDGES,
    MAX_TASKS,
    check_size,
    flag,
    number,
    positive,
    whole,
)

Keys = npt.NDArray[np.int64]


@family
def random_layered(
    rng: np.random.Generator,
    tasks: int = 100,
    alpha: float = 1.0,
    out_degree: int = 3,
    out_share: float = 0.0,
    jump: int = 1,
    single_ends: bool = False,
) -> Graph:
    """Random layered graph after Topcuoglu, Hariri, Wu (section 5.2): long or wide by alpha.

    The height is uniform around sqrt(v) / alpha (half of it more or less), the widths of the
    levels are uniform with the mean that makes v tasks in all: alpha sqrt(v) at the mean height.
    Every task below the first level has a predecessor in the level above. Every task above the
    last level has `out_degree` distinct successors, drawn from the next `jump` levels (0: from
    all later levels): fewer where these have fewer tasks, more where a narrow level must reach
    all of a wide one. With `out_share` s (Yu, Shi, section 4.2, where out_degree is a share of
    the tasks) each task draws its number of successors from 1 .. s v instead. `single_ends`
    makes the first and the last level one task each.
    """
    v = whole("tasks", tasks, 1, MAX_TASKS)
    jump = whole("jump", jump, 0, MAX_TASKS)
    degree = whole("out_degree", out_degree, 1, MAX_TASKS)
    share = number("out_share", out_share, 0, 1)
    widths = _widths(rng, v, positive("alpha", alpha), flag("single_ends", single_ends))
    first = np.concatenate([[0], np.cumsum(widths)])
    level = np.repeat(np.arange(len(widths)), widths)
    spine = _spine(rng, level, first)

    lowest = first[np.minimum(level + 1, len(widths))]
    reach = len(widths) if jump == 0 else jump
    size = first[np.minimum(level + 1 + reach, len(widths))] - lowest
    wanted = np.full(v, degree) if share == 0 else _shares(rng, v, share)
    wanted = np.maximum(np.minimum(wanted, size), np.bincount(spine // v, minlength=v))
    check_size("edges", int(wanted.sum()), MAX_EDGES)
    keys = _successors(rng, lowest, size, wanted, spine)
    producers, consumers = np.divmod(keys, v)
    return Graph(numbered("n", v), _int32(producers), _int32(consumers))


def _widths(rng: np.random.Generator, v: int, alpha: float, single_ends: bool) -> Keys:
    """The number of tasks of every level: at least one each, v in all."""
    mean_height = math.sqrt(v) / alpha
    least = min(v, 3 if single_ends else 2)  # one level would be a graph without edges
    height = int(np.clip(round(mean_height * (0.5 + rng.random())), least, v))
    weights = 1.0 - rng.random(height)
    if single_ends and height >= 3:
        weights[[0, -1]] = 0.0
    cuts = np.rint(np.cumsum(weights) / weights.sum() * (v - height)).astype(np.int64)
    widths: Keys = 1 + np.diff(cuts, prepend=0)
    return widths


def _shares(rng: np.random.Generator, v: int, share: float) -> Keys:
    """The numbers of successors when the most is a share of all tasks."""
    return rng.integers(1, max(1, round(share * v)), size=v, endpoint=True)


def _spine(rng: np.random.Generator, level: Keys, first: Keys) -> Keys:
    """One edge into every task below the first level, dealt out evenly to the level above.

    An edge is the key producer * v + consumer; the keys come sorted.
    """
    v = len(level)
    shuffled = np.lexsort((rng.random(v), level))  # within each level
    children = np.arange(first[1], v)
    above = level[children] - 1
    rank = children - first[above + 1]
    parents = shuffled[first[above] + rank % (first[above + 1] - first[above])]
    return np.sort(parents * v + children)


def _successors(
    rng: np.random.Generator, lowest: Keys, size: Keys, wanted: Keys, spine: Keys
) -> Keys:
    """All edges as sorted keys: `wanted` successors each from lowest .. lowest + size - 1.

    A task that wants most of its range draws the few that it leaves out.
    """
    v = len(lowest)
    more = wanted - np.bincount(spine // v, minlength=v)
    leave = size - wanted
    dense = leave < more
    drawn = _draw(rng, lowest, size, np.where(dense, leave, more), spine)
    few = ~dense[drawn // v]
    rows = np.flatnonzero(dense)
    ends = np.cumsum(size[rows])
    offsets = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - size[rows], size[rows])
    everything = np.repeat(rows * v + lowest[rows], size[rows]) + offsets
    kept = np.setdiff1d(everything, drawn[~few], assume_unique=True)
    return np.sort(np.concatenate([drawn[few], spine[~dense[spine // v]], kept]))


def _draw(rng: np.random.Generator, lowest: Keys, size: Keys, count: Keys, taken: Keys) -> Keys:
    """Keys of `count` distinct targets per task, none of them taken: drawn until all differ."""
    v = len(lowest)
    goal = np.where(count > 0, count + np.bincount(taken // v, minlength=v), 0)
    missing, kept, done = count, taken[count[taken // v] > 0], []
    while True:
        rows = np.repeat(np.arange(v), missing)
        if len(rows) == 0:
            break
        targets = lowest[rows] + rng.integers(0, size[rows])
        kept = np.sort(np.concatenate([kept, rows * v + targets]))
        kept = kept[np.diff(kept, prepend=-1) > 0]  # each once; faster here than np.unique
        owner = kept // v
        missing = np.maximum(goal - np.bincount(owner, minlength=v), 0)
        finished = missing[owner] == 0  # set aside, so that later rounds sort only the rest
        done.append(kept[finished])
        goal[missing == 0] = 0
        kept = kept[~finished]
    drawn = np.concatenate(done) if done else np.empty(0, dtype=np.int64)
    return np.setdiff1d(drawn, taken, assume_unique=True)


def _int32(values: Keys) -> IntArray:
    return values.astype(np.int32)


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
