"""Attempts on Dask, watched: what workers say of them, and which workers are not heard of."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence

from weft.executors.dask_cluster import Cluster
from weft.executors.dask_pulse import Said
from weft.executors.dask_submissions import Submission, Submissions
from weft.executors.dask_tasks import SILENT, silent_workers
from weft.executors.monitor import Monitor
from weft.executors.progress import Report
from weft.model.events import Event


class DaskWatch:
    """All but the answers of the scheduler comes in the thread that takes events."""

    def __init__(self, cluster: Cluster, given: Submissions, post: Callable[[Event], None]) -> None:
        self._cluster, self._given, self._monitor = cluster, given, Monitor(post)
        self._pulse: dict[str, tuple[float, float, Report | None]] = {}  # by key: begun, share, ...
        self._suspects: set[str] = set()
        self._silent: set[str] = set()  # as was last told
        self._answer: Sequence[str] = ()
        self._is_free = threading.Event()  # no question is on its way
        self._is_free.set()

    def heard(self, pulse: Sequence[Said]) -> None:
        """What a worker says of tasks."""
        now = time.monotonic()
        for key, seconds, share, report in pulse:
            if (given := self._given.by_key.get(key)) is not None:
                known = self._pulse.get(key)
                begun = now - seconds if known is None else known[0]
                self._pulse[key] = begun, share, report
                self._measured(given)

    def look(self) -> None:
        """What holds still, if it is time; and ask who is silent."""
        if not self._monitor.is_due():
            return
        begun, known = time.monotonic(), self._given.by_key
        self._pulse = {key: said for key, said in self._pulse.items() if key in known}
        self._look_for_silent()
        for key in self._pulse:
            if known[key].address not in self._silent:
                self._measured(known[key])
        self._monitor.over(begun, self._given.by_attempt)
        if known or self._silent:
            self._ask()

    def _look_for_silent(self) -> None:
        # twice in a row: the scheduler itself may have been busy, and may hear of them now
        answer, here = set(self._answer), self._cluster.processors
        before, self._silent = self._silent, answer & self._suspects & here.keys()
        self._suspects = answer
        for address in self._silent:
            for processor in here[address]:
                self._monitor.silent(processor)
        for address in (before - self._silent) & here.keys():
            for processor in here[address]:
                self._monitor.back(processor)

    def _measured(self, given: Submission) -> None:
        if given.attempt is not None:
            begun, share, report = self._pulse[given.key]
            self._monitor.measured(given.processor, given.attempt, begun, share, report)

    def _ask(self) -> None:
        if not self._is_free.is_set():
            return
        self._is_free.clear()

        async def ask() -> None:
            try:
                with contextlib.suppress(OSError):  # no scheduler: that is noticed elsewhere
                    self._answer = await self._cluster.client.run_on_scheduler(silent_workers)
            finally:
                self._is_free.set()

        self._cluster.later(ask)

    def close(self) -> None:
        """Wait for an answer that is on its way, for the client may be closed next."""
        self._is_free.wait(SILENT)
