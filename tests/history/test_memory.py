"""How much memory tasks need, by what others of their category had."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreplan.history.database import FILE, SCHEMA
from foreplan.history.memory import MemoryModel, MemoryNeeds, Need, Suggestion, model_of, suggestion
from foreplan.history.records import FailureRecord, History, Measured, Origin, TaskRecord
from foreplan.history.repository import Repository
from history.samples import task

GB = 1e9


def model(memory: list[float], size: list[float] | None = None) -> MemoryModel:
    sizes = [math.nan] * len(memory) if size is None else size
    found = MemoryModel.fit(np.array(memory), np.array(sizes))
    assert found is not None
    return found


def test_few_records_leave_more_room_than_many() -> None:
    needs = [model([GB] * n).need().memory for n in (1, 2, 5, 100)]
    assert needs == sorted(needs, reverse=True)
    assert needs[0] == pytest.approx(1.55 * GB)
    assert GB < needs[-1] < 1.1 * GB


def test_one_spike_among_many_is_let_be() -> None:
    usual = [GB * (1 + 0.01 * k) for k in range(9)]
    spiked = model([*usual, 20 * GB]).need()
    assert spiked.memory < 2 * GB
    assert spiked.most == 20 * GB
    assert model([*usual, 20 * GB, 19 * GB]).need().memory > 19 * GB  # two are none


def test_memory_that_grows_with_the_inputs() -> None:
    size = [k * GB for k in range(1, 11)]
    grown = model([0.2 * GB + 3 * s for s in size], size)
    for s in (0.5 * GB, 5 * GB, 15 * GB):
        assert 1.05 <= grown.need(s).memory / (0.2 * GB + 3 * s) < 1.2
    # no line is believed to go on for ever; unknown inputs are taken as the largest
    assert grown.need(1e15).memory == grown.need(20 * GB).memory
    assert grown.need().memory == grown.need(10 * GB).memory
    flat = model([GB] * 10, size)
    assert flat.slope == 0


@given(
    st.lists(
        st.tuples(st.floats(1, 1e12), st.floats(0, 1e12) | st.just(math.nan)),
        min_size=1,
        max_size=40,
    )
)
def test_a_need_is_a_sensible_number(records: list[tuple[float, float]]) -> None:
    memory, size = map(list, zip(*records, strict=True))
    for asked in (0.0, 1e6, 1e13, math.nan):
        need = model(memory, size).need(asked)
        assert 0 < need.memory < math.inf
        assert need.records == len(memory)
    assert model(memory).need().memory >= np.median(memory)


def used(category: str, memory: float, **more: object) -> TaskRecord:
    fields = {"size": math.nan, "directory": "/d", "memory": memory, **more}
    return TaskRecord(1e9, "r", "wf", category, "m", 2.0, **fields)  # type: ignore[arg-type]


def test_the_nearest_records_speak() -> None:
    records = [
        used("a", GB), used("b", 2 * GB, directory="/e", command="x"), used("c", math.nan),
        used("d", 9 * GB, at_most=True), used("e", 0.05 * GB, at_most=True),
    ]  # fmt: skip
    needs = MemoryNeeds(History(records, origin=Origin("/d", "wf")))

    def known(category: str, command: str = "") -> tuple[float, int] | None:
        need = needs.need(category, command)
        return None if need is None else (need.most, need.records)

    assert known("a") == (GB, 1)
    assert known("b") is None  # elsewhere the same name need not be the same work
    assert known("b", "x") == (2 * GB, 1)
    assert known("c") is None
    assert known("d") is None  # no more than 9 GB: that says too little
    assert known("e") == (0.05 * GB, 1)


def test_cores_that_were_busy() -> None:
    records = [Measured(0.0, 2.0, math.nan, memory=1.0, cpu=6.0), Measured(0.0, 2.0, math.nan)]
    found = model_of(records)
    assert found is not None
    assert found.need() == Need(found.factor, 1, 1.0, 3.0)
    assert found.factor == pytest.approx(1.55)


def test_suggestions_in_words() -> None:
    forty = model([2.1 * GB] * 40)
    assert suggestion("align", forty, 8 * GB).words == (
        "align: asked 8 GB, used 2.1 GB at most in 40 runs: memory: 2.3GB would do"
    )
    assert suggestion("align", forty).words == (
        "align: used 2.1 GB at most in 40 runs: memory: 2.3GB would do"
    )
    assert suggestion("align", forty, 2.4 * GB).words == (
        "align: asked 2.4 GB, used 2.1 GB at most in 40 runs"
    )
    assert "would do" in suggestion("align", forty, 1 * GB).words
    assert not suggestion("tiny", model([5e6])).matters
    assert Suggestion("tiny", 1, 5e6, 8e6, asked=GB).matters


def test_what_was_used_is_kept(home: Path) -> None:
    full = used("a", GB, at_most=True, cpu=1.5, read=7.0, written=0.0, asked=2 * GB, command="x")
    failed = FailureRecord(1e9, "r", "wf", "a", "m", "out-of-memory", 3.0, memory=GB, asked=GB)
    with Repository() as repository:
        repository.add([full, task("b")], failures=[failed])
        assert repository.tasks()[0] == full
        assert math.isnan(repository.tasks()[1].memory)
        [kept] = repository.failures()
        assert (kept.cause, kept.memory, kept.asked, kept.directory) == (
            "out-of-memory",
            GB,
            GB,
            "",
        )
        assert math.isnan(kept.cpu)
        assert repository.asked() == {"a": 2 * GB}
        repository.forget(category="a")
        assert repository.failures() == []


OPEN = """
import sys
from foreplan.history.records import TaskRecord
from foreplan.history.repository import Repository
print("ready", flush=True)
sys.stdin.readline()
with Repository() as repository:
    repository.add([TaskRecord(2.0, "r", "wf", "new", sys.argv[1], 1.0, memory=5.0)])
"""


def test_a_database_is_made_by_several_at_once(home: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", OPEN, f"m{k}"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for k in range(4)
    ]  # fmt: skip
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            _, errors = process.communicate("go\n", timeout=60)
            assert (process.returncode, errors) == (0, "")
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    with Repository() as repository:
        assert sorted(t.machine for t in repository.tasks()) == ["m0", "m1", "m2", "m3"]
        assert repository.failures() == []
    with closing(sqlite3.connect(home / FILE)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
