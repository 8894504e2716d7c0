"""Small results share a file: the newest counts, and what is cut short counts as none."""

from __future__ import annotations

import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreplan.errors import ForeplanError
from foreplan.executors import packing
from foreplan.executors.results import (
    SMALL,
    SmallResults,
    file_of_result,
    is_kept,
    load_result,
    result_path,
)


@given(
    kept=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 300)), max_size=20),
    cut=st.integers(0, 60),
)
def test_newest_whole_results(
    tmp_path_factory: pytest.TempPathFactory, kept: list[tuple[int, int]], cut: int
) -> None:
    results = tmp_path_factory.mktemp("results")
    small, ends = SmallResults(results), list[int]()
    for task, value in kept:
        small.keep(task, pickle.dumps(value))
        ends.append((results / SMALL).stat().st_size)
    small.close()
    length = ends[-1] if ends else 0
    if ends:
        os.truncate(results / SMALL, max(0, length - cut))
    whole = [pair for pair, end in zip(kept, ends, strict=True) if end <= length - cut]
    expected = dict(whole)
    for task in range(10):
        assert is_kept(results, task) == (task in expected)
        if task in expected:
            assert load_result(results, task) == expected[task]
    again = SmallResults(results)
    again.keep(3, pickle.dumps("new"))
    again.close()
    assert load_result(results, 3) == "new"
    for task, value in expected.items():
        assert task == 3 or load_result(results, task) == value


def test_threads_keep_at_once(tmp_path: Path) -> None:
    for turn in range(20):
        results = tmp_path / str(turn)
        results.mkdir()
        small, together = SmallResults(results), threading.Barrier(4)

        def keep(first: int, small: SmallResults = small, wait: Any = together.wait) -> None:
            wait()
            for task in range(first, first + 5):
                small.keep(task, pickle.dumps(task))

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(keep, (0, 5, 10, 15)))
        small.close()
        assert [load_result(results, task) for task in range(20)] == list(range(20))


def test_one_result_per_task(tmp_path: Path) -> None:
    Path(result_path(tmp_path, 1)).write_bytes(pickle.dumps("large"))
    small = SmallResults(tmp_path)
    small.keep(2, pickle.dumps("two"))
    assert load_result(tmp_path, 1) == "large"
    small.keep(1, pickle.dumps("one"))
    small.close()
    assert (load_result(tmp_path, 1), load_result(tmp_path, 2)) == ("one", "two")
    assert (tmp_path / SMALL).stat().st_mode & 0o777 == 0o600
    with pytest.raises(ForeplanError, match="'third' has no result"):
        load_result(tmp_path, 3, "third")


def test_a_result_that_is_dropped(tmp_path: Path) -> None:
    Path(result_path(tmp_path, 1)).write_bytes(pickle.dumps("large"))
    small = SmallResults(tmp_path)
    small.keep(2, pickle.dumps("two"))
    small.keep(3, pickle.dumps("three"))
    for task in (1, 2, 4):
        small.drop(task)
    small.close()
    again = SmallResults(tmp_path)
    for task in (1, 2, 4):
        assert not again.has(task)
        assert not is_kept(tmp_path, task)
    assert pickle.loads(again.read(3)[0]) == "three"
    again.keep(2, pickle.dumps("new"))
    again.close()
    assert load_result(tmp_path, 2) == "new"
    assert Path(file_of_result(tmp_path, 2)).read_bytes() == pickle.dumps("new")


def test_no_more_is_packed_than_may_be() -> None:
    assert packing.pack([1, 2], 100) == packing.pack([1, 2])
    for large in (bytes(200), list(range(1000)), np.zeros(100_000), Path("x" * 200)):
        with pytest.raises(packing.TooLargeError):
            packing.pack(large, 100)
