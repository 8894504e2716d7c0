"""The state of a run: what is known of its tasks, attempts, items and machines.

`RunState` owns the arrays. The rules change them, in `engine` and `simulation` alone; everybody
else asks the queries below.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from enum import Enum, IntEnum
from typing import Any, NamedTuple

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray, sealed
from foreplan.contracts import Dispatch, Priority
from foreplan.ends import expected_ends
from foreplan.engine.kernels import arrays as a
from foreplan.engine.kernels.arrays import RunArrays
from foreplan.engine.kernels.losses import rewind_lost
from foreplan.engine.kernels.posing import list_copies, list_facts, list_under_way, mark_astray
from foreplan.engine.layout import empty, grown, hold_again, larger, with_needs, with_tasks
from foreplan.model import (
    AttemptLog,
    Attempts,
    Copies,
    Estimates,
    Platform,
    Reuse,
    Situation,
    TransferLog,
    Transfers,
    Workflow,
)
from foreplan.model.events import CancelTask, Command, DropTransfer, SendItem, StartTask, WakeAt
from foreplan.model.resources import Cores, Demand, Needs


class TaskState(IntEnum):
    """What a task is; the numbers are the kernels'."""

    WAITING = a.WAITING
    RUNNING = a.RUNNING
    DONE = a.DONE
    GIVEN_UP = a.GIVEN_UP
    RESTING = a.RESTING  # until it is tried again, or what it needs is


class AttemptState(IntEnum):
    """How an attempt at a task stands, or ended."""

    OPEN = a.OPEN
    FINISHED = a.FINISHED
    FAILED = a.FAILED
    CANCELLED = a.CANCELLED
    REWOUND = a.REWOUND


class ItemState(IntEnum):
    """Where an item is, by host."""

    ABSENT = a.ABSENT
    MOVING = a.MOVING
    HERE = a.HERE


class TransferState(Enum):
    """What became of a transfer, as its times tell."""

    UNDER_WAY = "no arrival yet"
    ARRIVED = "an arrival"
    DROPPED = "an infinite arrival"
    LEFT_BEHIND = "a time at which its copy was forgotten"


class Transition(NamedTuple):
    """One row of a table: from a state to another, and what is heard when that happens.

    None is what is not there yet. Events have their names of the journal; `new_plan` is a planner's
    answer, `tasks_added` what a task adds, and `end_of_money` what is cut off where a budget is a
    limit, whatever is heard then.
    """

    before: Enum | None
    after: Enum
    heard: frozenset[str]


ANYTHING = frozenset[str]()  # whatever is heard may let something begin
LOSSES = frozenset({"gone", "item_lost"})  # something that was there is not any more
# what is lost is noticed where it is needed, and that may be later
MISSED = LOSSES | {"task_failed", "paused", "retry", "new_plan", "end_of_money", "tasks_added"}
# what needs a task that is set aside is so, too, also if it is added later
AFTER_FAILURE = LOSSES | {"task_failed", "retry", "tasks_added"}
STOPPED = frozenset({"new_plan", "end_of_money"})


def _on(*names: str) -> frozenset[str]:
    return frozenset(names)


