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

from weft.contracts import Order, Policy
from weft.coordinator.boards import room_for
from weft.coordinator.commands import taken_off
from weft.coordinator.coordinator import Coordinator
from weft.coordinator.legality import check_event
from weft.errors import InputError
from weft.kernels import board as b
from weft.kernels.attempts import end_attempt, start
from weft.kernels.board import Board
from weft.kernels.just_in_time import stand_in_line
from weft.kernels.losses import cut, rewind
from weft.kernels.moves import send
from weft.kernels.rules import apply_event
from weft.model import Evaluation, Schedule
from weft.model.events import Event, EventKind, NewEstimates, NewStrategy, Replan

OTHER_RULES = "the run goes on by the rules of a newer weft"


class Facts:
    """A coordinator that hears what happened and is told what it did, until it decides again."""

    def __init__(self, coordinator: Coordinator, strategy: Policy | Order) -> None:
        self.coordinator, self._min_min = coordinator, False
        if isinstance(strategy, Order):
            self._min_min = strategy.min_min
        coordinator.board = coordinator.board._replace(just_in_time=False, min_min=False)
        self._offered: Schedule | None = None

    def hear(self, event: Event) -> None:
        """Something happened; of attempts and transfers that were never begun nothing is known."""
        coordinator = self.coordinator
        count = {
            EventKind.TASK_FINISHED: b.N_ATTEMPTS,
            EventKind.TASK_FAILED: b.N_ATTEMPTS,
            EventKind.ITEM_ARRIVED: b.N_TRANSFERS,
        }.get(event.kind)
        if count is not None and event.which >= coordinator.board.counts[count]:
            return
        check_event(coordinator.board, event)
        board = coordinator.make_room()
        value = coordinator.patience.judged(event, board)
        apply_event(board, int(event.kind), event.which, event.time, value)
        if event.kind == EventKind.BUDGET:
            coordinator.purse.renew(event.value)
        taken_off(board)  # what was dropped then is in the journal, too
        board.counts[b.FOR_MONEY] = 0

    def learn(self, new: NewEstimates) -> None:
        """Other estimates, or more processors; the board grows by what it is going to be."""
        coordinator = self.coordinator
        if coordinator.policy is None:
            board = coordinator.board._replace(just_in_time=True, min_min=self._min_min)
            coordinator.board = board
        coordinator.learn(new)
        coordinator.board = coordinator.board._replace(just_in_time=False, min_min=False)

    def note_plan(self, time: float, plan: Schedule | None, judged: bool) -> None:
        """A plan was offered; where no judgement was written down, every plan was taken."""
        self.coordinator.make_room().clock[0] = time
        self._offered = plan
        if not judged and plan is not None:
            self.judge(Evaluation(time, "not written down", False, True, plan.makespan))

    def judge(self, evaluation: Evaluation) -> None:
        """What became of the plan that was offered last."""
        self.coordinator.evaluations.append(evaluation)
        self.coordinator.board.counts[b.N_MIGRATED] += evaluation.migrated
        if evaluation.taken and self._offered is not None:
            self.coordinator.plan = self._offered

    def follow_plans(self, policy: Policy, new: NewStrategy) -> None:
        """A run that had begun just in time went over to plans."""
        coordinator = self.coordinator
        coordinator.policy, self._min_min = policy, False
        coordinator.board = coordinator.board._replace(reuse=int(policy.reuse))
        coordinator.board.clock[0] = new.time

    def do(self, command: list[Any]) -> None:
        """This was done, whatever the rules of today would have done."""
        coordinator = self.coordinator
        match command:
            case ["start", attempt, task, processor]:
                self._start(attempt, task, processor)
            case ["send", transfer, item, source, target]:
                self._send(transfer, item, source, target)
            case ["cancel", attempt]:
                if coordinator.board.attempt_end[attempt] == b.OPEN:
                    end_attempt(coordinator.board, attempt, b.CANCELLED)
            case ["drop", transfer]:
                cut(coordinator.board, transfer)
            case ["wake", _]:
                pass  # rescheduling points are set anew
            case _:
                raise InputError(f"the journal says that something unknown was done: {command}")
        taken_off(coordinator.board)

    def decide_again(self) -> None:
        """The facts end here: from now on the rules of today decide.

        Nothing begins before it is known what has happened since, so the run is held back.
        """
        coordinator = self.coordinator
        board = coordinator.make_room()
        for p in range(board.n_processors):
            board.queue_at[p] = board.queue_end[p]
        board.counts[b.HELD_BACK] = 1
        coordinator.platform = replace(coordinator.platform, leaves=board.leaves.copy())
        if coordinator.policy is None:
            board = board._replace(just_in_time=True, min_min=self._min_min)
            coordinator.board = board
            stand_in_line(board)
            return
        coordinator.version += 1
        if (board.status == b.WAITING).any():
            coordinator.asked = Replan(
                coordinator.version, coordinator.now, OTHER_RULES, forced=True
            )

    def _start(self, attempt: int, task: int, p: int) -> None:
        board = self._up_to(b.N_ATTEMPTS, attempt, self._pad_attempt)
        if board.running[p] >= 0:
            raise InputError(
                f"the journal says that attempt {attempt} began on processor {p} while attempt "
                f"{int(board.running[p])} was running there"
            )
        if board.status[task] == b.DONE:
            rewind(board, task)  # the rules of then wanted its result again
        if board.status[task] == b.GIVEN_UP:
            board.counts[b.N_GIVEN_UP] -= 1
        board.on[task] = p
        board.queue[p], board.queue_at[p], board.queue_end[p] = task, p, p + 1  # a queue of one
        start(board, task, p)

    def _send(self, transfer: int, item: int, source: int, target: int) -> None:
        board = self._up_to(b.N_TRANSFERS, transfer, self._pad_transfer)
        send(board, item, source, target)

    def _up_to(self, count: int, number: int, pad: Callable[[], None]) -> Board:
        """What was decided just before weft was killed has a number, and no line in the journal."""
        while self.coordinator.make_room().counts[count] < number:
            pad()
        board = self.coordinator.make_room()
        if board.counts[count] > number:
            raise InputError(f"the journal says twice that number {number} was begun")
        return board

    def _pad_attempt(self) -> None:
        """An attempt that was never made: of a task that waits, and over at once."""
        board = self.coordinator.board
        waits, idle = np.flatnonzero(board.status == b.WAITING), np.flatnonzero(board.running < 0)
        if not len(waits) or not len(idle):
            raise InputError("the journal does not tell of an attempt that it has a number for")
        task, p = int(waits[0]), int(idle[0])
        start(board, task, p)
        end_attempt(board, int(board.attempt[task]), b.CANCELLED)
        board.queue_at[p] = board.queue_end[p]

    def _pad_transfer(self) -> None:
        """A transfer that was never made: dropped at once."""
        board = self.coordinator.board = room_for(self.coordinator.board, 1)
        before = board.held[1]
        send(board, 0, 0, 1)
        board.transfer_arrival[board.counts[b.N_TRANSFERS] - 1] = np.inf
        board.held[1] = before
