"""The Dask executor: Dask runs the tasks where and in the order in which the run wants them."""

from __future__ import annotations

import asyncio
import queue
import secrets
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import InputError, WeftError
from weft.executors.alarm import Alarm
from weft.executors.dask_cluster import Cluster
from weft.executors.dask_items import Items, Result
from weft.executors.dask_jobs import Jobs, dumps
from weft.executors.dask_leaving import Leaving
from weft.executors.dask_outcomes import cut_short, failed, finished, since
from weft.executors.dask_submissions import Submission, Submissions
from weft.executors.dask_transfers import Transfers
from weft.executors.dask_watch import DaskWatch
from weft.executors.processes import GRACE, HURRY, kill_left_behind
from weft.executors.results import load_result
from weft.model import Platform, Workflow
from weft.model.call import Call
from weft.model.events import (
    MORE_TO_COME,
    CancelTask,
    Command,
    DropTransfer,
    Event,
    EventKind,
    Prepare,
    SendItem,
    StartTask,
    WakeAt,
)

if TYPE_CHECKING:
    from distributed import Client

_MANY = 50  # futures to let go of in one message; fewer wait for the next look
_LOOK = 0.25  # seconds between looks at what Dask does not tell


class DaskExecutor:
    """Runs functions or shell commands on the workers of a Dask cluster.

    Results of functions stay in the workers' memory until their last reader is done; those that no
    task reads are brought home, to `home/results/`, before they count as finished. Files of
    commands are in the shared directory; without one they travel as results, outside inputs are
    read from the run's directory here, and those that no task reads are written there. What is at
    home or in the shared directory outlives the cluster, what is only in its memory does not.

    A function that is cancelled runs on unheard, for a thread cannot be stopped; the time-out of a
    function is not kept here. Commands are never begun ahead: what they publish can be seen.
    """

    ahead = 0.05

    def __init__(
        self,
        workflow: Workflow,
        client: Client | str,
        dir: Path | None,
        home: Path,
        clock: Callable[[], float],
        calls: Sequence[Call] | None = None,
        platform: Platform | None = None,
        timeout: float | None = None,
        keep_results: bool = False,
        anywhere: bool = False,
        patience: float = 15.0,
    ) -> None:
        self._jobs = Jobs(workflow, calls, dir, home, timeout, anywhere)
        self._clock, self._resumed = clock, platform is not None
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._ready: deque[Event] = deque()
        self._void: set[tuple[bool, int]] = set()  # transfers and attempts that nobody asks for
        self._looked, self._suspects = 0.0, set[str]()
        for folder in ("results", "attempts", "logs"):
            (self._jobs.home / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
        name = f"weft-{secrets.token_hex(4)}"
        self._cluster = Cluster(
            client, name, self._inbox.put, platform, self._jobs.is_shared, patience
        )
        self._items = Items(self._jobs, keep_results)
        self._given = Submissions(name, self._cluster.client, self._jobs, self._items)
        self._transfers = Transfers(self._cluster, self._jobs, self._items)
        self._leaving = Leaving(self._cluster, self._items, clock, self.post)
        self._watch, self._alarm = DaskWatch(self._cluster, self._given, self.post), Alarm(clock)
        self._waited = False  # until what a departure leads to has been done

    @property
    def platform(self) -> Platform:
        """The processors: one for each thread of each worker that was ever there."""
        return self._cluster.platform

    @property
    def alone(self) -> float:
        """Seconds that the next task may take to be begun ahead: it may be in vain."""
        return max(self.ahead, self._given.worth_it)

    def machine(self, processor: int) -> str:
        """The name under which the history knows a processor, in this run and in others."""
        return self._cluster.machine(processor)

    def perform(self, command: Command) -> None:
        """Begin to do what is asked for, at the latest when the next event is waited for."""
        match command:
            case StartTask():
                self._start(command)
            case Prepare():
                self._prepare(command)
            case CancelTask():
                self._cancel(command.attempt, HURRY if command.at_once else GRACE)
            case SendItem():
                self._ready.extend(self._transfers.send(command))
            case DropTransfer():
                self._void.add((True, command.transfer))
                self._transfers.drop(command.transfer)
            case WakeAt():
                self._alarm.set(command.time)

    def _start(self, command: StartTask) -> None:
        if not self._cluster.is_here(command.processor):
            return  # that it is gone will be heard next
        address = self._cluster.address_of(command.processor)
        self._items.begun(command.task)
        if missing := self._items.missing(command.task):
            here = int(self.platform.host[command.processor])  # where the run counts on them
            self._ready.extend(e for t in missing for e in self._lost(t, here))
            self._ready.append(cut_short(command.attempt, "an input is no longer there"))
            return
        given = self._given.start(command.task, command.processor, address, command.attempt)
        if given.report is not None:
            self._ended(given, given.report)

    def _prepare(self, command: Prepare) -> None:
        if self._jobs.calls is None or not self._cluster.is_here(command.processor):
            return
        address = self._cluster.address_of(command.processor)
        possible = [t for t in command.tasks if not self._items.missing(t)]
        self._given.prepare(command.processor, address, possible)

    def _cancel(self, attempt: int, grace: float) -> None:
        self._void.add((False, attempt))
        given = self._given.by_attempt.get(attempt)
        if given is not None:
            self._drop(given, grace)

    def _drop(self, given: Submission, grace: float = GRACE) -> None:
        if self._jobs.calls is None and given.future is not None:
            self._cluster.stop_commands(given.address, [given.key], grace)
        self._given.drop(given)

    def post(self, event: Event) -> None:
        """Let this be a next event, from a signal handler too."""
        self._inbox.put(event)

    def add(self, count: int) -> None:
        """Refuse: workers come by themselves."""
        raise InputError(
            f"workers of a Dask cluster join by themselves: start {count} more there, with "
            f"`dask worker {self._cluster.address}`, and the run uses them"
        )

    def drain(self, processor: int, at: float | None = None) -> None:
        """Announce that a processor goes: nothing new is to start there, what runs is finished."""
        self._leaving.drain(processor, at)

    def next_event(self, wait: bool = True) -> Event | None:
        """Wait for the next thing that happens; without waiting, None if nothing has.

        After a departure nothing has, until it is waited for: what is to be sent from there must
        be asked for before it is heard that it is gone.
        """
        self.flush()
        self._look()
        if self._waited and not wait:
            return None
        self._waited = False
        while True:
            if rung := self._alarm.rung(not self._ready and self._inbox.empty()):
                self._ready.appendleft(rung)
            while self._ready:
                event = self._ready.popleft()
                if not self._is_void(event):
                    return self._told(replace(event, time=self._clock()))
            try:
                self._heard(self._inbox.get(wait, self._alarm.wait(_LOOK)))
            except queue.Empty:
                self._look()
                if not wait and not self._ready:
                    return None

    def _told(self, event: Event) -> Event:
        if event.kind == EventKind.LEAVING:
            self._leaving.heard(event)
            self._waited = True
        return event

    def foresee(self, commands: Sequence[Command]) -> None:
        """There is nothing to get ready."""

    def flush(self) -> None:
        """Send what was asked for, in few messages."""
        self._given.flush()
        self._transfers.flush()
        if len(self._items.unneeded) >= _MANY:
            self._release()

    def _release(self) -> None:
        self._cluster.release(self._items.unneeded)
        self._items.unneeded = []

    def _is_void(self, event: Event) -> bool:
        if event.kind in (EventKind.TASK_FINISHED, EventKind.TASK_FAILED):
            return (False, event.which) in self._void
        if event.kind == EventKind.LEAVING:
            return not self._cluster.is_here(event.which)
        return event.kind == EventKind.ITEM_ARRIVED and (True, event.which) in self._void

    def _heard(self, message: Any) -> None:
        """Something was said: by weft, by a worker, by the scheduler or by a thread here."""
        if isinstance(message, Event):
            self._ready.append(message)
        elif isinstance(message, Exception):
            raise message
        elif isinstance(message, tuple):
            self._at_home(*message)
        elif "reports" in message:
            for report in message["reports"]:
                self._reported(report)
        elif "pulse" in message:
            self._watch.heard(message["pulse"])
        elif "workers" in message:
            found = message["workers"].items()
            for address in self._leaving.late.keys() & message["workers"].keys():
                self._say_gone(self._leaving.late.pop(address))  # it is back, with nothing
            self._joined([p for worker in found for p in self._cluster.join(*worker)])
        elif message["action"] == "add-worker":
            self._cluster.look_for_workers()
        elif message["action"] == "worker-status":
            self._ready.extend(self._leaving.changed(message["worker"], message["status"]))
        else:
            self._worker_gone(message)

    def _joined(self, processors: list[int]) -> None:
        """The last of those that have come at once speaks for all."""
        more = [MORE_TO_COME] * (len(processors) - 1) + [0.0]
        for processor, value in zip(processors, more, strict=False):
            self._ready.append(Event(EventKind.JOINED, processor, 0.0, value))

    def _reported(self, report: dict[str, Any]) -> None:
        if "there" in report:
            self._ready.extend(self._transfers.arrived(report))
            return
        given = self._given.by_key.get(report["key"])
        if given is None:
            return
        if given.attempt is None:
            given.report = report
        else:
            self._ended(given, report)

    def _ended(self, given: Submission, report: dict[str, Any]) -> None:
        """An attempt is over; what no task reads is brought home before it is said."""
        given.report = report
        if "reason" in report:
            self._failed(given, report)
        elif "content" in report:
            self._jobs.keep(given.task, report["content"])
            self._finished(given)
        elif self._jobs.is_product(given.task) or self._jobs.product_files(given.task):
            self._bring_home(given)
        elif self._items.keep_results and self._jobs.calls is not None:
            self._bring_home(given, dumps)
        else:
            self._finished(given)

    def _bring_home(self, given: Submission, packed: Callable[[Any], bytes] | None = None) -> None:
        async def bring() -> None:
            try:
                content = await self._cluster.client.gather(given.future)
                content = content if packed is None else packed(content)
                await asyncio.to_thread(self._jobs.keep, given.task, content)
                self._inbox.put((given, None))
            except WeftError as error:  # it cannot be written here, and trying again is no help
                self._inbox.put(error)
            except BaseException as error:  # the worker is gone, as will be heard
                self._inbox.put((given, str(error)))

        self._cluster.later(bring)

    def _at_home(self, given: Submission, problem: str | None) -> None:
        if given.key not in self._given.by_key:
            return
        if problem is None:
            self._finished(given)
        else:
            self._fail(given, f"its result could not be fetched: {problem}")

    def _finished(self, given: Submission) -> None:
        report, attempt = given.report or {}, given.attempt
        assert attempt is not None
        self._given.end(given)
        result = Result(given.key, given.future, report.get("bytes", 0))
        self._items.finished(given.task, int(self.platform.host[given.processor]), result)
        sizes = self._jobs.sizes(given.task, report)
        self._ready.append(finished(attempt, report["seconds"], sizes))

    def _failed(self, given: Submission, report: dict[str, Any]) -> None:
        assert given.attempt is not None
        self._given.drop(given)
        if report.get("error"):
            self._jobs.keep_error(given.task, report["error"])
        unlisted = self._jobs.unlisted(given.task, given.attempt)
        self._ready.append(failed(given.attempt, report, str(self._jobs.home), unlisted))

    def _fail(self, given: Submission, reason: str) -> None:
        """An attempt comes to nothing, through no fault of its own."""
        self._drop(given)
        if given.attempt is not None:
            self._ready.append(cut_short(given.attempt, reason))

    def _worker_gone(self, message: dict[str, Any]) -> None:
        """A worker is gone, and with it what only it had."""
        address = message["worker"]
        gone = self._cluster.leave(address)
        if not gone:
            return
        lost_keys = frozenset(message.get("lost-computed-tasks", ()))
        host = int(self.platform.host[gone[0]])
        self._ready.extend(self._transfers.host_gone(address, host, lost_keys))
        if self._leaving.gone(address, gone, whole=not lost_keys):
            self._say_gone(gone)
            for given in self._given.on(address):
                self._given.drop(given)
        else:
            for given in self._given.on(address):
                self._given.drop(given)
                if given.attempt is not None:
                    self._ready.append(cut_short(given.attempt, f"the worker {address} has left"))
        self._given.lose_files(message.get("lost-scattered-tasks", ()))
        found = {self._items.task_of(key) for key in lost_keys}
        lost = {task for task in found if task is not None}
        # Dask would wait for a worker to make it again where it was made
        self._ready.extend(e for task in sorted(lost) for e in self._lost(task))
        for given in self._given.reading(lost):
            self._fail(given, f"an input was lost with the worker {address}")

    def _say_gone(self, processors: list[int]) -> None:
        # the run believes some results to be there that were let go of, for all had read them:
        # it must know before it reckons what this loss takes with it
        self._ready.extend(e for task in self._items.let_go() for e in self._lost(task))
        self._ready.extend(Event(EventKind.GONE, p, 0.0) for p in processors)
        if not self._jobs.is_shared:
            self._items.host_gone(int(self.platform.host[processors[0]]))

    def _lost(self, task: int, *more: int) -> list[Event]:
        """A result is nowhere: where the run believes it to be, it is lost."""
        hosts, n = sorted(self._items.forget(task).union(more)), self._jobs.workflow.n_items
        made = [i for i in self._jobs.made(task) if self._jobs.is_read(i)]
        return [Event(EventKind.ITEM_LOST, h * n + i, 0.0) for i in made for h in hosts]

    def _look(self) -> None:
        """Whether the scheduler is there, and what it has given up without a word from a worker."""
        if time.monotonic() < self._looked + _LOOK:
            return
        self._looked = time.monotonic()
        self._cluster.check()
        self._release()
        self._leaving.look(self._given.files)
        self._watch.look()
        for gone in self._leaving.overdue():
            self._say_gone(gone)
        ended = {
            given.key
            for given in self._given.by_key.values()
            if given.report is None
            and given.future is not None
            and given.future.status in ("error", "cancelled", "lost")
        }
        if not self._inbox.empty():  # the death of a worker may be in there, which comes first
            return
        for key in ended & self._suspects:  # a report may have been on its way at the first look
            given = self._given.by_key[key]
            reason = f"Dask gave it up ({given.future.status})"
            if given.future.status == "error":
                reason += f": {given.future.exception(timeout=5)}"
                self._reported({"key": key, "seconds": 0.0, "reason": reason})
            else:
                self._fail(given, reason)
        self._suspects = ended

    def recover(self, running: Sequence[StartTask], held: Sequence[tuple[int, int]]) -> list[Event]:
        """What happened since the journal ended: what was only in memory is lost."""
        if not (self._resumed or running or held):
            return []
        ended = dict[int, float]()
        if self._jobs.calls is None:  # commands whose coordinator is dead must not publish later
            killed = self._cluster.client.run(kill_left_behind, str(self._jobs.home))
            ended = dict.fromkeys(chain.from_iterable(killed.values()), time.time())
        return since(self._cluster, self._jobs, running, held, ended, self._clock())

    def result(self, task: int) -> Any:
        """The result of a finished task, from home or from the cluster's memory."""
        name = self._jobs.workflow.task_names[task]
        if self._jobs.is_product(task):
            return load_result(self._jobs.home / "results", task, name)
        if task not in self._items.results:
            raise WeftError(f"the result of task {name!r} is not kept, as other tasks read it")
        return self._items.results[task].future.result()

    def close(self) -> None:
        """Stop what still runs, and leave the cluster as it was found."""
        self._leaving.close()
        self._watch.close()
        for given in list(self._given.by_key.values()):
            self._drop(given)
        self._given.clear()
        self._items.clear()
        self._release()
        self._cluster.close()
        self._jobs.close()
