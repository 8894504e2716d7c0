"""The simulated executor, in two gears: event by event, and natively between decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from foreplan.arrays import FloatArray, IntArray, pieces
from foreplan.engine.event_numbers import NUMBERS, event_of
from foreplan.engine.kernels.arrays import N_ATTEMPTS, WAKE, RunArrays
from foreplan.engine.kernels.arrays import N_TRANSFERS as SENT
from foreplan.engine.state import RunState
from foreplan.model import Platform, Workflow
from foreplan.model.events import (
    Alarm,
    CancelTask,
    Command,
    DropTransfer,
    Event,
    RetryDue,
    SendItem,
    StartTask,
    WakeAt,
    Woken,
)
from foreplan.model.resources import Needs
from foreplan.simulation.kernels.world import (
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
    drop_stale,
    foresee_arrival,
    foresee_finish,
    next_event,
    stop_transfer,
    stop_work,
    take_core,
)
from foreplan.simulation.reality import Reality

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
        self._alarm: type[Alarm] = Woken

    @staticmethod
    def going_on(
        workflow: Workflow, platform: Platform, reality: Reality, state: RunState
    ) -> SimulatedExecutor:
        """The world of a run that is under way: what it has begun goes on in this reality.

        What should be over by now is over at once.
        """
        executor, arrays = SimulatedExecutor(workflow, platform, reality), state.arrays
        attempts, transfers = int(arrays.counts[N_ATTEMPTS]), int(arrays.counts[SENT])
        running = state.open_attempts()
        moving = np.flatnonzero(np.isnan(arrays.transfer_arrival[:transfers]))
        executor.make_room(attempts, transfers, len(running) + len(moving))
        world = executor.world
        world.alarm[0] = arrays.wake[0]
        world.availability[:] = arrays.availability
        world.bandwidth[:] = arrays.bandwidth
        world.counts[N_TRANSFERS] = transfers
        world.data_left[:transfers] = OVER  # but for those that are moving
        world.counts[UNDER_WAY] = len(moving)
        # in the order in which they were begun, as it was when all of it was foreseen
        begun = [(float(arrays.transfer_sent[k]), 0, k) for k in moving.tolist()]
        begun += [(float(arrays.attempt_start[k]), 1, k) for k in running.tolist()]
        for _, is_work, which in sorted(begun):
            (_go_on_working if is_work else _go_on_moving)(world, arrays, which)
        return executor

    def happens_by(self, moment: float, just_then: bool = False) -> bool:
        """Whether anything happens before this moment; changes of the machines at it count, too.

        So does what ends just then, if that is asked for.
        """
        world = self.world
        drop_stale(world)
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
                share = self._share(command.task, max(1, len(command.cores)))
                for core in command.cores[1:]:
                    take_core(self.world, command.attempt, core)
                begin_work(
                    self.world,
                    command.attempt,
                    command.task,
                    command.processor,
                    share,
                    command.time,
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
            case WakeAt() if command.by is not RetryDue:  # those are changes of the world
                self.world.alarm[0], self._alarm = command.time, command.by

    def _share(self, task: int, width: int) -> float:
        """The share of its work that a task takes on so many cores."""
        needs = self.reality.needs
        if needs is None:
            return 1.0
        rows = np.array([task], dtype=np.int32), np.array([width], dtype=np.int32)
        return float(needs.factor_of(*rows)[0])

    def flush(self) -> None:
        """Whatever is done here is done at once."""

    def next_event(self, wait: bool = True) -> Event | None:
        """The next thing that happens; None if nothing ever will, and always without waiting."""
        if not wait:
            return None
        self.make_room(0, 0)
        kind, which, time, value = next_event(self.world)
        if kind == NO_EVENT:
            return None
        return self._alarm(float(time)) if kind == WAKE else event_of(kind, which, time, value)

    def grow(self, workflow: Workflow, work: FloatArray, needs: Needs | None) -> None:
        """There are more tasks and items, at the end of the workflow."""
        self.reality = replace(self.reality, work=work, needs=needs)
        self.world = self.world._replace(
            work=self.reality.work.reshape(-1), item_size=workflow.item_size
        )

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

    def changes(self) -> Sequence[Event]:
        """Post mortem: what happened to the machines so far."""
        return self.reality.changes[: int(self.world.counts[NEXT_CHANGE])]


def empty_world(workflow: Workflow, platform: Platform, reality: Reality) -> World:
    """Nothing is under way yet."""
    n, p, h = workflow.n_tasks, platform.n_processors, platform.n_hosts
    changes = reality.changes
    numbers = [event.numbers() for event in changes]
    burst = workflow.widest_fan + p + 2  # as in the state of a run that follows a plan
    heap = 4 * burst + 64
    attempts, transfers = n + burst, len(workflow.use_task) + burst
    ones = pieces(np.ones(p + h * h), availability=p, bandwidth=h * h)
    return World(
        n_processors=p,
        n_hosts=h,
        work=reality.work.reshape(-1),
        item_size=workflow.item_size,
        startup=platform.startup.reshape(-1),
        per_unit=platform.time_per_unit.reshape(-1),
        change_time=np.array([e.time for e in changes], dtype=np.float64),
        change_kind=np.array([NUMBERS[type(e)] for e in changes], dtype=np.int32),
        change_which=np.array([which for which, _ in numbers], dtype=np.int32),
        change_value=np.array([value for _, value in numbers], dtype=np.float64),
        counts=np.zeros(COUNTS, dtype=np.int64),
        alarm=np.full(1, np.inf),
        **ones,
        running=np.full(p, -1, dtype=np.int32),
        **{name: np.zeros(heap, dtype=t) for name, t in HEAP.items()},
        **{name: np.zeros(attempts, dtype=t) for name, t in BY_ATTEMPT.items()},
        **{name: np.zeros(transfers, dtype=t) for name, t in BY_TRANSFER.items()},
    )


def _longer(world: World, names: Any) -> World:
    longer: dict[str, Any] = {}
    for name in names:
        old = getattr(world, name)
        longer[name] = np.concatenate([old, np.zeros_like(old)])
    return world._replace(**longer)


def _go_on_working(world: World, arrays: RunArrays, attempt: int) -> None:
    """A task goes on with the work that is left of it."""
    task, p = arrays.attempt_task[attempt], arrays.attempt_on[attempt]
    world.running[p] = attempt
    world.work_on[attempt] = p
    work = world.work[task * world.n_processors + p]
    if arrays.most_cores:
        work *= arrays.attempt_factor[attempt]
        first = attempt * arrays.most_cores
        for core in arrays.attempt_core[first : first + arrays.attempt_wide[attempt]].tolist():
            world.running[core] = attempt
    left = work - arrays.worked[attempt]
    left, since = _left(left, arrays.since[attempt], arrays.availability[p], arrays.clock[0])
    world.work_left[attempt], world.work_since[attempt] = left, since
    foresee_finish(world, attempt)


def _go_on_moving(world: World, arrays: RunArrays, transfer: int) -> None:
    """An item goes on with the data that are left of it."""
    link = arrays.transfer_from[transfer] * world.n_hosts + arrays.transfer_to[transfer]
    world.data_link[transfer] = link
    size = world.item_size[arrays.transfer_item[transfer]]
    left = size * world.per_unit[link] - arrays.moved[transfer]
    left, since = _left(left, arrays.moved_since[transfer], arrays.bandwidth[link], arrays.clock[0])
    world.data_left[transfer], world.data_since[transfer] = left, since
    foresee_arrival(world, transfer)


def _left(left: float, since: float, rate: float, now: float) -> tuple[float, float]:
    """What is left, and since when; nothing, and from now, if it should be over."""
    left = max(0.0, left)
    if rate > 0 and since + left / rate < now:
        return 0.0, now
    return left, since
