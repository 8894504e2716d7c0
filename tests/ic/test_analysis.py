"""What is known about a workflow: proved, disproved, or where the proof fails."""

from __future__ import annotations

import numpy as np
import pytest

from foreplan.generators import generate
from foreplan.ic import analyse, analyse_dag
from foreplan.model import Workflow
from ic.twin import Arcs, Twin, all_dags, dag_of, random_dag


def workflow(names: str, arcs: list[str]) -> Workflow:
    tasks = names.split()
    producers = np.array([tasks.index(arc[0]) for arc in arcs], dtype=np.int32)
    consumers = np.array([tasks.index(arc[1]) for arc in arcs], dtype=np.int32)
    return Workflow.from_edges("w", tasks, producers, consumers, np.ones(len(arcs)))


def test_a_diamond() -> None:
    found = analyse(workflow("a b c d", ["ab", "ac", "bd", "cd"]))
    assert (found.ic_optimal, found.exists) == (True, True)
    assert found.play.order.tolist()[0] == 0
    assert found.play.profile.tolist() == [1, 2, 1, 1, 0]
    assert found.play.area == 5
    assert found.reason.startswith("ICO: a priority-linear composition")
    assert "W(1,2)" in found.reason


def test_several_items_between_two_tasks_are_one_arc() -> None:
    found = analyse(workflow("a b c", ["ab", "ab", "ac"]))
    assert found.play.profile.tolist() == [1, 2, 1, 0]


def test_nothing_to_wait_for() -> None:
    found = analyse(workflow("a b c", []))
    assert found.ic_optimal
    assert found.play.area == 6
    assert "every order" in found.reason


def test_a_block_without_an_ic_optimal_order() -> None:
    """One source alone completes a sink at once; two others complete four, but only together."""
    arcs: Arcs = [(0, 3), (0, 4), (1, 4), (2, 4)]
    arcs += [(u, v) for u in (1, 2) for v in range(5, 9)]
    assert not Twin(9, arcs).exists
    found = analyse_dag(dag_of(9, arcs))
    assert (found.ic_optimal, found.exists) == (False, False)
    assert found.reason.startswith("no IC-optimal schedule exists")
    assert found.play.area == Twin(9, arcs).most_area


def test_names_say_where_it_fails() -> None:
    parse = analyse(workflow("a b c d e", ["ac", "ae", "bd", "be", "cd"]))
    assert parse.exists
    assert "ICO alone fails to parse the dag: c would be both" in parse.reason
    pair = analyse(workflow("a b c d e f", ["ab", "ac", "db", "dc", "ef"]))
    assert pair.exists is False
    assert "none that is best at each of the first 2 steps" in pair.reason
    assert "Q(2) at a and N(1) at e neither has priority" in pair.reason
    linear = analyse(workflow("a b c d e f g h", ["ac", "dh", "gc", "hf", "hg"]))
    assert linear.exists
    assert "N(1) at d comes before W(1,2) at h (by way of h)" in linear.reason


def test_all_dags_of_five_are_decided() -> None:
    for k, arcs in enumerate(all_dags(5)):
        if k % 7:
            continue
        twin, found = Twin(5, arcs), analyse_dag(dag_of(5, arcs))
        assert found.exists is twin.exists
        assert found.ic_optimal is twin.exists


def test_random_dags_are_decided() -> None:
    rng = np.random.default_rng(41)
    disproved = 0
    for k in range(200):
        n, arcs = random_dag(rng, 6, 11, sorts=1 + 2 * (k % 2))
        twin, found = Twin(n, arcs), analyse_dag(dag_of(n, arcs))
        assert found.exists is twin.exists
        assert found.ic_optimal is twin.exists
        if twin.exists:
            assert found.play.profile.tolist() == twin.best
        else:
            disproved += 1
            assert found.play.area <= twin.most_area
    assert disproved


@pytest.mark.parametrize("family", ["fft", "laplace", "fork_join", "in_tree", "out_tree", "chain"])
def test_generated_workflows(family: str) -> None:
    found = analyse(generate(family))
    assert found.ic_optimal
    assert found.reason.startswith("ICO")


def test_what_is_not_known_is_not_claimed() -> None:
    found = analyse(generate("random_layered", seed=1))
    assert not found.ic_optimal
    assert found.exists is None or found.exists is False
    assert "ICO fails to" in found.reason
    assert found.play.profile[-1] == 0
