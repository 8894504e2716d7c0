"""A flow: what the calls say is what the workflow depends on."""

import functools
import operator
import pickle
import re
import sys
import types
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import cloudpickle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.errors import InputError
from foreplan.flow import Flow, Task
from foreplan.model import Call, Ref, TaskSpec
from foreplan.model.amounts import Amount
from foreplan.model.call import FileRef, qualified_name, replaced
from foreplan.model.resources import Request
from library.computing import make_call


def load(path: str) -> str:
    return f"<{path}>"


def tidy(text: str, *more: Any, strict: bool = False) -> str:
    return f"{text}{more}{strict}"


def limited(path: str, timeout: float = 10) -> tuple[str, float]:
    return path, timeout


def calls_of(flow: Flow) -> list[Call]:
    return [call for call in flow.build()[1] if call is not None]


def evaluate(flow: Flow) -> Callable[[Task], Any]:
    """Make the calls in order, here; the answer looks up a task's result."""
    results: dict[int, Any] = {}
    workflow, calls = flow.build()
    for i in workflow.order.tolist():
        results[i] = make_call(calls[i], results)
    return lambda task: results[flow.index(task)]


def test_the_example_of_the_issue() -> None:
    flow = Flow("etl")
    raw = flow.task(load, "x.csv")
    clean = flow.task(tidy, raw, cost=20, category="tidy")
    workflow, calls = flow.build()
    assert workflow.name == "etl"
    assert workflow.task_names == ("load", "tidy")
    assert np.array_equal(workflow.base_cost, [np.nan, 20], equal_nan=True)
    assert [workflow.spec(i).category for i in range(2)] == [f"{__name__}.load", "tidy"]
    assert calls == (Call(load, ("x.csv",)), Call(tidy, (Ref(0),)))
    assert evaluate(flow)(clean) == "<x.csv>()False"


def test_every_task_has_one_item_its_result() -> None:
    flow = Flow("w")
    a = flow.task(load, "a", size=7)
    b = flow.task(tidy, a, a)
    flow.task(tidy, a, b, strict=b)
    workflow, _ = flow.build()
    assert workflow.item_producer.tolist() == [0, 1, 2]
    assert workflow.item_size.tolist() == [7, 0, 0]
    assert workflow.item_names is None
    assert workflow.use_ptr.tolist() == [0, 2, 3, 3]
    assert workflow.use_task.tolist() == [1, 2, 2]


def test_tasks_are_found_in_nested_arguments() -> None:
    flow = Flow("w")
    a, b = flow.task(load, "a"), flow.task(load, "b")
    value = [a, (1, {"k": {b}, "l": frozenset([a])}), []]  # no set of several: it has no order
    nested = flow.task(tidy, value, strict=(b,))
    _, calls = flow.build()
    refs = [Ref(0), (1, {"k": {Ref(1)}, "l": frozenset([Ref(0)])}), []]
    assert calls[2] == Call(tidy, (refs,), {"strict": (Ref(1),)})
    results = {"a": "<a>", "b": "<b>"}
    told = ["<a>", (1, {"k": {"<b>"}, "l": frozenset(["<a>"])}), []]
    assert evaluate(flow)(nested) == tidy(told, strict=("<b>",))  # type: ignore[arg-type]
    assert replaced(value, Task, lambda task: results["ab"[task.index]]) == told


def test_arguments_are_taken_as_they_are_when_the_task_is_added() -> None:
    flow = Flow("w")
    thing, states = object(), list[Any]()
    data: dict[str, Any] = {"seed": 0, "all": [1]}
    for seed in range(3):
        data["seed"] = seed
        data["all"].append(seed)
        flow.task(tidy, [data, data], thing)
        states.append({"seed": seed, "all": [1, *range(seed + 1)]})
    flow.task(tidy, data)
    calls = calls_of(flow)
    assert [call.args[0] for call in calls[:3]] == [[state] * 2 for state in states]
    assert calls[0].args[0][0] is calls[0].args[0][1]  # one, as it was
    assert calls[3].args[0] is calls[2].args[0][0]  # nothing has changed: no other copy
    assert {id(call.args[1]) for call in calls[:3]} == {id(thing)}


