"""What a task takes on its next try: more memory if it ran out of it, or what its formula says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum

import numpy as np

from foreplan.arrays import FloatArray, IntArray, sealed
from foreplan.engine.kernels import arrays as a
from foreplan.engine.state import RunState
from foreplan.errors import InputError
from foreplan.model import Estimates, Platform, Workflow
from foreplan.model.causes import CAUSE, OUT_OF_MEMORY, USED
from foreplan.model.events import OWN_FAULT, TaskFailed, TaskFinished
from foreplan.model.resources import MEMORY, NOTHING, Demand, Needs, input_sizes, without_sizes
from foreplan.quantities import data_size

TWICE = 2.0


class Amounts(Enum):
    """What a task takes after a failure."""

    SAME = "as much as before"
    OTHER = "what its formula says of the next try"
    MORE = "more memory, of which it had too little"
    NO_MORE = "no host has more"


class Tries:
    """Follows from what has failed and what was made, and is kept when estimates change.

    `reads` has the tasks that ask by the size of inputs, and the bytes of what no task makes.
    """

    def __init__(self, workflow: Workflow, reads: Mapping[int, float] | None = None) -> None:
        self.workflow = workflow
        self._reads = dict(reads or {})
        # whether sizes matter: what is added later may ask by the size of what was made before
        self.wants_sizes = bool(reads) or workflow.grows
        self._made: dict[int, float] = {}  # the bytes of items, as far as they were told
        self.unknown: list[str] = []  # tasks that have begun, or may, without all sizes; in words
        self.exhausted: dict[int, str] = {}  # tasks that no host has enough memory for, in words
        self._failed: dict[int, int] = {}
        self._amounts: dict[int, FloatArray] = {}  # of tasks that need something else by now
        self._sizes: FloatArray | None = None

    def grow(self, workflow: Workflow, reads: Mapping[int, float]) -> None:
        """There are more tasks, at the end."""
        self.workflow, self._sizes = workflow, None
        self._reads |= reads

    def made(
        self, event: TaskFinished, state: RunState, estimates: Estimates
    ) -> tuple[list[int], Estimates]:
        """The tasks that need something else by the size of what was made, and the estimates."""
        wf, task = self.workflow, state.attempt(event.attempt).task
        self._made |= wf.sizes_made(task, (event.detail or {}).get("sizes"))
        if not self._reads or "sizes" not in (event.detail or {}):
            return [], estimates
        readers = set[int]()
        for item in wf.out_item[wf.out_ptr[task] : wf.out_ptr[task + 1]].tolist():
            readers.update(wf.use_task[wf.use_ptr[item] : wf.use_ptr[item + 1]].tolist())
        return self.by_sizes(readers, state, estimates, task)

    def by_sizes(
        self, tasks: Iterable[int], state: RunState, estimates: Estimates, done: int = -1
    ) -> tuple[list[int], Estimates]:
        """Those of the tasks that need something else by now, and the estimates.

        A task is looked at once all that it reads is made; `done` is about to be.
        """
        needs, changed, amount = estimates.needs, list[int](), None
        for task in sorted(self._reads.keys() & set(tasks)) if needs is not None else ():
            assert needs is not None
            if not self._has_all(task, state, done):
                continue
            self._note_unknown(task)
            row = self._by_formula(task, needs)
            if (row != needs.amount[task]).any():
                amount = needs.amount.copy() if amount is None else amount
                amount[task] = self._amounts[task] = row
                changed.append(task)
        if needs is None or amount is None:
            return changed, estimates
        return changed, replace(estimates, needs=replace(needs, amount=sealed(amount)))

    def _has_all(self, task: int, state: RunState, done: int) -> bool:
        makers = self.workflow.item_producer[self._items(task)]
        makers = makers[(makers >= 0) & (makers != done)]
        status = state.arrays.status
        return bool((makers < len(status)).all() and (status[makers] == a.DONE).all())

    def _items(self, task: int) -> IntArray:
        wf = self.workflow
        items: IntArray = wf.in_item[wf.in_ptr[task] : wf.in_ptr[task + 1]]
        return items

    def _note_unknown(self, task: int) -> None:
        """Say if a file that the task reads has no size; what it only waits for has none."""
        wf, names = self.workflow, self.workflow.item_names or ()
        made = [item for item in self._items(task).tolist() if wf.item_producer[item] >= 0]
        files = [i for i in made if i not in self._made and names and names[i]]
        lines = without_sizes(wf, {task: files} if files else {})
        self.unknown += [line for line in lines if line not in self.unknown]

    def _read(self, task: int) -> float:
        """The bytes that a task reads, as far as they are known."""
        if task not in self._reads:
            if self._sizes is None:
                self._sizes = input_sizes(self.workflow)
            return float(self._sizes[task])
        wf = self.workflow
        made = [item for item in self._items(task).tolist() if wf.item_producer[item] >= 0]
        declared = wf.item_size
        return math.fsum(
            [self._reads[task], *(self._made.get(i, float(declared[i])) for i in made)]
        )

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
        """The estimates with what is known of tasks that need something else by now."""
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
        row: FloatArray = needs.amount[task].copy()
        try:
            asked = request.amounts(self._read(task), self._failed.get(task, 0) + 1)
        except InputError:  # the formula is no amount for this try: the one before counts
            return row
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
