"""What runs on Dask's side, without a cluster: nobody waits for it longer than must be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from inspect import isfunction, signature
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed")

from weft.executors import dask_tasks
from weft.executors.dask_tasks import Reporter

_LOADED = """
import sys, weft.executors.dask_tasks
print(*sorted(name for name in sys.modules if name.startswith("weft.")))
"""


def test_workers_and_scheduler_import_little() -> None:
    """All wait while they do: all of `weft.model` took a first run a third of a second."""
    command = [sys.executable, "-c", _LOADED]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) == {
        "weft.executors",
        "weft.executors.cpu_share",
        "weft.executors.dask_pulse",
        "weft.executors.dask_tasks",
        "weft.executors.progress",
        "weft.version",
    }


def test_what_dask_is_asked_for_is_there() -> None:
    """A function that it must import from elsewhere brings more with it, in the middle of a run."""
    from weft.executors import dask_cluster, dask_leaving, dask_transfers, dask_watch

    rooms = (dask_cluster, dask_leaving, dask_transfers, dask_watch)
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
    worker = SimpleNamespace(loop=loop, state=state, log_event=lambda _, told: said.append(told))
    reporter = Reporter("run")
    reporter.setup(worker)
    for key in tasks:
        reporter.records[key] = {"key": key}
    first, *others = tasks
    reporter.transition(first, "executing", "memory")
    assert (len(loop.next), loop.later, said) == (1, [], [])
    loop.next.pop()()
    assert [report["key"] for report in said[0]["reports"]] == [first]
    for key in others:
        reporter.transition(key, "executing", "memory")
    assert (loop.next, len(loop.later)) == ([], 1)
