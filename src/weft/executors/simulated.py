"""The simulated executor, in two gears: event by event, and natively between decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.executors.reality import Reality
from weft.kernels.board import N_ATTEMPTS, Board
from weft.kernels.board import N_TRANSFERS as SENT
from weft.kernels.world import (
    COUNTS,
    N_HEAP,
    N_TRANSFERS,
    NEXT_CHANGE,
    NO_EVENT,
    OVER,
    UNDER_WAY,
    World,
    begin_transfer,
    begin_work,
    foresee_arrival,
    foresee_finish,
    next_event,
    pop,
    stale,
    stop_transfer,
    stop_work,
)
from weft.model import Platform, Workflow
from weft.model.events import (
    CancelTask,
    Command,
    DropTransfer,
    Event,
    EventKind,
    SendItem,
    StartTask,
    WakeAt,
)

BY_ATTEMPT = {"work_on": np.int32, "work_left": float, "work_since": float, "work_event": np.int64}
BY_TRANSFER = {
    "data_link": np.int32,
    "data_left": float,
    "data_since": float,
    "data_event": np.int64,
}
HEAP = {"heap_time": float, "heap_number": np.int64, "heap_what": np.int64}


class SimulatedExecutor:
    """A world that performs commands and tells what happens, as any executor does."""

    def __init__(self, workflow: Workflow, platform: Platform, reality: Reality) -> None:
        self.reality = reality
        self.world = empty_world(workflow, platform, reality)

    @staticmethod
    def going_on(
        workflow: Workflow, platform: Platform, reality: Reality, board: Board
    ) -> SimulatedExecutor:
        """The world of a run that is under way: what it has begun goes on in this reality.

        What should be over by now is over at once.
        """
        executor = SimulatedExecutor(workflow, platform, reality)
        running, moving = board.running[board.running >= 0], _moving(board)
        attempts, transfers = int(board.counts[N_ATTEMPTS]), int(board.counts[SENT])
        executor.make_room(attempts, transfers, len(running) + len(moving))
        world = executor.world
        world.alarm[0] = board.wake[0]
        world.availability[:] = board.availability
        world.bandwidth[:] = board.bandwidth
        world.counts[N_TRANSFERS] = transfers
        world.data_left[:transfers] = OVER  # but for those that are moving
        world.counts[UNDER_WAY] = len(moving)
        # in the order in which they were begun, as it was when all of it was foreseen
        begun = [(float(board.transfer_sent[k]), 0, k) for k in moving.tolist()]
        begun += [(float(board.attempt_start[k]), 1, k) for k in running.tolist()]
        for _, is_work, which in sorted(begun):
            (_go_on_working if is_work else _go_on_moving)(world, board, which)
        return executor

    def happens_by(self, moment: float, just_then: bool = False) -> bool:
        """Whether anything happens before this moment; changes of the machines at it count, too.

        So does what ends just then, if that is asked for.
        """
        world = self.world
        while world.counts[N_HEAP] > 0 and stale(world):
            pop(world)
        change = int(world.counts[NEXT_CHANGE])
        if change < len(world.change_time) and world.change_time[change] <= moment:
            return True
        if world.alarm[0] < moment:
            return True
        if world.counts[N_HEAP] == 0:
            return False
        return bool(world.heap_time[0] < moment or (just_then and world.heap_time[0] == moment))

    def perform(self, command: Command) -> None:
        """Begin to do what the coordinator asks for."""
        match command:
            case StartTask():
                self.make_room(command.attempt + 1, 0)
                begin_work(
                    self.world, command.attempt, command.task, command.processor, command.time
                )
            case SendItem():
                self.make_room(0, command.transfer + 1)
                begin_transfer(
                    self.world,
                    command.transfer,
                    command.item,
                    command.source,
                    command.target,
                    command.time,
                )
            case CancelTask():
                stop_work(self.world, command.attempt)
            case DropTransfer():
                stop_transfer(self.world, command.transfer)
            case WakeAt():
                self.world.alarm[0] = command.time

    def next_event(self, wait: bool = True) -> Event | None:
        """The next thing that happens; None if nothing ever will, and always without waiting."""
        if not wait:
            return None
        self.make_room(0, 0)
        kind, which, time, value = next_event(self.world)
        if kind == NO_EVENT:
            return None
        return Event(EventKind(int(kind)), int(which), float(time), float(value))

    def make_room(self, attempts: int, transfers: int, burst: int = 1) -> None:
        """Make the arrays long enough for so many, and the heap for what one event can bring."""
        world = self.world
        while attempts > len(world.work_on):
            world = _longer(world, BY_ATTEMPT)
        while transfers > len(world.data_link):
            world = _longer(world, BY_TRANSFER)
        heap = world.counts[N_HEAP] + 2 * world.counts[UNDER_WAY] + burst
        while heap > len(world.heap_time):
            world = _longer(world, HEAP)
        self.world = world

    def actual_work(self, tasks: IntArray, processors: IntArray) -> FloatArray:
        """Post mortem: what attempts needed, for the record."""
        return self.reality.work[tasks, processors]

    def changes(self) -> list[Event]:
        """Post mortem: what happened to the machines so far."""
        return self.reality.changes[: int(self.world.counts[NEXT_CHANGE])]


def empty_world(workflow: Workflow, platform: Platform, reality: Reality) -> World:
    """Nothing is under way yet."""
    n, p, h = workflow.n_tasks, platform.n_processors, platform.n_hosts
    changes = reality.changes
    burst = workflow.widest_fan + p + 2  # as on the board of a run that follows a plan
    transfers = len(workflow.use_task) + burst
    world = World(
        n_processors=p,
        n_hosts=h,
        work=reality.work.reshape(-1),
        item_size=workflow.item_size,
        startup=platform.startup.reshape(-1),
        per_unit=platform.time_per_unit.reshape(-1),
        change_time=np.array([e.time for e in changes], dtype=np.float64),
        change_kind=np.array([e.kind for e in changes], dtype=np.int32),
        change_which=np.array([e.which for e in changes], dtype=np.int32),
        change_value=np.array([e.value for e in changes], dtype=np.float64),
        counts=np.zeros(COUNTS, dtype=np.int64),
        alarm=np.full(1, np.inf),
        availability=np.ones(p),
        bandwidth=np.ones(h * h),
        running=np.full(p, -1, dtype=np.int32),
        **{name: np.zeros(4 * burst + 64, dtype=t) for name, t in HEAP.items()},
        **{name: np.zeros(n + burst, dtype=t) for name, t in BY_ATTEMPT.items()},
        **{name: np.zeros(transfers, dtype=t) for name, t in BY_TRANSFER.items()},
    )
    return world


def _longer(world: World, names: Any) -> World:
    longer: dict[str, Any] = {}
    for name in names:
        old = getattr(world, name)
        longer[name] = np.concatenate([old, np.zeros_like(old)])
    return world._replace(**longer)


def _moving(board: Board) -> IntArray:
    arrivals = board.transfer_arrival[: board.counts[SENT]]
    return np.flatnonzero(np.isnan(arrivals)).astype(np.int32)


def _go_on_working(world: World, board: Board, attempt: int) -> None:
    """A task goes on with the work that is left of it."""
    task, p = board.attempt_task[attempt], board.attempt_on[attempt]
    world.running[p] = attempt
    world.work_on[attempt] = p
    left = world.work[task * world.n_processors + p] - board.worked[attempt]
    left, since = _left(left, board.since[attempt], board.availability[p], board.clock[0])
    world.work_left[attempt], world.work_since[attempt] = left, since
    foresee_finish(world, attempt)


def _go_on_moving(world: World, board: Board, transfer: int) -> None:
    """An item goes on with the data that are left of it."""
    link = board.transfer_from[transfer] * world.n_hosts + board.transfer_to[transfer]
    world.data_link[transfer] = link
    size = world.item_size[board.transfer_item[transfer]]
    left = size * world.per_unit[link] - board.moved[transfer]
    left, since = _left(left, board.moved_since[transfer], board.bandwidth[link], board.clock[0])
    world.data_left[transfer], world.data_since[transfer] = left, since
    foresee_arrival(world, transfer)


def _left(left: float, since: float, rate: float, now: float) -> tuple[float, float]:
    """What is left, and since when; nothing, and from now, if it should be over."""
    left = max(0.0, left)
    if rate > 0 and since + left / rate < now:
        return 0.0, now
    return left, since
