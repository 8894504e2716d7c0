"""Executors under observation: what they are told is written down, and what they say is judged."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from executors.cluster import Cluster
from executors.works import BEGUN, GATE, GIVEN, Work, call, command
from foreplan.executors.results import is_kept
from foreplan.model import Call, Item, Platform, Ref, TaskSpec, Workflow
from foreplan.model.events import (
    MACHINE_LOST,
    NO_FAULT,
    OWN_FAULT,
    Alarm,
    CancelTask,
    Command,
    DropTransfer,
    Event,
    ItemArrived,
    Paused,
    Prepare,
    ProcessorGone,
    ProcessorJoined,
    ProcessorLeaving,
    SendItem,
    SpeedChanged,
    StartTask,
    TaskFailed,
    TaskFinished,
    WakeAt,
    Woken,
)
from model.told import what, whom

LIMIT = 60.0  # seconds for one check: a hang fails, a slow machine does not
FINISHED, FAILED, ARRIVED = TaskFinished, TaskFailed, ItemArrived
ENDS = (FINISHED, FAILED)


@contextlib.contextmanager
def limited(seconds: float = LIMIT) -> Iterator[None]:
    """Whatever hangs in it fails; and again, if it is hung up in cleaning up."""

    def late(*_: Any) -> None:
        raise AssertionError(f"it hangs: nothing has happened for long (limit {seconds:g} s)")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, 5.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def until(holds: Callable[[], object], what: str, seconds: float = LIMIT) -> None:
    """Look until it holds, where nothing can be waited for."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not so within {seconds:g} s: {what}"
        select.select([], [], [], 0.005)


class Watched:
    """An executor between the coordinator and the rules that hold for every executor."""

    def __init__(self, executor: Any, platform: Callable[[], Platform], real: bool) -> None:
        self.executor, self.real, self._platform = executor, real, platform
        self.now = 0.0
        self.running: dict[int, StartTask] = {}
        self.moving: dict[int, SendItem] = {}
        self.gone: set[int] = set()
        self.known = platform().n_processors
        self.log: list[Command | Event] = []

    @property
    def platform(self) -> Platform:
        return self._platform()

    @property
    def ahead(self) -> float:
        return float(getattr(self.executor, "ahead", 0.0))

    def machine(self, processor: int) -> str:
        return str(self.executor.machine(processor)) if self.real else "simulated"

    @property
    def alone(self) -> float:
        return float(getattr(self.executor, "alone", 0.0))

    def flush(self) -> None:
        if self.real:
            self.executor.flush()

    def post(self, event: Event) -> None:
        self.executor.post(event)

    def add(self, count: int) -> None:
        self.executor.add(count)

    def drain(self, processor: int, at: float | None = None) -> None:
        self.executor.drain(processor, at)

    def recover(self, running: Sequence[StartTask], held: Sequence[tuple[int, int]]) -> list[Event]:
        """Attempts that were under way each get one end."""
        events: list[Event] = self.executor.recover(running, held)
        ended = sorted(whom(e) for e in events if type(e) in ENDS)
        assert ended == sorted(s.attempt for s in running)
        times = [e.time for e in events]
        assert times == sorted(times)
        assert all(what(e) == NO_FAULT for e in events if type(e) is FAILED)
        return events

    def close(self) -> None:
        self.executor.close()
        self.running.clear()
        self.moving.clear()

    def perform(self, command: Command) -> None:
        """Write down what will have an end, or no longer."""
        self.log.append(command)
        match command:
            case StartTask():
                busy = {p for s in self.running.values() for p in s.cores or (s.processor,)}
                cores = command.cores or (command.processor,)
                assert busy.isdisjoint(cores), "the suite itself is wrong"
                self.running[command.attempt] = command
            case SendItem():
                self.moving[command.transfer] = command
            case CancelTask():
                self.running.pop(command.attempt, None)
            case DropTransfer():
                self.moving.pop(command.transfer, None)
        self.executor.perform(command)

    def next_event(self, wait: bool = True) -> Event | None:
        """What happened, if it can have."""
        event: Event | None = self.executor.next_event(wait)
        while event is not None and isinstance(event, SpeedChanged):
            event = self.executor.next_event(wait)  # a machine may be slow at any time
        if event is None:
            return None
        assert event.time >= self.now, f"{event} lies before {self.now}"
        self.now = event.time
        self.log.append(event)
        match event:
            case TaskFinished() | TaskFailed():
                assert self.running.pop(whom(event), None), f"{event} of no open attempt"
                self._check_detail(event)
            case ItemArrived():
                assert self.moving.pop(whom(event), None), f"{event} of no open transfer"
            case ProcessorGone():
                self._gone(whom(event))
            case ProcessorLeaving():
                assert 0 <= whom(event) < self.known
                assert whom(event) not in self.gone, f"{event}, but it is gone"
            case ProcessorJoined():
                new = whom(event) >= self.known
                assert new or whom(event) in self.gone, f"{event}, but it was there"
                assert whom(event) < self.platform.n_processors
                self.known = max(self.known, whom(event) + 1)
                self.gone.discard(whom(event))
        return event

    def _gone(self, processor: int) -> None:
        """Nothing more of its attempt."""
        assert 0 <= processor < self.known
        assert processor not in self.gone, "gone twice"
        self.gone.add(processor)
        self.running = {k: s for k, s in self.running.items() if s.processor != processor}

    def _check_detail(self, event: Event) -> None:
        if not self.real:
            return
        detail = event.detail
        assert detail is not None
        if type(event) is FINISHED:
            assert detail["seconds"] >= 0
            assert all(size >= 0 for size in detail["sizes"].values())
        else:
            assert what(event) in (OWN_FAULT, NO_FAULT, MACHINE_LOST)
            assert detail["reason"]
            assert {"exit", "log", "tail", "seconds"} <= set(detail)


