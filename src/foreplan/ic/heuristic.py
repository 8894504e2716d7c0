"""An order for every dag: ICO's where it applies, and a good one where it does not.

In the spirit of Malewicz, Foster, Rosenberg and Wilde: A tool for prioritizing DAGMan jobs and its
evaluation; and of schedules that maximise the area (Cordasco, De Chiara, Rosenberg). What parses is
kept together, block by block, and the blocks go by what they gain per step.
"""

from __future__ import annotations

import numpy as np

from foreplan.arrays import FloatArray, IntArray, csr, frozen, sealed
from foreplan.ic.dag import Dag, places
from foreplan.ic.game import (
    heuristic_order,
    listed_order,
    order_phases,
    play,
    request_sizes,
)
from foreplan.ic.ico import IcoResult
from foreplan.ic.kernels.heuristic import gain_order, loss_order, source_densities
from foreplan.ic.structure import Structure

ROUNDS = 2  # of the two greedies; more of them change little


def heuristic_order_of(dag: Dag, found: IcoResult) -> IntArray:
    """A good order of any dag where ICO was tried before: IC-optimal where ICO applies.

    Several orders are played, and each section takes the one that gives it the largest area.
    """
    if not found.failures:
        return found.theorem_order
    structure, best = found.structure, found.theorem_order.copy()
    sections = structure.section_of_vertices
    failed = np.zeros(structure.n_sections + 1, dtype=np.bool_)
    failed[[failure.section for failure in found.failures]] = True
    starts = np.searchsorted(sections[best], np.arange(structure.n_sections + 1))
    most = np.full(structure.n_sections + 1, -1, dtype=np.int64)
    for order in candidates(dag, structure).values():
        areas = np.add.reduceat(play(dag, order).profile[:-1], starts, dtype=np.int64)
        better = failed & (areas > most)
        most[better] = areas[better]
        taken = better[sections[best]]  # all orders have a section's vertices at the same places
        best[taken] = order[taken]
    return sealed(best)


MEANS = (2, 4, 8, 16, 32, 64, 128, 256, 512)  # of the clients that come to a poll
HANDED_OUT = 20_000  # so many tasks, at least, in the plays of an order with one of these means
MOST_DRAWS = 10
KNOWN_PLAYS = 4  # of each known order


