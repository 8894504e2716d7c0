"""Estimates: what the files declare as a matrix of tasks by processors."""

from __future__ import annotations

import numpy as np
import pytest

from foreplan.arrays import BLOCK
from foreplan.errors import InputError
from foreplan.model import Estimates, Platform, Processor, Workflow

NAN = float("nan")
PLATFORM = Platform.build([Processor("p", speed=2.0), Processor("q", speed=0.5)])


def declared(base: list[float], columns: dict[str, list[float]]) -> list[list[float]]:
    names = [f"t{i}" for i in range(len(base))]
    processor_cost = {name: np.array(column) for name, column in columns.items()}
    workflow = Workflow.from_items("w", names, base, [], processor_cost)
    cost: list[list[float]] = Estimates.declared(workflow, PLATFORM).cost.tolist()
    return cost


def test_one_cost_is_divided_by_speed() -> None:
    assert declared([8.0, 0.0], {}) == [[4.0, 16.0], [0.0, 0.0]]


def test_costs_by_processor_are_taken_as_they_are() -> None:
    assert declared([NAN, NAN], {"q": [1.0, 2.0], "p": [3.0, 0.0]}) == [[3.0, 1.0], [0.0, 2.0]]


def test_a_cost_by_processor_goes_before_the_one_for_all() -> None:
    assert declared([8.0, 8.0], {"p": [1.0, NAN]}) == [[1.0, 16.0], [4.0, 16.0]]


def test_costs_of_other_processors_are_ignored() -> None:
    assert declared([8.0], {"elsewhere": [5.0]}) == declared([8.0], {})


def test_a_missing_cost_is_named() -> None:
    with pytest.raises(InputError, match="task 't1' has no cost on processor 'q'") as caught:
        declared([8.0, NAN], {"p": [1.0, 2.0], "elsewhere": [3.0, 3.0]})
    assert caught.value.place == "tasks.t1.cost"


def test_where_no_task_has_a_cost_all_count_alike() -> None:
    assert declared([NAN, NAN], {}) == declared([1.0, 1.0], {})


def test_the_matrix_cannot_be_written_to() -> None:
    cost = Estimates(np.ones((2, 2))).cost
    assert not cost.flags.writeable


def test_many_rows_with_costs_here_and_there() -> None:
    # more than one block of rows; the plain way to say it is a loop
    rng, n = np.random.default_rng(4), 2 * BLOCK + 7
    given = {name: rng.uniform(1.0, 9.0, n) for name in ("a", "c")}
    for column in given.values():
        column[rng.random(n) < 0.3] = np.nan
    empty = np.empty(0, dtype=np.int32)
    workflow = Workflow.from_edges(
        "many", [f"t{k}" for k in range(n)], empty, empty, np.empty(0),
        base_cost=rng.uniform(1.0, 9.0, n), processor_cost=given,
    )  # fmt: skip
    platform = Platform.build(
        [Processor(name, speed=s) for name, s in zip("abc", (0.7, 1.9, 3), strict=True)]
    )
    cost = Estimates.declared(workflow, platform).cost
    for task in range(n):
        for p, name in enumerate("abc"):
            own = given[name][task] if name in given else np.nan
            at_speed = workflow.base_cost[task] / platform.speed[p]
            assert cost[task, p] == (at_speed if np.isnan(own) else own)
