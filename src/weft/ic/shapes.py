"""Familiar dags: FFT, meshes and trees (Hall, Rosenberg, Venkataramani, figure 1)."""

from __future__ import annotations

import numpy as np

from weft.errors import InputError
from weft.ic.dag import Dag

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
