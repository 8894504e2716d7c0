"""A worker calls functions of the program as it is, not as its modules are when they are imported.

Each case is a module `lib` and what a program does with it; `job` is the task. All are tasks of one
run, in one worker.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import pytest

import foreplan
from executors.cluster import Cluster
from foreplan.errors import InputError

LOSS = "def loss(x): return x\ndef train(x): return loss(x)\n"
CONFIG = "CONFIG = {'scale': 1}\ndef scaled(x): return x * CONFIG['scale']\n"
MODEL = (
    "class Base: pass\n"
    "class Model(Base):\n"
    "    k = 1\n"
    "    def __init__(self, n=1): self.n = n\n"
    "    def predict(self, x): return x * self.k * self.n\n"
    "    def both(self, x): return (super().__repr__() != '', self.predict(x))\n"
    "    @staticmethod\n    def make(): return Model(2)\n"
    "    @classmethod\n    def named(cls): return cls.__name__\n"
    "    @property\n    def size(self): return 1\n"
    "def check(m): return isinstance(m, Model)\n"
    "def build(): return Model()\n"
)


class Case(NamedTuple):
    """A module, what the program does, and what `job()` gives or why it is refused."""

    lib: str
    program: str
    result: Any = None
    refused: str = ""


def edit(old: str, new: str) -> str:
    """Return program text that changes the file of its module, which it has imported."""
    return (
        "import pathlib\nplace = pathlib.Path(lib.__file__)\n"
        f"place.write_text(place.read_text().replace({old!r}, {new!r}))\n"
    )


CASES = {
    "a function is replaced": Case(
        LOSS,
        "lib.loss = lambda x: x + 100\ndef job(): return lib.loss(5), lib.train(5)",
        (105, 105),
    ),
    "by one that calls it": Case(
        LOSS,
        "first = lib.loss\ndef mine(x): return first(x) + 1\nlib.loss = mine\njob = lib.train\n"
        "args = [5]",
        6,
    ),
    "by another of its module": Case(LOSS, "lib.loss = lib.train.__class__(lib.loss.__code__, "
        "vars(lib), 'loss', (7,))\ndef job(): return lib.loss()", 7),
    "by a partial": Case(
        LOSS,
        "import functools\ndef mine(a, x): return a * x\nlib.loss = functools.partial(mine, 3)\n"
        "def job(): return lib.train(5)",
        15,
    ),
    "by a method": Case(
        LOSS,
        "class Mine:\n    k = 4\n    def go(self, x): return x * self.k\nlib.loss = Mine().go\n"
        "def job(): return lib.train(5)",
        20,
    ),
    "by an object that can be called": Case(
        LOSS,
        "class Mine:\n    def __call__(self, x): return -x\nlib.loss = Mine()\n"
        "def job(): return lib.train(5)",
        -5,
    ),
    "by a mock": Case(
        LOSS,
        "from unittest import mock\nlib.loss = mock.Mock(return_value=9)\n"
        "def job(): return lib.train(5)",
        9,
    ),
    "a function is added": Case(
        LOSS,
        "exec('def extra(x): return loss(x) * 7', vars(lib))\ndef job(): return lib.extra(2)",
        14,
    ),
    "a function is deleted": Case(
        LOSS,
        "del lib.loss\ndef job():\n    try: return lib.loss(1)\n"
        "    except AttributeError: return 8",
        8,
    ),
    "a global function is deleted": Case(
        LOSS + "def safe():\n    try: return loss(1)\n    except NameError: return 8\n",
        "del lib.loss\njob = lib.safe",
        8,
    ),
    "a dict is changed": Case(
        CONFIG, "lib.CONFIG['scale'] = 10\ndef job(): return lib.scaled(4)", 40
    ),
    "of a function of the module": Case(
        CONFIG, "lib.CONFIG['scale'] = 10\njob = lib.scaled\nargs = [4]", 40
    ),
    "by a function of the module": Case(
        "K = 1\ndef put(n):\n    global K\n    K = n\ndef get(): return K\n",
        "lib.put(6)\njob = lib.get",
        6,
    ),
    "a dict that holds itself": Case(
        CONFIG, "lib.CONFIG.update(scale=2, me=lib.CONFIG)\ndef job(): return lib.scaled(4)", 8
    ),
    "beside a lock": Case(
        f"import threading\nLOCK = threading.Lock()\n{CONFIG}"
        "def safe(x):\n    with LOCK: return scaled(x)\n",
        "lib.CONFIG['scale'] = 10\ndef job(): return lib.safe(4)",
        40,
    ),
    "a generator": Case(
        f"OUT = None\n{CONFIG}def go(): return OUT is None\n",
        "lib.OUT = (k for k in ())\ndef job(): return lib.go()",
        refused="differ in .*OUT .*cannot be sent",
    ),
    "a plain constant": Case("K = 1\ndef get(): return K\n", "lib.K = 3\njob = lib.get", 3),
    "an array": Case(
        "import numpy as np\nW = np.ones(3)\ndef total(): return float(W.sum())\n",
        "lib.W[1] = 5\njob = lib.total",
        7.0,
    ),
    "an object": Case(
        "class State: k = 1\nSTATE = State()\n"
        "def get(): return STATE.k, isinstance(STATE, State)\n",
        "lib.STATE.k = 5\njob = lib.get",
        (5, True),
    ),
    "a registry of functions": Case(
        "ALL = {}\ndef add(f):\n    ALL[f.__name__] = f\n    return f\n@add\ndef one(): return 1\n"
        "def call(name): return ALL[name]()\n",
        "@lib.add\ndef two(): return 2\ndef job(): return lib.call('one'), lib.call('two')",
        (1, 2),
    ),
    "a registry of classes": Case(
        "ALL = {}\nclass Kind:\n    def __init_subclass__(cls): ALL[cls.__name__] = cls\n"
        "def make(name): return ALL[name]()\n",
        "class Mine(lib.Kind):\n    k = 3\n"
        "def job():\n    made = lib.make('Mine')\n    return made.k, isinstance(made, Mine)",
        (3, True),
    ),
    "functions chosen by type": Case(
        "import functools\n@functools.singledispatch\ndef show(x): return 'any'\n"
        "def call(x): return show(x)\n",
        "lib.show.register(int)(lambda x: 'int')\ndef job(): return lib.call(1), lib.call('')",
        ("int", "any"),
    ),
    "a function with a cache": Case(
        f"import functools\n{CONFIG}@functools.cache\ndef kept(x): return scaled(x)\n",
        "import functools\nlib.kept = functools.cache(lambda x: lib.scaled(x) + 1)\n"
        "lib.CONFIG['scale'] = 3\ndef job(): return lib.kept(2)",
        7,
    ),
    "a decorated function": Case(
        "K = [1]\ndef twice(f):\n    def g(x): return 2 * f(x)\n    g.__wrapped__ = f\n"
        "    return g\n"
        "@twice\ndef h(x): return x + K[0]\n",
        "lib.K[0] = 4\ndef job(): return lib.h(1)",
        10,
    ),
    "defaults": Case(
        "def f(x=1): return x\n", "lib.f.__defaults__ = (5,)\ndef job(): return lib.f()", 5
    ),
    "an attribute of a function": Case(
        "def f(x): return x * f.k\nf.k = 1\n", "lib.f.k = 3\njob = lib.f\nargs = [2]", 6
    ),
    "a module under another name": Case(
        "import math\ndef root(x): return math.sqrt(x)\n",
        "import types\nlib.math = types.SimpleNamespace(sqrt=lambda x: -x)\njob = lib.root\n"
        "args = [4]",
        -4,
    ),
    "a class attribute": Case(
        MODEL, "lib.Model.k = 5\ndef job(): return lib.build().predict(2)", 10
    ),
    "a method": Case(
        MODEL,
        "def mine(self, x): return -x\nlib.Model.predict = mine\n"
        "def job(m): return m.both(2), lib.check(m), type(m) is lib.Model\nargs = [lib.Model(3)]",
        ((True, -2), True, True),
    ),
    "static and class methods, and a property": Case(
        MODEL,
        "lib.Model.make = staticmethod(lambda: lib.Model(9))\n"
        "lib.Model.named = classmethod(lambda cls: cls.__name__.lower())\n"
        "lib.Model.size = property(lambda self: 4)\n"
        "def job():\n    made = lib.Model.make()\n    return made.n, made.named(), made.size",
        (9, "model", 4),
    ),
    "a method is deleted": Case(
        MODEL, "del lib.Model.predict\ndef job(): return hasattr(lib.build(), 'predict')", False
    ),
    "a class is replaced": Case(
        MODEL,
        "class Mine(lib.Model):\n    k = 7\nlib.Model = Mine\n"
        "def job(): return lib.build().predict(1), lib.check(Mine())",
        (7, True),
    ),
    "the file is edited": Case(
        LOSS, edit("return x", "return x * 50") + "def job(): return lib.train(2)", 2
    ),
    "a method in the file": Case(
        MODEL, edit("x * self.k", "0 * self.k") + "def job(): return lib.build().both(2)", (True, 2)
    ),
    "the bases in the file": Case(
        MODEL,
        edit("Model(Base)", "Model") + "def job(): return lib.build().predict(2)",
        refused="differ in .*Model.*bases",
    ),
    "the file cannot be imported any more": Case(
        LOSS, edit("def train", "def def") + "def job(): return lib.train(2)",
        refused="cannot import .*SyntaxError",
    ),
    "an older version is still used": Case(
        LOSS,
        f"old = lib.train\n{edit('return x', 'return x * 50')}"
        "import importlib, os\nos.utime(place, (1, 1))\nimportlib.reload(lib)\n"
        "def job(): return old(2), lib.train(2)",
        (100, 100),  # as here: the old function finds the new global
    ),
    "__getattr__ of a module": Case(
        "K = [1]\ndef __getattr__(name):\n    if name == 'value': return K[0]\n"
        "    raise AttributeError(name)\n",
        "lib.K[0] = 5\ndef job(): return lib.value, hasattr(lib, 'other')",
        (5, False),
    ),
    "a module that is handed on": Case(
        CONFIG,
        "lib.K = 3\ndef get(m): return getattr(m, 'k'.upper())\ndef job(): return get(lib)",
        3,
    ),
    "a module as an argument": Case(
        "K = 1\nL = 2\n", "lib.K = 3\ndel lib.L\ndef job(m): return m.K, dir(m)[:1]\nargs = [lib]",
        (3, ["K"]),
    ),
    "a module that is named and an argument": Case(
        "K = 1\nL = 2\n", "lib.K = 3\nlib.L = 4\ndef job(m): return lib.K, getattr(m, 'L')\n"
        "args = [lib]",
        (3, 4),
    ),
    "a class of an installed module": Case(
        "import fractions\ndef go(): return fractions.Fraction(1, 2).limit_denominator(1)\n",
        "import fractions\nfractions.Fraction.limit_denominator = lambda self, most: 'mine'\n"
        "job = lib.go",
        "mine",
    ),
    "an installed module": Case(
        "import colorsys\ndef first(): return colorsys.hsv_to_rgb(0, 0, 0)\n",
        "import colorsys\ncolorsys.hsv_to_rgb = lambda *hsv: 'mine'\n"
        "def job(): return lib.first(), colorsys.hsv_to_rgb(0, 0, 0)",
        ("mine", "mine"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """What each program has defined, by the name of its case."""
    import colorsys
    import fractions

    place = tmp_path_factory.mktemp("programs")
    kept = colorsys.hsv_to_rgb
    method = fractions.Fraction.limit_denominator
    sys.path.insert(0, str(place))
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # of a file that is edited within one second
    found: dict[str, dict[str, Any]] = {}
    for number, (name, case) in enumerate(CASES.items()):
        (place / f"case{number}.py").write_text(case.lib)
        importlib.invalidate_caches()
        lib = importlib.import_module(f"case{number}")
        found[name] = {"__name__": "__main__", "__builtins__": __builtins__, "lib": lib, "args": ()}
        exec(case.program, found[name])
    yield found
    sys.path.remove(str(place))
    colorsys.hsv_to_rgb = kept
    fractions.Fraction.limit_denominator = method  # type: ignore[method-assign]
    del os.environ["PYTHONDONTWRITEBYTECODE"]
    for number in range(len(CASES)):
        del sys.modules[f"case{number}"]


def run_all(tasks: dict[str, dict[str, Any]], on: Any, folder: Path) -> dict[str, Any]:
    """Return what all cases give in one run: values, or failures."""
    flow = foreplan.Flow("programs")
    made = {name: flow.task(t["job"], *t["args"], name=name) for name, t in tasks.items()}
    outcome = foreplan.run(flow, on, dir=folder, keep_going=True, use_history=False)
    failures = {failure.task: failure for failure in outcome.failures}
    return {n: failures[n] if n in failures else outcome.result(t) for n, t in made.items()}


def is_refused(found: Any, reason: str = "differ in") -> bool:
    cause = getattr(found, "cause", None)
    return cause == "program" and re.search(reason, found.reason) is not None


def test_the_worker_has_the_program(tasks: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    for again in (False, True):  # then the store has the values
        found = run_all(tasks, "local:1", tmp_path)
        expected = {n: found[n] if case.refused else case.result for n, case in CASES.items()}
        assert found == expected, f"again: {again}"
        for name, case in CASES.items():
            if case.refused:
                assert is_refused(found[name], case.refused), found[name]


def test_dask_has_the_program_or_refuses(
    tasks: dict[str, dict[str, Any]], conformance_cluster: Cluster, tmp_path: Path
) -> None:
    """Workers that others use are left as they are."""
    conformance_cluster.have(1)
    client = conformance_cluster.client
    folder = os.path.dirname(tasks["a plain constant"]["lib"].__file__)
    client.run(lambda: sys.path.insert(0, folder))
    found = run_all(tasks, client, tmp_path)
    refused = {name for name in CASES if is_refused(found[name], "differ in|cannot import")}
    assert {n: v for n, v in found.items() if n not in refused} == {
        n: case.result for n, case in CASES.items() if n not in refused
    }
    assert "a dict is changed" in refused
    assert "by a partial" in refused
    assert "a registry of classes" not in refused  # they register themselves when they are loaded
    one = {"a dict is changed": tasks["a dict is changed"]}
    lib = one["a dict is changed"]["lib"]
    cloudpickle.register_pickle_by_value(lib)  # as the message says
    assert run_all(one, client, tmp_path) == {"a dict is changed": 40}
    cloudpickle.unregister_pickle_by_value(lib)


STATE = """
import functools, uuid
N = 0
MODEL = None
SEEN = {}
def bump(turn):
    global N
    N += 1
    return N