TASK_STEPS = (
    Transition(TaskState.WAITING, TaskState.RUNNING, ANYTHING),
    Transition(TaskState.RUNNING, TaskState.DONE, _on("task_finished")),
    Transition(TaskState.RUNNING, TaskState.WAITING, _on("task_failed", "gone") | STOPPED),
    Transition(TaskState.DONE, TaskState.WAITING, MISSED),  # rewound: its results are needed again
    Transition(TaskState.WAITING, TaskState.GIVEN_UP, AFTER_FAILURE),
    Transition(TaskState.GIVEN_UP, TaskState.WAITING, _on("paused")),  # that is, resumed
    Transition(TaskState.WAITING, TaskState.RESTING, AFTER_FAILURE),
    Transition(TaskState.RESTING, TaskState.WAITING, _on("retry", "paused")),
)
ATTEMPT_STEPS = (
    Transition(None, AttemptState.OPEN, ANYTHING),
    Transition(AttemptState.OPEN, AttemptState.FINISHED, _on("task_finished")),
    Transition(AttemptState.OPEN, AttemptState.FAILED, _on("task_failed", "gone")),
    Transition(AttemptState.OPEN, AttemptState.CANCELLED, STOPPED),
    Transition(AttemptState.FINISHED, AttemptState.REWOUND, MISSED),
)
ITEM_STEPS = (
    Transition(ItemState.ABSENT, ItemState.MOVING, ANYTHING),
    Transition(ItemState.ABSENT, ItemState.HERE, _on("task_finished")),
    Transition(ItemState.MOVING, ItemState.HERE, _on("item_arrived", "task_finished")),
    Transition(ItemState.MOVING, ItemState.ABSENT, LOSSES | {"new_plan"}),
    Transition(ItemState.HERE, ItemState.ABSENT, LOSSES | {"new_plan"}),
)
TRANSFER_STEPS = (
    Transition(None, TransferState.UNDER_WAY, ANYTHING),
    Transition(TransferState.UNDER_WAY, TransferState.ARRIVED, _on("item_arrived")),
    Transition(TransferState.UNDER_WAY, TransferState.DROPPED, LOSSES | {"new_plan"}),
    Transition(TransferState.ARRIVED, TransferState.LEFT_BEHIND, _on("new_plan")),
)


class Attempt(NamedTuple):
    """One attempt at a task."""

    number: int
    task: int
    processor: int
    start: float
    is_open: bool


class Transfer(NamedTuple):
    """An item that was sent from one host to another."""

    number: int
    item: int
    source: int
    target: int


