"""An order for every dag: ICO's where it applies, and a good one where it does not.

In the spirit of Malewicz, Foster, Rosenberg and Wilde: A tool for prioritizing DAGMan jobs and its
evaluation; and of schedules that maximise the area (Cordasco, De Chiara, Rosenberg). What parses is
kept together, block by block, and the blocks go by what they gain per step.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray, IntArray, frozen, sealed
from weft.ic.dag import Dag
from weft.ic.game import listed_order, places, play
from weft.ic.ico import Ico, theorem_order
from weft.ic.structure import Structure
from weft.ic.units import Units
from weft.kernels.gaining import gain_order, loss_order

ROUNDS = 2  # of the two greedies; more of them change little


def heuristic_order_of(dag: Dag, found: Ico) -> IntArray:
    """A good order of any dag where ICO was tried before: IC-optimal where ICO applies.

    Several orders are played, and each section takes the one that gives it the largest area.
    """
    if found.order is not None:
        return found.order
    return _best_by_section(dag, found)


def candidates(dag: Dag, structure: Structure) -> dict[str, IntArray]:
    """Complete orders of a dag, by the name of the idea; sinks last, hence section by section."""
    line = dag.order
    for _ in range(ROUNDS):  # each breaks its ties by the one before
        gain = _greedy(structure, line, forward=True)
        line = loss = _greedy(structure, gain, forward=False)
    units = Units(structure, places(loss))
    ahead = _by_keys(dag, *units.keys(ahead=True))
    return {
        "loss": loss,
        "ahead": ahead,
        "ahead, loss": _greedy(structure, ahead, forward=False),
        "blocks": _by_keys(dag, *units.keys(ahead=False)),
        "gain": gain,
        "outdegree": _by_keys(dag, dag.level, -dag.outdegree),
        "level": _by_keys(dag, -dag.outdegree, dag.level),
    }


def _by_keys(dag: Dag, *keys: IntArray | FloatArray) -> IntArray:
    """An order by keys, the last of them first; sinks last."""
    return listed_order(dag, np.lexsort((*keys, dag.outdegree == 0)))


def _best_by_section(dag: Dag, found: Ico) -> IntArray:
    structure = found.structure
    blocks = np.lexsort((structure.level, found.place, structure.section))
    best = theorem_order(structure.scheduled, blocks.astype(np.int32)).copy()
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


def _greedy(structure: Structure, line: IntArray, *, forward: bool) -> IntArray:
    """A greedy that looks at the eligibility gained or, from the end, at what is held up.

    Ties go by the line. Sinks stand at the end.
    """
    dag = structure.dag
    rows = dag.child_ptr, dag.child, dag.parent_ptr, dag.parent
    if forward:
        nonsinks = gain_order(*rows, dag.indegree.copy(), places(line), line)
    else:
        nonsinks = loss_order(*rows, places(line), line)
    sinks = np.flatnonzero(dag.outdegree == 0)
    order: IntArray = frozen(np.concatenate([nonsinks, sinks]), np.int32)
    return order
