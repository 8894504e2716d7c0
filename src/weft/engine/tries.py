"""What a task takes on its next try: more memory if it ran out of it, or what its formula says."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

import numpy as np

from weft.arrays import FloatArray, sealed
from weft.engine.state import RunState
from weft.errors import InputError
from weft.model import Estimates, Platform, Workflow
from weft.model.causes import CAUSE, OUT_OF_MEMORY, USED
from weft.model.events import OWN_FAULT, TaskFailed
from weft.model.resources import MEMORY, NOTHING, Demand, Needs, input_sizes
from weft.quantities import data_size

TWICE = 2.0


class Amounts(Enum):
    """What a task takes after a failure."""

    SAME = "as much as before"
    OTHER = "what its formula says of the next try"
    MORE = "more memory, of which it had too little"
    NO_MORE = "no host has more"


class Tries:
    """Follows from what has failed, and is kept when estimates change."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.exhausted: dict[int, str] = {}  # tasks that no host has enough memory for, in words
        self._failed: dict[int, int] = {}
        self._amounts: dict[int, FloatArray] = {}  # of tasks that have failed, from then on
        self._sizes: FloatArray | None = None

    def grow(self, workflow: Workflow) -> None:
        """There are more tasks, at the end."""
        self.workflow, self._sizes = workflow, None

    def after(
        self, event: TaskFailed, state: RunState, estimates: Estimates, platform: Platform
    ) -> tuple[Amounts, Estimates]:
        """What an attempt that failed by its own fault means, and the estimates from then on."""
        needs = estimates.needs
        if needs is None or event.fault != OWN_FAULT:
            return Amounts.SAME, estimates
        task = state.attempt(event.attempt).task
        self._failed[task] = self._failed.get(task, 0) + 1
        row, verdict = self._by_formula(task, needs), Amounts.OTHER
        if (event.detail or {}).get(CAUSE) == OUT_OF_MEMORY:
            had = state.amounts_of(event.attempt)[needs.kinds.index(MEMORY)] or _used(event)
            row, verdict = self._with_more(task, row, had, platform, needs)
        if verdict == Amounts.NO_MORE:
            return verdict, estimates
        if not self._fits(task, row, needs, platform) or bool((row == needs.amount[task]).all()):
            return Amounts.SAME, estimates
        self._amounts[task] = row
        return verdict, self.known(estimates)

    def _fits(self, task: int, row: FloatArray, needs: Needs, platform: Platform) -> bool:
        """Whether any host has so much."""
        amount = needs.amount.copy()
        amount[task] = row
        demand = Demand.of(self.workflow, platform, replace(needs, amount=sealed(amount)))
        return bool(demand.allowed[task].any())

    def known(self, estimates: Estimates) -> Estimates:
        """The estimates with what is known of tasks that have failed."""
        needs = estimates.needs
        if needs is None or not self._amounts:
            return estimates
        amount = needs.amount.copy()
        for task, row in self._amounts.items():
            amount[task] = np.maximum(amount[task], row)
        return replace(estimates, needs=replace(needs, amount=sealed(amount)))

    def _by_formula(self, task: int, needs: Needs) -> FloatArray:
        """What the task asks for on its next try, or takes already if that is more."""
        request = self.workflow.spec(task).request or NOTHING
        if self._sizes is None:
            self._sizes = input_sizes(self.workflow)
        row: FloatArray = needs.amount[task].copy()
        try:
            asked = request.amounts(float(self._sizes[task]), self._failed[task] + 1)
        except InputError:  # the formula is no amount for this try: the one before counts
            return row
        if request.memory is None:
            asked.pop(MEMORY, None)  # what is learnt counts, and not a default
        for kind, amount in asked.items():
            at = needs.kinds.index(kind)
            row[at] = max(row[at], amount)
        return row

    def _with_more(
        self, task: int, row: FloatArray, had: float, platform: Platform, needs: Needs
    ) -> tuple[FloatArray, Amounts]:
        """Twice the memory that was not enough, up to the largest host that admits the task."""
        at = needs.kinds.index(MEMORY)
        if had <= 0:  # nobody knows how much it takes
            return row, Amounts.OTHER
        largest = largest_memory(self.workflow, platform, needs, task)
        if had >= largest:
            said = f"{data_size(had)} of memory were not enough, and no host has more for it"
            self.exhausted[task] = said
            return row, Amounts.NO_MORE
        row[at] = min(max(TWICE * had, row[at]), largest)
        return row, Amounts.MORE


def _used(event: TaskFailed) -> float:
    """The memory that an attempt used, where that was measured; 0: nobody knows."""
    used = (event.detail or {}).get(USED)
    memory = used.get(MEMORY) if isinstance(used, dict) else None
    return float(memory) if isinstance(memory, int | float) else 0.0


def largest_memory(workflow: Workflow, platform: Platform, needs: Needs, task: int) -> float:
    """The most memory of a host that may run the task, and has all else that it needs."""
    at = needs.kinds.index(MEMORY)
    amount = needs.amount.copy()
    amount[task, at] = 0.0
    demand = Demand.of(workflow, platform, replace(needs, amount=sealed(amount)))
    memory = platform.host_amounts(MEMORY)[demand.allowed[task]]
    return float(memory.max(initial=0.0))
