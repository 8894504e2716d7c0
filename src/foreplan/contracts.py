"""The Protocols: the architecture on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from foreplan.arrays import FloatArray, IntArray
from foreplan.model import Freedom, Platform, Reuse, Schedule, Situation, Workflow

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from foreplan.model.call import Calls
    from foreplan.model.events import Command, Event, NewEstimates, StartTask


class Planner(Protocol):
    """The same call plans at the start and replans at any later moment.

    A planner is a frozen dataclass; its fields are the options of its spec string. One that is also
    a kernel says which by `kernel`: simulations then plan without leaving the native loop.
    """

    name: ClassVar[str]

    def plan(self, situation: Situation, freedom: Freedom = ...) -> Schedule:
        """A valid schedule of everything the freedom lets move, or of less; the rest stays."""


@dataclass(frozen=True)
class Watch:
    """What a policy wants to be woken for: a task that starts later than this, variance, and time.

    Variance is a task's duration, or a processor's speed, off its estimate by more than this share.
    A task is early if it takes so many seconds less than its estimate. There is a rescheduling
    point every `period` seconds.
    """

    latest_start: FloatArray
    variance: float = float("inf")
    early: float = float("inf")
    period: float = float("inf")


@dataclass(frozen=True)
class Notice:
    """Why a policy is woken: a task that would start late, or an event that changes things."""

    late_task: int | None = None
    event: Event | NewEstimates | None = None


@dataclass(frozen=True)
class Verdict:
    """Whether a new plan is taken, and what the old one was expected to give where that counted.

    `going_on` is the old one from now on: if it is kept, starts are late by that.
    """

    taken: bool
    projected: float = float("nan")
    going_on: Schedule | None = None


TAKEN = Verdict(taken=True)


class Policy(Protocol):
    """When to ask for a new plan, and whether to take it. It calls no planner.

    One that can say all of this in numbers does so by `conduct`, for the native loop.
    """

    name: ClassVar[str]

    @property
    def learn(self) -> bool:
        """Whether estimates learn within a simulated run; in real runs they always do."""

    @property
    def freedom(self) -> Freedom:
        """What a new plan may move."""

    @property
    def reuse(self) -> Reuse:
        """Which copies of an item may be used."""

    @property
    def stays(self) -> bool:
        """Whether tasks keep their processor where an equal one of its host would do as well."""

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        """What to be woken for while this plan is followed."""

    def decide(self, notice: Notice, situation: Situation, plan: Schedule) -> bool:
        """Whether to ask for a new plan."""

    def accept(self, candidate: Schedule, current: Schedule, situation: Situation) -> Verdict:
        """Whether to take the new plan."""


class Dispatch(IntEnum):
    """How tasks come to their processors; the numbers are the kernels'."""

    PLANNED = 0  # in the order of a plan's queues
    READY_QUEUE = 1  # an idle processor gets the first of the ready tasks
    MIN_MIN = 2  # what is ready is mapped at once, what is done soonest first


@dataclass(frozen=True, eq=False)
class Priority:
    """Which ready tasks go first, by three numbers for each; the lower ones come first.

    Rank counts most. Those of equal rank go by when they became ready, the first of them or, if
    `last_come`, the last of them first. Those that one event made ready go by their tie.
    """

    rank: IntArray
    tie: IntArray
    last_come: bool = False


@runtime_checkable
class Order(Protocol):
    """A strategy without a plan: ready tasks go to idle processors by their priority.

    By Min-Min they do not wait for one: they are mapped at once, what is done soonest first.
    """

    name: ClassVar[str]
    dispatch: ClassVar[Dispatch]

    def priority(self, workflow: Workflow) -> Priority:
        """Which of the ready tasks go first."""


def is_order(strategy: Policy | Order) -> TypeIs[Order]:
    """The same as isinstance, which takes long."""
    return hasattr(strategy, "priority")


class Executor(Protocol):
    """Where tasks run: simulated, local, Dask. One conformance suite holds for all."""

    def perform(self, command: Command) -> None:
        """Begin to do what the coordinator asks for."""

    def flush(self) -> None:
        """What was asked for is on its way when this returns; else it is before the next event."""

    def next_event(self, wait: bool = True) -> Event | None:
        """Wait for the next thing that happens; None if nothing ever will.

        Without waiting: what has already happened, else None. (What happens in a simulated world
        depends on what is done first, so there nothing ever has.)
        """


class Machines(Executor, Protocol):
    """An executor of real machines: they are found there, and may change while nobody looks.

    `--on` names its scheme, which opens it; docs/executors.md shows how to write one.
    """

    @property
    def platform(self) -> Platform:
        """The processors; those that are found later stand at the end."""

    @property
    def ahead(self) -> float:
        """Seconds of work that it wants to know of in advance, by Prepare; 0: none."""

    @property
    def alone(self) -> float:
        """Seconds that a task may take of which it wants to know in advance if it is the next."""

    def machine(self, processor: int) -> str:
        """The name under which the history knows a processor, in this run and in others."""

    def extend(self, workflow: Workflow, calls: Calls | None) -> None:
        """Know the tasks that were added, at the end of this workflow; functions, if they are."""

    def recover(self, running: Sequence[StartTask], held: Sequence[tuple[int, int]]) -> list[Event]:
        """What happened since the journal ended, as events for it; called before all else.

        `running`: the attempts that it says are under way; each must get an end: finished if its
        outputs are all there, else failed through no fault of its own. `held`: the (item, host)
        pairs that it says are there; those that are not must be lost.
        """

    def post(self, event: Event) -> None:
        """Let this be a next event, from a signal handler too. Its time is set when it is read."""

    def add(self, count: int) -> None:
        """Have so many processors more, told of by JOINED; an error where they come by themselves.

        This and `drain` may be called from any thread.
        """

    def drain(self, processor: int, at: float | None = None) -> None:
        """Announce by LEAVING that a processor goes, now or at a time; and again at that time."""

    def on_end(self) -> None:
        """Called when the run has ended and was not stopped, before `close`."""

    def close(self) -> None:
        """Stop what still runs, as if cancelled, and let go of the machines."""
