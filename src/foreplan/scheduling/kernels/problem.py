"""The problem as flat arrays, and when a task's inputs are on each host."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray


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


def begin_placing(
    problem: Problem,
) -> tuple[IntArray, FloatArray, FloatArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Arrays for a placement in which nothing is placed yet.

    By task: its processor (-1: none), start and finish, where its outputs are and from when on. By
    processor: when it is free. By host: room for `fill_arrival`.
    """
    processor = np.full(problem.n_tasks, -1, dtype=np.int32)
    start = np.zeros(problem.n_tasks)
    finish = np.zeros(problem.n_tasks)
    source_host = problem.source_host.copy()
    ready_at = problem.ready_at.copy()
    free_from = problem.free_from.copy()
    arrival = np.zeros(problem.n_hosts)
    return processor, start, finish, source_host, ready_at, free_from, arrival


def fill_arrival(
    problem: Problem, task: int, source_host: IntArray, ready_at: FloatArray, arrival: FloatArray
) -> None:
    """Fill arrival[host] with the time when all inputs of the task are there.

    Every producer must be settled or placed. An external input is everywhere from the start.
    Where all links are alike, only the latest message and the latest from another host matter.
    """
    hosts = problem.n_hosts
    for host in range(hosts):
        arrival[host] = 0.0
    latest, latest_source, second = 0.0, -1, 0.0
    any_known = len(problem.known_ptr) > 0
    for e in range(problem.in_ptr[task], problem.in_ptr[task + 1]):
        item = problem.in_item[e]
        producer = problem.item_producer[item]
        if producer < 0:
            continue
        source, sent = source_host[producer], ready_at[producer]
        known = any_known and problem.known_ptr[item] < problem.known_ptr[item + 1]
        if known or (len(problem.astray) > 0 and problem.astray[item]):
            fill_arrival_of_known(problem, item, source, sent, arrival)
        elif problem.links_alike:
            here = sent + problem.startup[1] + problem.item_size[item] * problem.per_unit[1]
            arrival[source] = max(arrival[source], sent)
            if source == latest_source:
                latest = max(latest, here)
            elif here > latest:
                latest, latest_source, second = here, source, latest
            else:
                second = max(second, here)
        else:
            fill_arrival_by_link(problem, item, source, sent, arrival)
    if problem.links_alike:
        for host in range(hosts):
            arrival[host] = max(arrival[host], latest if host != latest_source else second)


def fill_arrival_by_link(
    problem: Problem, item: int, source: int, sent: float, arrival: FloatArray
) -> None:
    """An item sent to every host, each at the time its link takes."""
    size = problem.item_size[item]
    row = source * problem.n_hosts
    startup = problem.startup[row : row + problem.n_hosts]  # slices: the loop is vectorised
    per_unit = problem.per_unit[row : row + problem.n_hosts]
    for host in range(problem.n_hosts):
        arrival[host] = max(arrival[host], sent + startup[host] + size * per_unit[host])


def fill_arrival_of_known(
    problem: Problem, item: int, source: int, sent: float, arrival: FloatArray
) -> None:
    """The same for an item that is on some hosts already, or on its way there, or astray.

    From a copy it can be sent now (Hernandez, Cole: equations 12 and 13).
    """
    row = source * problem.n_hosts
    size = problem.item_size[item]
    astray = len(problem.astray) > 0 and problem.astray[item]
    first, last = 0, 0
    if len(problem.known_ptr) > 0:
        first, last = problem.known_ptr[item], problem.known_ptr[item + 1]
    for host in range(problem.n_hosts):
        here = sent + problem.startup[row + host] + size * problem.per_unit[row + host]
        if astray:
            here = np.inf
        known = np.inf
        for k in range(first, last):
            copy = problem.known_host[k]
            if copy == host:
                known = min(known, problem.known_time[k])
            elif problem.known_whole[k] and (astray or problem.anywhere):
                link = copy * problem.n_hosts + host
                takes = problem.startup[link] + size * problem.per_unit[link]
                here = min(here, problem.now + takes)
        arrival[host] = max(arrival[host], known if known < np.inf else here)
