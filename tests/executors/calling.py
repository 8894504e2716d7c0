"""Executors of Python functions for the tests."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from executors.waiting import next_event
from foreplan.executors.base import Workload
from foreplan.executors.local.executor import LocalExecutor
from foreplan.model import Call, Workflow
from foreplan.model.call import refs
from foreplan.model.events import OWN_FAULT, Event, StartTask, TaskFailed, TaskFinished
from model.told import what


def flow(calls: Sequence[Call]) -> Workflow:
    """Tasks t0, t1, ..., with an edge for every reference."""
    edges = [(source, task) for task, call in enumerate(calls) for source in refs(call)]
    ends = np.array(edges, dtype=np.int32).reshape(-1, 2)
    names = [f"t{k}" for k in range(len(calls))]
    return Workflow.from_edges("f", names, ends[:, 0], ends[:, 1], np.ones(len(edges)))


class Caller:
    """Makes executors of calls, and closes them."""

    def __init__(self, data: Path) -> None:
        self.data, self._made = data, list[LocalExecutor]()

    def __call__(self, *calls: Call, **options: Any) -> LocalExecutor:
        home = self.data / ".foreplan" / "runs" / "x"
        executor = LocalExecutor(
            Workload(flow(calls), calls, self.data, **options), 2, home, time.monotonic
        )
        self._made.append(executor)
        return executor

    def close(self) -> None:
        for executor in self._made:
            executor.close()


def run(executor: LocalExecutor, attempt: int, task: int, processor: int = 0) -> Event:
    """Run an attempt to its end."""
    executor.perform(StartTask(attempt, task, processor, 0.0))
    return next_event(executor)


def value(executor: LocalExecutor, task: int = 0) -> Any:
    """The result of a task that must finish."""
    event = run(executor, 1000 + task, task)
    assert isinstance(event, TaskFinished), event
    return executor.result(task)


def reason(event: Event, fault: float = OWN_FAULT) -> str:
    """Why a task failed that must fail."""
    assert (type(event), what(event)) == (TaskFailed, fault), event
    assert event.detail is not None
    return str(event.detail["reason"])


def holding() -> Call:
    """A call that holds a pipe open, with a child that does so too, for ever."""

    def hold() -> None:
        with open("life", "w") as life:
            subprocess.Popen(["sleep", "1000"], pass_fds=[life.fileno()])
            life.write("x")
            life.flush()
            time.sleep(1000)

    return Call(hold)  # by value: the worker cannot import this module
