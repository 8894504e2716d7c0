"""A run taken up from what it did, where the rules that decided it then are not those of today.

The journal tells what happened and what was done about it. What was done is taken as a fact; what
happened changes the state by the rules of today, which decide nothing here: there is no plan and
no ready queue that they could act on. From where the journal ends they decide again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from weft.contracts import Policy
from weft.engine.check_state import check_event
from weft.engine.coordinator import Coordinator
from weft.engine.event_numbers import NUMBERS
from weft.engine.kernels import arrays as a
from weft.engine.kernels.arrays import RunArrays
from weft.engine.kernels.attempts import end_attempt, start
from weft.engine.kernels.dispatch import fill_ready_queue
from weft.engine.kernels.items import send
from weft.engine.kernels.losses import cut, rewind
from weft.engine.kernels.rules import apply_event
from weft.engine.retries import Next
from weft.errors import InputError
from weft.model import Evaluation, Schedule
from weft.model.events import (
    BudgetChanged,
    Event,
    ItemArrived,
    NewEstimates,
    NewStrategy,
    Replan,
    TaskFailed,
    TaskFinished,
    TasksAdded,
)

OTHER_RULES = "the run goes on by the rules of a newer weft"


class Facts:
    """A coordinator that hears what happened and is told what it did, until it decides again."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator
        self._dispatch = int(coordinator.state.arrays.dispatch)
        coordinator.state.arrays = coordinator.state.arrays._replace(dispatch=a.PLANNED)
        self._offered: Schedule | None = None

    def hear(self, event: Event) -> None:
        """Something happened; of attempts and transfers that were never begun nothing is known."""
        coordinator = self.coordinator
        which, value = event.numbers()
        count = {
            TaskFinished: a.N_ATTEMPTS,
            TaskFailed: a.N_ATTEMPTS,
            ItemArrived: a.N_TRANSFERS,
        }.get(type(event))
        if count is not None and which >= coordinator.state.arrays.counts[count]:
            return
        check_event(coordinator.state, event)
        if coordinator.count(event) is Next.NEVER:
            value = a.FOR_GOOD
        if isinstance(event, TaskFinished):
            coordinator.take_sizes(event)
        arrays = coordinator.make_room()
        apply_event(arrays, NUMBERS[type(event)], which, event.time, value)
        if isinstance(event, BudgetChanged):
            coordinator.tracker.renew(event.budget)
        coordinator.state.take_commands()  # what was dropped then is in the journal, too
        arrays.counts[a.FOR_MONEY] = 0

    def learn(self, new: NewEstimates) -> None:
        """Other estimates, or more processors; the state grows by what it is going to be."""
        coordinator = self.coordinator
        if coordinator.policy is None:
            arrays = coordinator.state.arrays._replace(dispatch=self._dispatch)
            coordinator.state.arrays = arrays
        coordinator.learn(new)
        coordinator.state.arrays = coordinator.state.arrays._replace(dispatch=a.PLANNED)

    def add_tasks(self, new: TasksAdded) -> None:
        """Tasks were added; the state grows by what it is going to be."""
        coordinator = self.coordinator
        arrays = coordinator.state.arrays._replace(dispatch=self._dispatch)
        coordinator.state.arrays = arrays
        coordinator.add_tasks(new)
        coordinator.state.arrays = coordinator.state.arrays._replace(dispatch=a.PLANNED)

    def note_plan(self, time: float, plan: Schedule | None, judged: bool) -> None:
        """A plan was offered; where no judgement was written down, every plan was taken."""
        self.coordinator.make_room().clock[0] = time
        self._offered = plan
        if not judged and plan is not None:
            self.judge(Evaluation(time, "not written down", False, True, plan.makespan))

    def judge(self, evaluation: Evaluation) -> None:
        """What became of the plan that was offered last."""
        self.coordinator.evaluations.append(evaluation)
        self.coordinator.state.arrays.counts[a.N_MIGRATED] += evaluation.migrated
        if evaluation.taken and self._offered is not None:
            self.coordinator.plan = self._offered

    def follow_plans(self, policy: Policy, new: NewStrategy) -> None:
        """A run that had begun just in time went over to plans."""
        coordinator = self.coordinator
        coordinator.policy, self._dispatch = policy, a.PLANNED
        coordinator.state.arrays = coordinator.state.arrays._replace(reuse=int(policy.reuse))
        coordinator.state.arrays.clock[0] = new.time

    def do(self, command: list[Any]) -> None:
        """This was done, whatever the rules of today would have done."""
        coordinator = self.coordinator
        match command:
            case ["start", attempt, task, processor, *cores]:
                self._start(attempt, task, cores[0] if cores else [processor])
            case ["send", transfer, item, source, target]:
                self._send(transfer, item, source, target)
            case ["cancel", attempt]:
                if coordinator.state.arrays.attempt_end[attempt] == a.OPEN:
                    end_attempt(coordinator.state.arrays, attempt, a.CANCELLED)
            case ["drop", transfer]:
                cut(coordinator.state.arrays, transfer)
            case ["wake", _]:
                pass  # alarms are set anew
            case _:
                raise InputError(f"the journal says that something unknown was done: {command}")
        coordinator.state.take_commands()

    def decide_again(self) -> None:
        """The facts end here: from now on the rules of today decide.

        Nothing begins before it is known what has happened since, so the run is held back.
        """
        coordinator = self.coordinator
        arrays = coordinator.make_room()
        for p in range(arrays.n_processors):
            arrays.queue_at[p] = arrays.queue_end[p]
        coordinator.state.hold_back(True)
        coordinator.platform = replace(coordinator.platform, leaves=arrays.leaves.copy())
        if coordinator.policy is None:
            arrays = arrays._replace(dispatch=self._dispatch)
            coordinator.state.arrays = arrays
            fill_ready_queue(arrays)
            return
        coordinator.version += 1
        if (arrays.status == a.WAITING).any():
            coordinator.asked = Replan(
                coordinator.version, coordinator.now, OTHER_RULES, forced=True
            )

    def _start(self, attempt: int, task: int, cores: list[int]) -> None:
        arrays = self._pad_up_to(a.N_ATTEMPTS, attempt, self._pad_attempt)
        for p in cores:
            if arrays.running[p] >= 0:
                raise InputError(
                    f"the journal says that attempt {attempt} began on processor {p} while attempt "
                    f"{int(arrays.running[p])} was running there"
                )
        if arrays.status[task] == a.DONE:
            rewind(arrays, task)  # the rules of then wanted its result again
        if arrays.status[task] == a.GIVEN_UP:
            arrays.counts[a.N_GIVEN_UP] -= 1
        self._put(task, cores)
        start(arrays, task, cores[0])

    def _put(self, task: int, cores: list[int]) -> None:
        """Let a task be next on these processors."""
        arrays = self.coordinator.state.arrays
        arrays.on[task] = cores[0]
        for p in cores:
            arrays.queue[p], arrays.queue_at[p], arrays.queue_end[p] = task, p, p + 1
        if arrays.most_cores:
            arrays.wide[task] = len(cores)
            arrays.core[task * arrays.most_cores : task * arrays.most_cores + len(cores)] = cores

    def _send(self, transfer: int, item: int, source: int, target: int) -> None:
        arrays = self._pad_up_to(a.N_TRANSFERS, transfer, self._pad_transfer)
        send(arrays, item, source, target)

    def _pad_up_to(self, count: int, number: int, pad: Callable[[], None]) -> RunArrays:
        """What was decided just before weft was killed has a number, and no line in the journal."""
        while self.coordinator.make_room().counts[count] < number:
            pad()
        arrays = self.coordinator.make_room()
        if arrays.counts[count] > number:
            raise InputError(f"the journal says twice that number {number} was begun")
        return arrays

    def _pad_attempt(self) -> None:
        """An attempt that was never made: of a task that waits, and over at once."""
        arrays = self.coordinator.state.arrays
        waits, idle = np.flatnonzero(arrays.status == a.WAITING), np.flatnonzero(arrays.running < 0)
        if not len(waits) or not len(idle):
            raise InputError("the journal does not tell of an attempt that it has a number for")
        task, p = int(waits[0]), int(idle[0])
        if arrays.most_cores:
            self._put(task, [p])
        start(arrays, task, p)
        end_attempt(arrays, int(arrays.attempt[task]), a.CANCELLED)
        arrays.queue_at[p] = arrays.queue_end[p]

    def _pad_transfer(self) -> None:
        """A transfer that was never made: dropped at once."""
        arrays = self.coordinator.state.make_room(1)
        before = arrays.held[1]
        send(arrays, 0, 0, 1)
        arrays.transfer_arrival[arrays.counts[a.N_TRANSFERS] - 1] = np.inf
        arrays.held[1] = before
