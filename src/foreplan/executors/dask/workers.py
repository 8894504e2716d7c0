"""What becomes of workers: who is to go, with results that only they hold, and who stands still."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

from foreplan.executors.dask.cluster import Cluster
from foreplan.executors.dask.messages import PulseMessage
from foreplan.executors.dask.submissions import Items, Submission, Submissions
from foreplan.executors.dask.tasks import (
    RETIRING,
    SILENT,
    find_waiting,
    move_out,
    silent_workers,
)
from foreplan.executors.monitor import Monitor
from foreplan.executors.progress import Report
from foreplan.model.events import Event, MachineMessage, ProcessorLeaving
from foreplan.quantities import duration

NO_NEWS = 30.0  # seconds without news after which a message says what the run waits for
_SHOWN = 3  # tasks that are named


class Leaving:
    """Who is to go; all but `drain` is called by the thread that takes events."""

    def __init__(self, cluster: Cluster, items: Items, clock: Callable[[], float]) -> None:
        self._cluster, self._items, self._clock = cluster, items, clock
        self._drained: dict[int, float] = {}  # by processor: when it goes, as people want it
        self._told: set[int] = set()  # processors that go now, as the run knows
        self._retiring: set[str] = set()  # workers that Dask retires: it moves their results
        self._asked: dict[str, str] = {}  # by key: the worker that was asked to take a copy
        self._is_asking = False
        self._late: dict[str, list[int]] = {}  # workers that are gone, which the run is yet to hear

    def drain(self, processor: int, at: float | None) -> None:
        """People want it to go; from any thread."""
        self._drained[processor] = self._clock() if at is None else at

    def change(self, address: str, status: str) -> list[Event]:
        """What a new status of a worker means; when it is not retired after all, it stays."""
        here = self._cluster.processors.get(address, [])
        if status == RETIRING and address not in self._retiring:
            self._retiring.add(address)
            return [ProcessorLeaving(p, 0.0, self._clock()) for p in here]
        if status == "running" and address in self._retiring:
            self._retiring.remove(address)
            wanted = [(p, self._drained.get(p, math.inf)) for p in here]
            return [ProcessorLeaving(p, 0.0, at) for p, at in wanted]
        return []

    def note_told(self, event: ProcessorLeaving) -> None:
        """The run hears of a departure."""
        if event.gone_at <= event.time:
            self._told.add(event.processor)
        else:
            self._told.discard(event.processor)

    def lose_worker(self, address: str, processors: list[int], whole: bool) -> bool:
        """A worker is gone; whether the run should hear of it now.

        Where the run knew of it, and Dask has copies of all that it held (`whole`), a run that
        believes results to be only there hears of it later: else it would make them again.
        """
        self._retiring.discard(address)
        expected = self._told.issuperset(processors)
        self._told.difference_update(processors)
        for processor in processors:
            self._drained.pop(processor, None)
        if expected and whole and self._are_needed():
            self._late[address] = processors
            return False
        return True

    def take_returned(self, addresses: Container[str]) -> list[list[int]]:
        """The processors of workers that are back, with nothing, before the run heard of it."""
        return [self._late.pop(address) for address in list(self._late) if address in addresses]

    def take_overdue(self) -> list[list[int]]:
        """The processors of workers that are gone, once the run can do without their results."""
        if not self._late or self._are_needed():
            return []
        found, self._late = list(self._late.values()), {}
        return found

    def _are_needed(self) -> bool:
        """Whether the run believes a result to be only on workers that are gone."""
        host = self._cluster.platform.host
        here = {int(host[p]) for found in self._cluster.processors.values() for p in found}
        return self._items.are_needed_from_others(here)

    def look(self, files: Iterable[str]) -> None:
        """Have what only drained workers hold be copied elsewhere: they may go at any time."""
        leaving = [
            address
            for address, here in self._cluster.processors.items()
            if here and address not in self._retiring and self._told.issuperset(here)
        ]
        if not leaving or self._is_asking or self._items.are_shared:
            return
        wanted = dict.fromkeys(files, "") | self._items.places(set(leaving)) | self._asked

        def take(moved: dict[str, str] | None) -> None:
            self._asked = self._asked if moved is None else moved
            self._is_asking = False

        self._is_asking = True
        self._cluster.ask_scheduler(move_out, self._cluster.name, leaving, wanted, then=take)


class WorkerWatch:
    """What workers say of attempts, and which workers are not heard of.

    All but the answers of the scheduler comes in the thread that takes events.
    """

    def __init__(self, cluster: Cluster, given: Submissions, post: Callable[[Event], None]) -> None:
        self._cluster, self._given, self._monitor = cluster, given, Monitor(post)
        self._pulse: dict[str, tuple[float, float, Report | None]] = {}  # by key: begun, share, ...
        self._suspects: set[str] = set()
        self._silent: set[str] = set()  # as was last told
        self._answer: Sequence[str] = ()
        self._is_free = threading.Event()  # no question is on its way
        self._is_free.set()

    def hear(self, pulse: PulseMessage) -> None:
        """What a worker says of a task."""
        if (given := self._given.by_key.get(pulse.key)) is not None:
            known = self._pulse.get(pulse.key)
            begun = time.monotonic() - pulse.seconds if known is None else known[0]
            self._pulse[pulse.key] = begun, pulse.share, pulse.report
            self._measure(given)

    def look(self) -> None:
        """What holds still, if it is time; and ask who is silent."""
        if not self._monitor.is_due():
            return
        begun, known = time.monotonic(), self._given.by_key
        self._pulse = {key: said for key, said in self._pulse.items() if key in known}
        self._look_for_silent()
        for key in self._pulse:
            if known[key].address not in self._silent:
                self._measure(known[key])
        attempts = {given.attempt for given in known.values() if given.attempt is not None}
        self._monitor.end_look(begun, attempts)
        if known or self._silent:
            self._ask()

    def _look_for_silent(self) -> None:
        # twice in a row: the scheduler itself may have been busy, and may hear of them now
        answer, here = set(self._answer), self._cluster.processors
        before, self._silent = self._silent, answer & self._suspects & here.keys()
        self._suspects = answer
        for address in self._silent:
            for processor in here[address]:
                self._monitor.note_silence(processor)
        for address in (before - self._silent) & here.keys():
            for processor in here[address]:
                self._monitor.note_return(processor)

    def _measure(self, given: Submission) -> None:
        if given.attempt is not None:
            begun, share, report = self._pulse[given.key]
            self._monitor.note_share(given.processor, given.attempt, begun, share, report)

    def _ask(self) -> None:
        if not self._is_free.is_set():
            return

        def take(silent: list[str] | None) -> None:
            self._answer = self._answer if silent is None else silent
            self._is_free.set()

        self._is_free.clear()
        self._cluster.ask_scheduler(silent_workers, then=take)

    def close(self) -> None:
        """Wait for an answer that is on its way, for the client may be closed next."""
        self._is_free.wait(SILENT)


class StallWatch:
    """Says which task waits for which worker when nothing new was heard for long.

    It is said after `NO_NEWS` seconds, then after twice as long each time. Tasks that run are
    nothing to tell of, however long they take.
    """

    def __init__(
        self,
        cluster: Cluster,
        given: Submissions,
        name: Callable[[str], str],
        post: Callable[[Event], None],
    ) -> None:
        self._cluster, self._given, self._post = cluster, given, post
        self._name = name  # of the task with this key
        self._news_at = self._ask_at = time.monotonic()
        self._pause = NO_NEWS
        self._asked_at: float | None = None  # an answer is on its way since then
        self.note_news()

    def note_news(self) -> None:
        """Wait from now on: something has happened, or was begun."""
        self._news_at = time.monotonic()
        self._pause = NO_NEWS
        self._ask_at = self._news_at + self._pause

    def look(self) -> None:
        """Ask the scheduler what is waited for, if it is time."""
        now = time.monotonic()
        if now < self._ask_at:
            return
        self._ask_at = now + NO_NEWS
        if self._asked_at is not None:
            silence = duration(now - self._asked_at)
            self._tell(f"the Dask scheduler at {self._cluster.address} gives no answer ({silence})")
            return
        if not any(self._cluster.processors.values()):
            self._tell(f"no worker is left at the Dask scheduler at {self._cluster.address}")
            return
        home = [
            s for s in self._given.by_key.values() if s.end is not None and s.attempt is not None
        ]
        if home:
            self._tell_waiting(
                [f"{self._name(s.key)} for its result from {s.address}" for s in home]
            )
            return
        keys = [s.key for s in self._given.by_key.values() if s.attempt is not None]
        if keys:
            self._asked_at = now
            self._cluster.ask_scheduler(find_waiting, keys, then=self._take)

    def _take(self, found: Sequence[tuple[Any, ...]] | None) -> None:
        self._asked_at = None
        known = self._given.by_key
        waiting = [self._describe(*row) for row in found or () if row[0] in known]
        if waiting:
            self._tell_waiting(waiting)

    def _describe(
        self, key: str, address: str, silence: float, fetched: Sequence[tuple[str, list[str]]]
    ) -> str:
        who = f"{self._name(key)} for {address or 'a worker'}"
        if silence:
            return f"{who} (not heard of for {duration(silence)})"
        if fetched:
            other, holders = fetched[0]
            source = f"from {holders[0]}" if holders else "which no worker has"
            return f"{who} (to fetch the result of {self._name(other)} {source})"
        return f"{who} (it has not begun)" if address else who

    def _tell_waiting(self, waiting: list[str]) -> None:
        more = f", and {len(waiting) - _SHOWN} more" if len(waiting) > _SHOWN else ""
        self._tell(f"waiting: {', '.join(waiting[:_SHOWN])}{more}")

    def _tell(self, what: str) -> None:
        self._pause *= 2
        now = time.monotonic()
        self._ask_at = now + self._pause
        message = f"no news for {duration(now - self._news_at)}; {what}"
        self._post(MachineMessage(0.0, {"message": message}))
