"""The Dask executor: Dask runs the tasks where and in the order in which the run wants them."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreplan.errors import ForeplanError, InputError
from foreplan.executors.allotments import Allotting
from foreplan.executors.base import Workload
from foreplan.executors.dask.cluster import Cluster
from foreplan.executors.dask.fetching import Fetches, HomeMessage
from foreplan.executors.dask.jobs import DaskJobs
from foreplan.executors.dask.messages import (
    CopyMessage,
    GoneMessage,
    JoinMessage,
    Message,
    PulseMessage,
    StatusMessage,
    TaskMessage,
    UnreadableMessage,
    Worker,
    WorkersMessage,
)
from foreplan.executors.dask.submissions import HeldResult, Items, Submission, Submissions
from foreplan.executors.dask.tasks import Packed
from foreplan.executors.dask.workers import Leaving, StallWatch, WorkerWatch
from foreplan.executors.listening import Listening
from foreplan.executors.processes import GRACE, kill_left_behind
from foreplan.executors.results import is_kept, load_result
from foreplan.model import Platform, Workflow
from foreplan.model.call import Calls
from foreplan.model.causes import EXPECTED, LOST, SYSTEM, WORKER
from foreplan.model.events import (
    NO_FAULT,
    Event,
    Prepare,
    ProcessorGone,
    ProcessorJoined,
    ProcessorLeaving,
    SendItem,
    StartTask,
)

if TYPE_CHECKING:
    from distributed import Client

_AHEAD = 0.05  # seconds
_MANY = 50  # futures to let go of in one message; fewer wait for the next look


class DaskExecutor(Listening[Submission | None]):
    """Runs functions or shell commands on the workers of a Dask cluster.

    Results of functions stay in the workers' memory until their last reader is done; those that no
    task reads are brought home, to `home/results/`, before they count as finished. Others are
    brought home while their readers run, if they are to be kept. Files of
    commands are in the shared directory; without one they travel as results, outside inputs are
    read from the run's directory here, and those that no task reads are written there. What is at
    home or in the shared directory outlives the cluster, what is only in its memory does not.

    A function that is cancelled runs on unheard, for a thread cannot be stopped; the time-out of a
    function is not kept here. Commands are never begun ahead: what they publish can be seen.
    """

    look_every = 0.25  # at what Dask does not tell

    def __init__(
        self,
        work: Workload,
        client: Client | str,
        home: Path,
        clock: Callable[[], float],
        known: Platform | None = None,
        patience: float = 15.0,
    ) -> None:
        super().__init__(clock)
        self._jobs, self._resumed = DaskJobs(work, home), known is not None
        self._suspects = set[str]()
        self._risky = set[int]()  # tasks that a worker has died with: they may have killed it
        name = f"foreplan-{secrets.token_hex(4)}"
        self._counts = self._jobs.allotting.asks  # what tasks take of workers beside a thread
        self._cluster = Cluster(
            client, name, self.inbox.put, known, self._jobs.is_shared, patience,
            self._jobs.is_one_host,
        )  # fmt: skip
        self._fetches = Fetches(self._cluster, self._jobs, self.inbox.put)
        self._items = Items(self._cluster, self._jobs, self._fetches.keys)
        self._given = Submissions(name, self._cluster.client, self._jobs, self._items)
        self._leaving = Leaving(self._cluster, self._items, clock)
        self._watch = WorkerWatch(self._cluster, self._given, self.post)
        self._stalls = StallWatch(self._cluster, self._given, self._name_of_key, self.post)
        self._waited = False  # until what a departure leads to has been done

    @property
    def platform(self) -> Platform:
        """The processors: one for each thread of each worker that was ever there."""
        return self._cluster.platform

    @property
    def ahead(self) -> float:  # type: ignore[override]
        """Seconds of work that may be begun ahead."""
        return 0.0 if self._counts else _AHEAD

    @property
    def alone(self) -> float:
        """Seconds that the next task may take to be begun ahead: it may be in vain."""
        return 0.0 if self._counts else max(self.ahead, self._given.worth_it)

    def machine(self, processor: int) -> str:
        """The name under which the history knows a processor, in this run and in others."""
        return self._cluster.machine(processor)

    def extend(self, workflow: Workflow, calls: Calls | None) -> None:
        """Know the tasks that were added."""
        was_one_host = self._jobs.is_one_host
        if was_one_host and Allotting(workflow, limit=False).asks:
            raise InputError(
                "an added task asks for cores or amounts, but no declared one does: on Dask, "
                "workers are counted one by one only if some declared task asks"
            )
        self._jobs.take_tasks(workflow, calls)
        self._items.extend()

    def start(self, command: StartTask) -> Submission | None:
        """Give a task to Dask, at the latest when the next event is waited for."""
        self._counts = self._counts or bool(command.cores or command.amounts)
        if not self._cluster.is_here(command.processor):
            return None  # that it is gone will be heard next
        address = self._cluster.address_of(command.processor)
        if (end := self._jobs.make_ready(command.attempt, command.task)) is not None:
            self._given.take_home(command.task)
            self.ready.append(end)
            return None
        self._items.begin(command.task)
        if missing := self._items.missing(command.task):
            here = int(self.platform.host[command.processor])  # where the run counts on them
            self.ready.extend(e for t in missing for e in self._forget_result(t, here))
            self._cut_short(command.attempt, "an input is no longer there")
            return None
        given = self._given.start(command, address)
        self._stalls.note_news()
        if given.end is not None:
            self._end(given, given.end)
        return given

    def prepare(self, command: Prepare) -> None:
        """Let a worker begin functions ahead: it need not wait for the run between them.

        Not where tasks hold more than a thread: Dask would begin them on a thread that stands idle
        because its core, or the memory, is another's.
        """
        if self._counts:
            return
        if not self._cluster.is_here(command.processor):
            return
        address = self._cluster.address_of(command.processor)
        store = self._jobs.store
        possible = [
            t
            for t in command.tasks
            if t not in self._risky  # the run must know whom it lost a worker with
            and self._jobs.may_begin_ahead(t)
            and not (self._items.missing(t) or (store is not None and store.may_be_there(t)))
        ]
        self._given.prepare(command.processor, address, possible)

    def cancel(self, attempt: int, grace: float) -> None:
        """Stop and forget an attempt, unless it is over."""
        given = self.open[attempt]
        if given is not None and given.key in self._given.by_key:
            self._drop(given, grace)

    def send(self, command: SendItem) -> None:
        """Begin a transfer."""
        self.ready.extend(self._items.send(command))

    def drop(self, transfer: int) -> None:
        """Nobody waits for a transfer any more."""
        self._items.drop(transfer)

    def _drop(self, given: Submission, grace: float = GRACE) -> None:
        if self._jobs.call(given.task) is None and given.future is not None:
            self._cluster.stop_commands(given.address, [given.key], grace)
        self._given.drop(given)

    def add(self, count: int) -> None:
        """Refuse: workers come by themselves."""
        raise InputError(
            f"workers of a Dask cluster join by themselves: start {count} more there, with "
            f"`dask worker {self._cluster.address}`, and the run uses them"
        )

    def drain(self, processor: int, at: float | None = None) -> None:
        """Announce that a processor goes: nothing new is to start there, what runs is finished."""
        self._leaving.drain(processor, at)
        super().drain(processor, at)

    def next_event(self, wait: bool = True) -> Event | None:
        """Wait for the next thing that happens; without waiting, None if nothing has.

        After a departure nothing has, until it is waited for: what is to be sent from there must
        be asked for before it is heard that it is gone.
        """
        self.flush()
        if self._waited and not wait:
            self.look_if_due()
            return None
        self._waited = False
        return super().next_event(wait)

    def expects_more(self) -> bool:
        """Workers may always come."""
        return True

    def accept(self, event: Event) -> bool:
        """Take note of departures, too; False if the worker is gone already."""
        if not isinstance(event, ProcessorLeaving):
            return super().accept(event)
        if not self._cluster.is_here(event.processor):
            return False
        self._leaving.note_told(event)
        self._waited = True
        return True

    def flush(self) -> None:
        """Send what was asked for, in few messages."""
        self._given.flush()
        self._items.flush(_MANY)

    def hear(self, message: Any) -> None:
        """Something was said: by foreplan, by a worker, by the scheduler or by a thread here."""
        if isinstance(message, Event):
            self.ready.append(message)
        elif isinstance(message, Exception):
            raise message
        else:
            for said in message:
                self._hear(said)

    def _hear(self, message: Message | HomeMessage) -> None:
        if not isinstance(message, PulseMessage):
            self._stalls.note_news()
        match message:
            case TaskMessage():
                if (given := self._given.hear(message)) is not None:
                    self._end(given, message)
            case UnreadableMessage():
                self._fail_readers(message)
            case CopyMessage():
                self.ready.extend(self._items.arrive(message))
            case PulseMessage():
                self._watch.hear(message)
            case HomeMessage():
                self._finish_at_home(message)
            case WorkersMessage():
                for back in self._leaving.take_returned(message.workers):
                    self._say_gone(back)
                found = {a: Worker(*fields) for a, fields in message.workers.items()}.items()
                self._say_joined([p for worker in found for p in self._cluster.join(*worker)])
            case JoinMessage():
                self._cluster.look_for_workers()
            case StatusMessage():
                self.ready.extend(self._leaving.change(message.address, message.status))
            case GoneMessage():
                self._lose_worker(message)

    def _name_of_key(self, key: str) -> str:
        """Return the name of the task that Dask knows by this key."""
        given = self._given.by_key.get(key)
        task = self._items.task_of(key) if given is None else given.task
        return key if task is None else repr(self._jobs.name(task))

    def _say_joined(self, processors: list[int]) -> None:
        """The last of those that have come at once speaks for all."""
        more = [True] * (len(processors) - 1) + [False]
        for processor, value in zip(processors, more, strict=False):
            self.ready.append(ProcessorJoined(processor, 0.0, value))

    def _end(self, given: Submission, end: TaskMessage) -> None:
        """An attempt is over; what no task reads is brought home before it is said."""
        if end.reason is not None:
            self._say_failed(given, end, end.reason)
            return
        if given.attempt is not None and self._jobs.store is not None:
            taken = self._given.taken(given)
            if warning := self._jobs.check_taken(given.task, given.attempt, taken):
                given.end = end = end._replace(warning=warning)
        if end.content is not None:
            self._jobs.keep(given.task, Packed(end.content), given.attempt, end)
            self._finish(given)
        elif self._jobs.is_product(given.task) or self._jobs.files_for_home(given.task):
            self._bring_home(given)
        elif end.packed is not None and self._jobs.must_keep(given.task):
            self._fetches.add(given)
        else:
            if self._jobs.call(given.task) is not None:
                self._jobs.note_result(given.task, given.attempt, end, None)
            elif self._jobs.carried:
                self._jobs.keep(given.task, {}, given.attempt, end)
            if end.packed is not None:
                self._fetches.add(given)
            self._finish(given)

    def _bring_home(self, given: Submission) -> None:
        async def bring() -> None:
            try:
                content = await self._cluster.client.gather(given.future)
                keep, attempt = self._jobs.keep, given.attempt
                await asyncio.to_thread(keep, given.task, content, attempt, given.end)
                self.inbox.put([HomeMessage(given)])
            except ForeplanError as error:  # it cannot be written here, and trying again is no help
                self.inbox.put(error)
            except BaseException as error:  # the worker is gone, as will be heard
                self.inbox.put([HomeMessage(given, str(error))])

        self._cluster.do_later(bring)

    def _finish_at_home(self, brought: HomeMessage) -> None:
        given = brought.given
        if given.key not in self._given.by_key:
            return
        if brought.problem is None:
            self._finish(given)
        else:
            self._fail(given, f"its result could not be fetched: {brought.problem}")

    def _finish(self, given: Submission) -> None:
        end, attempt = given.end, given.attempt
        assert end is not None
        assert attempt is not None
        self._given.end(given)
        result = HeldResult(given.key, given.future, end.size or 0)
        self._items.finish(given.task, int(self.platform.host[given.processor]), result)
        sizes = self._jobs.sizes(given.task, end)
        if self._jobs.call(given.task) is None:
            self._jobs.note_made(given.task, end.contents or {})
        self._given.contents[given.key] = self._jobs.contents_of(given.task, end)
        warning = end.warning or self._jobs.warnings.pop(given.task, "")
        finished = self._jobs.finished(
            attempt, end.seconds, sizes, warning, end.used, end.undeclared
        )
        self.ready.append(finished)

    def _say_failed(self, given: Submission, end: TaskMessage, reason: str) -> None:
        assert given.attempt is not None
        self._given.drop(given)
        if end.error:
            self._jobs.keep_error(given.task, end.error)
        forgotten = self._jobs.unlisted(given.task, given.attempt)
        kept = self._jobs.kept(given.attempt, given.task)
        failed = self._jobs.failed(
            given.attempt,
            reason,
            end.seconds,
            end.tail,
            end.log,
            code=end.exit,
            forgotten=forgotten,
            kept=kept if Path(kept).is_dir() else None,
            cause=end.cause,
            used=end.used,
        )
        self.ready.append(failed)

    def _fail_readers(self, message: UnreadableMessage) -> None:
        """Fail the tasks of a worker that wait for a result which it cannot read."""
        if (task := self._items.task_of(message.key)) is None:
            return
        name = self._jobs.name_of_result(task)
        reason = f"the result of {name!r} cannot be read on {message.address}: {message.reason}"
        for given in self._given.reading({task}):
            if given.address == message.address and given.attempt is not None:
                self._say_failed(given, TaskMessage(given.key, 0.0, cause=SYSTEM), reason)
            elif given.address == message.address:
                self._given.drop(given)

    def _cut_short(self, attempt: int, reason: str) -> None:
        """An attempt comes to nothing, through no fault of its own."""
        self.ready.append(self._jobs.failed(attempt, reason, fault=NO_FAULT, cause=LOST))

    def _fail(self, given: Submission, reason: str) -> None:
        self._drop(given)
        if given.attempt is not None:
            self._cut_short(given.attempt, reason)

    def _lose_worker(self, message: GoneMessage) -> None:
        """A worker is gone, and with it what only it had."""
        address = message.address
        gone = self._cluster.leave(address)
        if not gone:
            return
        host = int(self.platform.host[gone[0]])
        self.ready.extend(self._items.lose_worker(address, host, set(message.results)))
        is_told = self._leaving.lose_worker(address, gone, whole=not message.results)
        if is_told:
            self._say_gone(gone, message)
        for given in self._given.on(address):
            self._given.drop(given)
            self._risky.add(given.task)
            if given.attempt is not None and not is_told:
                self._cut_short(given.attempt, f"the worker {address} has left")
        self._given.lose_files(message.files)
        found = {self._items.task_of(key) for key in message.results}
        lost = {task for task in found if task is not None}
        # Dask would wait for a worker to make it again where it was made
        self.ready.extend(e for task in sorted(lost) for e in self._forget_result(task))
        for given in self._given.reading(lost):
            self._fail(given, f"an input was lost with the worker {address}")

    def _say_gone(self, processors: list[int], message: GoneMessage | None = None) -> None:
        # the run believes some results to be there that were let go of, for all had read them:
        # it must know before it reckons what this loss takes with it
        self.ready.extend(e for task in self._items.gone() for e in self._forget_result(task))
        detail: dict[str, Any] | None = None
        if message is not None:
            detail = {WORKER: message.address}
            detail |= {EXPECTED: True} if message.expected else {}
        self.ready.extend(ProcessorGone(p, 0.0, detail) for p in processors)
        if not self._jobs.is_shared:
            self._items.forget_host(int(self.platform.host[processors[0]]))

    def _forget_result(self, task: int, *more: int) -> list[Event]:
        """Forget a result that is nowhere: where the run believes it to be, it is lost."""
        hosts = sorted(self._items.forget(task).union(more))
        made = [i for i in self._jobs.made(task) if self._jobs.is_read(i)]
        return [self._jobs.lost(item, host) for item in made for host in hosts]

    def look(self) -> None:
        """Whether the scheduler is there, and what it has given up without a word from a worker."""
        self._cluster.check(self._jobs.advice)
        self._items.flush()
        self._leaving.look(self._given.files())
        self._watch.look()
        self._stalls.look()
        for gone in self._leaving.take_overdue():
            self._say_gone(gone)
        ended = {
            given.key
            for given in self._given.by_key.values()
            if given.end is None
            and given.future is not None
            and given.future.status in ("error", "cancelled", "lost")
        }
        if not self.inbox.empty():  # the death of a worker may be in there, which comes first
            return
        for key in ended & self._suspects:  # a report may have been on its way at the first look
            given = self._given.by_key[key]
            reason = f"Dask gave it up ({given.future.status})"
            if given.future.status == "error":
                reason += f": {given.future.exception(timeout=5)}"
                self._hear(TaskMessage(key, 0.0, reason=reason, cause=SYSTEM))
            else:
                self._fail(given, reason)
        self._suspects = ended

    def recover(self, running: Sequence[StartTask], held: Sequence[tuple[int, int]]) -> list[Event]:
        """What happened since the journal ended: what was only in memory is lost."""
        if not (self._resumed or running or held):
            return []
        ended = dict[int, float]()
        if self._jobs.has_commands:  # those whose coordinator is dead must not publish later
            killed = self._cluster.client.run(kill_left_behind, self._jobs.home)
            ended = dict.fromkeys(chain.from_iterable(killed.values()), time.time())
        return self.stamped(self._changes(running, held, ended))

    def _changes(
        self,
        running: Sequence[StartTask],
        held: Sequence[tuple[int, int]],
        ended: Mapping[int, float],
    ) -> Iterator[Event]:
        """Who is there, how attempts ended, which items are lost.

        Joins come first: what follows is told in the numbers of the platform as it is now. Attempts
        end before their processors go, for nothing is heard of them afterwards.
        """
        here = [self._cluster.is_here(p) for p in range(self.platform.n_processors)]
        yield from (ProcessorJoined(p, 0.0) for p, there in enumerate(here) if there)
        for start in running:
            end = self._jobs.done_before(start)
            if end is None:  # nobody measured it
                attempt, until = start.attempt, ended.get(start.attempt)
                end = self._jobs.failed(
                    attempt, "interrupted", None, fault=NO_FAULT, until=until, cause=LOST
                )
            yield end
        yield from (ProcessorGone(p, 0.0) for p, there in enumerate(here) if not there)
        for item, host in held:
            if self._jobs.is_on_disk(item):
                self._jobs.take_from_home(item)
            else:
                yield self._jobs.lost(item, host)

    def result(self, task: int) -> Any:
        """The result of a finished task, from home or from the cluster's memory."""
        name = self._jobs.workflow.task_names[task]
        if is_kept(self._jobs.results, task):
            return load_result(self._jobs.results, task, name)
        if (found := self._items.result(task)) is None:
            raise ForeplanError(f"the result of task {name!r} is not kept, as other tasks read it")
        value = found.future.result()
        return value.load()[0] if type(value) is Packed else value

    def close(self) -> None:
        """Stop what still runs, and leave the cluster as it was found."""
        self._watch.close()
        self._fetches.finish()
        for given in list(self._given.by_key.values()):
            self._drop(given)
        self._given.clear()
        self._items.clear()
        self._items.flush()
        self._cluster.close()
        self._jobs.close()