class RunState:
    """What is known of one run, and nothing else.

    `arrays` is for the rules and for whoever carries them out, in `engine` and `simulation`.
    """

    def __init__(
        self, workflow: Workflow, platform: Platform, estimates: Estimates,
        dispatch: Dispatch = Dispatch.PLANNED, priority: Priority | None = None,
        reuse: Reuse = Reuse.IN_PLACE,
    ) -> None:  # fmt: skip
        self.arrays = empty(workflow, platform, estimates, dispatch, priority, reuse)

    # time, and the run as a whole

    @property
    def now(self) -> float:
        """The time of the last event."""
        return float(self.arrays.clock[0])

    @property
    def held_back(self) -> bool:
        """Whether nothing new is started."""
        return bool(self.arrays.counts[a.HELD_BACK])

    # tasks

    def tasks(self, *states: TaskState) -> IntArray:
        """The tasks in these states."""
        return np.flatnonzero(np.isin(self.arrays.status, states)).astype(np.int32)

    def state_of(self, task: int) -> TaskState:
        """Return the state of a task."""
        return TaskState(int(self.arrays.status[task]))

    def count(self, state: TaskState) -> int:
        """How many tasks are in this state."""
        counts = self.arrays.counts
        if state == TaskState.DONE:
            return int(counts[a.N_DONE])
        if state == TaskState.GIVEN_UP:
            return int(counts[a.N_GIVEN_UP])
        if state == TaskState.RESTING:
            return int(counts[a.N_RESTING])
        return int(np.count_nonzero(self.arrays.status == state))

    def next_retry(self) -> float:
        """When the next task that rests is to be tried again; infinite if none does."""
        if self.arrays.counts[a.N_RESTING] == 0:
            return np.inf
        return float(self.arrays.rests[self.arrays.status == a.RESTING].min())

    def rests_until(self, task: int) -> float:
        """When a task that rests is to be tried again; infinite if it does not."""
        return float(self.arrays.rests[task])

    def retries(self) -> list[float]:
        """When tasks that rest are to be tried again, one after another."""
        until = self.arrays.rests[self.arrays.status == a.RESTING]
        times: list[float] = np.unique(until[np.isfinite(until)]).tolist()
        return times

    def places(self) -> IntArray:
        """By task, the processor that it is planned on, or runs on, or ran on; -1: none yet."""
        return self.arrays.on.copy()

    def queue(self, processor: int) -> IntArray:
        """The tasks that come next on a processor, in their order."""
        arrays = self.arrays
        return sealed(arrays.queue[arrays.queue_at[processor] : arrays.queue_end[processor]])

    def queue_at(self, processor: int) -> int:
        """Where in the queues of all processors that of a processor begins by now."""
        return int(self.arrays.queue_at[processor])

    def place_of(self, task: int) -> tuple[tuple[int, ...], float]:
        """The processors that a task has, or is planned on, and what it pays for beyond them."""
        arrays = self.arrays
        first = int(arrays.on[task])
        if arrays.most_cores == 0:
            return (first,), 0.0
        row, wide = task * arrays.most_cores, int(arrays.wide[task])
        paid = float(arrays.paid[task * arrays.n_hosts + arrays.host[first]])
        return tuple(arrays.core[row : row + wide].tolist()), max(0.0, paid - wide)

    def has_inputs(self, task: int) -> bool:
        """Whether all that a task reads is on the host of its processor."""
        return bool(self.arrays.missing[task] == 0)

    # attempts

    def attempt(self, number: int) -> Attempt:
        """The attempt of this number."""
        arrays = self.arrays
        task, p = int(arrays.attempt_task[number]), int(arrays.attempt_on[number])
        start, is_open = float(arrays.attempt_start[number]), arrays.attempt_end[number] == a.OPEN
        return Attempt(number, task, p, start, bool(is_open))

    def ordinal_of(self, number: int) -> int:
        """Return the place of an attempt among those of its task; the first has 1."""
        tasks = self.arrays.attempt_task[: number + 1]
        return int(np.count_nonzero(tasks == tasks[number]))

    def running(self) -> list[Attempt]:
        """What runs now, in the order of processors; what takes several, by its first."""
        return [self.attempt(k) for k in self.open_attempts().tolist()]

    def open_attempts(self) -> IntArray:
        """The numbers of what runs now, in the same order."""
        arrays = self.arrays
        busy = np.flatnonzero(arrays.running >= 0)
        attempts = arrays.running[busy]
        return attempts[arrays.attempt_on[attempts] == busy] if arrays.most_cores else attempts

    def cores_of(self, attempt: int) -> tuple[int, ...]:
        """The processors that an attempt holds, or held, the first of them first."""
        arrays = self.arrays
        if arrays.most_cores == 0:
            return (int(arrays.attempt_on[attempt]),)
        row = attempt * arrays.most_cores
        cores: list[int] = arrays.attempt_core[row : row + arrays.attempt_wide[attempt]].tolist()
        return tuple(cores)

    def amounts_of(self, attempt: int) -> tuple[float, ...]:
        """What an attempt holds of each kind and pool of the needs; empty where there are none."""
        arrays, columns = self.arrays, self.arrays.n_kinds + self.arrays.n_pools
        amounts: list[float] = arrays.attempt_amount[
            attempt * columns : (attempt + 1) * columns
        ].tolist()
        return tuple(amounts)

    def share_of(self, attempt: int) -> float:
        """The share of its task's cost that an attempt takes on as many cores as it holds."""
        arrays = self.arrays
        return float(arrays.attempt_factor[attempt]) if arrays.most_cores else 1.0

    def worked(self, attempt: int, now: float) -> float:
        """Seconds at full availability that an open attempt is believed to have done by then."""
        arrays = self.arrays
        rate = float(arrays.availability[arrays.attempt_on[attempt]])
        return float(arrays.worked[attempt]) + (now - float(arrays.since[attempt])) * rate

    def expected_ends(self, at: float) -> tuple[IntArray, FloatArray]:
        """The processors at work, and when what each runs is expected to end: not before `at`."""
        arrays = self.arrays
        busy = np.flatnonzero(arrays.running >= 0).astype(np.int32)
        attempts, ends = arrays.running[busy], np.empty(len(busy))
        cost, rate = self.expected_seconds(attempts), arrays.attempt_on[attempts]
        done, since = arrays.worked[attempts], arrays.since[attempts]
        expected_ends(cost, done, since, arrays.availability[rate], at, ends)
        return busy, ends

    def expected_seconds(self, attempts: IntArray) -> FloatArray:
        """What attempts were expected to take, at full availability, on all of their cores."""
        arrays = self.arrays
        row = arrays.attempt_task[attempts] * arrays.n_processors
        seconds: FloatArray = arrays.estimate[row + arrays.attempt_on[attempts]]
        if arrays.most_cores:
            seconds = seconds * arrays.attempt_factor[attempts]
        return seconds

    def cores_paid(self, busy: IntArray) -> FloatArray:
        """How many cores are paid for by each processor at work: itself, and shares of its host.

        What an attempt pays for beyond its cores is paid for by the first of them.
        """
        arrays, paid = self.arrays, np.ones(len(busy))
        if arrays.most_cores:
            attempts = arrays.running[busy]
            beyond = arrays.attempt_beyond[attempts]
            paid += np.where(arrays.attempt_on[attempts] == busy, beyond, 0.0)
        return paid

    # items

    def transfer(self, number: int) -> Transfer:
        """The transfer of this number."""
        arrays = self.arrays
        source, target = int(arrays.transfer_from[number]), int(arrays.transfer_to[number])
        return Transfer(number, int(arrays.transfer_item[number]), source, target)

    def under_way(self) -> list[Transfer]:
        """The transfers that have not arrived."""
        arrivals = self.arrays.transfer_arrival[: self.arrays.counts[a.N_TRANSFERS]]
        return [self.transfer(k) for k in np.flatnonzero(np.isnan(arrivals)).tolist()]

    def items_held(self) -> list[tuple[int, int]]:
        """What is where: the pairs of item and host."""
        pairs = np.flatnonzero(self.arrays.held == a.HERE).tolist()
        return [divmod(pair, self.arrays.n_hosts) for pair in pairs]

    # machines

    def free_amounts(self) -> tuple[FloatArray, FloatArray]:
        """What nobody holds: hosts x kinds of the needs, and by pool."""
        arrays = self.arrays
        ours = arrays.n_hosts * arrays.n_kinds
        by_host = arrays.free[:ours].reshape(-1, arrays.n_kinds) if ours else np.empty((0, 0))
        return by_host.copy(), arrays.free[ours:].copy()

    def present(self) -> BoolArray:
        """The processors that are there."""
        return self.arrays.present.copy()

    def leaves(self) -> FloatArray:
        """When each processor will be gone, as far as that is announced."""
        return self.arrays.leaves.copy()

    def availability(self) -> FloatArray:
        """The share of its speed that each processor has now."""
        return self.arrays.availability.copy()

    def bandwidth(self) -> FloatArray:
        """The share of its bandwidth that each link has now, hosts x hosts."""
        h = self.arrays.n_hosts
        return self.arrays.bandwidth.reshape(h, h).copy()

    # the whole of it, for planners and for the record

    def situation(self, wf: Workflow, pf: Platform, estimates: Estimates) -> Situation:
        """What is known now, for a planner or a policy."""
        arrays = self.arrays
        holds = np.empty(int(arrays.counts[a.N_ATTEMPTS]), dtype=np.int32)
        holds = holds[: list_facts(arrays, holds)]
        running = arrays.attempt_end[holds] == a.OPEN
        return Situation(
            workflow=wf,
            platform=pf,
            estimates=estimates,
            now=self.now,
            attempts=Attempts(
                task=arrays.attempt_task[holds],
                processor=arrays.attempt_on[holds],
                start=arrays.attempt_start[holds],
                finish=np.where(running, np.nan, arrays.attempt_finish[holds]),
                worked=arrays.worked[holds],
                since=arrays.since[holds],
                cores=self.cores(holds),
            ),
            copies=_copies(arrays),
            transfers=_transfers(arrays),
            availability=self.availability(),
            bandwidth=self.bandwidth(),
            present=self.present(),
            given_up=_set_aside(arrays),
            astray=_astray(arrays),
            reuse=Reuse(arrays.reuse),
        )

    def cores(self, attempts: IntArray) -> Cores | None:
        """The cores of attempts, row by row; None where each has one."""
        arrays = self.arrays
        if arrays.most_cores == 0:
            return None
        width = arrays.attempt_wide[attempts]
        rows = arrays.attempt_core.reshape(-1, arrays.most_cores)[attempts]
        inside = np.arange(arrays.most_cores) < width[:, None]
        return Cores(np.concatenate([[0], np.cumsum(width)]).astype(np.int32), rows[inside])

    def attempt_log(self, work: Callable[[IntArray, IntArray], FloatArray] | None) -> AttemptLog:
        """Every attempt, for the record; of a simulated world, with the work that it needed."""
        arrays, n = self.arrays, int(self.arrays.counts[a.N_ATTEMPTS])
        task, processor = arrays.attempt_task[:n], arrays.attempt_on[:n]
        needed = np.full(n, np.nan) if work is None else work(task, processor)
        held: dict[str, Any] = {}
        if arrays.most_cores:
            needed = needed * arrays.attempt_factor[:n]
            amounts = arrays.attempt_amount.reshape(-1, arrays.n_kinds + arrays.n_pools)
            held["cores"], held["amount"] = self.cores(np.arange(n, dtype=np.int32)), amounts[:n]
            held["beyond"] = arrays.attempt_beyond[:n]
        return AttemptLog(
            task=task,
            processor=processor,
            start=arrays.attempt_start[:n],
            finish=arrays.attempt_finish[:n],
            end=arrays.attempt_end[:n].astype(np.int32),
            work=needed,
            **held,
        )

    def transfer_log(self) -> TransferLog:
        """Every transfer, for the record."""
        arrays, m = self.arrays, int(self.arrays.counts[a.N_TRANSFERS])
        return TransferLog(
            item=arrays.transfer_item[:m],
            source=arrays.transfer_from[:m],
            target=arrays.transfer_to[:m],
            sent=arrays.transfer_sent[:m],
            arrival=arrays.transfer_arrival[:m],
            forgotten=arrays.transfer_forgotten[:m],
        )

    # changes that no rule makes

    def copy(self) -> RunState:
        """The same state, to try things on; what is read-only is shared."""
        other, own = copy.copy(self), dict[str, Any]()
        for name, value in self.arrays._asdict().items():
            if isinstance(value, np.ndarray) and value.flags.writeable:
                own[name] = value.copy()
        other.arrays = self.arrays._replace(**own)
        return other

    def take_commands(self) -> list[Command]:
        """What the rules want done, which is then none of theirs any more."""
        n = int(self.arrays.counts[a.N_COMMANDS])
        if n == 0:
            return []
        said = self.arrays.commands[: 2 * n].tolist()
        self.arrays.counts[a.N_COMMANDS] = 0
        return [_command(self, said[2 * k], said[2 * k + 1]) for k in range(n)]

    def let_rest(self, task: int, until: float) -> None:
        """The task is not tried again before; a rule sets it aside when its attempt has ended."""
        self.arrays.rests[task] = until

    def hold_back(self, held: bool) -> None:
        """Start nothing new, or start again."""
        self.arrays.counts[a.HELD_BACK] = held

    def watch_nothing(self) -> None:
        """From now on nothing is late, and nothing off its estimate."""
        self.arrays.latest[:] = np.inf
        self.arrays.variance[0] = self.arrays.early[0] = np.inf

    def grow(self, workflow: Workflow, platform: Platform, estimates: Estimates) -> None:
        """Have more processors, at the end of the platform, which have yet to join; other needs."""
        self.arrays = grown(self.arrays, workflow, platform, estimates)

    def add_tasks(
        self, workflow: Workflow, platform: Platform, estimates: Estimates,
        priority: Priority | None,
    ) -> None:  # fmt: skip
        """Have more tasks and items, at the end of the workflow; what they need is made again."""
        first = self.arrays.n_tasks
        self.arrays = arrays = with_tasks(self.arrays, workflow, platform, estimates, priority)
        _set_aside_too(arrays)
        read = workflow.in_item[workflow.in_ptr[first] :]
        made = read[workflow.item_producer[read] >= 0]
        made = made[arrays.status[workflow.item_producer[made]] == a.DONE]
        if not (arrays.held.reshape(-1, arrays.n_hosts)[made] == a.HERE).any(axis=1).all():
            rewind_lost(arrays, True)

    def set_needs(self, workflow: Workflow, platform: Platform, estimates: Estimates) -> None:
        """Have tasks take other amounts from their next attempt on."""
        self.arrays = with_needs(self.arrays, workflow, platform, estimates)

    def set_needs_of(
        self, tasks: list[int], workflow: Workflow, platform: Platform, needs: Needs
    ) -> None:
        """Have these tasks take other amounts from their next attempt on; all else is as it was."""
        arrays, demand = self.arrays, Demand.of(workflow, platform, needs, tasks)
        rows: dict[str, Any] = {}
        for name, new in (
            ("need", demand.needs.amount), ("allowed", demand.allowed), ("paid", demand.paid)
        ):  # fmt: skip
            table = getattr(arrays, name).reshape(arrays.n_tasks, -1).copy()
            table[tasks] = new
            rows[name] = table.reshape(-1)
        self.arrays = arrays._replace(**rows)

    def release_claims(self) -> None:
        """What waits for its inputs just in time holds nothing any more."""
        if len(self.arrays.claim):
            self.arrays.claim[:] = 0.0
            hold_again(self.arrays)

    def make_room(self, transfers: int = 0) -> RunArrays:
        """Have logs that are long enough for an event and so many transfers more.

        A loss can make all that is under way be sent again: as many as there were, at most. Who
        counted them would count again at every event.
        """
        arrays = self.arrays
        attempts = int(arrays.counts[a.N_ATTEMPTS]) + arrays.burst
        most = transfers + 2 * int(arrays.counts[a.N_TRANSFERS]) + arrays.burst
        while attempts > len(arrays.attempt_task) or most > len(arrays.transfer_item):
            arrays = larger(arrays)
        self.arrays = arrays
        return arrays


