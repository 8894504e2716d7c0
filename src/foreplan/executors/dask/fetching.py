"""Bring results of functions that other tasks read home from the workers that hold them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from foreplan.errors import ForeplanError
from foreplan.executors.dask.cluster import Cluster
from foreplan.executors.dask.jobs import DaskJobs
from foreplan.executors.dask.submissions import Submission
from foreplan.executors.dask.tasks import Packed

_BATCH = 8_000_000  # bytes that are asked for at once
_PATIENCE = 2.0  # seconds without any progress until the end of a run waits no longer


class HomeMessage(NamedTuple):
    """The result of a task, or its files, are at home, unless there was a problem."""

    given: Submission
    problem: str | None = None


class Fetches:
    """Results that workers hold packed until they are at home; one batch at a time from each.

    The run does not wait for results that are kept only in case they are needed again: their tasks
    are finished already. It learns when others are at home.
    """

    def __init__(self, cluster: Cluster, jobs: DaskJobs, post: Callable[[Any], None]) -> None:
        self._cluster = cluster
        self._jobs = jobs
        self._post = post
        self._waiting: dict[str, list[Submission]] = {}  # by the worker's address
        self._busy: set[str] = set()  # addresses
        self.keys: set[str] = set()  # that Dask must not forget yet
        self._changed = threading.Condition()  # holds for all of these
        self._is_closed = False
        self._writing = threading.Lock()  # nothing is written after the end of the run

    def add(self, given: Submission) -> None:
        """Bring a result home, together with others of its worker."""
        address = given.address
        with self._changed:
            self.keys.add(given.key)
            self._waiting.setdefault(address, []).append(given)
            if address in self._busy:
                return
            self._busy.add(address)
        self._cluster.do_later(lambda: self._fetch_all(address))

    async def _fetch_all(self, address: str) -> None:
        while batch := self._take_batch(address):
            await self._fetch(address, batch)
            with self._changed:
                self.keys.difference_update(given.key for given in batch)
                self._changed.notify_all()

    def _take_batch(self, address: str) -> list[Submission]:
        with self._changed:
            waiting = self._waiting.get(address, [])
            count = size = 0
            while count < len(waiting) and size < _BATCH:
                end = waiting[count].end
                size += (end and end.packed) or 0
                count += 1
            batch, self._waiting[address] = waiting[:count], waiting[count:]
            if not batch:
                self._busy.discard(address)
            return batch

    async def _fetch(self, address: str, batch: Sequence[Submission]) -> None:
        awaited = [given for given in batch if self._jobs.must_keep(given.task)]
        client, name = self._cluster.client, self._cluster.name
        problem = None
        try:
            keys = [given.key for given in batch]
            question = {"op": name, "keys": keys}
            answers = await client.scheduler.broadcast(msg=question, workers=[address])
            await asyncio.to_thread(self._keep, batch, answers[address]["results"])
        except ForeplanError as error:  # it cannot be written here, and trying again is no help
            self._post(error)
            return
        except BaseException as error:  # the worker is gone, as the run will learn
            problem = f"{type(error).__name__}: {error}"
        if awaited:
            self._post([HomeMessage(given, problem) for given in awaited])

    def _keep(self, batch: Sequence[Submission], results: Sequence[Packed]) -> None:
        for given, packed in zip(batch, results, strict=True):
            if not packed.frames and self._jobs.must_keep(given.task):
                raise LookupError(f"the worker does not hold the result of {given.key}")
            with self._writing:
                if packed.frames and not self._is_closed:
                    self._jobs.keep_finished(given.task, packed, given.attempt, given.end)

    def finish(self) -> None:
        """Wait until all is at home; not for workers that do not answer."""
        with self._changed:
            left = len(self.keys) + 1
            while 0 < len(self.keys) < left and self._cluster.client.status == "running":
                left = len(self.keys)
                self._changed.wait(_PATIENCE)
        with self._writing:
            self._is_closed = True
