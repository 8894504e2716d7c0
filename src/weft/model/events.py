"""What happens and what is to be done, as plain data that can be written down and replayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from weft.model.estimates import Estimates
from weft.model.platform import Platform
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
    ITEM_LOST = 7
    PAUSED = 8
    LEAVING = 9
    WAKE = 10
    BUDGET = 11


# The values of TASK_FAILED. The first counts as a failure of the task; the last as a loss of the
# machine under it, as GONE does; the other is nobody's fault, and counts as nothing.
OWN_FAULT, NO_FAULT, MACHINE_LOST = 0.0, 1.0, 3.0
# The value of JOINED where others join at the same moment: the last one speaks for all.
MORE_TO_COME = 1.0


@dataclass(frozen=True)
class Event:
    """Something happened: to an attempt, a transfer, a processor, a link or an item.

    A link is from x hosts + to. An item on a host is host x items + item: hosts may be added.
    LEAVING announces that a processor will be gone at the time `value`; from a time that has come
    already nothing new starts there, and it may go once what it runs is done.
    """

    kind: EventKind
    which: int
    time: float
    value: float = 0.0  # the new availability, bandwidth or budget; whose fault; 1: pause
    # what people and the history want to know; the core takes from it only how long a task ran
    detail: Mapping[str, Any] | None = field(default=None, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The event as a line of the journal."""
        content = {
            "kind": self.kind.name.lower(),
            "which": self.which,
            "time": self.time,
            "value": self.value,
        }
        return content if self.detail is None else {**content, "detail": dict(self.detail)}

    @staticmethod
    def from_dict(content: dict[str, Any]) -> Event:
        """The event that a line of the journal tells of."""
        return Event(**{**content, "kind": EventKind[content["kind"].upper()]})


@dataclass(frozen=True)
class NewPlan:
    """A planner has answered; a plan made for an older version of the run is dropped."""

    time: float
    version: int
    schedule: Schedule | None  # None: it found none, and the old one is kept
    seconds: float = 0.0  # that the planner took


@dataclass(frozen=True)
class NewEstimates:
    """What is expected has changed; processors that are new stand at the end of the platform."""

    time: float
    estimates: Estimates
    platform: Platform
    because: str = ""  # what had them looked at


@dataclass(frozen=True)
class NewStrategy:
    """A run that began just in time knows enough by now: it follows plans from here on."""

    time: float
    strategy: str  # its spec string
    because: str


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
    at_once: bool = False  # every second costs: hardly any time is left to end in good order


@dataclass(frozen=True)
class DropTransfer:
    """Forget a transfer that a loss has cut."""

    transfer: int
    time: float


@dataclass(frozen=True)
class WakeAt:
    """Tell by WAKE when this time has come; what was asked for before is off."""

    time: float


@dataclass(frozen=True)
class Prepare:
    """These tasks come next on a processor, unless something happens; what was said before is off.

    An executor may begin them: a task whose start is then never asked for is discarded.
    """

    processor: int
    tasks: tuple[int, ...]
    time: float


@dataclass(frozen=True)
class Replan:
    """Ask the planner for a new plan, and say why."""

    version: int
    time: float
    reason: str
    forced: bool = False  # the plan before cannot be followed any more, or there is none


Heard = Event | NewPlan | NewEstimates | NewStrategy
Command = StartTask | SendItem | CancelTask | DropTransfer | WakeAt | Prepare | Replan
