"""Moving results between workers: large ones when asked to, small ones with their readers."""

from __future__ import annotations

import contextlib
from collections.abc import Container
from typing import Any

from weft.executors.dask_cluster import Cluster
from weft.executors.dask_items import Items
from weft.executors.dask_jobs import Jobs
from weft.executors.dask_tasks import BIG, fetch
from weft.model.events import Event, EventKind, SendItem
from weft.model.workflow import EXTERNAL


class Transfers:
    """The transfers under way."""

    def __init__(self, cluster: Cluster, jobs: Jobs, items: Items) -> None:
        self._cluster, self._jobs, self._items = cluster, jobs, items
        self._under_way: dict[tuple[str, str], list[SendItem]] = {}  # by key and address
        self._to_send: list[tuple[str, str]] = []

    def send(self, command: SendItem) -> list[Event]:
        """Begin a transfer, or say at once that Dask will see to it when the item is read."""
        producer = int(self._jobs.workflow.item_producer[command.item])
        if producer == EXTERNAL or self._jobs.is_shared:
            return [Event(EventKind.ITEM_ARRIVED, command.transfer, 0.0)]
        result = self._items.results.get(producer)
        if result is None:
            n = self._jobs.workflow.n_items
            hosts = sorted(self._items.forget(producer) | {command.source})
            return [Event(EventKind.ITEM_LOST, h * n + command.item, 0.0) for h in hosts]
        if result.bytes < BIG:
            self._items.claims[producer].add(command.target)
            return [Event(EventKind.ITEM_ARRIVED, command.transfer, 0.0)]
        route = (result.key, self._cluster.platform.host_names[command.target])
        if route not in self._under_way:
            self._to_send.append(route)
        self._under_way.setdefault(route, []).append(command)
        return []

    def flush(self) -> None:
        """Have the scheduler begin all that is to be begun, in one message."""
        wanted, self._to_send = self._to_send, []
        if not wanted:
            return

        async def ask() -> None:
            with contextlib.suppress(OSError):  # no scheduler: that is noticed elsewhere
                await self._cluster.client.run_on_scheduler(fetch, self._cluster.name, wanted)

        self._cluster.later(ask)

    def arrived(self, report: dict[str, Any]) -> list[Event]:
        """A copy of a result is on a worker, whoever asked for it."""
        producer = self._items.task_of(report["there"])
        commands = self._under_way.pop((report["there"], report["at"]), [])
        if producer is None or report["at"] not in self._cluster.processors:
            return []
        detail = {"size": report["bytes"]}
        if "seconds" in report:
            detail["seconds"] = report["seconds"]
        for command in commands:
            self._items.claims[producer].add(command.target)
        return [Event(EventKind.ITEM_ARRIVED, c.transfer, 0.0, detail=detail) for c in commands]

    def drop(self, transfer: int) -> None:
        """Nobody waits for this one any more; Dask may bring it all the same."""
        for commands in self._under_way.values():
            commands[:] = [c for c in commands if c.transfer != transfer]

    def host_gone(self, address: str, host: int, lost: Container[str]) -> list[Event]:
        """Nothing will arrive there. What was to come from there, and is elsewhere too, arrives.

        For Dask sees to it when it is read.
        """
        for route in [route for route in self._under_way if route[1] == address]:
            del self._under_way[route]
        arrived = list[Event]()
        for (key, target), commands in self._under_way.items():
            sent = [c for c in commands if c.source == host]
            producer = self._items.task_of(key)
            if key in lost or producer is None or target not in self._cluster.processors:
                continue
            for command in sent:
                self._items.claims[producer].add(command.target)
                arrived.append(Event(EventKind.ITEM_ARRIVED, command.transfer, 0.0))
            commands[:] = [c for c in commands if c.source != host]
        return arrived
