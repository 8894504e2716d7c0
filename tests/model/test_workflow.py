"""Workflow: the arrays of a hand-made case, its order, its cycles, and that it stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreplan.errors import InputError
from foreplan.model import EXTERNAL, Item, TaskSpec, Workflow, index_names
from foreplan.model.resources import Request

A, B, C, D = range(4)


def hand_made(named: bool = True) -> Workflow:
    """Task a makes x for b and c; c and a read big from outside; d reads b's and makes out."""
    items = [
        Item(5.0, A, (B, C), "x" if named else None),
        Item(7.0, None, (C, A), "big" if named else None),
        Item(2.0, B, (D,)),
        Item(1.0, D, (), "out" if named else None),
    ]
    return Workflow.from_items("hand", ["a", "b", "c", "d"], [1, 2, 3, 4], items)


def chain_of(n: int, edges: list[tuple[int, int]]) -> Workflow:
    items = [Item(1.0, producer, (consumer,)) for producer, consumer in edges]
    return Workflow.from_items("w", [f"t{i}" for i in range(n)], [1.0] * n, items)


def arrays(workflow: Workflow) -> Iterator[tuple[str, np.ndarray]]:
    for f in fields(workflow):
        value = getattr(workflow, f.name)
        if isinstance(value, np.ndarray):
            yield f.name, value
    for name, column in workflow.processor_cost.items():
        yield f"processor_cost[{name}]", column


def test_the_arrays_of_shared_items_and_outside_inputs() -> None:
    wf = hand_made()
    assert (wf.n_tasks, wf.n_items, wf.n_edges) == (4, 4, 3)
    assert wf.base_cost.tolist() == [1, 2, 3, 4]
    assert wf.item_size.tolist() == [5, 7, 2, 1]
    assert wf.item_producer.tolist() == [A, EXTERNAL, B, D]
    assert wf.use_ptr.tolist() == [0, 2, 4, 5, 5]
    assert wf.use_task.tolist() == [B, C, C, A, D]
    assert wf.in_ptr.tolist() == [0, 1, 2, 4, 5]
    assert wf.in_item.tolist() == [1, 0, 0, 1, 2]
    assert wf.out_ptr.tolist() == [0, 1, 2, 2, 3]
    assert wf.out_item.tolist() == [0, 2, 3]
    assert wf.order.tolist() == wf.position.tolist() == [A, B, C, D]


def test_dependencies_leave_out_what_comes_from_outside() -> None:
    items, producers, consumers = hand_made().dependencies()
    assert items.tolist() == [0, 0, 2]
    assert producers.tolist() == [A, A, B]
    assert consumers.tolist() == [B, C, D]


def test_names_of_items() -> None:
    assert [hand_made().item_name(i) for i in range(4)] == ["x", "big", "b -> d", "out"]
    nameless = hand_made(named=False)
    assert nameless.item_names is None
    names = [nameless.item_name(i) for i in range(4)]
    assert names == ["a -> b, c", "outside -> c, a", "b -> d", "d -> nobody"]


def test_edges_are_items_of_one_consumer() -> None:
    producers, consumers = np.array([0, 0, 1]), np.array([1, 2, 2])
    volumes = np.array([3.0, 4.0, 5.0])
    wf = Workflow.from_edges("w", ["a", "b", "c"], producers, consumers, volumes)
    items = [Item(3.0, 0, (1,)), Item(4.0, 0, (2,)), Item(5.0, 1, (2,))]
    same = Workflow.from_items("w", ["a", "b", "c"], [np.nan] * 3, items)
    for (name, ours), (_, theirs) in zip(arrays(wf), arrays(same), strict=True):
        assert ours.dtype == theirs.dtype, name
        assert np.array_equal(ours, theirs, equal_nan=ours.dtype == np.float64), name
    assert wf.n_edges == 3


def test_specs() -> None:
    wf = Workflow.from_items("w", ["a", "b"], [1, 1], [], specs={1: TaskSpec("align", "run me")})
    assert wf.spec(0) == TaskSpec(None, None)
    assert wf.spec(1) == TaskSpec("align", "run me")


def test_nothing_can_be_written_to() -> None:
    wf = Workflow.from_items("w", ["a"], [1], [Item(1.0, 0, ())], {"p": np.array([2.0])})
    found = dict(arrays(wf))
    assert {"base_cost", "use_task", "order", "in_item", "processor_cost[p]"} <= set(found)
    for name, array in found.items():
        assert not array.flags.writeable, name
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(FrozenInstanceError):
        wf.name = "other"  # type: ignore[misc]


def test_the_order_is_the_file_s_where_it_can_be() -> None:
    # 0 needs 3; 1 and 2 need nothing, so they keep their places before 3
    wf = chain_of(5, [(3, 0), (0, 4)])
    assert wf.order.tolist() == [1, 2, 3, 0, 4]
    assert wf.position.tolist() == [3, 0, 1, 2, 4]


