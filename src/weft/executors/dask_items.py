"""Which results are in Dask's memory, where the run believes them to be, and who needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.executors.dask_jobs import Jobs


@dataclass(frozen=True)
class Result:
    """The result of the newest finished attempt of a task, in the memory of workers."""

    key: str
    future: Any
    bytes: int


class Items:
    """The results of a run; letting go of a future lets Dask forget it."""

    def __init__(self, jobs: Jobs, keep_results: bool) -> None:
        self.jobs, self.keep_results = jobs, keep_results
        self.results: dict[int, Result] = {}
        self.claims: dict[int, set[int]] = {}  # the hosts where the run believes a result to be
        self.done: set[int] = set()
        self._made: set[int] = set()  # even if it has begun again since
        self._unread = [len(readers) for readers in jobs.readers]
        self._may_read: dict[int, set[int]] = {}  # what was made again: who may want it again
        self._task_of: dict[str, int] = {}
        self.unneeded: list[Any] = []  # futures to let go of, all in one message

    def missing(self, task: int) -> list[int]:
        """The inputs of a task that are nowhere: lost, or let go of because all had read them."""
        if self.jobs.is_shared:
            return []
        return [p for p in self.jobs.inputs[task] if p not in self.results]

    def begun(self, task: int) -> None:
        """A task runs, perhaps again: it still reads its inputs."""
        if task in self.done:
            self.done.remove(task)
            for producer in self.jobs.inputs[task]:
                self._unread[producer] += 1

    def finished(self, task: int, host: int, result: Result) -> None:
        """A task has ended well: its inputs may have had their last reader."""
        # made again, it stands for its older copies as well: the run may still count on them
        self.claims[task] = self.forget(task) | {host}
        if task in self._made:  # whoever needs it will start again, and only the run knows who
            self._may_read[task] = set(self.jobs.readers[task])
        self._made.add(task)
        if self._is_wanted(task):
            self.results[task] = result
            self._task_of[result.key] = task
        else:
            self.release(result.future)
        if task in self.done:
            return
        self.done.add(task)
        for producer in self.jobs.inputs[task]:
            self._unread[producer] -= 1
            self._may_read.get(producer, set()).discard(task)
            if not self._is_wanted(producer):
                self._let_go(producer)

    def _is_wanted(self, task: int) -> bool:
        if self._is_elsewhere(task):
            return False
        return self._unread[task] > 0 or bool(self._may_read.get(task)) or self.keep_results

    def _is_elsewhere(self, task: int) -> bool:
        """Whether the result need not be in memory: it is on disk."""
        return self.jobs.is_shared or self.jobs.is_product(task)

    def let_go(self) -> list[int]:
        """The tasks whose results are nowhere any more, but which the run believes to be."""
        return [t for t in self.claims if t not in self.results and not self._is_elsewhere(t)]

    def task_of(self, key: str) -> int | None:
        """The task whose result this is."""
        return self._task_of.get(key)

    def forget(self, task: int) -> set[int]:
        """A result is nowhere any more: where the run believed it to be."""
        self._let_go(task)
        return self.claims.pop(task, set())

    def _let_go(self, task: int) -> None:
        result = self.results.pop(task, None)
        if result is not None:
            del self._task_of[result.key]
            self.release(result.future)

    def release(self, future: Any) -> None:
        """Nobody needs this future."""
        self.unneeded.append(future)

    def host_gone(self, host: int) -> None:
        """Nothing is there any more."""
        for hosts in self.claims.values():
            hosts.discard(host)

    def clear(self) -> None:
        """Let go of everything."""
        for task in list(self.results):
            self._let_go(task)
