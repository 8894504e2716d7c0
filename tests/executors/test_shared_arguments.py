"""Large arguments that several calls take travel once, and every call has its own copy."""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from executors.calling import Caller, flow, run, value
from foreplan.executors import packing
from foreplan.executors.base import Workload
from foreplan.executors.calls import load_call, pack_call
from foreplan.executors.shared_arguments import LARGE, SharedArguments
from foreplan.model import Call
from foreplan.model.events import TaskFinished

N = LARGE // 8 + 1  # numbers of a large array


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    made = Caller(tmp_path)
    yield made
    made.close()


def attempts(data: Path) -> list[str]:
    return sorted(os.listdir(data / ".foreplan" / "runs" / "x" / "attempts"))


def test_every_call_has_its_own_copy(caller: Caller, tmp_path: Path) -> None:
    class Holder:
        def __init__(self, array: Any) -> None:
            self.array = array

    def change(array: Any, again: list[Any], text: bytes, holder: Holder) -> tuple[Any, ...]:
        seen = float(array.sum()), len(text), holder.array is array
        array[:] = 7.0
        return (*seen, again[0] is array, array.flags.f_contiguous, float(again[0][0, 0]))

    array = np.ones((2, N), order="F")
    text = b"x" * LARGE
    call = Call(change, (array, [array], text, Holder(array)))
    executor = caller(call, call, call)
    array[0] = 3.0  # before the run, so all tasks see it
    expected = (4.0 * N, LARGE, True, True, True, 7.0)
    assert [value(executor, task) for task in range(3)] == [expected] * 3
    assert attempts(tmp_path)[-2:] == ["shared-1.pkl", "shared-2.pkl"]
    assert float(array[1, 0]) == 1.0
    executor.close()
    assert not [name for name in attempts(tmp_path) if name.startswith("shared")]


def test_what_is_met_once_or_made_anew_travels_with_its_call(tmp_path: Path) -> None:
    class Made:
        """Its array is another one whenever it is pickled."""

        count = 0

        def __getstate__(self) -> dict[str, Any]:
            Made.count += 1
            return {"array": np.full(N, float(Made.count))}

    shared = SharedArguments(str(tmp_path))
    known: list[Any] = [np.ones(N), np.ones(N // 2), np.full(N, None), "x" * LARGE]
    call = Call(len, (Made(), *known))
    find_place = functools.partial(shared.find, call=call)
    sizes = [len(pack_call(call, find_place=find_place)[0]) for _ in range(3)]
    large = 8 * N
    assert sizes[0] > 2 * large + LARGE
    assert large + LARGE // 2 < sizes[1] == sizes[2] < sizes[0] - large - LARGE // 2
    assert sorted(os.listdir(tmp_path)) == ["shared-1.pkl", "shared-2.pkl"]
    assert np.array_equal(packing.unpack(packing.read(str(tmp_path / "shared-1.pkl"))), known[0])


def test_without_room_for_a_file_a_call_takes_it_along(caller: Caller, tmp_path: Path) -> None:
    array = np.ones(N)
    calls = [Call(np.sum, (array,)) for _ in range(3)]
    executor = caller(*calls)
    os.mkdir(os.path.join(executor._jobs.home, "attempts", "shared-1.pkl"))
    for task in range(3):
        assert isinstance(run(executor, task, task), TaskFinished)
        assert executor.result(task) == N


def test_on_dask_they_are_inputs(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    from foreplan.executors.dask.jobs import DaskJobs
    from foreplan.executors.dask.tasks import Packed

    array, own = np.ones(N), np.zeros(N)
    calls = [Call(len, ([array],), {"more": own}), Call(len, (array, array))]
    jobs = DaskJobs(Workload(flow(calls), calls, tmp_path), tmp_path / ".foreplan" / "runs" / "x")
    assert [jobs.given(task) for task in range(2)] == [[-1], [-1]]
    lengths = [len(jobs.columns(task, None)[1][1]) for task in range(2)]
    assert lengths[0] > 8 * N
    assert lengths[1] < 1000
    packed = jobs.external_file(-1)
    assert isinstance(packed, Packed)
    first, second = (packed.load()[0] for _ in range(2))
    first[:] = 2.0
    assert second.sum() == array.sum() == N
    function, arguments, context = jobs.columns(1, None)[1][:3]
    assert pickle.loads(function) is len
    tasks, names, folder = pickle.loads(context)
    results = dict(zip(tasks, [second], strict=True))
    one, other = load_call(arguments, results.__getitem__, names, folder)[1]
    assert one is other is second
    jobs.close()
