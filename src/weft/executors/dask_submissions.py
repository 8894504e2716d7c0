"""Tasks given to Dask: those that were asked for, and those begun ahead."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from weft.executors.dask_items import Items
from weft.executors.dask_jobs import Jobs

SAVED = 0.008  # seconds that a worker does not wait for a task that is begun ahead
_DOUBT = 1 / 20  # the share of those in vain, as long as little is known
_LONGEST = 0.25  # seconds; what saves but a small share of that is not worth a risk
_ASKED_FOR = 1e6  # the priority of what was asked for, above all that is begun ahead


@dataclass(eq=False)
class Submission:
    """A task given to Dask, under a key of its own."""

    key: str
    task: int
    processor: int
    address: str
    level: float = _ASKED_FOR
    attempt: int | None = None  # None: it is begun ahead
    future: Any = None
    report: dict[str, Any] | None = None  # how it ended, heard before it was asked for


class Submissions:
    """What is given to Dask, and given in few messages."""

    def __init__(self, name: str, client: Any, jobs: Jobs, items: Items) -> None:
        self._name, self._client, self._jobs, self._items = name, client, jobs, items
        self._serial = itertools.count()
        self._to_send: list[Submission] = []
        self._files: dict[int, Any] = {}  # futures of outside inputs
        self.by_key: dict[str, Submission] = {}
        self.by_attempt: dict[int, Submission] = {}
        self.ahead: dict[int, Submission] = {}  # by task
        self._taken, self._in_vain = 0, 0  # how many of them were asked for, and were not

    @property
    def worth_it(self) -> float:
        """Seconds of a task that is as much in danger of being in vain as it saves."""
        share = (self._in_vain + 1) / (self._taken + self._in_vain + 1 / _DOUBT)
        return min(_LONGEST, SAVED / share)

    def start(self, task: int, processor: int, address: str, attempt: int) -> Submission:
        """A task is asked for; what was begun ahead on that worker is that attempt now."""
        found = self.ahead.pop(task, None)
        if found is not None and found.address != address:
            self._drop_ahead(found)
            found = None
        self._taken += found is not None
        if found is None:
            found = self._add(Submission(self._key(task), task, processor, address))
        found.attempt, found.processor = attempt, processor
        self.by_attempt[attempt] = found
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
        groups: dict[tuple[str, float], list[Submission]] = {}
        for submission in self._to_send:
            if submission.key in self.by_key:
                groups.setdefault((submission.address, submission.level), []).append(submission)
        self._to_send = []
        for (address, level), group in groups.items():
            self._send(address, level, group)

    def _send(self, address: str, level: float, group: list[Submission]) -> None:
        rows = [self._jobs.columns(s.task, s.attempt or 0) for s in group]
        inputs = [self._inputs(s.task) for s in group]
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

    def _inputs(self, task: int) -> list[Any]:
        from dask.task_spec import TaskRef

        results = self._items.results
        if self._jobs.is_shared:
            return []
        given = [TaskRef(results[p].key) for p in self._jobs.inputs[task]]
        return given + [TaskRef(self._file(i).key) for i in self._jobs.external(task)]

    def _file(self, item: int) -> Any:
        """An outside input travels to the cluster once; from there Dask passes it on."""
        if item not in self._files:
            content = self._jobs.external_file(item)
            self._files[item] = self._client.scatter([content], hash=False)[0]
        return self._files[item]

    @property
    def files(self) -> list[str]:
        """The keys of outside inputs that are on the cluster."""
        return [future.key for future in self._files.values()]

    def lose_files(self, keys: Iterable[str]) -> None:
        """Outside inputs that are no longer on the cluster travel again when they are needed."""
        lost = set(keys)
        self._files = {i: f for i, f in self._files.items() if f.key not in lost}

    def end(self, submission: Submission) -> None:
        """An attempt is over: Dask keeps its result as long as somebody holds the future."""
        self.by_key.pop(submission.key, None)
        if submission.attempt is not None:
            self.by_attempt.pop(submission.attempt, None)

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
