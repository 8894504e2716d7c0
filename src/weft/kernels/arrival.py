"""When a task's inputs are on each host."""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.kernels.problem import Problem


def data_arrival(
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
            arrival_of_known(problem, item, source, sent, arrival)
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
            arrival_by_link(problem, item, source, sent, arrival)
    if problem.links_alike:
        for host in range(hosts):
            arrival[host] = max(arrival[host], latest if host != latest_source else second)


def arrival_by_link(
    problem: Problem, item: int, source: int, sent: float, arrival: FloatArray
) -> None:
    """An item sent to every host, each at the time its link takes."""
    size = problem.item_size[item]
    row = source * problem.n_hosts
    startup = problem.startup[row : row + problem.n_hosts]  # slices: the loop is vectorised
    per_unit = problem.per_unit[row : row + problem.n_hosts]
    for host in range(problem.n_hosts):
        arrival[host] = max(arrival[host], sent + startup[host] + size * per_unit[host])


def arrival_of_known(
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
