"""Graphs of a given shape: chains, fork-joins, trees, grids, FFT, and the dags of IC-scheduling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from foreplan.arrays import IntArray
from foreplan.errors import InputError, unknown_name
from foreplan.generators.graph import Graph, edge_list, family, numbered
from foreplan.generators.limits import MAX_TASKS, check_size, whole

if TYPE_CHECKING:
    from foreplan.ic import Dag


@family
def fork_join(rng: np.random.Generator, stages: int = 3, width: int = 8) -> Graph:
    """Fork-join: in every stage one task feeds `width` others, which feed the next single task.

    A stage's join is the next stage's fork: 1 + stages (width + 1) tasks, 2 stages width edges.
    """
    stages = whole("stages", stages, 1)
    width = whole("width", width, 1)
    check_size("tasks", 1 + stages * (width + 1), MAX_TASKS)
    hub = np.arange(stages)[:, None] * (width + 1)
    work = hub + np.arange(1, width + 1)[None, :]
    fork = np.broadcast_to(hub, work.shape)
    producers, consumers = edge_list((fork, work), (work, fork + width + 1))
    names = ["hub0"]
    for stage in range(stages):
        names += [f"work{stage}_{i}" for i in range(width)]
        names.append(f"hub{stage + 1}")
    return Graph(names, producers, consumers)


@family
def chain(rng: np.random.Generator, tasks: int = 10) -> Graph:
    """Chain: every task waits for the one before."""
    n = whole("tasks", tasks, 1)
    return Graph(numbered("n", n), _range(0, n - 1), _range(1, n))


@family
def independent(rng: np.random.Generator, tasks: int = 10) -> Graph:
    """Independent tasks: a bag without edges; the CCR means nothing here."""
    n = whole("tasks", tasks, 1)
    return Graph(numbered("n", n), _range(0, 0), _range(0, 0))


def _range(start: int, stop: int) -> IntArray:
    return np.arange(start, stop, dtype=np.int32)


@family
def out_tree(rng: np.random.Generator, depth: int = 4, arity: int = 2, tasks: int = 0) -> Graph:
    """Out-tree: one root, every task feeds `arity` others, `depth` levels.

    With `tasks` = n instead of 0, the first n tasks of the tree, level by level.
    """
    n, arity = _size(depth, arity, tasks)
    children = np.arange(1, n)
    producers, consumers = edge_list(((children - 1) // arity, children))
    return Graph(numbered("n", n), producers, consumers)


@family
def in_tree(rng: np.random.Generator, depth: int = 4, arity: int = 2, tasks: int = 0) -> Graph:
    """In-tree: the out-tree turned round, every task reads `arity` others, the last is the root."""
    n, arity = _size(depth, arity, tasks)
    children = np.arange(1, n)
    producers, consumers = edge_list((n - 1 - children, n - 1 - (children - 1) // arity))
    return Graph(numbered("n", n), producers, consumers)


def _size(depth: int, arity: int, tasks: int) -> tuple[int, int]:
    """The number of tasks, and the arity: a full tree unless the number is given."""
    depth = whole("depth", depth, 1)
    arity = whole("arity", arity, 1)
    given = whole("tasks", tasks, 0)
    if given:
        return given, arity
    if arity == 1:
        return depth, arity
    total, level = 1, 1
    for _ in range(depth - 1):
        level *= arity
        total += level
        if total > MAX_TASKS:
            raise InputError(
                f"a tree of {depth} levels and arity {arity} has more than {MAX_TASKS:,} tasks",
                place="depth",
            )
    return total, arity


MAX_SIDE = 4_000  # 16 million tasks
MAX_MATRIX = 6_000  # 18 million tasks


@family
def laplace(rng: np.random.Generator, size: int = 10) -> Graph:
    """Laplace equation solver: an m x m grid, a diamond of wavefronts from corner to corner.

    Task (r, c) feeds (r + 1, c) and (r, c + 1): m^2 tasks, 2m(m - 1) edges, one entry, one exit.
    """
    m = whole("size", size, 1, MAX_SIDE)
    grid = np.arange(m * m, dtype=np.int32).reshape(m, m)
    producers, consumers = edge_list((grid[:-1], grid[1:]), (grid[:, :-1], grid[:, 1:]))
    names = [f"t{r}_{c}" for r in range(m) for c in range(m)]
    return Graph(names, producers, consumers)


@family
def gaussian(rng: np.random.Generator, size: int = 10) -> Graph:
    """Gaussian elimination of an m x m matrix (Topcuoglu, Hariri, Wu, section 5.3.1).

    In step k a pivot task feeds the updates of columns k + 1 .. m; the update of column j feeds
    whatever handles column j in step k + 1: (m^2 + m - 2) / 2 tasks, m^2 - m - 1 edges.
    """
    m = whole("size", size, 2, MAX_MATRIX)
    per_step = m - np.arange(m - 1)
    pivots = np.cumsum(per_step) - per_step
    step = np.repeat(np.arange(m - 1), per_step)
    task = np.arange(len(step))
    column = task - pivots[step] + step
    update = column > step
    goes_on = update & (step < m - 2)
    following = pivots[step[goes_on] + 1] + column[goes_on] - step[goes_on] - 1
    producers, consumers = edge_list(
        (pivots[step[update]], task[update]), (task[goes_on], following)
    )
    names = [f"t{k + 1}_{j + 1}" for k in range(m - 1) for j in range(k, m)]
    return Graph(names, producers, consumers)


MAX_POINTS = 1 << 19  # 11 million tasks


@family
def fft(rng: np.random.Generator, points: int = 16) -> Graph:
    """FFT of m points: a tree of 2m - 1 recursive calls, then m log2 m butterfly tasks.

    The tree's leaves feed the first of log2 m rows of butterflies; in row k, task i reads
    tasks i and i xor 2^(k-1) of the row before. One entry, m exits.
    """
    m = whole("points", points, 2, MAX_POINTS)
    if m & (m - 1):
        lower = 1 << (m.bit_length() - 1)
        raise InputError(
            f"must be a power of two ({lower} or {2 * lower}?), not {m}", place="points"
        )
    rows = m.bit_length() - 1
    calls = 2 * m - 1
    inner = np.arange(m - 1)
    row, column = np.divmod(np.arange(m * rows), m)
    reader = calls + np.arange(m * rows)
    before = m - 1 + row * m  # where the row before begins; row 0 reads the leaves
    producers, consumers = edge_list(
        (inner, 2 * inner + 1),
        (inner, 2 * inner + 2),
        (before + column, reader),
        (before + (column ^ (1 << row)), reader),
    )
    butterflies = [f"b{k}_{i}" for k in range(1, rows + 1) for i in range(m)]
    return Graph(numbered("r", calls) + butterflies, producers, consumers)


MOST_ROWS, MOST_LEVELS = 19, 6_000  # 10 and 18 million tasks
MOST_COMPOSED = 200_000


@family
def butterfly(rng: np.random.Generator, rows: int = 4) -> Graph:
    """FFT dag: rows + 1 levels of 2^rows tasks, each reading two of the level before.

    It is composed of Q(2) alone. (`fft` has a tree of recursive calls before it.)
    """
    from foreplan.ic.shapes import butterfly as shape

    return _graph(shape(whole("rows", rows, 1, MOST_ROWS)))


@family
def evolving_mesh(rng: np.random.Generator, levels: int = 10) -> Graph:
    """Mesh that grows: level k has k tasks, and each task feeds two of the next."""
    from foreplan.ic.shapes import evolving_mesh as shape

    return _graph(shape(whole("levels", levels, 1, MOST_LEVELS)))


@family
def reduction_mesh(rng: np.random.Generator, levels: int = 10) -> Graph:
    """Mesh that shrinks: the growing one turned round."""
    from foreplan.ic.shapes import reduction_mesh as shape

    return _graph(shape(whole("levels", levels, 1, MOST_LEVELS)))


@family
def composition(rng: np.random.Generator, blocks: str = "wnm", tasks: int = 300) -> Graph:
    """Random composition of building blocks that is sure to have an IC-optimal schedule.

    Of W-dags ("w"), M-dags ("m"), W-dags, then N-dags, then M-dags ("wnm"), or copies of Q(2)
    ("q2"); about so many tasks.
    """
    from foreplan.ic.shapes import COMPOSITIONS, compose

    if not isinstance(blocks, str) or blocks not in COMPOSITIONS:
        raise InputError(unknown_name("composition", str(blocks), COMPOSITIONS), place="blocks")
    return _graph(compose(blocks, rng, whole("tasks", tasks, 1, MOST_COMPOSED)).dag)


def _graph(dag: Dag) -> Graph:
    """The dag, whose vertices stand in a topological order, as a graph."""
    return Graph(numbered("n", dag.n), *edge_list((dag.tails, dag.child)))
