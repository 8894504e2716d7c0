"""Whether a dag has an IC-optimal schedule: a proof, a disproof, or where the proof fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from foreplan.arrays import IntArray, sealed
from foreplan.ic.dag import Dag
from foreplan.ic.game import Play, play
from foreplan.ic.heuristic import played_order_of
from foreplan.ic.ico import IcoFailure, IcoResult, ico
from foreplan.ic.search import MOST_STEPS, SearchResult, dag_order
from foreplan.ic.structure import Structure
from foreplan.model import Workflow
from foreplan.quantities import first_few

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
        """The order."""
        return self.play.order

    @property
    def profile(self) -> IntArray:
        """E(t): how many tasks are ready after each step."""
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
    return analyse_dag(dag).play.order


def analyse_dag(dag: Dag, names: Names = str) -> Analysis:
    """The same for a dag whose vertices have these names."""
    found = ico(dag)
    order = found.theorem_order
    if not found.failures:
        return Analysis(True, True, _proof(found.structure), play(dag, order))
    searched = _search(found)
    failure = found.failures[0]
    step, reason_of = _STEPS[failure.step]
    why = f"{step}: {reason_of(found.structure, failure, names)}"
    for section, result in searched.items():
        if result.order is None:
            reason = f"{_disproof(found.structure, section, result)}; ICO fails to {why}"
            return Analysis(False, False, reason, play(dag, played_order_of(dag, found)))
    if all(failed.section in searched for failed in found.failures):
        order = _with_found(found.structure, order, searched)
        reason = f"search: no schedule does better at any step; ICO alone fails to {why}"
        return Analysis(True, True, reason, play(dag, order))
    reason = f"not known whether an IC-optimal schedule exists: ICO fails to {why}"
    return Analysis(False, None, reason, play(dag, played_order_of(dag, found)))


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


def _disproof(structure: Structure, section: int, result: SearchResult) -> str:
    """Why there is no IC-optimal schedule."""
    none = "no IC-optimal schedule exists"
    if not result.step:
        return f"{none}: the only building block of its section has none"
    before = int(np.count_nonzero(structure.section_of_vertices < section))
    return f"{none}: none that is best at each of the first {before + result.step} steps"


def _search(found: IcoResult) -> dict[int, SearchResult]:
    """What a search of the sections that failed tells, by section, as far as it ends."""
    results: dict[int, SearchResult] = {}
    for failure in found.failures[:MOST_SEARCHED]:
        result = SearchResult(None, exhausted=True)
        if not failure.none_exists:
            steps = MOST_STEPS // min(len(found.failures), MOST_SEARCHED)
            result = _search_section(found.structure, failure.section, steps)
        if result.exhausted:
            results[failure.section] = result
            if result.order is None:
                break
    return results


def _search_section(structure: Structure, section: int, most_steps: int) -> SearchResult:
    """An IC-optimal order of the nonsinks of one section, on its own."""
    dag = structure.dag
    inside = structure.section_of_vertices == section
    arcs = inside[dag.tails]
    vertices, relabelled = np.unique(
        np.concatenate([dag.tails[arcs], dag.child[arcs]]), return_inverse=True
    )
    if len(vertices) > MOST_VERTICES:
        return SearchResult(None, exhausted=False)
    tails, heads = np.split(relabelled, 2)
    result = dag_order(Dag.from_arcs(len(vertices), tails, heads), most_steps)
    if result.order is None:
        return result
    nonsinks = [int(vertices[v]) for v in result.order if inside[vertices[v]]]
    return SearchResult(tuple(nonsinks), exhausted=True)


def _with_found(
    structure: Structure, order: IntArray, searched: dict[int, SearchResult]
) -> IntArray:
    """The order with the sections as the search has them."""
    improved = order.copy()
    sections = structure.section_of_vertices[order]
    for section, result in searched.items():
        improved[sections == section] = result.order or ()
    return sealed(improved)


Names = Callable[[int], str]

SHOWN = 8  # vertices of a circle that are named


def block_name(structure: Structure, block: int, names: Names) -> str:
    """A block by its kind and its first source."""
    scheduled = structure.scheduled
    kind = scheduled.type_of[block]
    sources = structure.parsing.block_sources(block)
    what = scheduled.names[kind] if kind >= 0 else f"a block of {len(sources)} sources"
    return f"{what} at {names(int(sources.min()))}"


def _block_reason(structure: Structure, failure: IcoFailure, names: Names) -> str:
    (block,), parsing = failure.blocks, structure.parsing
    why = "is of no known family and too large for a search"
    if block in structure.scheduled.without:
        why = "has no IC-optimal order"
    size = f"{parsing.n_sources[block]} sources and {parsing.n_sinks[block]} sinks"
    first = names(int(parsing.block_sources(block).min()))
    return f"the building block of {size} that begins at {first} {why}"


def _pair_reason(structure: Structure, failure: IcoFailure, names: Names) -> str:
    first, second = (block_name(structure, block, names) for block in failure.blocks)
    return f"of the building blocks {first} and {second} neither has priority over the other"


def _against_reason(structure: Structure, failure: IcoFailure, names: Names) -> str:
    above, below = (block_name(structure, block, names) for block in failure.blocks)
    through = names(failure.vertex)
    return f"{above} comes before {below} (by way of {through}) but has no priority over it"


def _parse_reason(structure: Structure, failure: IcoFailure, names: Names) -> str:
    """The vertices that lead round a circle of blocks."""
    shared, above, below = structure.parsing.super_arcs
    inside = np.isin(above, failure.blocks) & np.isin(below, failure.blocks)
    entry = {
        int(to): (int(vertex), int(start))
        for vertex, start, to in zip(shared[inside], above[inside], below[inside], strict=True)
    }
    block, path, seen = min(entry), list[int](), dict[int, int]()
    while block not in seen:
        seen[block] = len(path)
        vertex, block = entry[block]
        path.append(vertex)
    circle = path[seen[block] :][::-1]
    shown = first_few(map(names, circle), SHOWN)
    if len(circle) == 1:
        return f"{shown} would be both a source and a sink of one building block"
    return f"the building blocks that meet at {shown} come before one another in a circle"


# the steps of ICO, and what says at which vertices each failed
_STEPS = {
    "parse": ("parse the dag", _parse_reason),
    "blocks": ("schedule a block", _block_reason),
    "priorities": ("order the blocks by priority", _pair_reason),
    "linear order": ("find a priority-linear order", _against_reason),
}
