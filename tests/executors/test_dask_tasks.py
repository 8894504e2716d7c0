"""What runs on Dask's side, without a cluster: nobody waits for it longer than must be."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from inspect import isfunction, signature
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("distributed")

from foreplan.executors import packing
from foreplan.executors.calls import is_immutable, is_stateless
from foreplan.executors.dask import tasks as dask_tasks
from foreplan.executors.dask.messages import (
    CopyMessage,
    GoneMessage,
    JoinMessage,
    PulseMessage,
    StatusMessage,
    TaskMessage,
    UnreadableMessage,
    WorkersMessage,
    pack,
    read_dask_event,
    unpack,
)
from foreplan.executors.dask.tasks import Packed, Reporter

_LOADED = """
import sys, foreplan.executors.dask.tasks
print(*sorted(name for name in sys.modules if name.startswith("foreplan.")))
"""


def test_workers_and_scheduler_import_little() -> None:
    """All wait while they do: all of `foreplan.model` took a first run a third of a second."""
    command = [sys.executable, "-c", _LOADED]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) == {
        "foreplan.executors",
        "foreplan.executors.calls",
        "foreplan.executors.cpu_share",
        "foreplan.executors.dask",
        "foreplan.executors.dask.messages",
        "foreplan.executors.dask.tasks",
        "foreplan.executors.forking",
        "foreplan.executors.packing",
        "foreplan.executors.progress",
        "foreplan.executors.usage",
        "foreplan.lazy",
        "foreplan.version",
    }


def test_what_dask_is_asked_for_is_there() -> None:
    """A function that it must import from elsewhere brings more with it, in the middle of a run."""
    from foreplan.executors.dask import cluster as dask_cluster
    from foreplan.executors.dask import submissions as dask_submissions
    from foreplan.executors.dask import workers as dask_workers

    rooms = (dask_cluster, dask_submissions, dask_workers)
    known = [f for room in rooms for f in vars(room).values() if isfunction(f)]
    asked = [f for f in known if {"dask_scheduler", "dask_worker"} & signature(f).parameters.keys()]
    assert len(asked) >= 5
    assert {f.__module__ for f in asked} == {dask_tasks.__name__}


class Loop:
    """What a loop was asked to do: in this turn, and later."""

    def __init__(self) -> None:
        self.next: list[Callable[[], None]] = []
        self.later: list[float] = []

    def add_callback(self, work: Callable[[], None]) -> None:
        self.next.append(work)

    def call_later(self, seconds: float, work: Callable[[], None]) -> None:
        self.later.append(seconds)


def test_a_report_travels_with_the_end_of_its_task() -> None:
    """In the same turn of the loop, behind what Dask itself says; those soon after it together."""
    loop, said = Loop(), list[Any]()
    tasks = {f"run-{k}-0": SimpleNamespace(nbytes=1) for k in range(3)}
    state = SimpleNamespace(tasks=tasks)
    worker = SimpleNamespace(
        loop=loop, state=state, handlers={}, log_event=lambda _, told: said.append(told)
    )
    reporter = Reporter("run")
    reporter.setup(worker)
    for key in tasks:
        reporter.records[key] = TaskMessage(key, 0.0)
    first, *others = tasks
    reporter.transition(first, "executing", "memory")
    assert (len(loop.next), loop.later, said) == (1, [], [])
    loop.next.pop()()
    assert unpack(said[0]) == [TaskMessage(first, 0.0, size=1)]
    for key in others:
        reporter.transition(key, "executing", "memory")
    assert (loop.next, len(loop.later)) == ([], 1)


def test_messages_travel_as_plain_data() -> None:
    """Dask passes on what msgpack knows, where tuples and lists are one."""
    import msgpack  # type: ignore[import-untyped]

    told: list[Any] = [
        TaskMessage("run-0-0", 1.5, 10, b"x"),
        TaskMessage("run-1-1", 0.5, sizes={"a": 3}, reason="no", tail="t", exit=3, log="l"),
        CopyMessage("run-0-0", "tcp://a:1", 10, 0.5),
        PulseMessage("run-0-0", 2.0, 0.5, (0.25, 1.0)),
        WorkersMessage({"tcp://a:1": ("a", 2, "a")}),
        StatusMessage("tcp://a:1", "running"),
        UnreadableMessage("run-0-0", "tcp://a:1", "no"),
        JoinMessage(),
        GoneMessage("tcp://a:1", ("k",), ()),
    ]
    assert unpack(msgpack.loads(msgpack.dumps(pack(told)), use_list=False)) == told
    assert read_dask_event("all", {"action": "add-worker"}) == JoinMessage()
    gone = {"action": "remove-worker", "worker": "tcp://a:1", "lost-computed-tasks": {"k"}}
    assert read_dask_event("all", gone) == GoneMessage("tcp://a:1", ["k"], [])
    assert read_dask_event("tcp://a:1", gone) is None  # Dask logs it twice
    assert read_dask_event("all", {"action": "retire-workers"}) is None


@pytest.mark.parametrize("size", [10, 20_000, 200_000])  # in the pickle, beside it, mapped
@pytest.mark.parametrize("has_files", [True, False])
def test_every_reader_of_a_result_has_its_own(
    size: int, has_files: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_files:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    made = np.arange(float(size))
    packed = Packed(*packing.pack([made, [made], [1]]))
    packed.detach()
    made[:] = -1
    for reader in range(3):
        (one, [same], plain), copied = packed.load()
        assert one is same
        assert (one.sum(), plain) == (size * (size - 1) / 2, [1])
        is_mapped = reader > 0 and has_files and size == 200_000
        assert (copied < 8 * size) is is_mapped
        one[:] = 7
        plain.append(2)
    assert Packed(*packed.frames).load()[0][2] == [1]  # as it arrives elsewhere


def _recursive() -> Any:
    def countdown(n: int) -> int:
        return n and countdown(n - 1)

    return countdown


@pytest.mark.parametrize(
    ("function", "is_kept_by_workers"),
    [
        (len, True),
        (dict, True),
        (_recursive, True),
        (_recursive(), True),
        (lambda x, y=(1, "a"): x, True),
        (functools.partial(_recursive(), 1), True),
        (functools.lru_cache(_recursive()), True),
        (functools.wraps(_recursive)(lambda: _recursive()), True),
        ([].append, False),
        (lambda x, y=[]: x, False),
        (functools.partial(len, []), False),
        ((lambda held: lambda: held)({}), False),
        (Reporter("x").setup, False),
    ],
)
def test_workers_keep_functions_that_hold_nothing(function: Any, is_kept_by_workers: bool) -> None:
    """What another holds travels with the arguments, and is each call's own."""
    assert is_stateless(function) is is_kept_by_workers


def test_parts_of_immutable_values_are_counted() -> None:
    knot: tuple[Any, ...] = (1, "a", frozenset([b"b"]))
    assert is_immutable(knot)
    for _ in range(60):  # each has two of the one before
        knot = (knot, knot)
    assert not is_immutable(knot)
    assert not is_immutable((1, [2]))
