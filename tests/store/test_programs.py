"""What a function is: all of its program that it may lead to, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foreplan.model import Call, Ref
from foreplan.store import programs
from foreplan.store.programs import CallDigests, content_of


def digest(function: Any, *args: Any) -> str:
    return CallDigests().of(Call(function, args), {})


def made(source: str, name: str = "f") -> Any:
    """A function of a program."""
    module = sys.modules["program"] = types.ModuleType("program")
    exec(source, vars(module))
    return vars(module)[name]


# a program, what is changed in it, and whether `f` is another function then
CASES: dict[str, tuple[str, str, str, bool]] = {
    "a cached function": (
        "import functools\n@functools.lru_cache\ndef g(x): return x + 1\ndef f(x): return g(x)",
        "x + 1", "x + 2", True,
    ),
    "two functions in a dict": (
        "A = {'a': lambda x: x + 1, 'b': lambda x: x - 1}\ndef f(x): return A['a'](x)",
        "x + 1, 'b': lambda x: x - 1", "x - 1, 'b': lambda x: x + 1", True,
    ),
    "two closures in a dict": (
        "def make(n): return lambda x: x + n\nA = {'a': make(1), 'b': make(2)}\n"
        "def f(x): return A['a'](x)",
        "'a': make(1), 'b': make(2)", "'a': make(2), 'b': make(1)", True,
    ),
    "names change places": (
        "def g(x): return 1\ndef h(x): return 2\ng, h = g, h\ndef f(x): return g(x), h(x)",
        "g, h = g, h", "g, h = h, g", True,
    ),
    "a closure": (
        "def make(n):\n    return lambda x: x + n\nf = make(1)", "make(1)", "make(2)", True,
    ),
    "a default of a keyword": ("def f(x, *, y=1): return x + y", "y=1", "y=2", True),
    "a nested function": (
        "def f(x):\n    def g(y): return y + 1\n    return g(x)", "y + 1", "y + 2", True,
    ),
    "recursion by two": (
        "def g(x): return f(x - 1) if x else 0\ndef f(x): return g(x - 1) if x else 1",
        "else 0", "else 2", True,
    ),
    "a method": (
        "class P:\n    def go(self): return 1\ndef f(x): return P().go()",
        "return 1", "return 2", True,
    ),
    "a static method becomes one of the class": (
        "class P:\n    @staticmethod\n    def go(*a): return a\ndef f(x): return P.go()",
        "staticmethod", "classmethod", True,
    ),
    "a base": (
        "class B:\n    K = 1\nclass P(B): pass\ndef f(x): return P.K", "K = 1", "K = 2", True,
    ),
    "an object in a class": (
        "class C:\n    def __init__(self, n): self.n = n\nclass P:\n    c = C(1)\n"
        "def f(x): return P.c.n",
        "C(1)", "C(2)", True,
    ),
    "a property": (
        "class P:\n    @property\n    def x(self): return 1\n    @x.setter\n"
        "    def x(self, v): self.v = v\ndef f(x): P().x = 1",
        "self.v = v", "self.v = -v", True,
    ),
    "a cached property": (
        "import functools\nclass P:\n    @functools.cached_property\n    def x(self): return 1\n"
        "def f(x): return P().x",
        "return 1", "return 2", True,
    ),
    "a default of a dataclass": (
        "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int = 1\n"
        "def f(x): return P().x",
        "= 1", "= 2", True,
    ),
    "metadata of a field": (
        "import dataclasses\n@dataclasses.dataclass\nclass P:\n"
        "    x: int = dataclasses.field(default=1, metadata={'unit': 'm'})\ndef f(x): return P",
        "'m'", "'km'", True,
    ),
    "the type of a field": (
        "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\ndef f(x): return P",
        "x: int", "x: float", True,
    ),
    "a function for a type": (
        "import functools\n@functools.singledispatch\ndef g(x): return 1\n"
        "@g.register(int)\ndef _(x): return 2\ndef f(x): return g(x)",
        "return 2", "return 3", True,
    ),
    "the type that a function is for": (
        "import functools\n@functools.singledispatch\ndef g(x): return 1\n"
        "@g.register(int)\ndef _(x): return 2\ndef f(x): return g(x)",
        "(int)", "(str)", True,
    ),
    "an enumeration": (
        "import enum\nclass E(enum.Enum):\n    A = 1\ndef f(x): return E.A", "A = 1", "A = 2", True,
    ),
    "an attribute of the function": ("def f(x): return f.k\nf.k = 1", "k = 1", "k = 2", True),
    "which error is caught where": (
        "def f(x):\n    try:\n        a(x)\n    except ValueError:\n        pass\n    b(x)",
        "    except ValueError:\n        pass\n    b(x)",
        "        b(x)\n    except ValueError:\n        pass", True,
    ),
    "the order of a dict": (
        "D = {'a': 1, 'b': 2}\ndef f(x): return list(D)", "'a': 1, 'b': 2", "'b': 2, 'a': 1", True,
    ),
    "a function that nobody calls": (
        "def g(x): return 1\ndef f(x): return 2", "return 1", "return 3", False,
    ),
    "a global with the name of an attribute": (
        "count = [1]\ndef f(x): return x.count(1)", "[1]", "[2]", False,
    ),
    "lines and comments": (
        "def f(x):\n    return 2", "\n    return", "  # two\n\n    return", False,
    ),
    "the order of a set": (
        "S = {'x', 'y', 'z'}\ndef f(x): return S", "'x', 'y'", "'y', 'x'", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "old", "new", "is_other"), CASES.values(), ids=list(CASES))
def test_changes(source: str, old: str, new: str, is_other: bool) -> None:
    assert old in source
    first = digest(made(source), 1)
    assert first == digest(made(source), 1)
    assert (digest(made(source.replace(old, new, 1)), 1) != first) == is_other


class Thing:
    def __init__(self, n: int) -> None:
        self.n = n

    def plus(self, x: int) -> int:
        return self.n + x

    def __call__(self, x: int) -> int:
        return self.n * x


def plain(x: Any, y: Any = None) -> Any:
    return x


def test_functions_of_all_kinds() -> None:
    """Methods, partials, lambdas, objects that can be called, builtins: each by what it is."""
    kinds: list[Callable[[int], Any]] = [
        lambda n: Thing(n).plus,
        lambda n: Thing(n),
        lambda n: partial(plain, y=n),
        lambda n: partial(partial(plain, n), y=1),
        lambda n: lambda x: x + n,
        lambda n: [abs, len][n],
        lambda n: [np.add, np.subtract][n],
    ]
    for kind in kinds:
        assert digest(kind(0), 1) == digest(kind(0), 1) != digest(kind(1), 1)


def test_arguments_of_all_kinds() -> None:
    array = np.arange(6.0).reshape(2, 3)
    cyclic: list[Any] = [1]
    cyclic.append(cyclic)
    values: list[Any] = [
        array, array.T, np.asfortranarray(array), array.astype(np.float32), array[:1],
        {"a": 1}, {"a": 1.0}, {"a": True}, [1] * 100, [1.0] * 100, [True] * 100, (1,) * 100,
        dict.fromkeys(range(99), 1),
        dict.fromkeys(range(99), 2), Thing(1), Thing(2), [Thing(1)], cyclic, {1, 2},
        frozenset({1, 2}), "1", b"1", None, ..., -0.0, 0.0, 1j, Path("a"), range(3), np.int64(1), 1,
    ]  # fmt: skip
    found = [digest(plain, value) for value in values]
    assert len(set(found)) == len(values)
    assert found == [digest(plain, value) for value in values]
    assert content_of(array) == content_of(array.copy()) == content_of(array[:, ::-1][:, ::-1])
    large = np.ones((600, 600), order="F")
    assert content_of(large) == content_of(large.copy("F")) != content_of(large.copy("C"))


def test_arguments_of_former_stores_are_what_they_were() -> None:
    values = (np.arange(6.0).reshape(2, 3), [1, {"b": "x", "a": None}], np, [[0]] * 2)
    call = Call(len, values, {"b": 1, "a": 2})
    assert CallDigests().parts(call)[1] == "eed07a6940d9e8cf997d622cb7e609eb"


def test_the_order_of_names_counts_where_it_can_be_seen() -> None:
    def takes_all(a: int = 0, /, b: int = 0, **others: int) -> list[str]:
        return list(others)

    def orders(function: Any, *names: str) -> int:
        """How many calls there are, with the names in this and in the opposite order."""
        given = (dict.fromkeys(order, 1) for order in (names, names[::-1]))
        return len({CallDigests().parts(Call(function, (), kwargs)) for kwargs in given})

    assert orders(takes_all, "x", "y") == orders(partial(takes_all), "y", "x") == 2
    assert orders(takes_all, "a", "c") == orders(dict, "x", "y") == 2
    assert orders(takes_all, "b", "c") == orders(plain, "x", "y") == 1


def test_what_cannot_be_compared() -> None:
    with open(os.devnull) as file:
        for value in ((k for k in range(3)), file, sys._getframe(), threading.Lock()):
            with pytest.raises(ValueError, match="cannot pickle"):
                digest(plain, value)
            assert content_of(value) is None


def test_knots_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MOST", 20_000)
    many: list[list[Any]] = [[] for _ in range(60)]
    for inner in many:
        inner += many
    with pytest.raises(ValueError, match="too entangled"):
        digest(plain, many)
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(ValueError, match="too deeply"):
        digest(plain, deep)


def test_it_does_not_matter_what_was_looked_at_before() -> None:
    source = (
        "H = {}\nL = []\ndef f(x): return H['g'](x), L\ndef g(x): return f(x), P(1)\nH['g'] = g\n"
        "class P:\n    all = H\n    def __init__(self, n): self.n = n\n"
        "    def go(self): return g(1)\n"
        "L += [f, L, P(3)]\n"
    )
    module = types.ModuleType("program")
    exec(source, vars(module))
    things = [vars(module)[name] for name in ("f", "g", "H", "L", "P")]
    alone = [CallDigests().of(Call(plain, (thing,)), {}) for thing in things]
    for order in (range(5), reversed(range(5))):
        digests = CallDigests()
        for k in order:
            assert digests.of(Call(plain, (things[k],)), {}) == alone[k]


def test_results_of_others_count_by_their_content() -> None:
    digests = CallDigests()
    call = Call(plain, ([Ref(3)],))
    assert digests.of(call, {3: "a"}) != digests.of(call, {3: "b"})
    assert digests.parts(call) == digests.parts(Call(plain, ([Ref(9)],)))


PROGRAM = """
import enum, json, sys
from dataclasses import dataclass
import numpy
from foreplan.model import Call
from foreplan.store.programs import CallDigests, content_of

