"""The base class for executors of functions: what it makes of a pool's futures, good and bad."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.executors.base import Workload, find_scheme
from foreplan.executors.calling import call
from foreplan.executors.function_pool import FunctionExecutor, FunctionPool
from foreplan.executors.local.executor import LocalExecutor
from foreplan.model import Call, Item, Platform, Processor, Workflow
from foreplan.model.events import (
    MACHINE_LOST,
    NO_FAULT,
    ProcessorGone,
    ProcessorJoined,
    StartTask,
    TaskFailed,
    TaskFinished,
)

Answer = Callable[[bytes], Future[bytes]]


def at_once(payload: bytes) -> Future[bytes]:
    """A call that is over before `submit` returns."""
    future = Future[bytes]()
    future.set_result(call(payload))
    return future


class Inline(FunctionPool):
    """Calls in this process, or what a test has in their place."""

    name = "inline"
    examples = "`inline:2`"
    here = True
    answers: Answer = staticmethod(at_once)
    closed = 0

    def submit(self, payload: bytes) -> Future[bytes]:
        return self.answers(payload)

    def close(self) -> None:
        self.closed += 1


def workflow(n: int = 1) -> Workflow:
    items = [Item(1.0, task, [task + 1] if task + 1 < n else []) for task in range(n)]
    return Workflow.from_items("w", [f"t{k}" for k in range(n)], [1.0] * n, items)


def opened(folder: Path, pool: Inline, known: Platform | None = None, **call: Any) -> Any:
    work = Workload(workflow(), [Call(**call or {"function": os.getpid})], folder)
    return FunctionExecutor(pool, work, folder / "home", time.monotonic, known)


def failing(error: BaseException) -> Answer:
    def answer(payload: bytes) -> Future[bytes]:
        future = Future[bytes]()
        future.set_exception(error)
        return future

    return answer


def raising(payload: bytes) -> Future[bytes]:
    raise RuntimeError("cannot schedule new futures")


def cancelling(payload: bytes) -> Future[bytes]:
    future = Future[bytes]()
    future.cancel()
    future.set_running_or_notify_cancel()
    return future


def garbling(payload: bytes) -> Future[bytes]:
    future = Future[bytes]()
    future.set_result(b"no pickle")
    return future


@pytest.mark.parametrize(
    ("answers", "reason", "fault"),
    [
        (failing(EOFError("gone")), "its worker was lost: EOFError: gone", MACHINE_LOST),
        (failing(CancelledError()), "its worker was lost: CancelledError", MACHINE_LOST),
        (raising, "its worker was lost: RuntimeError: cannot schedule", MACHINE_LOST),
        (cancelling, "its worker was lost: the pool has cancelled the call", MACHINE_LOST),
        (garbling, "its result cannot be kept: UnpicklingError", 0.0),
    ],
)
def test_futures_that_fail(tmp_path: Path, answers: Answer, reason: str, fault: float) -> None:
    pool = Inline(1)
    executor = opened(tmp_path, pool)
    pool.answers = answers
    executor.perform(StartTask(0, 0, 0, 0.0))
    event = executor.next_event()
    assert isinstance(event, TaskFailed)
    assert event.detail is not None
    assert reason in event.detail["reason"]
    assert event.fault == fault
    pool.answers = at_once  # and the next attempt succeeds
    executor.perform(StartTask(1, 0, 0, 0.0))
    assert isinstance(executor.next_event(), TaskFinished)
    assert executor.result(0) == os.getpid()
    executor.close()
    executor.close()
    assert pool.closed == 1


def test_a_call_that_cannot_be_sent(tmp_path: Path) -> None:
    executor = opened(tmp_path, Inline(1), function=len, args=((k for k in "abc"),))
    executor.perform(StartTask(0, 0, 0, 0.0))
    event = executor.next_event()
    assert isinstance(event, TaskFailed)
    assert "it cannot be sent to a worker: TypeError" in str(event.detail)


def fewer_slots(folder: Path, known: Platform) -> Any:
    return opened(folder, Inline(1), known)


def fewer_cores(folder: Path, known: Platform) -> Any:
    work = Workload(workflow(), [Call(os.getpid)], folder)
    return LocalExecutor(work, 1, folder / "home", time.monotonic, known)


@pytest.mark.parametrize("open_again", [fewer_slots, fewer_cores])
def test_resumed_with_fewer_processors(
    tmp_path: Path, open_again: Callable[[Path, Platform], Any]
) -> None:
    """Those that are missing are gone before an end lets anything start on them."""
    known = Platform.build([Processor("p", host="h"), Processor("q", host="h")])
    executor = open_again(tmp_path, known)
    events = executor.recover([StartTask(0, 0, 0, 0.0)], [])
    assert [type(event) for event in events] == [ProcessorJoined, ProcessorGone, TaskFailed]
    assert events[-1].fault == NO_FAULT
    executor.close()


def test_more_slots_than_the_run_knows(tmp_path: Path) -> None:
    known = Platform.build([Processor("p", host="h")])
    with pytest.raises(InputError, match="at most as many slots, not 2"):
        opened(tmp_path, Inline(2), known)


def test_what_on_may_be() -> None:
    pool = Inline(3)
    assert find_scheme(pool) is pool
    assert pool.place(pool) == "inline:3"
    assert pool.look("inline:2")[0].processor_names == ("inline-1", "inline-2")
    assert isinstance(find_scheme(Inline), Inline)
    for bad in (0, 5000):
        with pytest.raises(InputError, match=f"a pool has 1 to 4096 slots, not {bad}"):
            Inline(bad)
    with pytest.raises(InputError, match="'two' is not a number of slots: say `inline:2`"):
        pool.check("inline:two")
    with pytest.raises(InputError, match="is no place to run"):
        find_scheme(str)


def double(x: list[int]) -> list[int]:
    x *= 2
    return x


def number(text: str) -> int:
    return int(text)


def test_a_flow(tmp_path: Path) -> None:
    """Functions see their arguments as they were made, and errors travel; nothing is done twice."""
    flow = foreplan.Flow()
    first = flow.task(list, (1, 2))
    doubled = [flow.task(double, first) for _ in range(3)]
    wrong = flow.task(number, "x")
    options: dict[str, Any] = {"dir": tmp_path, "progress": False, "use_history": False}
    outcome = foreplan.run(flow, on=Inline(2), keep_going=True, keep_results=True, **options)
    assert outcome.status == "failed"
    assert [outcome.result(task) for task in doubled] == [[1, 2, 1, 2]] * 3
    assert outcome.result(first) == [1, 2]
    [failure] = outcome.failures
    assert failure.reason.startswith("ValueError: invalid literal for int()")
    assert "in number" in failure.tail
    with pytest.raises(ValueError, match="invalid literal"):
        outcome.result(wrong)
    resumed = foreplan.run(flow, on=Inline, resume=outcome.id, keep_going=True, **options)
    assert [failure.task for failure in resumed.failures] == [failure.task]


@pytest.mark.parametrize(
    ("options", "problem"),
    [({}, "a flow with files needs a directory that the workers"), ({"shared": True}, "")],
)
def test_what_cannot_be_done_there(tmp_path: Path, options: Any, problem: str) -> None:
    class Away(Inline):
        name = "away"
        here = False

    (tmp_path / "given").write_text("given")
    flow = foreplan.Flow()
    read = flow.task(Path.read_text, flow.file("given"), timeout=5)
    if problem:
        with pytest.raises(InputError, match=problem):
            foreplan.run(flow, on=Away(1), dir=tmp_path, progress=False, **options)
        return
    outcome = foreplan.run(flow, on=Away(1), dir=tmp_path, progress=False, **options)
    assert outcome.result(read) == "given"
    assert "`away` does not keep time-outs" in outcome.warnings[0]
    with pytest.raises(InputError, match="`away` runs functions, not commands"):
        foreplan.run({"tasks": {"a": {"run": "true"}}}, on=Away(1), dir=tmp_path, progress=False)
