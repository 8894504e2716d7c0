"""The deadline of a run on real machines: what plans by it, what is told when it is not kept."""

from __future__ import annotations

from collections.abc import Callable

from weft import registry
from weft.contracts import Planner
from weft.coordinator import Coordinator
from weft.errors import InputError, TooLateError, in_seconds
from weft.live.options import check_deadline
from weft.live.prices import costs_money
from weft.live.switching import PLANNED
from weft.quantities import duration
from weft.wiring import Progress


class Lateness:
    """Says once that a run is expected to be late, for each deadline."""

    def __init__(self, coordinator: Coordinator, warn: Callable[[str], None]) -> None:
        self._coordinator, self._warn = coordinator, warn
        self._told: float | None = None

    def look(self) -> None:
        """Say it, if it is known."""
        deadline = self._coordinator.deadline
        if deadline.late_at != deadline.late_at or self._told == deadline.at:
            return
        self._told = deadline.at
        self._warn(
            f"the deadline of {duration(deadline.at, 3)} will not be kept: the run is expected to "
            f"end at {in_seconds(deadline.projected)}, and goes on"
        )


def within_limits(planner: Planner, coordinator: Coordinator) -> Planner:
    """The planner that keeps what the run is to keep: its budget, else its deadline, cheaply.

    Where nothing costs anything the cheapest way means nothing: the plan is made as always.
    """
    if coordinator.purse.kept:
        return registry.within_budget(planner)
    if coordinator.deadline.kept and costs_money(coordinator.platform):
        return registry.in_time(planner, coordinator.deadline.at)
    return planner


def check_in_time(coordinator: Coordinator) -> None:
    """Refuse to begin if the first plan ends after the deadline."""
    plan, deadline = coordinator.plan, coordinator.deadline
    if plan is not None and deadline.is_passed_by(plan.makespan):
        raise TooLateError(deadline.at, plan.makespan, plan.cost, plan)


def check_foreseeable(strategy: str, blind: bool) -> None:
    """Refuse a deadline where nobody can say when the run will end."""
    if registry.strategy(strategy)[1] is None:
        raise InputError(
            f"`{strategy}` makes no plan, so nobody can say when it will end; take a planned "
            f"strategy, such as `{PLANNED}`",
            place="deadline",
        )
    if blind:
        raise InputError(
            "no task has a history or a declared cost, so nobody knows how long they will take: "
            "declare costs (`cost:`, in seconds), or run it once without a deadline",
            place="deadline",
        )


def give_deadline(progress: Progress, run: str, deadline: float | None) -> None:
    """A run that is gone on with gets another deadline."""
    if deadline is None:
        return
    check_deadline(deadline)
    if progress.coordinator.policy is None or progress.planner is None:
        raise InputError(
            f"run {run} makes no plan, so it cannot keep a deadline: begin a new one with "
            f"`--strategy '{PLANNED}'`"
        )
    progress.coordinator.deadline.set(deadline)
    progress.planner = within_limits(progress.planner, progress.coordinator)