NAMES = {"one", "two", "three", "four"}
class Kind(enum.Enum):
    A = frozenset("abc"); B = 2
@dataclass
class Point:
    x: int
    names: frozenset
    def far(self): return helper(self.x) + len(NAMES)
def helper(n): return n in {"x", "y", "z"} or other(n)
def other(n): return helper(n - 1) if n else (Kind.A, NAMES)
def closed(n): return lambda x: (n, x, NAMES)
values = [helper, Point(1, frozenset("pqr")).far, Kind.A, closed({"q", "r"}), {"b": {"u", "v"}},
          numpy.arange(3), [Point(2, frozenset("xyz"))], Point, Kind]
print(json.dumps([(CallDigests().of(Call(print, (v,)), {}), content_of(v)) for v in values]))
"""


def test_another_process_finds_the_same(tmp_path: Path) -> None:
    """Whatever the hash seed, and on whichever lines things stand."""
    running = []
    for seed, text in (("1", PROGRAM), ("2", f"# moved\n{PROGRAM}"), ("77", PROGRAM)):
        (tmp_path / f"{seed}.py").write_text(text)
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, f"{seed}.py"]
        running.append(
            subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE)
        )
    first, *others = [json.loads(process.communicate()[0]) for process in running]
    assert [first] * 2 == others
    assert len({key for key, _ in first}) == len(first)
    assert None not in {content for _, content in first}
