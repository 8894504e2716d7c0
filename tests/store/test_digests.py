"""A run of functions goes on only with what its results were made of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.model import Call
from foreplan.runs.home import RunHome
from foreplan.store.digests import digests_of

PROGRAM = """
import functools, json, math, pathlib, collections, threading
import numpy, pandas
from dataclasses import dataclass
from foreplan.store.digests import digests_of
from foreplan.model import Call, Ref

WORDS = ("a", "b")

@dataclass(frozen=True)
class Point:
    x: int
    names: frozenset

    def far(self):
        return math.hypot(self.x, helper(1))

def helper(n):
    return n in {"one", "two", "three"} or other(n - 1)

def other(n):
    return helper(n) if n else WORDS

def closed(n):
    def inner(k=n):
        return inner if k else n
    return inner

frame = pandas.DataFrame({"k": list("abcab"), "v": range(5), "t": pandas.Timestamp("2026-01-01")})
loop = []
loop.append(loop)
VALUES = [
    lambda x: x + 1, closed(3), helper, functools.partial(helper, 4),
    Point(1, frozenset("abc")).far,
    {"one", "two", "three", 4.5, None}, {"b": 1, "a": {2, "x"}}, Point(2, frozenset({"q", "r"})),
    numpy.arange(6).reshape(2, 3), numpy.array(["x", {"y", "z"}], dtype=object), numpy.float64(2),
    frame, frame.k.astype("category"), frame.set_index("k"), pathlib.Path("a/b"), loop,
    collections.Counter("hello"), range(3), b"x", 10**30, float("nan"), Ref(3), sum, numpy.add,
    Point,
    threading.Lock(),
]
print(json.dumps(digests_of([Call(print, (value,)) for value in VALUES])))
"""


def test_another_process_finds_the_same(tmp_path: Path) -> None:
    """Whatever the hash seed, wherever the script is, and on whichever lines things stand."""
    pytest.importorskip("pandas")
    running = []
    for seed, name, text in (("1", "a.py", PROGRAM), ("2", "b.py", f"# moved\n\n{PROGRAM}")):
        (tmp_path / name).write_text(text)
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, name]
        running.append(
            subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE)
        )
    found = [json.loads(process.communicate()[0]) for process in running]
    assert found[0] == found[1]
    *known, lock = found[0]
    assert lock is None  # it cannot be taken apart
    assert None not in known
    assert len(set(known)) == len(known)


def made(source: str) -> Any:
    """The function `f` of a program."""
    scope: dict[str, Any] = {"__name__": "program"}
    exec(source, scope)
    return scope["f"]


BASE = "K = 1\ndef g(x): return x + K\ndef f(x, y=2): return [g(z) for z in (x, y)]"
CHANGED = {
    "a constant": BASE.replace("x + K", "x + K + 1"),
    "a global constant": BASE.replace("K = 1", "K = 2"),
    "a default": BASE.replace("y=2", "y=3"),
    "a function that is called": BASE.replace("x + K", "x - K"),
    "the body": BASE.replace("[g(z)", "[g(z) + 0"),
}


@pytest.mark.parametrize("source", CHANGED.values(), ids=list(CHANGED))
def test_changes_of_a_function(source: str) -> None:
    old, again, new = digests_of([Call(made(BASE)), Call(made(BASE)), Call(made(source))])
    assert old is not None
    assert old == again != new


def test_changes_of_arguments() -> None:
    import numpy as np

    array = np.zeros(4)
    other = array.copy()
    other[3] = 1e-9
    values: list[Any] = [1, 1.0, True, "1", [1], (1,), {1}, {1: 1}, array, other, array[:2]]
    values += [array.astype(np.float32), made(BASE), None]
    found = digests_of([Call(print, (value,)) for value in values])
    assert len(set(found)) == len(values)


NUMBER, BROKEN = "def f(n): return n", "def f(n): raise ValueError(n)"


def work(n: int, then: str) -> tuple[foreplan.Flow, Any]:
    flow = foreplan.Flow("sums")
    last = flow.task(made(then), flow.task(made(NUMBER), n, name="first"), name="last")
    return flow, last


def test_what_has_changed_is_refused(tmp_path: Path) -> None:
    failed = foreplan.run(work(1, BROKEN)[0], "local:1", dir=tmp_path, use_history=False)
    journal = RunHome.find(tmp_path, failed.id).journal
    before = journal.read_bytes()
    with pytest.raises(InputError, match="the arguments of 'first' have changed"):
        foreplan.run(work(2, BROKEN)[0], dir=tmp_path, resume=failed.id)
    assert journal.read_bytes() == before
    # what failed has no result: it may be mended, and that is remembered
    for _ in range(2):
        flow, last = work(1, NUMBER)
        outcome = foreplan.run(flow, dir=tmp_path, resume=failed.id)
        assert outcome.ok
        assert outcome.result(last) == 1
    with pytest.raises(InputError, match="of 'last' have changed"):
        foreplan.run(work(1, BROKEN)[0], dir=tmp_path, resume=failed.id)
