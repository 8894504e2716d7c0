"""What happens and what is to be done, as plain data that can be written down and replayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from foreplan.model.estimates import Estimates
from foreplan.model.platform import Platform
from foreplan.model.schedule import Schedule
from foreplan.model.workflow import Workflow

# Whose fault it is that a task has failed. The first counts as a failure of the task; the last as a
# loss of the machine under it, as ProcessorGone does; the other is nobody's, and counts as nothing.
REUSED = "reused"  # what the end of a task says of the run that made what was there already
OWN_FAULT, NO_FAULT, MACHINE_LOST = 0.0, 1.0, 3.0

Detail = (
    Mapping[str, Any] | None
)  # what people and the history want to know, and how long a task ran


class Event:
    """Something that happened; each kind is a class of its own, with fields of its own."""

    name: ClassVar[str]  # in journals
    _which: ClassVar[str] = ""  # the field that tells whom it is about
    _value: ClassVar[str] = ""  # the field that tells what has changed
    time: float
    detail: Detail

    def numbers(self) -> tuple[int, float]:
        """Whom it is about and what has changed, as journals and kernels have it; 0 for nothing."""
        which = getattr(self, self._which) if self._which else 0
        return which, float(getattr(self, self._value)) if self._value else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The event as a line of the journal."""
        which, value = self.numbers()
        content = {"kind": self.name, "which": which, "time": self.time, "value": value}
        return content if self.detail is None else {**content, "detail": dict(self.detail)}

    @staticmethod
    def from_dict(content: dict[str, Any]) -> Event:
        """The event that a line of the journal tells of."""
        detail = content.get("detail")
        return KINDS[content["kind"]].of(
            content["which"], content["time"], content["value"], detail
        )

    def at(self, time: float) -> Self:
        """The same, heard at this time."""
        which, value = self.numbers()
        return self.of(which, time, value, self.detail)

    @classmethod
    def of(cls, which: int, time: float, value: float = 0.0, detail: Detail = None) -> Self:
        """The event of this kind that these numbers tell of."""
        fields: dict[str, Any] = {cls._which: which} if cls._which else {}
        if cls._value:
            fields[cls._value] = bool(value) if cls._value in _TRUTHS else value
        return cls(**fields, time=time, detail=detail)  # type: ignore[call-arg]


_TRUTHS = ("more", "paused")


@dataclass(frozen=True)
class TaskFinished(Event):
    """An attempt has done its task."""

    name, _which = "task_finished", "attempt"
    attempt: int
    time: float
    detail: Detail = field(default=None, compare=False)


@dataclass(frozen=True)
class TaskFailed(Event):
    """An attempt has come to nothing; whose fault that is."""

    name, _which, _value = "task_failed", "attempt", "fault"
    attempt: int
    time: float
    fault: float = OWN_FAULT
    detail: Detail = field(default=None, compare=False)


@dataclass(frozen=True)
class ItemArrived(Event):
    """A transfer has brought its item."""

    name, _which = "item_arrived", "transfer"
    transfer: int
    time: float
    detail: Detail = field(default=None, compare=False)


@dataclass(frozen=True)
class ItemLost(Event):
    """An item is not where it was: the place is host x items + item, as hosts may be added."""

    name, _which = "item_lost", "place"
    place: int
    time: float
    detail: Detail = field(default=None, compare=False)


@dataclass(frozen=True)
class ProcessorJoined(Event):
    """A processor is there; `more` join at the same moment, and the last one speaks for all."""

    name, _which, _value = "joined", "processor", "more"
    processor: int
    time: float
    more: bool = False
    detail: Detail = field(default=None, compare=False)


@dataclass(frozen=True)
class ProcessorGone(Event):
    """A processor is gone with what it ran; the last of a host takes its items along."""

    name, _which = "gone", "processor"
    processor: int
    time: float
    detail: Detail = field(default=None, compare=False)