class Bench:
    """A workflow on an executor, and all that its tasks can see of the test."""

    def __init__(self, works: Sequence[Work], folder: Path, functions: bool) -> None:
        self.works, self.functions = list(works), functions
        self.dir, self.place = folder / "data", folder / "place"
        self.home = self.dir / ".foreplan" / "runs" / "one"
        self.home.mkdir(parents=True, exist_ok=True)
        self.place.mkdir(exist_ok=True)
        (self.dir / GIVEN).write_text(GIVEN)
        for name in (BEGUN, GATE):
            if not (self.place / name).exists():
                os.mkfifo(self.place / name)
        self._begun = os.open(self.place / BEGUN, os.O_RDWR | os.O_NONBLOCK)
        self._gate = os.open(self.place / GATE, os.O_RDWR | os.O_NONBLOCK)
        self._rest = b""
        self.workflow = self._workflow()
        self.attempts = self.transfers = 0
        self.begin = time.monotonic()
        self.watched: Watched
        self.cluster: Cluster | None = None

    def _workflow(self) -> Workflow:
        names = [work.name for work in self.works]
        readers: list[list[int]] = [[] for _ in names]
        for t, work in enumerate(self.works):
            for producer in work.reads:
                readers[producer].append(t)
        items = [
            Item(float(len(w.name)), t, readers[t], None if self.functions else w.file)
            for t, w in enumerate(self.works)
        ]
        specs = {}
        if not self.functions:
            items.append(
                Item(5.0, None, [t for t, w in enumerate(self.works) if not w.reads], GIVEN)
            )
            specs = {t: TaskSpec(run=self._command(w)) for t, w in enumerate(self.works)}
        return Workflow.from_items("w", names, [0.02] * len(names), items, specs=specs)

    def _command(self, work: Work) -> str:
        return command(str(self.place), work, [self.works[t].file for t in work.reads] or [GIVEN])

    @property
    def calls(self) -> list[Call] | None:
        if not self.functions:
            return None
        place = str(self.place)
        return [Call(call, (place, w, [Ref(t) for t in w.reads])) for w in self.works]

    def clock(self) -> float:
        return time.monotonic() - self.begin

    # what the coordinator does, by hand

    def start(self, task: int, *cores: int, amounts: tuple[float, ...] = ()) -> int:
        """On a processor, or holding several."""
        self.attempts += 1
        number, now = self.attempts - 1, self.watched.now
        held = cores if len(cores) > 1 or amounts else ()
        self.watched.perform(StartTask(number, task, cores[0], now, held, amounts))
        return number

    def cancel(self, attempt: int) -> None:
        self.watched.perform(CancelTask(attempt, self.watched.now))

    def send(self, item: int, source: int, target: int) -> int:
        """From the host of a processor to that of another."""
        hosts, now = self.watched.platform.host.tolist(), self.watched.now
        self.transfers += 1
        command = SendItem(self.transfers - 1, item, hosts[source], hosts[target], now)
        self.watched.perform(command)
        return self.transfers - 1

    def drop(self, transfer: int) -> None:
        self.watched.perform(DropTransfer(transfer, self.watched.now))

    def prepare(self, processor: int, *tasks: int) -> None:
        self.watched.perform(Prepare(processor, tasks, self.watched.now))

    def wake_at(self, time: float, by: type[Alarm] = Woken) -> None:
        self.watched.perform(WakeAt(time, by))

    def expect(self, kind: type[Event], *which: int) -> list[Event]:
        """These events come next, in any order."""
        events = []
        for _ in which:
            event = self.watched.next_event()
            assert event is not None, f"no {kind.name} of {which}"
            events.append(event)
        assert {type(e) for e in events} <= {kind}, events
        assert sorted(whom(e) for e in events) == sorted(which), events
        return events

    def expect_loss(self, processor: int) -> list[Event]:
        """All that is heard until a processor is gone; what was sent from or to it is dropped."""
        events: list[Event] = []
        while not events or (type(events[-1]), whom(events[-1])) != (ProcessorGone, processor):
            event = self.watched.next_event()
            assert event is not None, f"{processor} is never gone"
            events.append(event)
        host = int(self.watched.platform.host[processor])
        for transfer, sent in list(self.watched.moving.items()):
            if host in (sent.source, sent.target):
                self.drop(transfer)
        return events

    def bring(self, item: int, source: int, target: int) -> None:
        """The item is on the host of another processor, when this returns."""
        hosts = self.watched.platform.host
        if hosts[source] != hosts[target]:
            self.expect(ARRIVED, self.send(item, source, target))

    def silent(self) -> None:
        """Nothing has happened that was not heard, and nothing is under way."""
        assert not self.watched.running
        assert not self.watched.moving
        assert self.watched.next_event(wait=False) is None
        if self.watched.real:
            self.watched.post(Paused(-1.0, True))
            self.expect(Paused, 0)
        else:
            assert self.watched.next_event() is None

    # what tasks do

    def begun(self, n: int = 1) -> dict[str, list[int]]:
        """Wait until so many have said that they have begun: their names and processes."""
        if not self.watched.real:
            return {}
        found: dict[str, list[int]] = {}
        while len(found) < n:
            head, end, rest = self._rest.partition(b"\n")
            if end:
                self._rest = rest
                name, *pids = head.decode().split()
                found[name] = [int(pid) for pid in pids]
            else:
                select.select([self._begun], [], [])
                self._rest += os.read(self._begun, 4096)
        return found

    def open_gate(self, times: int = 200) -> None:
        """Let tasks pass that wait, or will."""
        os.write(self._gate, b"\n" * times)

    def is_published(self, task: int) -> bool:
        if self.functions:
            return is_kept(self.home / "results", task)
        return (self.dir / self.works[task].file).exists()

    def result(self, task: int) -> str:
        if self.functions:
            return str(self.watched.executor.result(task)).rstrip()
        return (self.dir / self.works[task].file).read_text().rstrip()

    def close(self) -> None:
        try:
            self.watched.close()
        finally:
            self.open_gate()  # for threads that nobody could stop
            os.close(self._begun)
            os.close(self._gate)


def dead(pid: int, seconds: float = 20.0) -> bool:
    """Whether a process ends in time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)
