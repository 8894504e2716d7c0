"""Dask's delayed objects as a flow: the same results as Dask's own scheduler."""

import functools
import operator
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.delayed import flow_of
from foreplan.errors import ForeplanError, InputError
from foreplan.flow import Task
from foreplan.model.call import replaced
from library.computing import computed, results_of

dask = pytest.importorskip("dask")
Pair = namedtuple("Pair", "x y")


@dataclass
class Point:
    x: Any


def inc(x: int) -> int:
    return x + 1


def collect(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    return args, kwargs


def same(*values: Any) -> tuple[Any, ...]:
    """The results, after a look at whether they are Dask's."""
    wanted = dask.compute(*values, scheduler="sync")
    assert computed(*values) == wanted
    assert computed(*values, optimize=False) == wanted
    return computed(*values)


def names(*values: Any) -> list[str]:
    return sorted(task.name for task in flow_of(list(values))[0].tasks)


def test_each_key_is_one_task() -> None:
    one = dask.delayed(inc)(1)
    total = dask.delayed(sum)([one, dask.delayed(inc)(one), one])
    flow, outputs = flow_of(total, name="sums")
    workflow, _ = flow.build()
    assert workflow.name == "sums"
    assert workflow.task_names == ("inc", "inc-2", "sum")
    assert [workflow.spec(i).category for i in range(3)] == ["inc", "inc", "sum"]
    assert workflow.use_task.tolist() == [1, 2, 2]
    assert outputs == [flow.tasks[2]]
    assert same(total) == (7,)


def test_several_outputs_share_their_graph() -> None:
    one = dask.delayed(inc)(1)
    left, right = dask.delayed(inc)(one), dask.delayed(operator.mul)(one, 5)
    flow, outputs = flow_of([left, right, one, left])
    assert len(flow) == 3
    assert outputs[0] == outputs[3]
    assert same(left, right, one, left) == (3, 10, 2, 3)


def test_nested_arguments_and_keywords() -> None:
    a, b = dask.delayed(inc)(1), dask.delayed(inc)(10)
    call = dask.delayed(collect)
    same(call([a, (b, {a, 5}), {"k": [b]}], a, name=b, size={"cost": a}, timeout=None))
    same(call({"x": (), "y": [[]]}, [a, [b, [a, [b]]]], ("inc", 0)))
    assert names(call([a, {"k": b}])) == ["collect", "inc", "inc-2"]


def test_calls_inside_arguments() -> None:
    a = dask.delayed(inc)(1)
    call = dask.delayed(collect)
    same(call(slice(a, 5), Pair(a, 2), {a: 1, (a, 2): a}), call([Point(a), [slice(a)]]))
    same(dask.delayed({a: [a]}), dask.delayed(Pair(a, [a])))


def test_delayed_values() -> None:
    data = dask.delayed([1, 2, 3])
    flow, outputs = flow_of([data, 5, "inc"])
    assert (len(flow), outputs) == (0, [[1, 2, 3], 5, "inc"])
    a = dask.delayed(inc)(data[1])
    same(data, a, dask.delayed([a, 2, {"x": a}]), dask.delayed(7), 5, "text", None)
    same(dask.delayed(inc)(dask.delayed(4)), dask.delayed(collect)(dask.delayed([data, a])))


def test_methods_attributes_and_operators() -> None:
    text = dask.delayed(str.upper)("foreplan")
    number = dask.delayed(inc)(3)
    same(text.lower().split("e"), text.count("E"), number.real, (number.imag + 2) * number)
    same(number + 1, 1 - number, -number, number == 4, text[1], text[number - 3 :])
    first, second = dask.delayed(divmod, nout=2)(number, 3)
    same(first, second, first + second)
    same(dask.delayed(functools.partial(inc))(number), dask.delayed(operator.itemgetter(0))(text))


def test_pure_calls_are_made_once() -> None:
    pure = dask.delayed(inc, pure=True)
    assert len(flow_of([pure(1), pure(1), pure(2)])[0]) == 2
    impure = dask.delayed(inc)
    assert len(flow_of([impure(1), impure(1)])[0]) == 2
    same(pure(pure(1)), pure(2), pure(1))


def test_what_is_not_needed_is_left_out() -> None:
    a, b = dask.delayed(inc)(1), dask.delayed(inc)(2)
    wide = dask.delayed(collect)(a, b)
    assert names(a) == ["inc"]
    assert len(flow_of([a, wide])[0]) == 3


def test_names_given_by_the_user() -> None:
    a = dask.delayed(inc)(1, dask_key_name="first")
    b = [dask.delayed(inc)(a, dask_key_name=f"part-{i}") for i in range(2)]
    c = dask.delayed(inc)(b[0], dask_key_name=("odd", 3))
    workflow, _ = flow_of([*b, c])[0].build()
    assert workflow.task_names == ("first", "part", "part-2", "odd")
    assert [workflow.spec(i).category for i in range(4)] == ["inc", "part", "part", "odd"]
    same(*b, c)


def test_nested_containers_of_delayed_objects() -> None:
    a, b = dask.delayed(inc)(1), dask.delayed(inc)(2)
    assert same([a, {"x": (b, 3)}], {"y": a}, (a, [])) == ([2, {"x": (3, 3)}], {"y": 2}, (2, []))
    assert same([Point(a)], [[Pair(a, [b])]]) == ([Point(2)], [[Pair(2, [3])]])
    with pytest.raises(InputError, match="a key of a dict holds Dask collections; give them in"):
        flow_of([{a: b}])


def test_bags() -> None:
    bag = pytest.importorskip("dask.bag")
    numbers = bag.from_sequence(range(20), npartitions=4)
    odd = numbers.map(inc).filter(lambda x: x % 2)
    same(odd, odd.sum(), numbers.groupby(lambda x: x % 3, shuffle="tasks").map(len))
    same(odd.to_delayed(), dask.delayed(len)(odd), odd.fold(operator.add))


def test_arrays() -> None:
    np = pytest.importorskip("numpy")
    array = pytest.importorskip("dask.array")
    x = array.from_array(np.arange(24.0).reshape(4, 6), chunks=(2, 3))
    for y in (x, (x + x.T.sum()).T, x.sum(axis=0), x @ x.T, x[1:3, ::2], x.mean(), x[:1, :1]):
        (wanted,) = dask.compute(y, scheduler="sync")
        for optimize in (True, False):
            (result,) = computed(y, optimize=optimize)
            assert type(result) is type(wanted)
            assert np.array_equal(result, wanted)


class Old:
    """A collection with a graph of tuples, as they were written before there were nodes."""

    def __init__(self, graph: dict[Any, Any], *keys: Any) -> None:
        self.graph, self.keys = graph, list(keys)

    def __dask_graph__(self) -> dict[Any, Any]:
        return self.graph

    def __dask_keys__(self) -> list[Any]:
        return self.keys

    def __dask_postcompute__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return collect, (5,)

    __dask_optimize__ = None
    __dask_scheduler__ = staticmethod(lambda *args, **kwargs: dask.get(*args, **kwargs))


def test_graphs_of_tuples_and_aliases() -> None:
    graph = {
        "a": 1,
        "alias": "a",
        ("b", 0): (inc, "alias"),
        "c": (sum, ["a", (inc, ("b", 0)), "alias"]),
        "d": "c",
        "unused": (inc, "d"),
    }
    old = Old(graph, "d", ["alias", ["d", ("b", 0)]])
    flow, outputs = flow_of(old, optimize=False)
    assert [task.name for task in flow.tasks] == ["b", "c", "finalize"]
    assert replaced(outputs[0], Task, results_of(flow)) == (([5, [1, [5, 2]]], 5), {})


def test_a_graph_with_a_cycle_or_a_hole_is_refused() -> None:
    with pytest.raises(InputError, match="the graph has a cycle through"):
        flow_of(Old({"a": (inc, "b"), "b": (inc, "c"), "c": (inc, "b")}, "a"), optimize=False)
    from dask._task_spec import Task as Node
    from dask._task_spec import TaskRef

    hole = Old({"a": Node("a", inc, TaskRef("elsewhere"))}, "a")
    with pytest.raises(InputError, match=r"'elsewhere' is not in the graph; give foreplan"):
        flow_of(hole, optimize=False)


def test_a_long_chain() -> None:
    x = dask.delayed(inc)(0)
    graph = {("x", 0): (inc, 0)} | {("x", i): (inc, ("x", i - 1)) for i in range(1, 5000)}
    flow, outputs = flow_of([Old(graph, ("x", 4999)), x], optimize=False)
    assert len(flow) == 5002
    assert replaced(outputs[0], Task, results_of(flow)) == (([5000], 5), {})


def told(*args: Any, **kwargs: Any) -> str:
    return repr((args, kwargs))


def some_delayed(kind: int, some: list[Any], i: int) -> Any:
    call = dask.delayed(told)
    match kind:
        case 0:
            return call(*some)
        case 1:
            return call(some, k={"x": some})
        case 2:
            return call(dict.fromkeys(some, 1), (i, tuple(some)))
        case 3:
            return call(dask.delayed([*some, i]))
        case 4:
            return call(slice(some[0] if some else 0, i))
    return dask.delayed(i)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(0, 30), max_size=3)), min_size=1))
