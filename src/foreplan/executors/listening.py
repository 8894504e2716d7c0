"""An executor that listens to one queue, and the one timer of all executors."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from foreplan.errors import InputError
from foreplan.executors.processes import GRACE, HURRY
from foreplan.model.call import Calls
from foreplan.model.events import (
    Alarm,
    CancelTask,
    Command,
    DropTransfer,
    Event,
    ItemArrived,
    Prepare,
    ProcessorLeaving,
    SendItem,
    StartTask,
    TaskFailed,
    TaskFinished,
    WakeAt,
    Woken,
)
from foreplan.model.workflow import Workflow

OVERDUE = 0.05  # seconds; what has happened before is heard first, but not for ever
Attempt = TypeVar("Attempt")


class Listening(Generic[Attempt]):
    """Any thread may fill its queue; the thread that performs commands takes events out of it.

    Only that thread knows which attempts and transfers are open, so it drops what is told of those
    that were cancelled, however late that was. A subclass has `platform`, `machine`, `start`,
    `cancel`, `add`, `recover` and `close`; the rest holds for executors whose tasks all see one
    directory.
    """

    ahead = 0.0  # it does not want to know of tasks in advance
    look_every = 0.5  # a signal that comes just before a wait is seen only after it

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock, self.timer = clock, Timer(clock, self.post)
        self.inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.ready: deque[Event] = deque()
        self.open: dict[int, Attempt] = {}  # attempts that are under way, by their numbers
        self.moving: set[int] = set()  # transfers
        self.look_at = -math.inf  # when to look next, by time.monotonic

    def perform(self, command: Command) -> None:
        """Begin to do what the coordinator asks for."""
        match command:
            case StartTask():
                self.open[command.attempt] = self.start(command)
            case CancelTask():
                if command.attempt in self.open:
                    self.cancel(command.attempt, HURRY if command.at_once else GRACE)
                    del self.open[command.attempt]
            case SendItem():
                self.moving.add(command.transfer)
                self.send(command)
            case DropTransfer():
                self.moving.discard(command.transfer)
                self.drop(command.transfer)
            case Prepare():
                self.prepare(command)
            case WakeAt():
                self.timer.wake_at(command.time, command.by)

    def start(self, command: StartTask) -> Attempt:
        """Begin an attempt, whose end is posted later; what is kept of it while it is open."""
        raise NotImplementedError

    def cancel(self, attempt: int, grace: float) -> None:
        """End an open attempt, gently at first; whatever is told of it will not be heard."""
        raise NotImplementedError

    def send(self, command: SendItem) -> None:
        """Begin a transfer; where all tasks see one directory, it is over at once."""
        self.post(ItemArrived(command.transfer, 0.0))

    def drop(self, transfer: int) -> None:
        """Nobody waits for a transfer any more."""

    def prepare(self, command: Prepare) -> None:
        """These tasks are likely to be asked for next."""

    def extend(self, workflow: Workflow, calls: Calls | None) -> None:
        """Know the tasks that were added; who cannot says so."""
        raise InputError("these machines take no tasks that are added while a run goes on")

    @property
    def alone(self) -> float:
        """Seconds that a task may take of which it wants to know in advance if it is the next."""
        return self.ahead

    def post(self, event: Event) -> None:
        """Let this be a next event, from a signal handler too."""
        self.inbox.put(event)

    def drain(self, processor: int, at: float | None = None) -> None:
        """Announce that a processor goes: nothing new is to start there, what runs is finished."""
        self.timer.announce(processor, at)

    def flush(self) -> None:
        """All is under way as soon as it is asked for."""

    def on_end(self) -> None:
        """Called when the run has ended and was not stopped, before `close`."""

    def next_event(self, wait: bool = True) -> Event | None:
        """Wait for the next thing that happens; None if nothing ever will."""
        self.look_if_due()
        while True:
            due = self.timer.take_due(not self.ready and self.inbox.empty())
            if due is not None:
                self.ready.appendleft(due)
            while self.ready:
                event = self.ready.popleft().at(self.clock())
                if self.accept(event):
                    return event
            may_come = wait and self.expects_more()
            try:
                self.hear(self.inbox.get(may_come, self.timer.wait(self.look_every)))
            except queue.Empty:
                self.look_if_due()
                if not may_come and not self.ready:
                    return None

    def expects_more(self) -> bool:
        """Whether something may still happen by itself."""
        return bool(self.open or self.moving or self.timer.pending)

    def hear(self, message: Any) -> None:
        """Take a message from the queue, and make events ready; here, each is an event."""
        self.ready.append(message)

    def accept(self, event: Event) -> bool:
        """Take note of an end or an arrival; False if it was cancelled."""
        match event:
            case TaskFinished() | TaskFailed():
                known = event.attempt in self.open
                self.open.pop(event.attempt, None)
                return known
            case ItemArrived():
                known = event.transfer in self.moving
                self.moving.discard(event.transfer)
                return known
        return True

    def look_if_due(self) -> None:
        """Look now and then, however much happens."""
        now = time.monotonic()
        if now >= self.look_at:
            self.look_at = now + self.look_every
            self.look()

    def look(self) -> None:
        """See to what does not tell by itself."""

    def stamped(self, events: Iterable[Event]) -> list[Event]:
        """These as events of this moment."""
        now = self.clock()
        return [event.at(now) for event in events]


class Timer:
    """When a run is to be told that a time has come, and when processors are to go.

    It has no thread: who waits for events asks it how long, and what is due.
    """

    def __init__(self, clock: Callable[[], float], post: Callable[[Event], None]) -> None:
        self._clock, self._post = clock, post
        self._lock = threading.Lock()
        self._alarms: dict[type[Alarm], float] = {}
        self._leaves: dict[int, float] = {}  # by processor
        self._first = math.inf  # of all of them

    @property
    def pending(self) -> bool:
        """Whether a processor is yet to go, or an alarm to come that a run waits for."""
        return bool(self._leaves) or any(by.awaited for by in self._alarms)

    def wake_at(self, time: float, by: type[Alarm] = Woken) -> None:
        """Tell by such an event at this time of the run's clock; its time before is off."""
        with self._lock:
            self._alarms[by] = time
            self._set_first()

    def announce(self, processor: int, at: float | None) -> None:
        """It goes at this time, or now, and what was announced before is off; from any thread.

        That is told now, and told again when the time has come.
        """
        now = self._clock()
        with self._lock:
            self._leaves.pop(processor, None)
            if at is not None and at > now:
                self._leaves[processor] = at
            self._set_first()
            self._post(ProcessorLeaving(processor, 0.0, now if at is None else at))

    def wait(self, limit: float) -> float:
        """How many seconds may be waited, at most this many."""
        return min(limit, max(0.0, self._first - self._clock()))

    def take_due(self, is_quiet: bool) -> Event | None:
        """What is due, once; if it is not quiet, a little later."""
        until = self._clock() - (0.0 if is_quiet else OVERDUE)
        if self._first > until:
            return None
        with self._lock:
            due = self._take(until)
            self._set_first()
            return due

    def _take(self, until: float) -> Event | None:
        for processor, at in self._leaves.items():
            if at == self._first <= until:
                del self._leaves[processor]
                return ProcessorLeaving(processor, 0.0, at)
        for by, at in self._alarms.items():
            if at == self._first <= until:
                del self._alarms[by]
                return by(0.0)
        return None

    def _set_first(self) -> None:
        self._first = min(*self._leaves.values(), *self._alarms.values(), math.inf, math.inf)
