"""Functions by key: what they are made of, and what of a flow is up to date."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.model import Call, Ref
from foreplan.store import parts
from foreplan.store.content import digest_of
from foreplan.store.digests import digests_of
from foreplan.store.keys import recipe_of_call
from foreplan.store.making import call_line
from foreplan.store.programs import CallDigests
from foreplan.store.store import KeptResult, Store
from foreplan.store.survey import Asked, State, Survey

HELPERS = "SCALE = {'k': 1}\ndef helper(x): return x * SCALE['k']\ndef unused(x): return 0"
PROGRAM = """
import helpers, math
from helpers import helper
LIST = [1, 2]
class Base:
    factors = [1]
    def go(self): return inner(1)
def inner(x): return x + LIST[0]
def f(x, y=2): return helpers.helper(x) + y
def g(x): return inner(x)
def h(x):
    import helpers
    return helpers.helper(x)
def b(x): return Base().go()
"""


@pytest.fixture
def program() -> Iterator[Callable[..., Any]]:
    """Makes a function of a program with a module of its own."""

    def make(name: str, source: str = PROGRAM, helpers: str = HELPERS) -> Any:
        module = types.ModuleType("helpers")
        exec(helpers, vars(module))
        sys.modules["helpers"] = module
        scope: dict[str, Any] = {"__name__": "program"}
        exec(source, scope)
        return scope[name]

    yield make
    sys.modules.pop("helpers", None)


def key(call: Call, contents: dict[int | str, str] | None = None) -> str:
    names = [f"t{k}" for k in range(10)]
    return recipe_of_call(call, CallDigests(), contents or {}, names, {}).key


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("f", "+ y", "- y"),
        ("f", "y=2", "y=3"),
        ("g", "x + LIST", "x - LIST"),
        ("g", "[1, 2]", "[3, 2]"),  # a global that may change
        ("b", "x + LIST", "x - LIST"),  # by a method
        ("b", "factors = [1]", "factors = [2]"),
    ],
)
def test_a_change_of_the_program_is_seen(
    program: Callable[..., Any], name: str, old: str, new: str
) -> None:
    assert old in PROGRAM
    first = key(Call(program(name), (1,)))
    assert first == key(Call(program(name), (1,)))
    assert first != key(Call(program(name, PROGRAM.replace(old, new)), (1,)))


@pytest.mark.parametrize("name", ["f", "h"])
def test_a_change_of_a_module_of_the_program_is_seen(
    program: Callable[..., Any], name: str
) -> None:
    first = key(Call(program(name), (1,)))
    for old, new, is_seen in (
        ("x * SCALE", "x + SCALE", True),
        ("'k': 1", "'k': 2", True),
        ("return 0", "return 1", False),  # nobody calls it
    ):
        other = key(Call(program(name, helpers=HELPERS.replace(old, new)), (1,)))
        assert (other != first) == is_seen, old


HANDED_ON = """
import helpers
MODULES = {"a": helpers}
class Box: held = helpers
def call(module, x): return module.helper(x)
def make(module): return lambda x: module.helper(x)
def by_dict(x): return MODULES["a"].helper(x)
def by_default(x, module=helpers): return module.helper(x)
by_closure = make(helpers)
def by_class(x): return Box.held.helper(x)
def by_call(x): return call(helpers, x)
def by_late_import(x):
    import helpers
    return call(helpers, x)
by_argument = [call, helpers]
"""


@pytest.mark.parametrize(
    "name",
    ["by_dict", "by_default", "by_closure", "by_class", "by_call", "by_late_import", "by_argument"],
)
def test_a_change_of_a_module_that_is_handed_on_is_seen(
    program: Callable[..., Any], name: str
) -> None:
    """All of it: nobody knows what will be used."""

    def found(helpers: str = HELPERS) -> str:
        return key(Call(max, (program(name, HANDED_ON, helpers), 1)))

    first = found()
    assert first == found() == found(f"# moved\n{HELPERS}")
    for old, new in (("x * SCALE", "x + SCALE"), ("'k': 1", "'k': 2"), ("return 0", "return 1")):
        assert found(HELPERS.replace(old, new)) != first
    with pytest.raises(ValueError, match="LOCK of the module helpers: cannot pickle"):
        found(f"{HELPERS}\nimport threading\nLOCK = threading.Lock()")


def test_arguments_and_results(program: Callable[..., Any]) -> None:
    f = program("f")
    assert key(Call(f, (1,))) != key(Call(f, (2,)))
    assert key(Call(f, (1,))) != key(Call(f, (), {"x": 1}))
    # a result counts by its content, wherever its task stands
    one = key(Call(f, ([Ref(1), 5],)), {1: "content"})
    assert one == key(Call(f, ([Ref(3), 5],)), {3: "content"})
    assert one != key(Call(f, ([Ref(1), 5],)), {1: "other"})
    assert one != key(Call(f, ([Ref(1), 6],)), {1: "content"})


def test_values_with_results_are_not_remembered(program: Callable[..., Any]) -> None:
    shared, digests, f = [Ref(1), 5], CallDigests(), program("f")
    first = recipe_of_call(Call(f, (shared,)), digests, {1: "a"}, ["", "t"], {})
    second = recipe_of_call(Call(f, (shared,)), digests, {1: "b"}, ["", "t"], {})
    assert first.key != second.key
    assert first.arguments == second.arguments
    assert (first.inputs, second.inputs) == ({"t": "a"}, {"t": "b"})


LOCK = threading.Lock()


def locked(x: int) -> int:
    with LOCK:
        return x


def plus(x: int, y: int = 0) -> int:
    return x + y


class Results:
    """A data directory in which calls are really made."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.there: dict[tuple[str, int], Any] = {}

    def has(self, kept: KeptResult) -> bool:
        value = self.there.get((kept.run, kept.number))
        return value is not None and digest_of(repr(value).encode()) == kept.content

    def survey(self, flow: foreplan.Flow) -> Survey:
        workflow, calls = flow.build()
        store = Store.open(self.data, lambda run: False)
        return Survey(workflow, self.data, store, Asked(has_result=self.has), calls)

    def run(self, flow: foreplan.Flow, run: str) -> list[str]:
        survey, (workflow, calls) = self.survey(flow), flow.build()
        results: dict[int, Any] = {}
        ran = []
        part = parts.Part(survey.store.folder, run)
        for task in workflow.order.tolist():
            if survey.states[task] is State.UP_TO_DATE:
                result = survey.results[task]
                assert result is not None
                assert result.call is not None
                results[task] = self.there.get(result.call[:2])
                continue
            assert survey.states[task] is State.STALE
            making = survey.making(task)
            args = [results[a.task] if isinstance(a, Ref) else a for a in calls[task].args]
            value = results[task] = self.there[run, task] = calls[task].function(*args)
            content = digest_of(repr(value).encode())
            name = workflow.task_names[task]
            kept = KeptResult(run, task, content, (0, 0, 0, ""))
            part.append(call_line(making, task=name, kept=kept))
            survey.finish(task, {}, content)
            ran.append(name)
        part.close()
        return ran


