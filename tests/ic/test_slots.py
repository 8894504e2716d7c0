"""Jobs on slots: the longest way to the end, and when a run would end."""

import numpy as np
import pytest

from foreplan.ic import Dag, order_phases
from foreplan.ic.slots import longest_ways, makespan


def random_dag(rng: np.random.Generator, n: int) -> Dag:
    """Any dag whose arcs go from lower to higher numbers."""
    arcs = [(i, j) for j in range(n) for i in range(j) if rng.random() < 0.1]
    tails, heads = zip(*arcs, strict=True) if arcs else ((), ())
    return Dag.from_arcs(n, list(tails), list(heads))


@pytest.mark.parametrize("seed", range(20))
def test_with_a_second_each_it_is_the_phases(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dag = random_dag(rng, 40)
    ranking = rng.permutation(40)
    priority = np.empty(40, np.int64)
    priority[ranking] = np.arange(40, 0, -1)
    slots = 1 + seed % 5
    phases = order_phases(dag, ranking, np.full(40, slots))
    assert makespan(dag, np.ones(40), priority, slots) == phases


def test_the_longest_way_by_hand_and_at_its_limits() -> None:
    dag = Dag.from_arcs(5, [0, 0, 1, 2], [1, 2, 3, 3])
    seconds = np.array([1.0, 2.0, 5.0, 1.0, 4.0])
    ways = longest_ways(dag, seconds)
    assert ways.tolist() == [7, 3, 6, 1, 4]
    equal = np.zeros(5, np.int64)
    assert makespan(dag, seconds, equal, 5) == ways.max()
    assert makespan(dag, seconds, equal, 1) == seconds.sum()


def test_priorities_decide_among_what_is_ready() -> None:
    dag = Dag.from_arcs(4, [2], [3])
    seconds = np.array([1.0, 1.0, 2.0, 2.0])
    assert makespan(dag, seconds, np.zeros(4, np.int64), 2) == 5
    assert makespan(dag, seconds, longest_ways(dag, seconds).astype(np.int64), 2) == 4