def test_any_graph_comes_to_what_dask_says(wanted: list[tuple[int, list[int]]]) -> None:
    made: list[Any] = []
    for i, (kind, sources) in enumerate(wanted):
        some = [made[s % i] for s in sources] if i else []
        made.append(some_delayed(kind, some, i))
    same(*made[-3:])


PROGRAM = """
import dask
from foreplan.delayed import flow_of
f = dask.delayed(sum)
parts = [f([i, f([i + 1])]) for i in range(6)]
tree = f([f(parts[:3], dask_key_name="left"), {}, f({"b": parts[3], "a": parts[4]}, parts[5])])
workflow, _ = flow_of([tree, *parts])[0].build()
print(workflow.task_names, workflow.use_ptr.tolist(), workflow.use_task.tolist())
"""


def test_the_flow_is_the_same_in_every_process() -> None:
    """Keys and sets are hashed differently in each, but a run must know its tasks again."""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1] != ""


def test_a_dask_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "__version__", "2025.4.1")
    with pytest.raises(
        InputError, match=r"Dask 2025.4.1 is too old.*pip install 'foreplan\[dask\]'"
    ):
        flow_of(dask.delayed(inc)(1))


def test_without_dask_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import foreplan.delayed

    def missing(name: str) -> None:
        raise ImportError(f"No module named {name!r}")

    foreplan.delayed._dask.cache_clear()
    monkeypatch.setattr(foreplan.delayed, "import_module", missing)
    with pytest.raises(ForeplanError, match=r"needs Dask.*pip install 'foreplan\[dask\]'"):
        flow_of(3)