@st.composite
def graphs(draw: st.DrawFn, acyclic: bool) -> tuple[int, list[tuple[int, int]]]:
    n = draw(st.integers(1, 9))
    at = draw(st.permutations(range(n)))
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    pairs = draw(st.lists(pair, max_size=2 * n))
    if acyclic:
        return n, [(at[min(a, b)], at[max(a, b)]) for a, b in pairs if a != b]
    return n, pairs


@given(graphs(acyclic=True))
def test_of_what_is_ready_the_first_in_the_file_comes_next(
    graph: tuple[int, list[tuple[int, int]]],
) -> None:
    n, edges = graph
    expected: list[int] = []
    while len(expected) < n:
        waiting = {b for a, b in edges if a not in expected}
        expected.append(min(set(range(n)) - set(expected) - waiting))
    wf = chain_of(n, edges)
    assert wf.order.tolist() == expected
    assert wf.position[wf.order].tolist() == list(range(n))


def test_a_cycle_is_named() -> None:
    with pytest.raises(InputError, match=r"t1 -> t3 -> t2 -> t1$"):
        chain_of(5, [(0, 1), (1, 3), (3, 2), (2, 1), (3, 4)])
    with pytest.raises(InputError, match=r"cycle: t0 -> t0$"):
        chain_of(1, [(0, 0)])


@given(graphs(acyclic=False))
def test_only_a_cycle_is_refused_and_it_is_one(graph: tuple[int, list[tuple[int, int]]]) -> None:
    n, edges = graph
    reach = {(a, b) for a, b in edges}
    for k in range(n):
        reach |= {(a, b) for a in range(n) for b in range(n) if {(a, k), (k, b)} <= reach}
    if not any(a == b for a, b in reach):
        assert sorted(chain_of(n, edges).order.tolist()) == list(range(n))
        return
    with pytest.raises(InputError) as caught:
        chain_of(n, edges)
    named = [int(name[1:]) for name in caught.value.problem.split("cycle: ")[1].split(" -> ")]
    assert named[0] == named[-1]
    assert len(set(named)) == len(named) - 1
    assert set(pairwise(named)) <= set(edges)


def test_a_name_given_twice() -> None:
    assert index_names(["a", "b"], "task") == {"a": 0, "b": 1}
    with pytest.raises(InputError, match="task 'a' is given twice"):
        index_names(["a", "b", "a"], "task")


def test_part_of_a_workflow() -> None:
    """What tasks that are left out have made comes from outside; what nobody reads then goes."""
    whole = Workflow.from_items(
        "whole",
        ["split", "left", "right", "join"],
        [1.0, 2.0, 3.0, np.nan],
        [
            Item(9.0, None, [0], "in"),
            Item(5.0, 0, [1, 2], "both"),
            Item(4.0, 1, [3], "l"),
            Item(3.0, 2, [3], "r"),
            Item(0.0, 0, [3]),
        ],
        processor_cost={"p": np.array([np.nan, np.nan, 7.0, 8.0])},
        specs={2: TaskSpec(run="right"), 3: TaskSpec(run="join")},
    )
    part = whole.part(np.array([False, False, True, True]))
    assert part.task_names == ("right", "join")
    assert part.item_names == ("both", "l", "r")
    assert part.item_producer.tolist() == [EXTERNAL, EXTERNAL, 0]
    assert part.item_size.tolist() == [5, 4, 3]
    reads = np.split(part.use_task, part.use_ptr[1:-1])
    assert [r.tolist() for r in reads] == [[0], [1], [1]]
    assert part.processor_cost["p"].tolist() == [7, 8]
    assert [part.spec(t).run for t in range(2)] == ["right", "join"]
    assert whole.part(np.ones(4, dtype=np.bool_)) is whole
    first = whole.part(np.array([True, False, False, False]))
    assert first.item_names == ("in", "both", None)
    assert first.item_producer.tolist() == [EXTERNAL, 0, 0]
    assert len(first.use_task) == 1
    none = whole.part(np.zeros(4, dtype=np.bool_))
    assert none.n_tasks == none.n_items == 0


def test_a_part_keeps_what_its_tasks_ask_for_and_the_pools() -> None:
    request = Request(cores=(2,))
    specs = {1: TaskSpec(request=request)}
    whole = Workflow.from_items(
        "w", ["a", "b"], [1.0, 1.0], [Item(1.0, 0, (1,))], specs=specs, pools={"x": 1.0}
    )
    part = whole.part(np.array([False, True]))
    assert part.spec(0).request == request
    assert part.pools == {"x": 1.0}
