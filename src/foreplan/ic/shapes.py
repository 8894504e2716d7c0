"""Dags to try: FFT, meshes, trees, and compositions of blocks (Hall, Rosenberg, Venkataramani).

The familiar ones are those of figure 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np

from foreplan.arrays import IntArray, frozen
from foreplan.errors import InputError, unknown_name
from foreplan.ic.dag import Dag

MOST_VERTICES = 20_000_000


def butterfly(rows: int) -> Dag:
    """The FFT dag of 2^rows points: rows + 1 levels of them, joined by copies of Q(2)."""
    points = 1 << _whole("rows", rows, 0, 20)
    row, column = np.divmod(np.arange(points * rows), max(1, points))
    here = row * points + column
    following = (row + 1) * points
    tails = np.concatenate([here, here])
    heads = np.concatenate([following + column, following + (column ^ (1 << row))])
    return Dag.from_arcs(points * (rows + 1), tails, heads)


def evolving_mesh(levels: int) -> Dag:
    """A 2-dimensional mesh that grows: level k has k vertices, each with two children."""
    _whole("levels", levels, 1, 6_000)
    level, place = np.tril_indices(levels - 1)
    here = level * (level + 1) // 2 + place
    below = here + level + 1
    tails, heads = np.concatenate([here, here]), np.concatenate([below, below + 1])
    return Dag.from_arcs(levels * (levels + 1) // 2, tails, heads)


def reduction_mesh(levels: int) -> Dag:
    """A 2-dimensional mesh that shrinks: the growing one turned round."""
    return _turned(evolving_mesh(levels))


def expansive_tree(n: int, arity: int = 2) -> Dag:
    """A tree of n vertices that grows from its root, filled level by level."""
    _whole("n", n, 1, MOST_VERTICES)
    _whole("arity", arity, 1, MOST_VERTICES)
    children = np.arange(1, n)
    return Dag.from_arcs(n, (children - 1) // arity, children)


def reductive_tree(n: int, arity: int = 2) -> Dag:
    """A tree of n vertices that shrinks to its root: the growing one turned round."""
    return _turned(expansive_tree(n, arity))


def _turned(dag: Dag) -> Dag:
    """All arcs the other way, and the vertices numbered from the other end."""
    return Dag.from_arcs(dag.n, dag.n - 1 - dag.child, dag.n - 1 - dag.tails)


def _whole(name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise InputError(f"must be from {least:,} to {most:,}", place=name)
    return value


# Random compositions of building blocks that are sure to have an IC-optimal schedule.
#
# Blocks are drawn, put in an order of priority, and composed: neighbours in the order, chosen at
# random, until one dag is left. Theorem 2.1 then gives an IC-optimal schedule, whatever merged
# (Hall, Rosenberg, Venkataramani, section 4.1.3).

Arcs = list[tuple[int, int]]  # of a block: its source, its sink, each from 0
Generator = np.random.Generator


@dataclass(frozen=True)
class Sizes:
    """The largest blocks that are drawn: W(a,d) and M(a,d), N(s)."""

    a: int = 4
    d: int = 5
    s: int = 6


@dataclass(frozen=True)
class Block:
    """A building block: its sources in IC-optimal order, and its arcs."""

    sources: int
    sinks: int
    arcs: Arcs


@dataclass(frozen=True, eq=False)
class Composition:
    """A composite dag, numbered in a topological order, and an IC-optimal schedule of it."""

    dag: Dag
    order: IntArray


def w_block(a: int, d: int) -> Block:
    """W(a,d): a sources with d sinks each, neighbours sharing one."""
    arcs = [(i, i * (d - 1) + k) for i in range(a) for k in range(d)]
    return Block(a, a * (d - 1) + 1, arcs)


def m_block(a: int, d: int) -> Block:
    """M(a,d): a sinks with d sources each, neighbours sharing one."""
    arcs = [(i * (d - 1) + k, i) for i in range(a) for k in range(d)]
    return Block(a * (d - 1) + 1, a, arcs)


def n_block(s: int) -> Block:
    """N(s): source i leads to sinks i and i + 1."""
    return Block(s, s, [(i, j) for i in range(s) for j in (i, i + 1) if j < s])


def q_block(s: int) -> Block:
    """Q(s): all sources to all sinks."""
    return Block(s, s, [(i, j) for i in range(s) for j in range(s)])


def _draw_w(rng: Generator, size: int, most: Sizes) -> list[Block]:
    """W-dags; the larger d first, and then the smaller a."""
    pairs = _pairs(rng, size, most)
    return [w_block(a, d) for a, d in sorted(pairs, key=lambda pair: (-pair[1], pair[0]))]


def _draw_m(rng: Generator, size: int, most: Sizes) -> list[Block]:
    """M-dags; the smaller d first, and then the larger a."""
    pairs = _pairs(rng, size, most)
    return [m_block(a, d) for a, d in sorted(pairs, key=lambda pair: (pair[1], -pair[0]))]


def _draw_wnm(rng: Generator, size: int, most: Sizes) -> list[Block]:
    """W-dags, then N-dags, then M-dags: a third of the vertices each."""
    part = size // 3 + 1
    middle: list[Block] = []
    total = 0
    while total < part:
        middle.append(n_block(int(rng.integers(1, most.s + 1))))
        total += middle[-1].sources
    return [*_draw_w(rng, part, most), *middle, *_draw_m(rng, part, most)]


def _draw_q2(rng: Generator, size: int, most: Sizes) -> list[Block]:
    """Copies of Q(2)."""
    return [q_block(2)] * (size // 2 + 1)


def _pairs(rng: Generator, size: int, most: Sizes) -> list[tuple[int, int]]:
    """Pairs (a, d) whose blocks together, once composed, have about so many vertices."""
    pairs: list[tuple[int, int]] = []
    total = 0
    while total < size:
        a, d = int(rng.integers(1, most.a + 1)), int(rng.integers(2, most.d + 1))
        pairs.append((a, d))
        total += a * (d - 1) + 1  # the smaller side of a block is mostly merged away
    return pairs


COMPOSITIONS: dict[str, Callable[[Generator, int, Sizes], list[Block]]] = {
    "w": _draw_w,
    "m": _draw_m,
    "wnm": _draw_wnm,
    "q2": _draw_q2,
}


def compose(
    kind: str, rng: Generator, size: int, most: Sizes | None = None, least: float = 0.0
) -> Composition:
    """A random composition of about so many vertices: of "w", "m", "wnm" or "q2" blocks.

    At least this share of the sinks and sources that could be merged is merged.
    """
    if kind not in COMPOSITIONS:
        raise InputError(unknown_name("composition", kind, COMPOSITIONS))
    if size < 1:
        raise InputError("must be at least 1", place="size")
    return composed(COMPOSITIONS[kind](rng, size, most or Sizes()), rng, least)


def composed(blocks: list[Block], rng: Generator, least: float = 0.0) -> Composition:
    """The blocks, which stand in an order of priority, composed at random."""
    starts = np.cumsum([0, *(block.sources + block.sinks for block in blocks)])
    merged = np.arange(starts[-1])  # a source that is merged with a sink becomes that sink
    pieces = [
        (np.arange(start, start + block.sources),
         np.arange(start + block.sources, start + block.sources + block.sinks))
        for start, block in zip(starts, blocks, strict=False)
    ]  # fmt: skip
    while len(pieces) > 1:
        at = int(rng.integers(len(pieces) - 1))
        (sources, sinks), (more_sources, more_sinks) = pieces[at : at + 2]
        could = min(len(sinks), len(more_sources))
        count = int(rng.integers(max(1, ceil(least * could)), could + 1))
        sinks, more_sources = rng.permutation(sinks), rng.permutation(more_sources)
        merged[more_sources[:count]] = sinks[:count]
        pieces[at : at + 2] = [
            (np.concatenate([sources, more_sources[count:]]),
             np.concatenate([sinks[count:], more_sinks]))
        ]  # fmt: skip
    return _numbered(blocks, starts, merged)


def _numbered(blocks: list[Block], starts: IntArray, merged: IntArray) -> Composition:
    """The composite with its vertices numbered from 0 in a topological order."""
    ends = [
        (start + u, start + block.sources + v)
        for start, block in zip(starts.tolist(), blocks, strict=False)
        for u, v in block.arcs
    ]
    sources = [
        start + u
        for start, block in zip(starts.tolist(), blocks, strict=False)
        for u in range(block.sources)
    ]
    vertices, number = np.unique(merged, return_inverse=True)
    arcs = number[np.array(ends, dtype=np.int64).reshape(-1, 2)]
    plain = Dag.from_arcs(len(vertices), arcs[:, 0], arcs[:, 1])
    place = plain.position
    dag = Dag.from_arcs(plain.n, place[arcs[:, 0]], place[arcs[:, 1]])
    nonsinks = place[number[np.array(sources, dtype=np.int64)]]
    sinks = np.flatnonzero(dag.outdegree == 0)
    return Composition(dag, frozen(np.concatenate([nonsinks, sinks]), np.int32))