def sums(first: int, second: int = 1, function: Any = plus) -> foreplan.Flow:
    flow = foreplan.Flow("sums")
    a = flow.task(plus, first, 0, name="a")
    b = flow.task(function, a, second, name="b")
    flow.task(plus, b, 1, name="c")
    return flow


def test_a_flow_runs_what_changed(tmp_path: Path) -> None:
    results = Results(tmp_path)
    assert results.run(sums(1), "r1") == ["a", "b", "c"]
    assert results.run(sums(1), "r2") == []
    assert results.run(sums(1, 2), "r3") == ["b", "c"]
    assert results.run(sums(1, 1), "r4") == []  # any key that ever had a result
    assert results.run(sums(2, 0), "r5") == ["a", "b"]  # b is 2, as it was: c is not made again
    survey = results.survey(sums(3, 0))
    assert survey.reasons[0] == "its arguments have changed"
    assert survey.states[1] is State.UNSURE
    assert survey.reasons[1] == "it takes the result of a, which is made again"


def test_results_that_are_gone(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.run(sums(1), "r1")
    del results.there["r1", 0]
    assert results.run(sums(1), "r2") == []  # nobody needs it
    del results.there["r1", 2]
    assert results.run(sums(1), "r3") == ["c"]
    assert results.run(sums(1, 5), "r4") == ["a", "b", "c"]  # now b needs a's


def test_the_words_of_calls(tmp_path: Path) -> None:
    def minus(x: int, y: int = 0) -> int:
        return x - y

    results = Results(tmp_path)
    results.run(sums(1), "r1")
    assert results.survey(sums(1, function=minus)).reasons[1] == (
        "its function, or what that calls, has changed"
    )
    assert results.survey(sums(1, 7)).reasons[1] == "its arguments have changed"


def test_what_cannot_be_compared_is_run_again_and_said(tmp_path: Path) -> None:
    flow = foreplan.Flow("locks")
    flow.task(locked, 1, name="a")
    results = Results(tmp_path)
    for run in ("r1", "r2"):
        assert results.run(flow, run) == ["a"]
        assert (
            results.survey(flow)
            .reasons[0]
            .startswith(
                "its function or arguments cannot be compared: cannot pickle '_thread.lock'"
            )
        )


def test_what_cannot_be_compared_cannot_the_next_time(tmp_path: Path) -> None:
    digests = CallDigests()
    for _ in range(3):
        with pytest.raises(ValueError, match="cannot pickle"):
            digests.of(Call(locked, (1,)), {})
    assert (
        digests_of([Call(plus, (threading.Lock(),)), Call(plus, (LOCK,)), Call(LOCK.acquire)])
        == [None] * 3
    )


def test_a_module_that_is_imported_late_cannot_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "late_one.py").write_text("def go(): return 1")
    monkeypatch.syspath_prepend(tmp_path)
    scope: dict[str, Any] = {"__name__": "program"}
    exec("def f():\n    from late_one import go\n    import json, yaml\n    return go()", scope)
    with pytest.raises(ValueError, match="it imports late_one as it runs"):
        key(Call(scope["f"]))
    import late_one  # type: ignore[import-not-found]

    first = key(Call(scope["f"]))
    exec("def go(): return 2", vars(late_one))
    assert key(Call(scope["f"])) != first
    sys.modules.pop("late_one")


def test_what_is_imported_late_and_is_not_of_the_program(program: Callable[..., Any]) -> None:
    def late(name: str) -> Any:
        package = f"__package__ = 'helpers'\ndef f(x):\n    import {name}\n    return x"
        return program("f", package)

    for name in ("this", "antigravity"):  # of Python, and not loaded
        assert name not in sys.modules
        key(Call(late(name), (1,)))
    with pytest.raises(ValueError, match="it imports no_such_module as it runs"):
        key(Call(late("no_such_module"), (1,)))


def test_what_only_comes_before(tmp_path: Path) -> None:
    def flow(first: int) -> foreplan.Flow:
        made = foreplan.Flow("after")
        a = made.task(plus, first, name="a")
        made.task(plus, 5, name="b", after=a)
        return made

    results = Results(tmp_path)
    assert results.run(flow(1), "r1") == ["a", "b"]
    assert results.run(flow(1), "r2") == []
    assert results.run(flow(2), "r3") == ["a", "b"]
