"""The first step of ICO: a dag without its shortcut arcs, which change no schedule."""

from __future__ import annotations

import numpy as np

from weft.ic.dag import Dag
from weft.kernels.shortcuts import mark_shortcuts


def pruned(dag: Dag) -> Dag:
    """The dag without the arcs whose tail and head are joined by another path."""
    span = dag.level[dag.child] - dag.level[dag.tails]
    far = np.unique(dag.child[span > 1])
    if len(far) == 0:
        return dag
    position = np.empty(dag.n, dtype=np.int32)
    position[dag.order] = np.arange(dag.n, dtype=np.int32)
    rows = dag.child_ptr, dag.child, dag.parent_ptr, dag.parent
    shortcuts = mark_shortcuts(*rows, dag.order, position, dag.level)
    return dag.without(shortcuts) if shortcuts.any() else dag
