"""Every task has its arguments as they were produced, whatever other tasks do to theirs."""

from __future__ import annotations

import array
import functools
import types
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import foreplan
from foreplan.report.data import report_of
from foreplan.runs.home import RunHome

distributed = pytest.importorskip("distributed")

LOCAL, DASK = "local:1", "dask"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """One worker, so that all tasks have the same memory, with two threads."""
    options = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(processes=False, protocol="tcp", host="127.0.0.1", **options) as c,
        distributed.Client(c) as client,
    ):
        yield client


@pytest.fixture(params=[LOCAL, DASK])
def on(request: pytest.FixtureRequest, data: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(data)
    return request.getfixturevalue("client") if request.param == DASK else LOCAL


def run(flow: foreplan.Flow, on: Any, **options: Any) -> foreplan.Outcome:
    outcome = foreplan.run(flow, on, progress=False, **options)
    assert outcome.ok, outcome.failures
    return outcome


class Account:
    def __init__(self, balance: int = 3) -> None:
        self.balance = balance
        self.log: list[int] = []

    def pay(self, amount: int) -> int:
        self.balance -= amount
        return self.balance

    async def pay_later(self, amount: int) -> int:
        return self.pay(amount)


class Later:
    async def __call__(self, x: int) -> int:
        return x + 1


@dataclass
class Box:
    content: Any
    size: int = field(init=False, default=2)


class Pair(NamedTuple):
    first: Any
    second: int = 0


def large() -> Any:
    return np.arange(200_000.0)  # mapped by the second reader


# what makes a value, what changes it in place, and what tells of all of it
Kind = tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], Any]]
KINDS: dict[str, Kind] = {
    "list": (lambda: [1, 2], lambda v: v.clear(), list),
    "dict": (lambda: {"a": 1}, lambda v: v.update(a=9, b=2), dict),
    "set": (lambda: {1, 2}, lambda v: v.add(3), sorted),
    "bytearray": (lambda: bytearray(b"ab"), lambda v: v.extend(b"!"), bytes),
    "large bytearray": (lambda: bytearray(1 << 17), lambda v: v.__setitem__(0, 1), sum),
    "array.array": (lambda: array.array("d", [1.0]), lambda v: v.append(2.0), list),
    "deque": (lambda: deque([1]), lambda v: v.append(2), list),
    "nested": (lambda: ({"a": [[1]]},), lambda v: v[0]["a"][0].append(2), repr),
    "numpy": (lambda: np.arange(3), lambda v: v.fill(-1), lambda v: v.tolist()),
    "large numpy": (large, lambda v: v.fill(-1), lambda v: float(v.sum())),
    "numpy objects": (
        lambda: np.array([[1], None], dtype=object),
        lambda v: v[0].append(2),
        lambda v: v.tolist(),
    ),
    "numpy in a dict": (
        lambda: {"x": large(), "y": [large()[:50_000]]},
        lambda v: (v["x"].fill(0), v["y"][0].fill(0)),
        lambda v: float(v["x"].sum() + v["y"][0].sum()),
    ),
    "pandas": (
        lambda: pd.DataFrame({"a": [1, 2]}),
        lambda v: v.insert(0, "b", 3),
        lambda v: v.to_dict("list"),
    ),
    "object": (Account, lambda v: (v.pay(1), v.log.append(1)), lambda v: (v.balance, v.log)),
    "dataclass": (lambda: Box([1]), lambda v: v.content.append(2), repr),
    "named tuple": (lambda: Pair([1]), lambda v: v.first.append(2), repr),
}


def make(kind: str) -> Any:
    return KINDS[kind][0]()


def change(kind: str, value: Any, *_: Any) -> str:
    seen = repr(KINDS[kind][2](value))
    KINDS[kind][1](value)
    return seen


def give_back(value: Any, *_: Any) -> Any:
    return value


def test_a_change_in_place_is_seen_by_nobody_else(on: Any) -> None:
    flow = foreplan.Flow("changes")
    made, seen = dict[str, Any](), dict[str, list[Any]]()
    for kind in KINDS:
        made[kind] = value = flow.task(make, kind)
        first = flow.task(change, kind, value)
        passed_on = flow.task(give_back, value, first)
        second = flow.task(change, kind, passed_on)
        seen[kind] = [first, second, flow.task(change, kind, value, second)]
    outcome = run(flow, on, keep_results=True)
    right = {kind: change(kind, make(kind)) for kind in KINDS}
    told = {kind: [outcome.result(task) for task in tasks] for kind, tasks in seen.items()}
    assert told == {kind: [right[kind]] * 3 for kind in KINDS}
    again = run(flow, LOCAL)  # what is kept is what was made
    assert len(again.up_to_date) == len(flow.tasks)
    assert {kind: change(kind, again.result(task)) for kind, task in made.items()} == right


@functools.cache
def numbers_of(run: str) -> list[int]:
    return []


def remember(run: str, number: int, *_: Any) -> list[int]:
    numbers_of(run).append(number)
    return numbers_of(run)


def put(values: list[Any], *more: Any) -> list[Any]:
    values.append(len(values))
    return [values, *more]


def fail_once(values: list[int], marker: str) -> list[int]:
    values.append(1)
    if not Path(marker).exists():
        Path(marker).touch()
        raise ValueError("once")
    return values