def played_order_of(dag: Dag, found: IcoResult) -> IntArray:
    """The order that wins the plays: in batches, as clients ask, it needs the fewest polls.

    It is that with the largest area, or a candidate that has as many tasks ready in all as
    FIFO, LIFO and GREEDY have on average. Where ICO applies, all of them do as ICO does.
    """
    largest = heuristic_order_of(dag, found)
    if not found.failures:
        return largest
    rng = np.random.default_rng(0)
    plays = range(KNOWN_PLAYS)
    known = max(
        np.mean([play(dag, heuristic_order(dag, name, rng)).area for _ in plays])
        for name in ("fifo", "lifo", "greedy")
    )
    orders = [largest]
    for order in candidates(dag, found.structure).values():
        order = _where_ico_fails(found, order)
        if play(dag, order).area >= known and not any(np.array_equal(order, o) for o in orders):
            orders.append(order)
    draws = min(MOST_DRAWS, 1 + HANDED_OUT // dag.n)
    requests = [request_sizes(rng, mean, dag.n) for mean in MEANS for _ in range(draws)]
    polls = [sum(order_phases(dag, order, each) for each in requests) for order in orders]
    return orders[int(np.argmin(polls))]


def _where_ico_fails(found: IcoResult, order: IntArray) -> IntArray:
    """An order in the sections that failed, and ICO's in the others."""
    best = found.theorem_order.copy()
    failed = np.zeros(found.structure.n_sections + 1, dtype=np.bool_)
    failed[[failure.section for failure in found.failures]] = True
    taken = failed[found.structure.section_of_vertices[best]]
    best[taken] = order[taken]
    return sealed(best)


def candidates(dag: Dag, structure: Structure) -> dict[str, IntArray]:
    """Complete orders of a dag, by the name of the idea; sinks last, hence section by section."""
    hops = _by_keys(dag, -dag.outdegree, -dag.hops)
    ranking = hops
    for _ in range(ROUNDS):  # each breaks its ties by the one before
        gain = _greedy(structure, ranking, forward=True)
        ranking = loss = _greedy(structure, gain, forward=False)
    units = Units(structure, places(loss))
    ahead = _by_keys(dag, *units.keys(ahead=True))
    return {
        "loss": loss,
        "ahead": ahead,
        "ahead, loss": _greedy(structure, ahead, forward=False),
        "blocks": _by_keys(dag, *units.keys(ahead=False)),
        "gain": gain,
        "outdegree": _by_keys(dag, -dag.hops, dag.level, -dag.outdegree),
        "level": _by_keys(dag, -dag.hops, -dag.outdegree, dag.level),
        "hops": hops,
    }


def _by_keys(dag: Dag, *keys: IntArray | FloatArray) -> IntArray:
    """An order by keys, the last of them first; sinks last."""
    return listed_order(dag, np.lexsort((*keys, dag.outdegree == 0)))


def _greedy(structure: Structure, ranking: IntArray, *, forward: bool) -> IntArray:
    """A greedy that looks at the eligibility gained or, from the end, at what is held up.

    Ties go by the ranking. Sinks stand at the end.
    """
    dag = structure.dag
    rows = dag.child_ptr, dag.child, dag.parent_ptr, dag.parent
    if forward:
        nonsinks = gain_order(*rows, dag.indegree, places(ranking), ranking)
    else:
        nonsinks = loss_order(*rows, places(ranking), ranking)
    sinks = np.flatnonzero(dag.outdegree == 0)
    order: IntArray = frozen(np.concatenate([nonsinks, sinks]), np.int32)
    return order


class Units:
    """The sources of every unit in one order: IC-optimal where the block has such an order.

    The others, and the blocks of a circle together, go in the order of a `guide`: a place for
    each vertex.
    """

    def __init__(self, structure: Structure, guide: IntArray) -> None:
        self.structure = structure
        scheduled, parsing = structure.scheduled, structure.parsing
        place = np.empty(structure.dag.n, dtype=np.int64)
        place[scheduled.sources] = np.arange(len(scheduled.sources))
        nonsinks = np.flatnonzero(parsing.source_of >= 0)
        block = parsing.source_of[nonsinks]
        guided = structure.in_circle[block] | (scheduled.type_of[block] < 0)
        place[nonsinks[guided]] = guide[nonsinks[guided]]
        unit = structure.unit[block]
        order = np.lexsort((place[nonsinks], unit))
        self.sources: IntArray = nonsinks[order].astype(np.int32)
        self.unit: IntArray = unit[order]
        self.ptr, _ = csr(self.unit, self.unit, len(structure.units))

    def keys(self, ahead: bool) -> tuple[IntArray | FloatArray, ...]:
        """Keys for an order by density: for every vertex, the least important first."""
        structure = self.structure
        n, parsing = structure.dag.n, structure.parsing
        level, unit, place = (np.zeros(n, dtype=np.int32) for _ in range(3))
        worth = np.zeros(n)
        level[self.sources] = structure.level[parsing.source_of[self.sources]]
        unit[self.sources] = self.unit
        place[self.sources] = np.arange(len(self.sources))
        worth[self.sources] = -self.densities(ahead)
        return place, unit, level, worth

    def densities(self, ahead: bool) -> FloatArray:
        """What each source is worth; see the kernel."""
        structure = self.structure
        dag, units = structure.dag, structure.units
        place = np.empty(dag.n, dtype=np.int32)
        place[self.sources] = np.arange(len(self.sources))
        heads = np.flatnonzero(dag.indegree > 0)
        # every vertex is rendered ELIGIBLE by the last of its parents in its unit
        last = (
            np.maximum.reduceat(place[dag.parent], dag.parent_ptr[heads]) if len(heads) else heads
        )
        enabled_ptr, enabled = csr(last.astype(np.int32), heads.astype(np.int32), len(self.sources))
        unit_of = np.full(dag.n, -1, dtype=np.int32)
        unit_of[self.sources] = self.unit
        internal = self.unit[dag.indegree[self.sources] > 0]
        entries = np.maximum(1, np.bincount(internal, minlength=len(units))).astype(np.int32)
        upward = units[::-1].copy()
        rows = self.ptr, self.sources, upward, enabled_ptr, enabled, unit_of, entries
        return source_densities(*rows, ahead)