def lazy(turn):
    global MODEL
    fresh = MODEL is None
    MODEL = MODEL or object()
    return fresh
def see(turn, key):
    SEEN[key] = len(SEEN)
    return SEEN[key]
def collect(turn, x, before=[]):
    before.append(x)
    return list(before)
@functools.cache
def loaded(): return uuid.uuid4().hex
"""


@pytest.fixture
def lib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "task_state.py").write_text(STATE)
    monkeypatch.syspath_prepend(tmp_path / "lib")
    importlib.invalidate_caches()
    yield importlib.import_module("task_state")
    del sys.modules["task_state"]


def test_every_task_begins_with_the_state_of_the_program(lib: Any, tmp_path: Path) -> None:
    """What earlier tasks of its worker have changed is put back, and people are told."""
    flow = foreplan.Flow("state")
    calls = [(lib.bump,), (lib.lazy,), (lib.see, "a"), (lib.see, "b"), (lib.collect, 1)]
    tasks = [flow.task(f, turn, *more) for turn in range(2) for f, *more in calls]
    kept = [flow.task(lib.loaded, after=tasks) for _ in range(2)]
    lib.N = 5
    outcome = foreplan.run(flow, "local:1", dir=tmp_path, use_history=False)
    assert [outcome.result(task) for task in tasks] == [6, True, 0, 0, [1]] * 2
    first, second = (outcome.result(task) for task in kept)
    assert first == second  # what functools keeps stays
    changed = [warning for warning in outcome.warnings if "earlier tasks" in warning]
    assert len(changed) == 4
    assert all("functools.cache" in warning for warning in changed)


def test_a_difference_may_be_a_warning(lib: Any, tmp_path: Path) -> None:
    """Then nothing is kept; the same of `compute`."""
    from dask.delayed import delayed

    lib.MODEL = iter(k for k in "ab")
    flow = foreplan.Flow("warned")
    task = flow.task(lib.lazy, 0)
    options: dict[str, Any] = {"dir": tmp_path, "use_history": False}
    with pytest.warns(RuntimeWarning, match=r"lazy: it was called though .* task_state.MODEL"):
        outcome = foreplan.run(flow, "local:1", mismatch="warn", **options)
    assert outcome.result(task)
    assert is_refused(foreplan.run(flow, "local:1", retries=2, **options).failures[0])
    later: Any = delayed(lib.lazy)(0)
    with pytest.warns(RuntimeWarning, match="task_state.MODEL"):
        assert foreplan.compute(later, mismatch="warn", **options)
    with pytest.raises(foreplan.ForeplanError, match=r"differ in task_state.MODEL .*generator"):
        foreplan.compute(later, **options)
    lib.N = 7
    assert foreplan.compute(delayed(lib.bump)(0), **options) == 8
    with pytest.raises(InputError, match="mismatch must be 'fail' or 'warn', not 'ask'"):
        foreplan.run(flow, mismatch="ask", **options)


def test_what_tasks_change_on_dask_is_not_kept(
    lib: Any, conformance_cluster: Cluster, tmp_path: Path
) -> None:
    conformance_cluster.have(1)
    client = conformance_cluster.client
    folder = os.path.dirname(lib.__file__)
    client.run(lambda: sys.path.insert(0, folder))
    flow = foreplan.Flow("state")
    first = flow.task(lib.bump, 0)
    second = flow.task(lib.bump, 1, after=[first])
    with pytest.warns(RuntimeWarning, match=r"bump.*task_state.N"):
        outcome = foreplan.run(flow, client, dir=tmp_path, use_history=False)
    assert (outcome.result(first), outcome.result(second)) == (1, 2)
    lib.N = 5
    outcome = foreplan.run(flow, client, dir=tmp_path, use_history=False)
    assert is_refused(outcome.failures[0], "task_state.N")
    options: dict[str, Any] = {"dir": tmp_path, "use_history": False, "mismatch": "warn"}
    with pytest.warns(RuntimeWarning, match=r"bump.*task_state.N"):
        assert foreplan.run(flow, client, **options).ok


def test_functions_of_a_spawned_child(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import multiprocessing as mp\nimport foreplan\n"
        "class Box:\n    def __init__(self, x): self.x = x\n"
        "def square(box): return Box(box.x ** 2)\n"
        "def job(k):\n    flow = foreplan.Flow('f')\n    t = flow.task(square, Box(k))\n"
        "    done = foreplan.run(flow, 'local:1', use_history=False)\n"
        "    return done.result(t).x, len(done.up_to_date)\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool: print(pool.map(job, [3, 3]))\n"
    )
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[(9, 0), (9, 1)]"
