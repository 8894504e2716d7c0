"""Tasks as processes of this machine: shell commands, or Python functions in worker processes."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.errors import InputError
from weft.executors.alarm import Alarm
from weft.executors.departures import Departures
from weft.executors.gate import Gate
from weft.executors.jobs import Jobs, News
from weft.executors.local_watch import LocalWatch, Opened
from weft.executors.paths import check_paths
from weft.executors.processes import GRACE, HURRY, Stop, kill_left_behind
from weft.executors.results import load_result
from weft.executors.this_machine import available_processors, platform_of
from weft.model.call import Call
from weft.model.events import (
    MORE_TO_COME,
    OWN_FAULT,
    CancelTask,
    Command,
    DropTransfer,
    Event,
    EventKind,
    SendItem,
    StartTask,
    WakeAt,
)
from weft.model.platform import Platform
from weft.model.workflow import Workflow

_LOOK = 0.5  # a signal that comes just before a wait is seen only after it, so none is for ever
_MOST = 4096  # processors
_Order = tuple[int, int, Stop, Gate | None]  # attempt, task, how it is ended, what holds it back


class LocalExecutor:
    """Each processor is a thread that runs its attempts one after another.

    Only the thread that performs commands and takes events knows which attempts are open; so an
    event of one that was cancelled is dropped when it is taken, however late the cancellation.
    """

    ahead = alone = 0.0

    def __init__(
        self,
        workflow: Workflow,
        processors: int | None,
        dir: Path,
        home: Path,
        clock: Callable[[], float],
        calls: Sequence[Call] | None = None,
        timeout: float | None = None,
        anywhere: bool = False,
        keep_scratch: bool = False,
        known: Platform | None = None,
    ) -> None:
        if calls is None:
            check_paths(workflow, anywhere)
        self.platform, self._usable = platform_of(processors, known)
        self._machine = socket.gethostname()
        self._clock, self._n_items, self._known = clock, workflow.n_items, known is not None
        self._jobs = Jobs(workflow, dir, home, calls, timeout, anywhere, keep_scratch)
        self._heard: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._open: dict[int, Opened] = {}
        self._foreseen: dict[int, tuple[Stop, Gate]] = {}  # by attempt
        self._moving: set[int] = set()
        self._lanes: dict[int, tuple[threading.Thread, queue.SimpleQueue[_Order | None]]] = {}
        self._departures, self._alarm = Departures(clock, self.post), Alarm(clock)
        self._watch = LocalWatch(self.post, self._jobs.report, available_processors())

    def machine(self, processor: int) -> str:
        """The name of this machine: its processors are all alike."""
        return self._machine

    def perform(self, command: Command) -> None:
        """Begin to do what the coordinator asks for."""
        match command:
            case StartTask():
                self._start(command)
            case CancelTask():
                if command.attempt in self._open:
                    grace = HURRY if command.at_once else GRACE
                    self._open.pop(command.attempt).stop.ask(grace)
            case SendItem():  # there is but one host
                self._moving.add(command.transfer)
                self._heard.put(Event(EventKind.ITEM_ARRIVED, command.transfer, 0.0))
            case DropTransfer():
                self._moving.discard(command.transfer)
            case WakeAt():
                self._alarm.set(command.time)

    def foresee(self, commands: Sequence[Command]) -> None:
        """Have shells come up while it is put on disk why; none begins its command before."""
        for command in commands:
            if isinstance(command, StartTask) and self._jobs.may_wait(command.task):
                stop, gate = self._foreseen[command.attempt] = Stop(), Gate()
                order = command.attempt, command.task, stop, gate
                self._lane(command.processor).put(order)

    def _start(self, command: StartTask) -> None:
        stop, gate = self._foreseen.pop(command.attempt, None) or (Stop(), None)
        self._open[command.attempt] = Opened(command.processor, stop, time.monotonic())
        if gate is not None:
            gate.open()
        elif (news := self._jobs.done_before(command.task)) is not None:
            self._heard.put(_event(command.attempt, news, 0.0))
        else:
            self._lane(command.processor).put((command.attempt, command.task, stop, None))

    def flush(self) -> None:
        """All is under way as soon as it is asked for."""

    def next_event(self, wait: bool = True) -> Event | None:
        """Wait for the next thing that happens; None if nothing ever will."""
        while True:
            self._watch.look(self._open)
            if (rung := self._alarm.rung(self._heard.empty())) is not None:
                return replace(rung, time=self._clock())
            may_come = wait and bool(self._open or self._moving or self._departures.pending)
            try:
                heard = self._heard.get(may_come, self._alarm.wait(_LOOK))
            except queue.Empty:
                if may_come:
                    continue
                return None
            if self._is_news(heard):
                return Event(heard.kind, heard.which, self._clock(), heard.value, heard.detail)

    def _is_news(self, event: Event) -> bool:
        match event.kind:
            case EventKind.TASK_FINISHED | EventKind.TASK_FAILED:
                return self._open.pop(event.which, None) is not None
            case EventKind.ITEM_ARRIVED:
                known = event.which in self._moving
                self._moving.discard(event.which)
                return known
        return True

    def post(self, event: Event) -> None:
        """Let this be a next event, from a signal handler too."""
        self._heard.put(event)

    def add(self, count: int) -> None:
        """Have so many processors more, told of by JOINED."""
        n = self.platform.n_processors
        if not 1 <= count <= _MOST - n:
            raise InputError(f"cannot add {count} processors: 1 to {_MOST - n} are possible")
        # all are there before the first is heard of, so that they are planned for at once
        self.platform, _ = platform_of(n + count, self.platform)
        for p in range(n, n + count):
            more = MORE_TO_COME if p < n + count - 1 else 0.0
            self.post(Event(EventKind.JOINED, p, 0.0, more))

    def drain(self, processor: int, at: float | None = None) -> None:
        """Announce that a processor goes: nothing new is to start there, what runs is finished."""
        self._departures.announce(processor, at)

    def recover(self, running: Sequence[StartTask], held: Sequence[tuple[int, int]]) -> list[Event]:
        """What happened since the journal ended: what is left of that time is ended first."""
        ended = dict.fromkeys(kill_left_behind(self._jobs.home), time.time())
        ends = self._jobs.interrupted(running, ended)
        self._jobs.clear()
        now, n = self._clock(), self._n_items
        lost = [host * n + item for item, host in held if not self._jobs.is_there(item)]
        processors = range(self.platform.n_processors if self._known else 0)
        return [
            *(Event(EventKind.JOINED, p, now) for p in processors if p < self._usable),
            *(_event(s.attempt, news, now) for s, news in zip(running, ends, strict=True)),
            *(Event(EventKind.ITEM_LOST, which, now) for which in lost),
            *(Event(EventKind.GONE, p, now) for p in processors if p >= self._usable),
        ]

    def result(self, task: int) -> Any:
        """The result of a function that has finished."""
        return load_result(self._jobs.results, task, self._jobs.name(task))

    def close(self) -> None:
        """Stop what still runs, as if cancelled, and leave nothing behind."""
        self._departures.close()
        for stop in (
            *(s for s, _ in self._foreseen.values()),
            *(o.stop for o in self._open.values()),
        ):
            stop.ask()
        for _, orders in self._lanes.values():
            orders.put(None)
        for thread, _ in self._lanes.values():
            thread.join()
        if self._lanes:
            kill_left_behind(self._jobs.home)  # who has left its group
            self._jobs.clear()
        self._lanes.clear()
        self._open.clear()
        self._foreseen.clear()
        self._moving.clear()

    def _lane(self, processor: int) -> queue.SimpleQueue[_Order | None]:
        if processor not in self._lanes:
            orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
            name = f"weft-{self.platform.processor_names[processor]}"
            thread = threading.Thread(
                target=self._serve, args=(processor, orders), name=name, daemon=True
            )
            self._lanes[processor] = thread, orders
            thread.start()
        return self._lanes[processor][1]

    def _serve(self, processor: int, orders: queue.SimpleQueue[_Order | None]) -> None:
        """What the thread of a processor does."""
        desk, worker = self._jobs.desk(processor), self._jobs.worker()
        try:
            while (order := orders.get()) is not None:
                attempt, task, stop, gate = order
                try:
                    if stop.asked:
                        continue
                    news = self._jobs.run(attempt, task, desk, worker, stop, gate)
                except Exception as error:  # a fault of weft; a run that hangs would hide it
                    reason = f"weft failed: {type(error).__name__}: {error}"
                    news = EventKind.TASK_FAILED, OWN_FAULT, {"reason": reason}
                finally:
                    if gate is not None:
                        gate.close()
                self._heard.put(_event(attempt, news, 0.0))
                desk.tidy()  # while the coordinator thinks
        finally:
            worker.end()
            desk.close()


def _event(attempt: int, news: News, now: float) -> Event:
    kind, value, detail = news
    return Event(kind, attempt, now, value, detail)
