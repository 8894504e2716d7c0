"""What a Dask worker says of its running tasks: what they get of its processors, and report.

It says so by itself, about once a second, where something has changed: nobody has to ask, which
would mean to wait for a worker that stands still.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from weft.executors.cpu_share import (
    INTERVAL,
    CpuTimes,
    cpu_share,
    differs,
    times_of_thread,
    times_of_tree,
)
from weft.executors.progress import ENDING, Report, forget_progress, heard_by, read_progress

if TYPE_CHECKING:
    from weft.executors.processes import Stop

Said = tuple[str, float, float, Report | None]  # key, seconds since it began, share, progress


class _Doing:
    """A task that runs."""

    def __init__(
        self, times: Callable[[], CpuTimes | None], report: Callable[[], Report | None]
    ) -> None:
        self._times, self._report, self.begun = times, report, time.monotonic()
        self._before: CpuTimes | None = None
        self._said: tuple[float, float | None] = (1.0, None)  # the share, and what is done

    def news(self) -> tuple[float, Report | None] | None:
        """The share that it got since the last look, and its progress, if either has changed."""
        before, self._before = self._before, self._times()
        share = cpu_share(before, self._before) if before and self._before else 1.0
        report = self._report()
        said = share, None if report is None else report[0]
        if not differs(share, self._said[0]) and said[1] == self._said[1]:
            return None
        self._said = said
        return share, report


class Pulse:
    """The tasks of a run on a worker; looked at by its loop while there are any."""

    def __init__(self, name: str, worker: Any) -> None:
        self._name, self._worker = name, worker
        self._doing: dict[str, _Doing] = {}
        self._timer: Any = None
        self._is_closed = False

    def begin(self) -> None:
        """A task is about to run; called in the worker's loop."""
        if self._timer is None and not self._is_closed:
            self._timer = self._worker.loop.call_later(INTERVAL, self._beat)

    def close(self) -> None:
        """Say nothing more; called in the worker's loop."""
        self._is_closed = True
        if self._timer is not None:
            self._worker.loop.remove_timeout(self._timer)
            self._timer = None

    @contextmanager
    def call(self, key: str) -> Iterator[None]:
        """While this lasts, this thread runs the function of a task."""
        thread, told = threading.get_native_id(), list[tuple[float, float]]()

        def hear(share: float) -> None:
            told[:] = [(share, time.monotonic())]

        def report() -> Report | None:
            return (told[0][0], time.monotonic() - told[0][1]) if told else None

        self._doing[key] = _Doing(lambda: times_of_thread(thread), report)
        try:
            with heard_by(hear):
                yield
        finally:
            self._doing.pop(key, None)

    @contextmanager
    def command(self, key: str, stop: Stop) -> Iterator[str]:
        """While this lasts, the command of a task runs; the file for its progress."""
        report = os.path.join(os.path.abspath(self._worker.local_directory), key + ENDING)

        def times() -> CpuTimes | None:
            return None if (group := stop.group) is None else times_of_tree(group)

        self._doing[key] = _Doing(times, lambda: read_progress(report))
        try:
            yield report
        finally:
            self._doing.pop(key, None)
            forget_progress(report)

    def _beat(self) -> None:
        self._timer, said, now = None, list[Said](), time.monotonic()
        for key, doing in list(self._doing.items()):
            if (news := doing.news()) is not None:
                said.append((key, now - doing.begun, *news))
        if said:
            self._worker.log_event(self._name, {"pulse": said})
        if self._doing:
            self.begin()
