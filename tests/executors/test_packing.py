"""Results as files: large buffers beside the pickle, mapped, and never on disk twice."""

from __future__ import annotations

import functools
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan.executors import packing

N = 1 << 18  # numbers, of 8 bytes


def _values() -> list[Any]:
    frozen = np.arange(N)
    frozen.flags.writeable = False
    return [
        None,
        {"a": list(range(10)), "b": "x" * 100_000},
        np.arange(5),
        {"left": np.arange(N), "right": np.ones((3, N), order="F"), "small": np.arange(3)},
        [frozen, np.arange(2 * N)[::2]],
        np.arange(N).view("M8[s]"),
        bytearray(N),
        lambda x: x + 1,
    ]


@pytest.mark.parametrize("value", _values(), ids=lambda value: type(value).__name__)
def test_what_is_written_is_read(tmp_path: Path, value: Any) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    size = packing.write(first, value)
    packing.write_frames(second, packing.pack(value))
    assert size == os.path.getsize(first)
    assert os.stat(first).st_mode & 0o777 == 0o600
    for path in (first, second):
        for mapped in (False, True):
            found = packing.unpack(packing.read(path, mapped))
            if callable(value):
                assert found(1) == 2
            else:
                np.testing.assert_equal(found, value)


SCRIPT = """
import functools
@functools.lru_cache(maxsize=7)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
@functools.singledispatch
def told(x): return "other"
@told.register
def _(x: int): return ("int", told("x"))
class P:
    @functools.cache
    def double(self): return 2
bound = functools.cache(functools.partial(max, 3))
def f(x): return fib(x), fib.cache_parameters()["maxsize"], told(x), P().double(), bound(x)
"""


def test_what_functools_makes_of_functions_of_a_script_travels() -> None:
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(SCRIPT, scope)
    found = packing.unpack(packing.pack(scope["f"]))
    assert found(50) == (12586269025, 7, ("int", "other"), 2, 50)
    assert found.__globals__["fib"] is not scope["fib"]
    assert packing.unpack(packing.pack(cached)) is cached  # it is imported


@functools.cache
def cached(x: int) -> int:
    return x


def test_buffers_are_not_in_the_pickle_and_arrays_can_be_written_to(tmp_path: Path) -> None:
    path, value = str(tmp_path / "x"), {"a": np.arange(N), "few": np.arange(9)}
    packing.write(path, value)
    for mapped in (False, True):
        head, *buffers = packing.read(path, mapped)
        assert len(head) < 1000
        assert [len(buffer) for buffer in buffers] == [N * 8]
        found = packing.unpack([head, *buffers])
        found["a"][0] = 7  # a copy of its own: the file stays as it is
    assert packing.unpack(packing.read(path))["a"][0] == 0


def test_small_results_are_plain_pickles(tmp_path: Path) -> None:
    path, value = tmp_path / "x", {"a": np.arange(100), "b": [1, 2]}
    packing.write(str(path), value)
    assert path.read_bytes() == pickle.dumps(value, protocol=5)


def test_the_same_again_is_a_link_and_is_never_written_to(tmp_path: Path) -> None:
    first, second, value = str(tmp_path / "1"), str(tmp_path / "2"), [np.arange(N), "x"]
    packing.write(first, value)
    given = packing.unpack(packing.read(first, mapped=True))
    packing.write(second, given, [str(tmp_path / "gone"), first])
    assert os.path.samefile(first, second)
    os.unlink(second)
    packing.write_frames(second, packing.pack(given), [first])
    assert os.path.samefile(first, second)
    packing.write(second, "another", [first])
    assert packing.unpack(packing.read(second)) == "another"
    np.testing.assert_equal(packing.unpack(packing.read(first)), value)
    given[0][1] = 5  # in its own memory only
    packing.write(second, given, [first])
    assert not os.path.samefile(first, second)
    assert packing.unpack(packing.read(second))[0][1] == 5


@pytest.mark.parametrize("cut", [1, 20, N, 8 * N + 100])
def test_a_file_that_is_cut_short_is_no_result(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "x"
    packing.write(str(path), np.arange(N))
    os.truncate(path, max(0, path.stat().st_size - cut))
    with pytest.raises((pickle.UnpicklingError, EOFError)):
        packing.unpack(packing.read(str(path)))


def _make(n: int) -> Any:
    return np.random.default_rng(1).random(n)


def _pass_on(array: Any) -> Any:
    return array


def _add(array: Any) -> Any:
    array += 1
    return float(array[0])


def test_a_large_result_that_is_passed_on_is_one_file(tmp_path: Path) -> None:
    flow = foreplan.Flow("large")
    made = flow.task(_make, N)
    again = flow.task(_pass_on, made)
    changed = [flow.task(_add, given) for given in (made, again)]
    run = foreplan.run(flow, "local:2", dir=tmp_path)
    results = run.home / "results"
    assert os.path.samefile(results / "0.pkl", results / "1.pkl")
    expected = _make(N)
    np.testing.assert_equal(run.result(again), expected)
    assert [run.result(task) for task in changed] == [expected[0] + 1] * 2  # each its own memory
    second = foreplan.run(flow, "local:2", dir=tmp_path)
    assert second.up_to_date == tuple(task.name for task in flow.tasks)
    forced = foreplan.run(flow, "local:1", dir=tmp_path, force=["_make"])
    assert forced.run.workflow.task_names[0] == "_make"
    assert os.path.samefile(forced.home / "results" / "0.pkl", results / "0.pkl")
    flow.task(len, again, name="more")
    third = foreplan.run(flow, "local:1", dir=tmp_path)
    assert third.run.workflow.task_names == ("more",)
    assert os.path.samefile(third.home / "results" / "1.pkl", results / "1.pkl")
    found = [path.stat() for path in tmp_path.rglob("*.pkl") if path.stat().st_size > N]
    assert len({state.st_ino for state in found}) == 1