def test_names_are_numbered_when_taken() -> None:
    flow = Flow("w")
    flow.task(load, "a", name="tidy-2")
    tasks = [flow.task(tidy, "a") for _ in range(3)]
    named = [flow.task(load, "a", name="x") for _ in range(2)]
    other = flow.task(functools.partial(lambda x: x, 3))
    assert [t.name for t in tasks] == ["tidy", "tidy-3", "tidy-4"]
    assert [t.name for t in named] == ["x", "x-2"]
    assert other.name == "lambda"
    assert flow.task(operator.itemgetter(1), [1, 2]).name == "itemgetter"
    assert len(set(flow.build()[0].task_names)) == len(flow) == 8


def test_the_category_is_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = Flow("w")
    flow.task(functools.partial(load, "a"))
    flow.task(operator.methodcaller("upper"), "a")
    flow.task("a".upper)
    flow.task(len, "a")
    script = types.FunctionType(load.__code__, {"__name__": "__main__"}, "load")
    script.__qualname__, script.__module__ = "load", "__main__"
    monkeypatch.setattr("__main__.__file__", "/some/where/etl.py", raising=False)
    flow.task(script, "a")
    workflow, _ = flow.build()
    assert [workflow.spec(i).category for i in range(5)] == [
        f"{__name__}.load",
        "operator.methodcaller",
        "builtins.str.upper",
        "builtins.len",
        "where/etl.load",
    ]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (None, "rna/load"),
        ("/some/where/rna/__main__.py", "rna/load"),
        ("/some/rna/etl.py", "rna/etl.load"),
    ],
)
def test_no_program_is_called_main(
    file: str | None, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Functions are known by project; a notebook has no file, but works in a directory."""
    (tmp_path / "rna").mkdir()
    monkeypatch.chdir(tmp_path / "rna")
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    if file is not None:
        main.__file__ = file
    function = types.FunctionType(load.__code__, {"__name__": "__main__"}, "load")
    function.__qualname__, function.__module__ = "load", "__main__"
    assert qualified_name(function) == name


def test_order_without_data() -> None:
    flow = Flow("w")
    a, b, c = flow.task(load, "a"), flow.task(load, "b"), flow.task(load, "c")
    d = flow.task(load, "d", after=a)
    flow.task(load, "e", after=[a, d, d])
    flow.edge(a, c)
    flow.edge(a, c)
    (workflow, _), calls = flow.build(), calls_of(flow)
    assert workflow.use_ptr.tolist() == [0, 3, 3, 3, 4, 4]
    assert workflow.use_task.tolist() == [2, 3, 4, 4]
    assert all(call.args == (name,) for call, name in zip(calls, "abcde", strict=True))
    for pair in ((c, a), (b, b)):
        with pytest.raises(InputError, match="from an earlier task to a later one"):
            flow.edge(*pair)


def test_options_go_to_the_task() -> None:
    flow = Flow("w")
    flow.task(load, "a", retries=2, timeout=30, cost=np.float64(0.5), category="x")
    flow.call(limited, ("a",), {"timeout": 3}, timeout=40)
    (workflow, _), calls = flow.build(), calls_of(flow)
    assert workflow.spec(0) == TaskSpec("x", None, 2, 30.0)
    assert workflow.base_cost[0] == 0.5
    assert (workflow.spec(1).timeout, calls[1].kwargs) == (40.0, {"timeout": 3})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"cost": -1}, "task 'load': cost: expected a number from 0"),
        ({"cost": float("nan")}, "expected a number from 0"),
        ({"cost": "3"}, "expected a number, not '3'"),
        ({"size": float("inf")}, "expected a number from 0"),
        ({"retries": 1.5}, "task 'load': retries: expected a whole number, not 1.5"),
        ({"retries": True}, "expected a number, not True"),
        ({"retries": -1}, "expected a number from 0"),
        ({"timeout": 0}, "task 'load': timeout: the seconds must be more than 0"),
        ({"name": 3}, "are strings, not 3"),
        ({"category": 3}, "are strings, not 3"),
        ({"after": [3]}, "expected a task of the flow 'w', not 3"),
        ({"retri": 2}, "unexpected keyword argument 'retri'; options of a task are name, cost"),
        ({"retry": 2}, "task 'load': retry: expected causes and how often each"),
        ({"retry": {"lots": 2}}, "task 'load': retry: unknown cause 'lots' (did you mean 'lost'?)"),
        ({"wait": "soon"}, "task 'load': wait: expected seconds, or a time such as 10s"),
    ],
)
def test_a_wrong_option_is_an_error(options: dict[str, Any], problem: str) -> None:
    flow = Flow("w")
    with pytest.raises(InputError) as caught:
        flow.task(load, "a", **options)
    assert problem in str(caught.value)
    assert len(flow) == 0  # a refused task leaves nothing behind


def test_a_wrong_call_is_found_at_once() -> None:
    flow = Flow("w")
    with pytest.raises(InputError, match="load cannot be called like this: missing a required"):
        flow.task(load)
    with pytest.raises(InputError, match=r"a task needs a function, not '<a>'.*flow.task"):
        flow.task(load("a"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"option of flow.task and also a parameter of limited"):
        flow.task(limited, "a", timeout=3)
    with pytest.raises(InputError, match=r"'path'; flow.call\(limited, args, kwargs, ...\)"):
        flow.task(limited, timeout=3)
    assert flow.task(limited, "a", 3, timeout=3).name == "limited"  # both are given: no doubt


@dataclass
class Box:
    content: Any
    size: int = field(init=False)  # it may be missing
    more: list[Any] = field(default_factory=list)
    kind: ClassVar[str] = "box"


@dataclass(frozen=True, slots=True)
class Frozen:
    content: Any
    inner: Any = None


class Pair(NamedTuple):
    first: Any
    second: int = 2


@dataclass(eq=False)
class Node:
    name: str
    parent: Any = None
    children: list[Any] = field(default_factory=list)


def test_tasks_are_found_in_named_tuples_and_dataclasses() -> None:
    flow = Flow("w")
    a, b = flow.task(load, "a"), flow.task(load, "b")
    box = Box(a, [Frozen({"k": b}, Pair(a))])
    told = flow.task(lambda *boxes: boxes, box, [box], Frozen(1))
    assert flow.build()[0].in_item.tolist() == [0, 1]
    one, [same], plain = evaluate(flow)(told)
    assert one is same  # as they were
    assert (type(one), one.content, hasattr(one, "size")) == (Box, "<a>", False)
    assert one.more == [Frozen({"k": "<b>"}, Pair("<a>"))]
    assert plain == Frozen(1)
    assert (box.content, box.more[0].content) == (a, {"k": b})  # the user's are as they were


def test_what_holds_itself_is_handed_on_as_it_is() -> None:
    flow = Flow("w")
    root = Node("root")
    root.children.append(Node("leaf", root))
    task = flow.task(lambda node: node, root)
    again = evaluate(flow)(task)
    assert again.children[0].parent is again
    root.name = flow.task(load, "a")  # type: ignore[assignment]
    with pytest.raises(InputError, match="a Node holds itself and a task"):
        flow.task(lambda node: node, root)


class Holder:
    def __init__(self, held: Any) -> None:
        self.held = held

    def method(self) -> Any:
        return self.held

    def __call__(self) -> Any:
        return self.held


class Slotted:
    __slots__ = ("slot",)

    def __init__(self, slot: Any) -> None:
        self.slot = slot


def naming_a_global() -> Any:
    return hidden_task


def naming_a_function() -> Any:
    return naming_a_global()


hidden_task: Any = None


def default(a: Any) -> Callable[..., Any]:
    return lambda y=1, x=a, *, z=2: x


def keyword_default(a: Any) -> Callable[..., Any]:
    return lambda *, z=(a,): z


# as an argument, or as the function if it can be called
HIDING: list[tuple[Callable[[Any], Any], str]] = [
    (lambda a: OrderedDict(x=a), "a OrderedDict"),
    (lambda a: deque([a]), "a deque"),
    (lambda a: {a: 1}, "a key of a dict"),
    (lambda a: [{(1, a): 1}], "a key of a dict"),
    (Holder, "the attribute 'held' of an object of the class Holder"),
    (lambda a: Holder([{"k": a}]), "the attribute 'held' of an object of the class Holder"),
    (lambda a: Box(Holder(a)), "the attribute 'held' of an object of the class Holder"),
    (lambda a: Holder(Box(a)), "the attribute 'content' of an object of the class Box"),
    (lambda a: types.SimpleNamespace(n=a), "the attribute 'n' of an object of the class Simple"),
    (Slotted, "the attribute 'slot' of an object of the class Slotted"),
    (lambda a: type("Odd", (), {"held": a}), "the attribute 'held' of the class Odd"),
    (lambda a: functools.partial(tidy, a), "a functools.partial"),
    (lambda a: functools.partial(dict, k=[a]), "a functools.partial"),
    (lambda a: Holder(a).method, "the attribute 'held' of an object of the class Holder"),
    (lambda a: [a].append, "the object of the method append"),
    (lambda a: lambda: a, "the closure variable 'a' of the function <lambda>"),
    (lambda a: lambda: lambda: a[0], "the closure variable 'a' of the function <lambda>"),
    (default, "the default of 'x' of the function <lambda>"),
    (keyword_default, "the default of 'z' of the function <lambda>"),
    (lambda a: naming_a_global, "the global variable 'hidden_task' of the function naming_a_gl"),
    (lambda a: naming_a_function, "the global variable 'hidden_task' of the function naming_a_gl"),
]


@pytest.mark.parametrize(("hide", "where"), HIDING)
def test_a_task_where_its_result_cannot_be_put_is_refused(
    hide: Callable[[Any], Any], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = Flow("w")
    a = flow.task(load, "a")
    monkeypatch.setitem(globals(), "hidden_task", a)
    value = hide(a)
    problem = re.escape(f"the task 'load' is inside {where}")
    with pytest.raises(InputError, match=f"^task 'tidy': {problem}.*; give it as an argument"):
        flow.task(tidy, value)
    if callable(value) and not isinstance(value, type):
        with pytest.raises(InputError, match=problem):
            flow.call(value)


def test_what_only_looks_like_a_hidden_task_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = Flow("w")
    monkeypatch.setitem(globals(), "hidden_task", flow.task(load, "a"))
    flow.task(lambda row: row.hidden_task, types.SimpleNamespace(hidden_task=1))
    flow.task(lambda hidden_task: hidden_task, 1)
    flow.task(tidy, Pair(1), [flow.name], object())
    assert len(pickle.loads(cloudpickle.dumps(flow)).tasks) == 4  # a function may name the flow


def yielding() -> Iterator[int]:
    yield 1


async def yielding_later() -> AsyncIterator[int]:
    yield 1


class Yielding:
    def __call__(self) -> Iterator[int]:
        yield 1


@pytest.mark.parametrize(
    "function", [yielding, yielding_later, functools.partial(yielding), Yielding()]
)
def test_a_generator_function_is_refused_at_once(function: Callable[[], Any]) -> None:
    with pytest.raises(InputError, match=r"is a generator function.*return a list"):
        Flow("w").task(function)


def test_tasks_of_another_flow_are_refused() -> None:
    flow, other = Flow("w"), Flow("other")
    foreign, own = other.task(load, "a"), flow.task(load, "a")
    for wrong in (
        lambda: flow.task(tidy, [foreign]),
        lambda: flow.task(load, "b", after=foreign),
        lambda: flow.edge(foreign, own),
        lambda: flow.index(foreign),
    ):
        with pytest.raises(InputError, match="'load' belongs to another flow, 'other'"):
            wrong()
    assert foreign != own
    assert flow.index(own) == 0


def test_a_task_is_a_value() -> None:
    flow = Flow("w")
    task = flow.task(load, "a")
    assert repr(task) == "Task(index=0, name='load')"
    assert repr(flow) == "Flow('w', 1 task)"
    assert {task: 1}[flow.tasks[0]] == 1
    with pytest.raises(AttributeError):
        task.index = 3  # type: ignore[misc]


def test_an_empty_flow_cannot_be_built() -> None:
    with pytest.raises(InputError, match="the flow 'w' has no tasks"):
        Flow("w").build()


def test_the_calls_hold_no_flow() -> None:
    flow = Flow("w")
    flow.task(tidy, flow.task(load, "a"))
    _, calls = flow.build()
    assert b"Flow" not in pickle.dumps(calls)


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 30), max_size=4), min_size=1, max_size=30))
def test_any_flow_comes_to_what_plain_calls_come_to(wanted: list[list[int]]) -> None:
    """Task i sums the results of some earlier ones, and itself."""
    flow, tasks, values = Flow("w"), list[Task](), list[int]()
    for i, sources in enumerate(wanted):
        earlier = [s % i for s in sources] if i else []
        tasks.append(flow.task(sum, [i, *(tasks[s] for s in earlier)]))
        values.append(sum([i, *(values[s] for s in earlier)]))
    result = evaluate(flow)
    assert [result(task) for task in tasks] == values
    workflow, _ = flow.build()
    assert workflow.item_producer.tolist() == list(range(len(wanted)))


def test_a_task_asks_for_cores_memory_and_more() -> None:
    flow = Flow()
    flow.task(max, 1, 2, cores=4, memory="8GB", gpus=1, pools={"x": 1}, resources={"ssd": "1GB"})
    flow.call(max, [1, 2], cores=[1, 2], parallel={1: 4, 2: 3}, on=["big*"], not_on="old")
    flow.task(max, 1, 2, cores=1)
    first, second, third = (flow.build()[0].spec(t).request for t in range(3))
    assert first == Request(
        cores=(4,),
        memory=Amount("8GB"),
        gpus=1,
        resources=(("ssd", Amount("1GB")),),
        pools=(("x", 1.0),),
    )
    assert second == Request(cores=(1, 2), seconds=(4.0, 3.0), on=("big*",), not_on=("old",))
    assert third is None
    assert flow.build()[0].base_cost[1] == 4.0


def test_a_flow_declares_pools() -> None:
    flow = Flow("f", pools={"licence": 2})
    flow.task(max, 1, 2, pools={"licence": 1})
    assert flow.build()[0].pools == {"licence": 2.0}
    with pytest.raises(InputError, match=r"flow 'f'\.pools\.x: must not be negative"):
        Flow("f", pools={"x": -1})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"cores": 0}, "task 'max'.cores: a task takes 1 to"),
        ({"memory": "8 XB"}, "task 'max'.memory: .* unknown unit"),
        ({"memory": -1}, "negative"),
        ({"memory": 8}, "task 'max'.memory: 8 without a unit is 8 bytes"),
        ({"cores": (1, 2)}, "must say its parallel share"),
        ({"gpus": 1.5}, "whole number"),
    ],
)
def test_wrong_needs_are_told_at_once(options: dict[str, Any], problem: str) -> None:
    flow = Flow()
    with pytest.raises(InputError, match=problem):
        flow.task(max, 1, 2, **options)
    assert len(flow) == 0


def test_commands_stand_beside_functions() -> None:
    flow = Flow("mixed")
    sort = flow.command(
        "LC_ALL=C sort {input} > {output} # {} ${X} {a,b}", inputs="a b.txt", outputs=["out.txt"],
        cost=3, category="sorts", retries=2, retry={"exit": 1}, wait="1s", timeout=9, cores=2,
        memory="1GB", shell="sh -eu", env={"X": "y"},
    )  # fmt: skip
    both = flow.command("cat {inputs} {inputs[1]}", inputs=[sort, flow.file("x'y")], name="both")
    flow.task(load, [sort.output, flow.file("plain.txt")], name="read", after=both)
    later = flow.command("wc -l", inputs=[], outputs=["plain.txt"])
    assert (sort.name, later.name, sort.output.name) == ("sort", "wc", "out.txt")
    workflow, calls = flow.build()
    assert calls == (None, None, Call(load, ([FileRef("out.txt"), FileRef("plain.txt")],)), None)
    spec = workflow.spec(0)
    assert spec.run == "LC_ALL=C sort 'a b.txt' > out.txt # {} ${X} {a,b}"
    assert workflow.spec(1).run == """cat out.txt 'x'"'"'y' 'x'"'"'y'"""
    assert (spec.category, spec.retries, spec.timeout, spec.shell) == ("sorts", 2, 9.0, "sh -eu")
    assert spec.request is not None
    assert spec.request.cores == (2,)
    assert workflow.base_cost[0] == 3
    _, producers, consumers = workflow.dependencies()
    pairs = {*zip(producers.tolist(), consumers.tolist(), strict=True)}
    assert pairs == {(0, 1), (0, 2), (1, 2), (3, 2)}  # also what was added later


@pytest.mark.parametrize(
    ("add", "problem"),
    [
        (lambda f: f.command("x", retrys=1), "retrys.*did you mean 'retry'"),
        (lambda f: f.command("x", retries=-1), "tasks.x.retries"),
        (lambda f: f.command("x {inputs[1]}", inputs=["a"]), "inputs has 1"),
        (lambda f: f.command("x {output}", outputs=["a", "b"]), "has 2 outputs"),
        (lambda f: f.command(["x"]), "a command is a text"),
        (lambda f: f.command("x", inputs=[3]), "the name of a file, not 3"),
        (lambda f: f.command("x", inputs=[f.task(load, 1)]), "of a function is no file.*after="),
        (lambda f: f.command("x", inputs=Flow("o").file("a")), "is of another flow, 'o'"),
        (lambda f: f.command("x", outputs=["a", "b"]).output, "2 outputs.*`.outputs`"),
        (lambda f: f.task(load, f.command("x")), "has no outputs.*after="),
        (lambda f: f.task(load, {f.file("a"): 1}), "the file 'a' is inside a key of a dict"),
        (lambda f: f.task(load, {f.task(load, 1)[0]: 1}), "the task 'load' is inside a key"),
        (lambda f: f.command("x", cost={"p": 1}), "one number, in seconds"),
    ],
)
def test_what_cannot_be_meant_is_refused(add: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        add(Flow("bad"))


def test_two_makers_of_a_file_and_cycles_are_refused() -> None:
    flow = Flow("twice")
    flow.command("x", outputs=["a"])
    flow.command("y", outputs=["a"])
    with pytest.raises(InputError, match="'a' is made by both 'x' and 'y'"):
        flow.build()
    flow = Flow("cycle")
    reads = flow.task(load, flow.file("a"))
    flow.command("x", outputs=["a"], after=reads)
    with pytest.raises(InputError, match="form a cycle: load -> x -> load"):
        flow.build()


def test_parts_of_results_are_named_and_not_gone_through() -> None:
    flow = Flow("parts")
    pair = flow.task(divmod, 7, 2)
    flow.task(load, [pair[0], pair[1]["a"], pair[1:]])
    _, calls = flow.build()
    parts = [Ref(0, (0,)), Ref(0, (1, "a")), Ref(0, (slice(1, None),))]
    assert calls[1] == Call(load, (parts,))
    for thing in (pair, pair[0]):
        with pytest.raises(TypeError, match="'divmod' is not known before the flow has run"):
            list(thing)
        with pytest.raises(TypeError):
            _ = 3 in thing


def test_keep_is_an_option_and_never_an_argument() -> None:
    flow = Flow()

    def first_of(values: list[int], keep: str = "first") -> list[int]:
        return values if keep else []

    for chosen in (True, False):
        with pytest.raises(InputError, match="'keep' is an option"):
            flow.task(first_of, [1], keep=chosen)
    with pytest.raises(InputError, match="keep: expected True or False, not 'yes'"):
        flow.task(abs, -1, keep="yes")  # type: ignore[arg-type]
    flow.task(abs, -1, keep=True)
    flow.call(first_of, ([1],), {"keep": "last"})
    workflow, _ = flow.build()
    assert [workflow.spec(task).keep for task in range(2)] == [True, False]
