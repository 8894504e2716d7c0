"""Links that are shared: foreplan's simulator has none, and the paper's may have had.

What moves between two hosts at the same time gets equal parts of their link. Nobody knows: planners
and strategies expect what a transfer takes alone. Speeds do not change here.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, field
from heapq import heappop, heappush

from foreplan.contracts import Order, Planner, Policy
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver, record
from foreplan.engine.retries import RetryPolicy
from foreplan.model import Run
from foreplan.model.events import Command, DropTransfer, Event, ItemArrived, LinkChanged, SendItem
from foreplan.simulation.kernels.world import NEVER, foresee_arrival
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulated import SimulatedExecutor
from foreplan.spec import spec_of
from foreplan_reproductions.gtp.cases import Instance


@dataclass
class _Link:
    """Two hosts' link, and what moves there in either direction."""

    had: float = 0.0  # seconds alone that a transfer has had that was there all the time
    until: float = 0.0
    moving: set[int] = field(default_factory=set)
    ends: list[tuple[float, int]] = field(default_factory=list)  # a heap: by `had`, who is over
    foreseen: int = -1  # the one that is over first

    def go_on(self, now: float) -> None:
        """Everybody has had an equal part until now."""
        if self.moving:
            self.had += (now - self.until) / len(self.moving)
        self.until = now


class SharedLinks(SimulatedExecutor):
    """A world in which transfers disturb each other; of each link only the next end is foreseen."""

    def __init__(self, instance: Instance, truth: Reality) -> None:
        assert not any(isinstance(event, LinkChanged) for event in truth.changes)
        super().__init__(instance.workflow, instance.platform, truth)
        self._links: dict[tuple[int, int], _Link] = defaultdict(_Link)
        self._of: dict[int, _Link] = {}  # by transfer

    def perform(self, command: Command) -> None:
        """As ever, but an item that is sent gets its part of the link."""
        if isinstance(command, DropTransfer):
            self._leave(command.transfer, command.time)
        super().perform(command)
        if isinstance(command, SendItem):
            a, b = sorted((command.source, command.target))
            self._join(self._links[a, b], command.transfer, command.time)

    def next_event(self, wait: bool = True) -> Event | None:
        """As ever; what has arrived leaves its part of the link to others."""
        event = super().next_event(wait)
        if isinstance(event, ItemArrived):
            self._leave(event.transfer, event.time)
        return event

    def _join(self, link: _Link, transfer: int, now: float) -> None:
        link.go_on(now)
        heappush(link.ends, (link.had + float(self.world.data_left[transfer]), transfer))
        link.moving.add(transfer)
        self._of[transfer] = link
        self.world.data_event[transfer] = NEVER
        self._foresee(link)

    def _leave(self, transfer: int, now: float) -> None:
        link = self._of.pop(transfer)
        link.go_on(now)
        link.moving.discard(transfer)
        self._foresee(link)

    def _foresee(self, link: _Link) -> None:
        if link.foreseen in link.moving:
            self.world.data_event[link.foreseen] = NEVER
        while link.ends and link.ends[0][1] not in link.moving:
            heappop(link.ends)
        if link.ends:
            end, link.foreseen = link.ends[0]
            self.make_room(0, 0)
            world, alone = self.world, max(0.0, end - link.had)
            world.data_left[link.foreseen] = alone * len(link.moving)
            world.data_since[link.foreseen] = link.until
            foresee_arrival(world, link.foreseen)


def simulate_shared(
    instance: Instance, truth: Reality, policy: Policy | Order, planner: Planner | None
) -> Run:
    """One run with shared links, event by event."""
    patient = RetryPolicy(losses=sys.maxsize)
    coordinator = Coordinator(
        instance.workflow, instance.platform, instance.estimates, policy, patient
    )
    executor = SharedLinks(instance, truth)
    driver = Driver(coordinator, planner, executor, events=[])
    driver.drive()
    return record(driver, spec_of(policy), executor.changes(), executor.actual_work)
