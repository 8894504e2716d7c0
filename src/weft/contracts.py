"""The Protocols: the architecture on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from weft.arrays import FloatArray, IntArray
from weft.model import Freedom, Platform, Schedule, Situation, Workflow
from weft.model.events import Command, Event, StartTask


class Planner(Protocol):
    """The same call plans at the start and replans at any later moment.

    A planner is a frozen dataclass; its fields are the options of its spec string.
    """

    name: ClassVar[str]

    def plan(self, situation: Situation, freedom: Freedom = ...) -> Schedule:
        """A valid schedule of everything the freedom lets move; the rest stays."""
        ...


@dataclass(frozen=True)
class Watch:
    """What a policy wants to be woken for: a task that starts later than this."""

    latest_start: FloatArray


@dataclass(frozen=True)
class Notice:
    """Why a policy is woken: a task that would start late, or the event that changed machines."""

    late_task: int | None = None
    event: Event | None = None


class Policy(Protocol):
    """When to ask for a new plan, and whether to take it. It calls no planner."""

    name: ClassVar[str]

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        """What to be woken for while this plan is followed."""
        ...

    def decide(self, notice: Notice, situation: Situation, plan: Schedule) -> bool:
        """Whether to ask for a new plan."""
        ...

    def accept(self, candidate: Schedule, current: Schedule, situation: Situation) -> bool:
        """Whether to take the new plan."""
        ...


@runtime_checkable
class Order(Protocol):
    """A strategy without a plan: ready tasks go to idle processors in the order of a line."""

    name: ClassVar[str]

    def line(self, workflow: Workflow) -> IntArray | None:
        """Each task's place in line; None: first ready, first served."""
        ...


class Executor(Protocol):
    """Where tasks run: simulated, local, Dask. One conformance suite holds for all."""

    def perform(self, command: Command) -> None:
        """Begin to do what the coordinator asks for."""
        ...

    def next_event(self, wait: bool = True) -> Event | None:
        """Wait for the next thing that happens; None if nothing ever will.

        Without waiting: what has already happened, else None. (What happens in a simulated world
        depends on what is done first, so there nothing ever has.)
        """
        ...


class Machines(Executor, Protocol):
    """An executor of real machines: they are found there, and may change while nobody looks."""

    @property
    def platform(self) -> Platform:
        """The processors; those that are found later stand at the end."""
        ...

    @property
    def ahead(self) -> float:
        """Seconds of work that it wants to know of in advance, by Prepare; 0: none."""
        ...

    def machine(self, processor: int) -> str:
        """The name under which the history knows a processor, in this run and in others."""
        ...

    def recover(self, running: Sequence[StartTask], held: Sequence[tuple[int, int]]) -> list[Event]:
        """What happened since the journal ended, as events for it; called before all else.

        `running`: the attempts that it says are under way; each must get an end: finished if its
        outputs are all there, else failed through no fault of its own. `held`: the (item, host)
        pairs that it says are there; those that are not must be lost.
        """
        ...

    def post(self, event: Event) -> None:
        """Let this be a next event, from a signal handler too. Its time is set when it is read."""
        ...

    def close(self) -> None:
        """Stop what still runs, as if cancelled, and let go of the machines."""
        ...
