"""The places of a program that calls count on, compared with another process."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from foreplan.store.bindings import ProgramBindings, WorkerProgram, look_up

HELPERS = "K = [1]\nN = 3\ndef g(x): return x + K[0]\ndef h(x): return N\nclass C:\n    n = 1\n"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Make a module of this text, in the place of the one before."""

    def make(source: str = HELPERS) -> Any:
        made = types.ModuleType("some_helpers")
        made.__file__ = "some_helpers.py"
        exec(source, vars(made))
        monkeypatch.setitem(sys.modules, "some_helpers", made)
        return made

    return make


def script(source: str) -> Any:
    scope: dict[str, Any] = {"__name__": "__main__", "some_helpers": sys.modules["some_helpers"]}
    exec(source, scope)
    return scope["f"]


def expected(*things: Any) -> Mapping[str, str]:
    return ProgramBindings().of(things).digests


def differing(bindings: Mapping[str, str]) -> list[str]:
    return sorted(found.binding for found in WorkerProgram().compare(bindings))


def test_bindings_of_functions_and_classes(module: Callable[[], Any]) -> None:
    helpers = module()
    function = script("def f(x): return some_helpers.g(x), some_helpers.missing")
    assert sorted(expected(function)) == ["some_helpers:" + n for n in ("K", "g", "missing")]
    kind = expected(helpers.C)
    assert sorted(kind) == ["some_helpers:C", "some_helpers:C.", "some_helpers:C.n"]
    assert expected(len, np.ndarray, np) == {}
    bindings = {**expected(function), **kind}
    assert differing(bindings) == []
    module()  # as it is when it is imported anew
    assert differing(bindings) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("K[0] = 2", ["K"]),
        ("N = 4", []),
        ("def g(x): return x - K[0]", ["g"]),
        ("missing = 1", ["missing"]),
        ("C.n = 2", ["C.n"]),
        ("C.m = 2", ["C."]),
        ("class C(list):\n    n = 1", ["C"]),
        ("del C", ["C", "C.", "C.n"]),
    ],
)
def test_only_what_differs_is_named(
    module: Callable[[], Any], change: str, found: list[str]
) -> None:
    helpers = module()
    bindings = expected(
        script("def f(x): return some_helpers.g(x), some_helpers.missing"), helpers.C
    )
    exec(change, vars(helpers))
    assert differing(bindings) == ["some_helpers:" + name for name in found]


def test_a_module_that_cannot_be_imported() -> None:
    (found,) = WorkerProgram().compare({"no_such_module:f": "0"})
    assert "No module named" in found.problem


@pytest.mark.parametrize(
    "source",
    [
        "ALL = {'a': some_helpers}\ndef f(x): return ALL['a'].h(x)",
        "def f(x, m=some_helpers): return m.h(x)",
        "def make(m): return lambda x: m.h(x)\nf = make(some_helpers)",
        "def call(m): return m.h(1)\ndef f(x): return call(some_helpers)",
    ],
)
def test_of_a_module_that_is_handed_on_all_counts(module: Callable[[], Any], source: str) -> None:
    helpers = module()
    bindings = expected(script(source), helpers)
    assert {"some_helpers:", "some_helpers:N", "some_helpers:C.n"} <= bindings.keys()
    helpers.N = 4
    helpers.more = 1
    assert differing(bindings) == ["some_helpers:", "some_helpers:N"]


def test_what_functools_wraps_counts(module: Callable[[str], Any]) -> None:
    cached = "import functools\n" + HELPERS.replace("def g", "@functools.cache\ndef g")
    helpers = module(cached)
    bindings = expected(script("def f(x): return some_helpers.g(x)"))
    helpers.g(1)
    assert differing(bindings) == []
    module(cached.replace("x + K", "x - K"))
    assert differing(bindings) == ["some_helpers:g"]


def test_what_cannot_be_compared_counts_as_its_type(module: Callable[[str], Any]) -> None:
    source = f"import threading\nLOCK = threading.Lock()\n{HELPERS}def g(x): return LOCK, K\n"
    helpers = module(source)
    bindings = expected(helpers.g)
    module(source)
    assert differing(bindings) == []
    module(source).LOCK = None
    assert differing(bindings) == ["some_helpers:LOCK"]
    module(source).K = [2]
    assert differing(bindings) == ["some_helpers:K"]


def test_what_tasks_change_is_seen_but_not_in_large_data(module: Callable[[str], Any]) -> None:
    helpers = module("import numpy as np\nA = np.zeros(9)\nB = np.zeros(2**20)\ndef g(): A, B\n")
    worker, bindings = WorkerProgram(), expected(helpers.g)
    assert worker.compare(bindings) == []
    helpers.A[0] = helpers.B[0] = 1
    assert [(found.binding, found.by_task) for found in worker.compare(bindings)] == [
        ("some_helpers:A", True)
    ]
    helpers.B = helpers.B.copy()
    assert [found.binding for found in worker.compare(bindings)] == [
        "some_helpers:A",
        "some_helpers:B",
    ]


def test_what_was_put_there_goes_when_it_is_not_expected_any_more(
    module: Callable[[], Any],
) -> None:
    helpers = module()
    function = script("def f(x): return some_helpers.N")
    bindings, worker = expected(function), WorkerProgram()
    assert worker.compare(bindings) == []
    helpers.N = 9
    patched = expected(function)
    helpers.N = 3
    assert [found.binding for found in worker.compare(patched)] == ["some_helpers:N"]
    worker.put("some_helpers:N", 9, patched["some_helpers:N"])
    assert (worker.compare(patched), look_up("some_helpers:N")) == ([], 9)
    assert (worker.compare(bindings), look_up("some_helpers:N")) == ([], 3)


def test_an_installed_module_counts_where_the_program_has_changed_it(
    monkeypatch: pytest.MonkeyPatch, module: Callable[[], Any]
) -> None:
    module()
    function = script("import functools\ndef f(x): return functools.reduce(x), functools.wraps")
    assert expected(function) == {}
    monkeypatch.setattr(functools, "reduce", function)
    replaced = expected(function)
    assert list(replaced) == ["functools:reduce"]
    monkeypatch.undo()
    assert differing(replaced) == ["functools:reduce"]
    assert differing(expected(function)) == []  # from now on it is compared
    assert list(expected(function)) == ["functools:reduce"]
