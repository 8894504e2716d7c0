"""Plays of the IC Pebble Game: areas and numbers of phases, of ICO's order and of heuristics.

Hall, Rosenberg, Venkataramani, sections 4.2 and 4.3.
"""

from __future__ import annotations

import numpy as np

from foreplan.ic import heuristic_order, heuristic_phases, order_phases, play, request_sizes
from foreplan.ic.shapes import Sizes, compose
from foreplan_reproductions.ic.cases import Case, Instance, M, instance_of

ICO = "ico"
FIFO, LIFO, GREEDY = HEURISTICS = ("fifo", "lifo", "greedy")
HOPS = "hops"  # not the paper's
KNOWN = (*HEURISTICS, HOPS)
MEANS = tuple(2**k for k in range(1, 15))  # of the request sizes
_SHAPE, _PLAYS, _BATCHES = range(3)  # streams of random numbers

Columns = dict[str, list[float]]


def areas(
    case: Case, instance: Instance, plays: int, names: tuple[str, ...] = HEURISTICS
) -> Columns:
    """The area of the order, and those of so many plays of each heuristic."""
    dag, rng = instance.dag, case.rng(_PLAYS)
    mine = float(play(dag, instance.order).area)
    found: Columns = {"n": [float(dag.n)], "optimal": [float(instance.optimal)], ICO: [mine]}
    for name in names:
        orders = (heuristic_order(dag, name, rng) for _ in range(plays))
        found[name] = [float(play(dag, order).area) for order in orders]
    return found


def phases(
    case: Case,
    instance: Instance,
    plays: int,
    means: tuple[int, ...] = MEANS,
    names: tuple[str, ...] = HEURISTICS,
) -> Columns:
    """How many polls each scheduler needs, play by play; all have the same clients in a play."""
    dag, rng = instance.dag, case.rng(_BATCHES)
    found: Columns = {"n": [float(dag.n)], "optimal": [float(instance.optimal)]}
    for mean in means:
        for _ in range(plays):
            requests = request_sizes(rng, mean, dag.n)
            polls = {ICO: order_phases(dag, instance.order, requests)}
            polls |= {name: heuristic_phases(dag, name, rng, requests) for name in names}
            for name, count in polls.items():
                found.setdefault(f"{name}|{mean}", []).append(float(count))
    return found


def every_size(cases: tuple[Case, ...], plays: int) -> Columns:
    """Of each dag, whether ICO succeeds, and by how much its area is at least ahead."""
    found: Columns = {"n": [], "optimal": [], "ahead": []}
    for case in cases:
        one = areas(case, instance_of(case), plays)
        best = max(max(one[name]) for name in HEURISTICS)
        found["n"] += one["n"]
        found["optimal"] += one["optimal"]
        found["ahead"].append(one[ICO][0] - best)
    return found


MERGED = (
    0.0,
    0.5,
    1.0,
)  # the least share of sinks and sources that are merged, of those that could
SINKS_LAST = "fifo, sinks last"
BLOCKS = {M: Sizes(a=20, d=3)}  # the largest, if not the usual ones


def readings(case: Case, plays: int) -> Columns:
    """How far each heuristic is behind, in % of ICO's area, if compositions merge more or less."""
    found: Columns = {}
    most = BLOCKS.get(case.family)
    for least in MERGED:
        made = compose(case.family, case.rng(_SHAPE), case.size, most, least)
        dag, rng = made.dag, case.rng(_PLAYS)
        orders = {n: [heuristic_order(dag, n, rng) for _ in range(plays)] for n in HEURISTICS}
        orders[SINKS_LAST] = [
            o[np.argsort(dag.outdegree[o] == 0, kind="stable")] for o in orders[FIFO]
        ]
        mine = play(dag, made.order).area
        found[f"sources|{least}"] = [float((dag.indegree == 0).sum())]
        for name, some in orders.items():
            mean = float(np.mean([play(dag, order).area for order in some]))
            found[f"{name}|{least}"] = [100 * (1 - mean / mine)]
    return found
