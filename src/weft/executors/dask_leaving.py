"""Workers that are to go: what people and Dask announce, and the results that only they hold."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable

from weft.executors.dask_cluster import Cluster
from weft.executors.dask_items import Items
from weft.executors.dask_tasks import RETIRING, move_out
from weft.executors.departures import Departures
from weft.model.events import Event, EventKind


class Leaving:
    """Who is to go; all but `drain` is called by the thread that takes events."""

    def __init__(
        self,
        cluster: Cluster,
        items: Items,
        clock: Callable[[], float],
        post: Callable[[Event], None],
    ) -> None:
        self._cluster, self._items, self._clock = cluster, items, clock
        self._departures = Departures(clock, post)
        self._drained: dict[int, float] = {}  # by processor: when it goes, as people want it
        self._told: set[int] = set()  # processors that go now, as the run knows
        self._retiring: set[str] = set()  # workers that Dask retires: it moves their results
        self._asked: dict[str, str] = {}  # by key: the worker that was asked to take a copy
        self._is_asking = False
        self.late: dict[str, list[int]] = {}  # workers that are gone, which the run is yet to hear

    def drain(self, processor: int, at: float | None) -> None:
        """People want it to go; from any thread."""
        self._drained[processor] = self._clock() if at is None else at
        self._departures.announce(processor, at)

    def changed(self, address: str, status: str) -> list[Event]:
        """What a new status of a worker means; when it is not retired after all, it stays."""
        here = self._cluster.processors.get(address, [])
        if status == RETIRING and address not in self._retiring:
            self._retiring.add(address)
            return [Event(EventKind.LEAVING, p, 0.0, self._clock()) for p in here]
        if status == "running" and address in self._retiring:
            self._retiring.remove(address)
            wanted = [(p, self._drained.get(p, math.inf)) for p in here]
            return [Event(EventKind.LEAVING, p, 0.0, at) for p, at in wanted]
        return []

    def heard(self, event: Event) -> None:
        """The run hears of a departure."""
        if event.value <= event.time:
            self._told.add(event.which)
        else:
            self._told.discard(event.which)

    def gone(self, address: str, processors: list[int], whole: bool) -> bool:
        """A worker is gone; whether the run should hear of it now.

        Where the run knew of it, and Dask has copies of all that it held (`whole`), a run that
        believes results to be only there hears of it later: else it would make them again.
        """
        self._retiring.discard(address)
        expected = self._told.issuperset(processors)
        self._told.difference_update(processors)
        for processor in processors:
            self._drained.pop(processor, None)
        if expected and whole and self._are_needed():
            self.late[address] = processors
            return False
        return True

    def overdue(self) -> list[list[int]]:
        """The processors of workers that are gone, once the run can do without their results."""
        if not self.late or self._are_needed():
            return []
        found, self.late = list(self.late.values()), {}
        return found

    def _are_needed(self) -> bool:
        """Whether the run believes a result to be only on workers that are gone."""
        host = self._cluster.platform.host
        here = {int(host[p]) for found in self._cluster.processors.values() for p in found}
        claims = self._items.claims
        return any(claims.get(task, here).isdisjoint(here) for task in self._items.results)

    def look(self, files: Iterable[str]) -> None:
        """Have what only drained workers hold be copied elsewhere: they may go at any time."""
        leaving = [
            address
            for address, here in self._cluster.processors.items()
            if here and address not in self._retiring and self._told.issuperset(here)
        ]
        if not leaving or self._is_asking or self._items.jobs.is_shared:
            return
        wanted = dict.fromkeys(files, "") | self._places(set(leaving)) | self._asked
        self._is_asking = True

        async def ask() -> None:
            try:
                with contextlib.suppress(OSError):  # no scheduler: that is noticed elsewhere
                    self._asked = await self._cluster.client.run_on_scheduler(
                        move_out, self._cluster.name, leaving, wanted
                    )
            finally:
                self._is_asking = False

        self._cluster.later(ask)

    def _places(self, leaving: set[str]) -> dict[str, str]:
        """By key: a worker that the run believes a result to be on, if it stays; else none."""
        names = self._cluster.platform.host_names
        places = dict[str, str]()
        for task, result in self._items.results.items():
            hosts = sorted(names[h] for h in self._items.claims.get(task, ()))
            places[result.key] = next((h for h in hosts if h not in leaving), "")
        return places

    def close(self) -> None:
        """Announce nothing more."""
        self._departures.close()
