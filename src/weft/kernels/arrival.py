"""When a task's inputs are on each host."""

from __future__ import annotations

from weft.arrays import FloatArray, IntArray
from weft.kernels.problem import Problem


def data_arrival(
    problem: Problem, task: int, source_host: IntArray, ready_at: FloatArray, arrival: FloatArray
) -> None:
    """Fill arrival[host] with the time when all inputs of the task are there.

    Every producer must be settled or placed. An external input is everywhere from the start.
    """
    hosts = problem.n_hosts
    for host in range(hosts):
        arrival[host] = 0.0
    in_item, item_size, item_producer = problem.in_item, problem.item_size, problem.item_producer
    startup, per_unit = problem.startup, problem.per_unit
    any_known = len(problem.known_ptr) > 0
    for e in range(problem.in_ptr[task], problem.in_ptr[task + 1]):
        item = in_item[e]
        producer = item_producer[item]
        if producer < 0:
            continue
        if any_known and problem.known_ptr[item] < problem.known_ptr[item + 1]:
            arrival_of_known(problem, item, source_host[producer], ready_at[producer], arrival)
            continue
        sent = ready_at[producer]
        size = item_size[item]
        row = source_host[producer] * hosts
        startup_to = startup[row : row + hosts]  # slices, so that the loop is vectorised
        per_unit_to = per_unit[row : row + hosts]
        for host in range(hosts):
            arrival[host] = max(arrival[host], sent + (startup_to[host] + size * per_unit_to[host]))


def arrival_of_known(
    problem: Problem, item: int, source: int, sent: float, arrival: FloatArray
) -> None:
    """The same for an item that is on some hosts already, or on its way there."""
    row = source * problem.n_hosts
    size = problem.item_size[item]
    for host in range(problem.n_hosts):
        here = sent + (problem.startup[row + host] + size * problem.per_unit[row + host])
        for k in range(problem.known_ptr[item], problem.known_ptr[item + 1]):
            if problem.known_host[k] == host:
                here = problem.known_time[k]
        if here > arrival[host]:
            arrival[host] = here