@dataclass(frozen=True)
class ProcessorLeaving(Event):
    """It is announced that a processor will be gone.

    From a time that has come already nothing new starts there, and it may go once what it runs is
    done.
    """

    name, _which, _value = "leaving", "processor", "gone_at"
    processor: int
    time: float
    gone_at: float
    detail: Detail = field(default=None, compare=False)


@dataclass(frozen=True)
class SpeedChanged(Event):
    """A processor works at another share of its speed."""

    name, _which, _value = "availability", "processor", "availability"
    processor: int
    time: float
    availability: float
    detail: Detail = field(default=None, compare=False)


@dataclass(frozen=True)
class LinkChanged(Event):
    """A link, from x hosts + to, has another share of its bandwidth."""

    name, _which, _value = "bandwidth", "link", "bandwidth"
    link: int
    time: float
    bandwidth: float
    detail: Detail = field(default=None, compare=False)


@dataclass(frozen=True)
class Paused(Event):
    """Nothing more is to be begun, or again it is."""

    name, _value = "paused", "paused"
    time: float
    paused: bool
    detail: Detail = field(default=None, compare=False)


@dataclass(frozen=True)
class Alarm(Event):
    """A time has come that a WakeAt asked for; each kind of alarm is a class of its own."""

    awaited: ClassVar[bool] = False  # whether a run waits for it if nothing else is to come
    time: float
    detail: Detail = field(default=None, compare=False)


class Woken(Alarm):
    """A rescheduling point has come."""

    name = "wake"


class LimitsDue(Alarm):
    """It is time to look at the money, or at the deadline."""

    name = "limits"


class TasksOverdue(Alarm):
    """Tasks have taken so long that the plan may cost more than was left for that."""

    name = "overdue"


class RetryDue(Alarm):
    """A task that has failed has rested, and is to be tried again."""

    name, awaited = "retry", True


class Beat(Alarm):
    """Time has passed: the journal notes the moment, and no coordinator hears of it."""

    name = "beat"


@dataclass(frozen=True)
class MachineMessage(Event):
    """A message of the machines to people, `message` in the detail; the coordinator ignores it."""

    name = "notice"
    time: float
    detail: Detail = field(default=None, compare=False)


@dataclass(frozen=True)
class BudgetChanged(Event):
    """The run may cost so much from now on."""

    name, _value = "budget", "budget"
    time: float
    budget: float
    detail: Detail = field(default=None, compare=False)


_CLASSES = (*Event.__subclasses__(), *Alarm.__subclasses__())
KINDS: Mapping[str, type[Event]] = {kind.name: kind for kind in _CLASSES if kind is not Alarm}


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
class TasksAdded:
    """A task is about to be done that adds others; they stand at the end of the workflow."""

    time: float
    by: int  # the task
    more: Workflow  # the tasks that it adds, by themselves
    workflow: Workflow  # with them, see `model.growth`
    estimates: Estimates  # of all of it
    digest: str = ""  # of what it has printed
    # of those that ask by the size of inputs: the bytes of what no task makes, by task
    reads: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class StartTask:
    """Run a task on a processor now."""

    attempt: int
    task: int
    processor: int
    time: float
    cores: tuple[int, ...] = ()  # all that it holds, the processor first; empty: the processor
    amounts: tuple[float, ...] = ()  # what it holds of each kind and pool of the needs

    def __repr__(self) -> str:
        held = f", cores={self.cores}, amounts={self.amounts}" if self.cores else ""
        what = f"attempt={self.attempt}, task={self.task}, processor={self.processor}"
        return f"StartTask({what}, time={self.time}{held})"


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
    """Tell by such an event when this time has come; what it was asked for before is off."""

    time: float  # infinite: never
    by: type[Alarm] = Woken


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


Heard = Event | NewPlan | NewEstimates | NewStrategy | TasksAdded
Command = StartTask | SendItem | CancelTask | DropTransfer | WakeAt | Prepare | Replan