def _command(state: RunState, kind: int, which: int) -> Command:
    arrays, now = state.arrays, float(state.arrays.clock[0])
    if kind == a.START:
        task, p = int(arrays.attempt_task[which]), int(arrays.attempt_on[which])
        if arrays.most_cores:
            return StartTask(which, task, p, now, state.cores_of(which), state.amounts_of(which))
        return StartTask(which, task, p, now)
    if kind == a.SEND:
        item = int(arrays.transfer_item[which])
        source, target = int(arrays.transfer_from[which]), int(arrays.transfer_to[which])
        return SendItem(which, item, source, target, now)
    if kind == a.WAKE_AT:
        return WakeAt(float(arrays.wake[0]))
    return CancelTask(which, now) if kind == a.CANCEL else DropTransfer(which, now)


def _set_aside(arrays: RunArrays) -> BoolArray | None:
    """The tasks that no plan is made for now: given up, or resting."""
    if arrays.counts[a.N_GIVEN_UP] + arrays.counts[a.N_RESTING] == 0:
        return None
    aside: BoolArray = arrays.status >= a.GIVEN_UP
    return aside


def _set_aside_too(arrays: RunArrays) -> None:
    """What waits for a task that was given up, or rests, is given up or rests with it."""
    if arrays.counts[a.N_GIVEN_UP] + arrays.counts[a.N_RESTING] == 0:
        return
    for task in arrays.order.tolist():
        read = arrays.in_item[arrays.in_ptr[task] : arrays.in_ptr[task + 1]]
        makers = arrays.item_producer[read]
        before = arrays.status[makers[makers >= 0]]
        for aside, count in ((a.GIVEN_UP, a.N_GIVEN_UP), (a.RESTING, a.N_RESTING)):
            if arrays.status[task] == a.WAITING and (before == aside).any():
                arrays.status[task], arrays.on[task] = aside, -1
                arrays.counts[count] += 1


def _astray(arrays: RunArrays) -> BoolArray | None:
    """Needed items that are not on their producers' hosts any more."""
    mask = np.zeros(len(arrays.item_producer), dtype=np.bool_)
    return mask if mark_astray(arrays, mask) else None


def _copies(arrays: RunArrays) -> Copies:
    """Complete items that are still needed, away from their producer's host."""
    room, count = 64, 65
    while count > room:
        room = max(room, count)
        items, hosts = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
        count = list_copies(arrays, items, hosts)
    return Copies(item=items[:count], host=hosts[:count])


def _transfers(arrays: RunArrays) -> Transfers:
    """Transfers under way, and when each is expected at the bandwidth known now."""
    room, count = 64, 65
    while count > room:
        room = max(room, count)
        which, arrival = np.empty(room, dtype=np.int32), np.empty(room)
        count = list_under_way(arrays, which, arrival)
    which = which[:count]
    return Transfers(
        item=arrays.transfer_item[which], host=arrays.transfer_to[which], arrival=arrival[:count]
    )