async def add(x: int, y: int = 1) -> int:
    return x + y


def test_what_a_call_holds_is_its_own_and_is_whole(on: Any, tmp_path: Path) -> None:
    flow = foreplan.Flow("calls")
    account, literal = Account(), [7]
    m = flow.task(list, [5])
    nested = flow.task(dict, x=[5])
    wanted: list[tuple[Any, Any]] = []

    def expect(value: Any, function: Any, *args: Any, **options: Any) -> Any:
        wanted.append((value, flow.task(function, *args, **options)))
        return wanted[-1][1]

    expect([[5, 1], [5, 1]], put, m, m, name="twice")
    expect([[5, 1], [[5, 1]], [5]], put, m, [m], flow.task(list, m), name="nested")
    expect([[5, 1], {"x": [5, 1]}], put, nested["x"], nested, name="a part and the whole")
    expect([[7, 1], [7, 1], [5]], put, literal, literal, m, name="a literal twice")
    expect([[7, 1], [[7, 1]]], put, literal, Box([literal]).content, name="a literal again")
    for amount in (1, 1):
        expect(2, account.pay, amount)
        expect([[0, 1]], functools.partial(put, [0]))
    for _ in range(2):  # by a default, and in a closure
        expect([[9, 1]], lambda values=[9]: put(values), name="default")
        expect([[7, 1]], lambda: put(literal), name="closure")
    first = flow.task(remember, str(tmp_path), 1)
    second = flow.task(remember, str(tmp_path), 2, first)
    expect([1], give_back, first, second)
    expect([1, 2], give_back, second)
    expect([5, 1], fail_once, m, str(tmp_path / "marker"), retries=1)
    expect([[5, 1], 1], lambda box: put(box.content, box.size - 1), Box(m))
    expect(Pair({"a": [5]}, 3), give_back, Pair({"a": m}, 3))
    expect(3, add, 1, y=2)
    expect(2, functools.partial(add), 1)
    expect(1, account.pay_later, 2)
    expect(2, Later(), 1)
    outcome = run(flow, on)
    assert [(t.name, outcome.result(t)) for _, t in wanted] == [(t.name, v) for v, t in wanted]


SCRIPT = """
seen, count = [], 0
def append(number): seen.append(number); return list(seen)
def increase(number):
    global count
    count += number
    return count
def through(number): return append(number)
class Table:
    rows = 1
def remember(number):
    known = getattr(Table, "last", None)
    Table.last = number
    return known
def total():
    if not hasattr(Table, "sum"): Table.sum = Table.rows * 100
    return Table.sum
"""


def test_what_a_script_has_in_its_globals_is_each_call_s_own(on: Any) -> None:
    script = types.ModuleType("__main__")
    exec(SCRIPT, vars(script))
    flow = foreplan.Flow("script")
    wanted = [(flow.task(script.append, k), [k]) for k in range(3)]
    wanted += [(flow.task(script.through, k), [k]) for k in range(3)]
    increased = [(flow.task(script.increase, k), k) for k in range(3)]
    outcome = run(flow, on)
    assert [(t.name, outcome.result(t)) for t, _ in [*wanted, *increased]] == [
        (t.name, value) for t, value in [*wanted, *increased]
    ]


def test_what_tasks_set_on_a_script_s_class_is_gone_in_the_next_task(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Dask such attributes stay: see docs/limits.md."""
    monkeypatch.chdir(data)
    script = types.ModuleType("__main__")
    exec(SCRIPT, vars(script))
    flow = foreplan.Flow("class")
    tasks = [flow.task(script.remember, k) for k in range(3)]
    summed = flow.task(script.total)
    outcome = run(flow, LOCAL)
    assert [outcome.result(task) for task in tasks] == [None] * 3
    assert outcome.result(summed) == 100
    script.Table.rows = 2
    assert run(flow, LOCAL).result(summed) == 200


def test_a_late_task_is_refused_when_the_call_is_packed(on: Any) -> None:
    flow = foreplan.Flow("late")
    task, account = flow.task(abs, -7), Account()
    flow.task(give_back, account)
    account.log.append(task)  # type: ignore[arg-type]
    problem = r"the task 'abs' is inside the attribute 'log' of an object of the class Account"
    if on is LOCAL:
        outcome = foreplan.run(flow, on, progress=False)
        assert [f.task for f in outcome.failures] == ["give_back"]
        assert outcome.failures[0].reason.startswith(problem)
    else:
        with pytest.raises(foreplan.InputError, match=f"task 'give_back': {problem}"):
            foreplan.run(flow, on, progress=False)


def test_the_report_tells_what_was_copied(client: Any, data: Path) -> None:
    flow = foreplan.Flow("report")
    a = flow.task(large)
    flow.task(give_back, a)
    flow.task(abs, -1)
    outcome = run(flow, client, dir=data)
    usage = report_of(RunHome.find(data, outcome.id)).usage
    copied = {use.category.rpartition(".")[2]: use.copied or 0.0 for use in usage}
    assert copied["large"] > 1_600_000
    assert copied["give_back"] > 2 * 1_600_000  # what it was given, and what it gave
    assert 0 < copied["abs"] < 100
    assert all(use.copying for use in usage)
