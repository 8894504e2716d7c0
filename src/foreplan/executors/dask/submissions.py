"""What is given to Dask and what it holds: tasks, asked for or begun ahead, and their results."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from foreplan.executors.dask.cluster import Cluster
from foreplan.executors.dask.jobs import DaskJobs
from foreplan.executors.dask.messages import CopyMessage, TaskMessage
from foreplan.executors.dask.tasks import BIG, fetch
from foreplan.model.events import Event, ItemArrived, SendItem, StartTask
from foreplan.model.workflow import EXTERNAL

SAVED = 0.008  # seconds that a worker does not wait for a task that is begun ahead
_DOUBT = 1 / 20  # the share of those in vain, as long as little is known
_LONGEST = 0.25  # seconds; what saves but a small share of that is not worth a risk
_ASKED_FOR = 1e6  # the priority of what was asked for, above all that is begun ahead


@dataclass(frozen=True)
class HeldResult:
    """The result of the newest finished attempt of a task, in the memory of workers."""

    key: str
    future: Any
    bytes: int


class Items:
    """The results of a run; letting go of a future lets Dask forget it.

    Large ones are sent when the run asks for that, small ones travel with their readers.
    """

    def __init__(self, cluster: Cluster, jobs: DaskJobs, fetched: Container[str] = ()) -> None:
        self._cluster, self._jobs = cluster, jobs
        self._fetched = fetched  # keys of what is on its way home
        self._results: dict[int, HeldResult] = {}
        self._claims: dict[int, set[int]] = {}  # the hosts where the run believes a result to be
        self._done: set[int] = set()
        self._made: set[int] = set()  # even if it has begun again since
        self._unread = [len(readers) for readers in jobs.readers]
        self._may_read: dict[int, set[int]] = {}  # what was made again: who may want it again
        self._task_of: dict[str, int] = {}
        self._unneeded: list[Any] = []  # futures to let go of, all in one message
        self._under_way: dict[tuple[str, str], list[SendItem]] = {}  # by key and address
        self._to_send: list[tuple[str, str, str]] = []  # key, to, from

    def extend(self) -> None:
        """There are more tasks, which may read what others have read before."""
        self._unread = [len(readers - self._done) for readers in self._jobs.readers]

    @property
    def are_shared(self) -> bool:
        """Whether they are files that every worker sees, and none is in memory."""
        return self._jobs.is_shared

    def result(self, task: int) -> HeldResult | None:
        """The result of a task, if it is in memory."""
        return self._results.get(task)

    def missing(self, task: int) -> list[int]:
        """The inputs of a task that are nowhere: lost, or let go of because all had read them."""
        if self._jobs.is_shared:
            return []
        there = self._jobs.at_home
        return [p for p in self._jobs.inputs[task] if p not in self._results and p not in there]

    def begin(self, task: int) -> None:
        """A task runs, perhaps again: it still reads its inputs."""
        if task in self._done:
            self._done.remove(task)
            for producer in self._jobs.inputs[task]:
                self._unread[producer] += 1

    def finish(self, task: int, host: int, result: HeldResult) -> None:
        """A task has ended well: its inputs may have had their last reader."""
        # made again, it stands for its older copies as well: the run may still count on them
        self._claims[task] = self.forget(task) | {host}
        if task in self._made:  # whoever needs it will start again, and only the run knows who
            self._may_read[task] = set(self._jobs.readers[task])
        self._made.add(task)
        self._jobs.at_home.discard(task)
        if self._is_wanted(task):
            self._results[task] = result
            self._task_of[result.key] = task
        else:
            self.release(result.future)
        self.have_read(task)

    def have_read(self, task: int) -> None:
        """A task needs its inputs no more."""
        if task in self._done:
            return
        self._done.add(task)
        for producer in self._jobs.inputs[task]:
            self._unread[producer] -= 1
            self._may_read.get(producer, set()).discard(task)
            if not self._is_wanted(producer):
                self._let_go(producer)

    def _is_wanted(self, task: int) -> bool:
        if self._is_elsewhere(task):
            return False
        return self._unread[task] > 0 or bool(self._may_read.get(task))

    def _is_elsewhere(self, task: int) -> bool:
        """Whether the result need not be in memory: it is on disk."""
        return self._jobs.is_in_directory(task) or self._jobs.is_product(task)

    def gone(self) -> list[int]:
        """The tasks whose results are nowhere any more, but which the run believes to be."""
        return [t for t in self._claims if t not in self._results and not self._is_elsewhere(t)]

    def task_of(self, key: str) -> int | None:
        """The task whose result this is."""
        return self._task_of.get(key)

    def forget(self, task: int) -> set[int]:
        """A result is nowhere any more: where the run believed it to be."""
        self._let_go(task)
        return self._claims.pop(task, set())

    def _let_go(self, task: int) -> None:
        result = self._results.pop(task, None)
        if result is not None:
            del self._task_of[result.key]
            self.release(result.future)

    def release(self, future: Any) -> None:
        """Nobody needs this future."""
        self._unneeded.append(future)

    def forget_host(self, host: int) -> None:
        """Nothing is there any more."""
        for hosts in self._claims.values():
            hosts.discard(host)

    def are_needed_from_others(self, here: set[int]) -> bool:
        """Whether the run believes a result to be only on hosts that are not among these."""
        return any(self._claims.get(task, here).isdisjoint(here) for task in self._results)

    def places(self, leaving: Container[str]) -> dict[str, str]:
        """By key: a worker that the run believes a result to be on, if it stays; else none."""
        names = self._cluster.platform.host_names
        places = dict[str, str]()
        for task, result in self._results.items():
            hosts = sorted(names[h] for h in self._claims.get(task, ()))
            places[result.key] = next((h for h in hosts if h not in leaving), "")
        return places

    def send(self, command: SendItem) -> list[Event]:
        """Begin a transfer, or say at once that Dask will see to it when the item is read."""
        producer = int(self._jobs.workflow.item_producer[command.item])
        if producer == EXTERNAL or self._jobs.is_in_directory(producer):
            return [ItemArrived(command.transfer, 0.0)]
        result = self._results.get(producer)
        if result is None and (producer in self._jobs.at_home or self._jobs.is_product(producer)):
            return [ItemArrived(command.transfer, 0.0)]
        if result is None:
            hosts = sorted(self.forget(producer) | {command.source})
            return [self._jobs.lost(command.item, host) for host in hosts]
        if result.bytes < BIG:
            self._claims[producer].add(command.target)
            return [ItemArrived(command.transfer, 0.0)]
        names = self._cluster.platform.host_names
        route = (result.key, names[command.target])
        if route not in self._under_way:
            self._to_send.append((*route, names[command.source]))
        self._under_way.setdefault(route, []).append(command)
        return []

    def flush(self, at_least: int = 1) -> None:
        """Let go of what nobody needs, if it is so much; begin all transfers, in one message."""
        if len(self._unneeded) >= at_least:
            futures, self._unneeded = self._unneeded, []
            for future in futures:
                if future.key in self._fetched:
                    self._unneeded.append(future)
            held = {future.key for future in self._unneeded}
            self._cluster.release([future for future in futures if future.key not in held])
        wanted, self._to_send = self._to_send, []
        if wanted:
            self._cluster.ask_scheduler(fetch, self._cluster.name, wanted)

    def arrive(self, copy: CopyMessage) -> list[Event]:
        """A copy of a result is on a worker, whoever asked for it."""
        producer = self._task_of.get(copy.key)
        commands = self._under_way.pop((copy.key, copy.address), [])
        if producer is None or copy.address not in self._cluster.processors:
            return []
        detail: dict[str, float] = {"size": copy.size}
        if copy.seconds is not None:
            detail["seconds"] = copy.seconds
        for command in commands:
            self._claims[producer].add(command.target)
        return [ItemArrived(c.transfer, 0.0, detail=detail) for c in commands]

    def drop(self, transfer: int) -> None:
        """Nobody waits for this one any more; Dask may bring it all the same."""
        for commands in self._under_way.values():
            commands[:] = [c for c in commands if c.transfer != transfer]

    def lose_worker(self, address: str, host: int, lost: Container[str]) -> list[Event]:
        """Nothing will arrive there. What was to come from there, and is elsewhere too, arrives.

        For Dask sees to it when it is read.
        """
        for route in [route for route in self._under_way if route[1] == address]:
            del self._under_way[route]
        arrived = list[Event]()
        for (key, target), commands in self._under_way.items():
            sent = [c for c in commands if c.source == host]
            producer = self._task_of.get(key)
            if key in lost or producer is None or target not in self._cluster.processors:
                continue
            for command in sent:
                self._claims[producer].add(command.target)
                arrived.append(ItemArrived(command.transfer, 0.0))
            commands[:] = [c for c in commands if c.source != host]
        return arrived

    def clear(self) -> None:
        """Let go of everything."""
        for task in list(self._results):
            self._let_go(task)


@dataclass(eq=False)
class Submission:
    """A task given to Dask, under a key of its own."""

    key: str
    task: int
    processor: int
    address: str
    level: float = _ASKED_FOR
    attempt: int | None = None  # None: it is begun ahead
    command: StartTask | None = None  # likewise
    future: Any = None
    end: TaskMessage | None = None  # how it ended, perhaps heard before it was asked for
    given: tuple[str, ...] = ()  # Dask's keys of the results that it takes


class Submissions:
    """What is given to Dask, and given in few messages."""

    def __init__(self, name: str, client: Any, jobs: DaskJobs, items: Items) -> None:
        self._name, self._client, self._jobs, self._items = name, client, jobs, items
        self._serial = itertools.count()
        self._to_send: list[Submission] = []
        self._files: dict[int, Any] = {}  # futures of outside inputs
        self.by_key: dict[str, Submission] = {}  # not for others to change, as the next
        self.ahead: dict[int, Submission] = {}  # by task
        self._taken, self._in_vain = 0, 0  # how many of them were asked for, and were not
        self.contents: dict[str, dict[str, str]] = {}  # of results, by key

    @property
    def worth_it(self) -> float:
        """Seconds of a task that is as much in danger of being in vain as it saves."""
        share = (self._in_vain + 1) / (self._taken + self._in_vain + 1 / _DOUBT)
        return min(_LONGEST, SAVED / share)

    def start(self, command: StartTask, address: str) -> Submission:
        """A task is asked for; what was begun ahead on that worker is that attempt now."""
        task, processor = command.task, command.processor
        found = self.ahead.pop(task, None)
        if found is not None and found.address != address:
            self._drop_ahead(found)
            found = None
        self._taken += found is not None
        if found is None:
            found = self._add(Submission(self._key(task), task, processor, address))
        found.attempt, found.processor, found.command = command.attempt, processor, command
        return found

    def prepare(self, processor: int, address: str, tasks: Iterable[int]) -> None:
        """These may be begun on a processor, in this order; what else was is dropped."""
        wanted = list(tasks)
        named = set(wanted)
        for old in [s for s in self.ahead.values() if s.processor == processor]:
            if old.task not in named:
                self._drop_ahead(old)
        level = 0.0
        for task in reversed(wanted):  # what is new before something old must overtake it
            old_one = self.ahead.get(task)
            if old_one is not None and old_one.address == address:
                old_one.processor = processor
                level = max(level, old_one.level + 1)
                continue
            if old_one is not None:
                self._drop_ahead(old_one)
            self.ahead[task] = Submission(self._key(task), task, processor, address, level)
        for task in wanted:
            if self.ahead[task].key not in self.by_key:
                self._add(self.ahead[task])

    def _key(self, task: int) -> str:
        return f"{self._name}-{task}-{next(self._serial)}"

    def _add(self, submission: Submission) -> Submission:
        self.by_key[submission.key] = submission
        self._to_send.append(submission)
        return submission

    def flush(self) -> None:
        """Send what is to be sent: one message for each worker and priority."""
        if not self._to_send:
            return
        groups: dict[tuple[str, float, bool], list[Submission]] = {}
        for submission in self._to_send:
            if submission.key in self.by_key:
                is_command = self._jobs.call(submission.task) is None
                kind = (submission.address, submission.level, is_command)
                groups.setdefault(kind, []).append(submission)
        self._to_send = []
        for (address, level, _), group in groups.items():
            self._send(address, level, group)

    def _send(self, address: str, level: float, group: list[Submission]) -> None:
        rows = [self._jobs.columns(s.task, s.command) for s in group]
        inputs = [self._bring_inputs(s) for s in group]
        futures = self._client.map(
            rows[0][0],
            *map(list, zip(*(columns for _, columns in rows), strict=True)),
            inputs,
            key=[s.key for s in group],
            workers=[address],
            allow_other_workers=False,
            priority=level,
            pure=False,
        )
        for submission, future in zip(group, futures, strict=True):
            submission.future = future

    def _bring_inputs(self, submission: Submission) -> list[Any]:
        from dask.task_spec import TaskRef

        task = submission.task
        if self._jobs.is_in_directory(task):
            return []
        if self._jobs.call(task) is not None:
            numbers = self._jobs.given(task)
            self._bring_files([number for number in numbers if self._items.result(number) is None])
            submission.given = tuple(map(self._key_of, numbers))
            return [TaskRef(key) for key in submission.given]
        results = [self._items.result(producer) for producer in self._jobs.inputs[task]]
        submission.given = tuple(result.key for result in results if result is not None)
        given = [TaskRef(key) for key in submission.given]
        return given + [TaskRef(self._bring_file(i).key) for i in self._jobs.external(task)]

    def _key_of(self, number: int) -> str:
        """The key of a function's result, which is in memory, or is brought there."""
        result = self._items.result(number)
        if result is not None:
            return result.key
        key = str(self._bring_file(number).key)
        if number >= 0:
            self.contents[key] = self._jobs.content_at_home(number)
        return key

    def take_home(self, task: int) -> None:
        """The result of a task is at home: nothing was to be done for it."""
        if (ahead := self.ahead.pop(task, None)) is not None:
            self._drop_ahead(ahead)
        if not self._jobs.is_in_directory(task):
            is_call = self._jobs.call(task) is not None
            for number in [task] if is_call else self._jobs.made(task):
                self._files.pop(number, None)
        self._items.have_read(task)

    def taken(self, submission: Submission) -> dict[str, str]:
        """The contents of what a task was given."""
        given = [self.contents.get(key, {}) for key in submission.given]
        return {name: content for known in given for name, content in known.items()}

    def _bring_file(self, item: int) -> Any:
        """An outside input travels to the cluster once; from there Dask passes it on."""
        self._bring_files([item])
        return self._files[item]

    def _bring_files(self, items: Sequence[int]) -> None:
        new = [item for item in items if item not in self._files]
        if new:
            contents = [self._jobs.external_file(item) for item in new]
            futures = self._client.scatter(contents, hash=False)
            self._files.update(zip(new, futures, strict=True))

    def files(self) -> list[str]:
        """The keys of outside inputs that are on the cluster."""
        return [future.key for future in self._files.values()]

    def lose_files(self, keys: Iterable[str]) -> None:
        """Outside inputs that are no longer on the cluster travel again when they are needed."""
        lost = set(keys)
        self._files = {i: f for i, f in self._files.items() if f.key not in lost}

    def hear(self, message: TaskMessage) -> Submission | None:
        """A task has ended; it, if it was asked for."""
        found = self.by_key.get(message.key)
        if found is None:
            return None
        found.end = message
        return None if found.attempt is None else found

    def end(self, submission: Submission) -> None:
        """An attempt is over: Dask keeps its result as long as somebody holds the future."""
        self.by_key.pop(submission.key, None)

    def drop(self, submission: Submission) -> None:
        """Stop and forget: a task that waits is never run, a function that runs goes on unheard."""
        self.end(submission)
        if self.ahead.get(submission.task) is submission:
            del self.ahead[submission.task]
        if submission.future is not None:
            self._items.release(submission.future)

    def _drop_ahead(self, submission: Submission) -> None:
        self.drop(submission)
        self._in_vain += 1

    def on(self, address: str) -> list[Submission]:
        """What is given to a worker."""
        return [s for s in self.by_key.values() if s.address == address]

    def reading(self, tasks: set[int]) -> list[Submission]:
        """What is given to Dask and reads the result of one of these tasks."""
        return [s for s in self.by_key.values() if tasks & set(self._jobs.inputs[s.task])]

    def clear(self) -> None:
        """Stop and forget everything."""
        for submission in list(self.by_key.values()):
            self.drop(submission)
        self._files.clear()
