"""Whether a dag has an IC-optimal schedule: a proof, a disproof, or where the proof fails."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from weft.arrays import IntArray, sealed
from weft.ic.dag import Dag
from weft.ic.game import Play, play
from weft.ic.heuristic import heuristic_order_of
from weft.ic.ico import Failure, Ico, ico
from weft.ic.reasons import Names, reason_of
from weft.ic.search import MOST_STEPS, Found, dag_order
from weft.ic.structure import Structure
from weft.model import Workflow

MOST_NAMED = 6  # kinds of building blocks in a reason
MOST_SEARCHED = 20  # sections, and the vertices of each
MOST_VERTICES = 1_000


@dataclass(frozen=True, eq=False)
class Analysis:
    """The best order known for a dag, its play, and what is known about IC-optimality.

    `ic_optimal`: the order is proved to be IC-optimal. `exists`: whether the dag has an IC-optimal
    schedule; None if that is not known. `reason` says how it was proved, or where that failed.
    """

    ic_optimal: bool
    exists: bool | None
    reason: str
    play: Play

    @property
    def order(self) -> IntArray:
        """The vertices in the order of their execution."""
        return self.play.order

    @property
    def profile(self) -> IntArray:
        """E(0), ..., E(n)."""
        return self.play.profile

    @property
    def area(self) -> int:
        """The sum of the profile."""
        return self.play.area


def analyse(workflow: Workflow) -> Analysis:
    """Find an IC-optimal order of a workflow's tasks, or the best one that we can."""
    return analyse_dag(Dag.from_workflow(workflow), workflow.task_names.__getitem__)


def best_order(dag: Dag) -> IntArray:
    """A good order of any dag, the one that `analyse_dag` shows: IC-optimal where one is found."""
    return analyse_dag(dag).order


def analyse_dag(dag: Dag, names: Names = str) -> Analysis:
    """The same for a dag whose vertices have these names."""
    found = ico(dag)
    order = heuristic_order_of(dag, found)
    if not found.failures:
        return Analysis(True, True, _proof(found.structure), play(dag, order))
    searched = _search(found)
    failure = found.failures[0]
    why = f"{_step(failure)}: {reason_of(found.structure, failure, names)}"
    for section, result in searched.items():
        if result.order is None:
            reason = f"{_disproof(found.structure, section, result)}; ICO fails to {why}"
            return Analysis(False, False, reason, play(dag, order))
    if all(failed.section in searched for failed in found.failures):
        order = _with_found(found.structure, order, searched)
        reason = f"search: no schedule does better at any step; ICO alone fails to {why}"
        return Analysis(True, True, reason, play(dag, order))
    reason = f"not known whether an IC-optimal schedule exists: ICO fails to {why}"
    return Analysis(False, None, reason, play(dag, order))


def _step(failure: Failure) -> str:
    """The step of ICO that failed."""
    return {
        "parse": "parse the dag",
        "blocks": "schedule a block",
        "priorities": "order the blocks by priority",
        "linear order": "find a priority-linear order",
    }[failure.step]


def _proof(structure: Structure) -> str:
    """Of what the dag is composed, the most frequent blocks first."""
    scheduled = structure.scheduled
    counts = Counter(scheduled.names[kind] for kind in scheduled.type_of.tolist())
    listed = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    parts = [f"{count} x {name}" for name, count in listed[:MOST_NAMED]]
    if len(listed) > MOST_NAMED:
        parts.append(f"{len(listed) - MOST_NAMED} more kinds")
    if not parts:
        return "no task waits for another, so every order is IC-optimal"
    count = structure.n_sections
    where = f" in each of its {count} sections" if count > 1 else ""
    return f"ICO: a priority-linear composition{where} of {', '.join(parts)}"


def _disproof(structure: Structure, section: int, result: Found) -> str:
    """Why there is no IC-optimal schedule."""
    none = "no IC-optimal schedule exists"
    if not result.step:
        return f"{none}: the only building block of its section has none"
    before = int(np.count_nonzero(structure.section_of_vertices < section))
    return f"{none}: none that is best at each of the first {before + result.step} steps"


def _search(found: Ico) -> dict[int, Found]:
    """What a search of the sections that failed tells, by section, as far as it ends."""
    results: dict[int, Found] = {}
    for failure in found.failures[:MOST_SEARCHED]:
        result = Found(None, exhausted=True)
        if not failure.none_exists:
            steps = MOST_STEPS // min(len(found.failures), MOST_SEARCHED)
            result = _search_section(found.structure, failure.section, steps)
        if result.exhausted:
            results[failure.section] = result
            if result.order is None:
                break
    return results


def _search_section(structure: Structure, section: int, most_steps: int) -> Found:
    """An IC-optimal order of the nonsinks of one section, on its own."""
    dag = structure.dag
    inside = structure.section_of_vertices == section
    arcs = inside[dag.tails]
    vertices, relabelled = np.unique(
        np.concatenate([dag.tails[arcs], dag.child[arcs]]), return_inverse=True
    )
    if len(vertices) > MOST_VERTICES:
        return Found(None, exhausted=False)
    tails, heads = np.split(relabelled, 2)
    result = dag_order(Dag.from_arcs(len(vertices), tails, heads), most_steps)
    if result.order is None:
        return result
    nonsinks = [int(vertices[v]) for v in result.order if inside[vertices[v]]]
    return Found(tuple(nonsinks), exhausted=True)


def _with_found(structure: Structure, order: IntArray, searched: dict[int, Found]) -> IntArray:
    """The order with the sections as the search has them."""
    improved = order.copy()
    sections = structure.section_of_vertices[order]
    for section, result in searched.items():
        improved[sections == section] = result.order or ()
    return sealed(improved)
