"""What happens and what is to be done, as plain data that can be written down and replayed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

from weft.model.schedule import Schedule


class EventKind(IntEnum):
    """What can happen; the numbers are the kernels'."""

    TASK_FINISHED = 0
    ITEM_ARRIVED = 1
    JOINED = 2
    GONE = 3
    AVAILABILITY = 4
    BANDWIDTH = 5
    TASK_FAILED = 6


@dataclass(frozen=True)
class Event:
    """Something happened: to an attempt, a transfer, a processor or a link (from x hosts + to)."""

    kind: EventKind
    which: int
    time: float
    value: float = 0.0  # the new availability or bandwidth

    def to_dict(self) -> dict[str, Any]:
        """The event as a line of the journal."""
        return {**asdict(self), "kind": self.kind.name.lower()}

    @staticmethod
    def from_dict(content: dict[str, Any]) -> Event:
        """The event that a line of the journal tells of."""
        return Event(**{**content, "kind": EventKind[content["kind"].upper()]})


@dataclass(frozen=True)
class NewPlan:
    """A planner has answered; a plan made for an older version of the run is dropped."""

    time: float
    version: int
    schedule: Schedule


@dataclass(frozen=True)
class StartTask:
    """Run a task on a processor now."""

    attempt: int
    task: int
    processor: int
    time: float


@dataclass(frozen=True)
class SendItem:
    """Move an item from a host to another now."""

    transfer: int
    item: int
    source: int
    target: int
    time: float


@dataclass(frozen=True)
class CancelTask:
    """Stop an attempt and discard what it has written."""

    attempt: int
    time: float


@dataclass(frozen=True)
class DropTransfer:
    """Forget a transfer that a loss has cut."""

    transfer: int
    time: float


@dataclass(frozen=True)
class Replan:
    """Ask the planner for a new plan, and say why."""

    version: int
    time: float
    reason: str


Command = StartTask | SendItem | CancelTask | DropTransfer | Replan
