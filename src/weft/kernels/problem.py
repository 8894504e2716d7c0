"""The flat arrays that every planning kernel takes."""

from __future__ import annotations

from typing import NamedTuple

from weft.arrays import BoolArray, FloatArray, IntArray


class Problem(NamedTuple):
    """One planning problem: the graph, the processors that may be used, and what is settled.

    Matrices are flat, row by row: cost[task * n_processors + processor] and
    startup[from_host * n_hosts + to_host]. A settled task is not movable; its outputs can leave
    `source_host` at `ready_at`. What is known of an item's arrival at single hosts stands in the
    known_* rows by item (`known_ptr` is empty when nothing is). An item that is `astray` (empty:
    none is) is not on its producer's host any more; it is sent from a copy, as with `anywhere`
    every item is from where it takes least.
    """

    n_tasks: int
    n_processors: int
    n_hosts: int
    links_alike: bool  # every transfer between two hosts takes startup[1] + size * per_unit[1]
    order: IntArray  # topological
    in_ptr: IntArray
    in_item: IntArray
    out_ptr: IntArray
    out_item: IntArray
    use_ptr: IntArray
    use_task: IntArray
    item_size: FloatArray
    item_producer: IntArray
    cost: FloatArray
    host: IntArray  # processor -> host
    startup: FloatArray
    per_unit: FloatArray
    free_from: FloatArray  # processor -> when it can start its next task
    until: FloatArray  # processor -> when it leaves
    movable: BoolArray
    settled_on: IntArray  # processor of a settled task, -1 where it may not be used now
    source_host: IntArray
    ready_at: FloatArray
    known_ptr: IntArray
    known_host: IntArray
    known_time: FloatArray
    known_whole: BoolArray  # else it is on its way there
    astray: BoolArray
    anywhere: bool
    now: float
