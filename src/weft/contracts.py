"""The Protocols: the architecture on one page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from weft.arrays import FloatArray, IntArray
from weft.model import Freedom, Schedule, Situation, Workflow
from weft.model.events import Command, Event


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
    """Where tasks really run: simulated, local, Dask."""

    def perform(self, command: Command) -> None:
        """Begin to do what the coordinator asks for."""
        ...

    def next_event(self) -> Event | None:
        """Wait for the next thing that happens; None if nothing ever will."""
        ...
