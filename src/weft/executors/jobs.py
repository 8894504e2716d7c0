"""From a task to a job on this machine, and from its outcome to what is told of it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.executors.command import CommandJob, explain, own_environment, run_command, unlisted
from weft.executors.desk import Desk
from weft.executors.functions import FunctionJob, FunctionOutcome, FunctionWorker
from weft.executors.gate import Gate
from weft.executors.logs import LOG_ENDS, keep_logs, tail_of
from weft.executors.processes import OF_RUN, Stop
from weft.executors.progress import ENDING, VARIABLE, forget_progress
from weft.executors.results import error_path, result_path
from weft.executors.scratch import (
    done_line,
    last_change,
    note_done,
    read_done,
    remove,
    still_there,
)
from weft.model.call import Call, refs
from weft.model.events import MACHINE_LOST, NO_FAULT, OWN_FAULT, EventKind, StartTask
from weft.model.workflow import Workflow

_ODD = re.compile(r"[^A-Za-z0-9._+-]+")
_KEPT = ".failed"
News = tuple[EventKind, float, dict[str, Any]]  # what happened, its value and its detail


class Jobs:
    """The jobs of a run: where their files are, how they are run, how they ended."""

    def __init__(
        self,
        workflow: Workflow,
        data: Path,
        home: Path,
        calls: Sequence[Call] | None,
        timeout: float | None,
        anywhere: bool,
        keep_scratch: bool,
    ) -> None:
        self._workflow, self._calls, self._timeout = workflow, calls, timeout
        self._anywhere, self._keep_scratch = anywhere, keep_scratch
        self._data, self.home = os.path.realpath(data), os.path.realpath(home)
        for place in ("attempts", "logs", "results"):
            os.makedirs(os.path.join(self.home, place), mode=0o700, exist_ok=True)
        self.results = os.path.join(self.home, "results")
        self._done = os.path.join(self.home, "attempts", "done.jsonl")
        self._environment = own_environment()
        self._before: dict[str, tuple[float, Mapping[str, int]]] = {}  # done in earlier sittings
        self._names = workflow.item_names or (None,) * workflow.n_items
        self._in = workflow.in_ptr.tolist(), workflow.in_item.tolist()
        self._out = workflow.out_ptr.tolist(), workflow.out_item.tolist()

    def name(self, task: int) -> str:
        """The name of a task."""
        return self._workflow.task_names[task]

    def worker(self) -> FunctionWorker:
        """A worker process for calls; it is not started yet."""
        marked = {**self._environment, OF_RUN.encode(): os.fsencode(self.home)}
        return FunctionWorker(self._data, marked)

    def desk(self, processor: int) -> Desk:
        """Where the attempts of a processor run."""
        return Desk(self._desk(processor), self._done)

    def may_wait(self, task: int) -> bool:
        """Whether its shell may be up before it is asked for, as far as anybody can tell.

        Not where that takes up its time, or lets a script of the user's run.
        """
        if self._calls is not None or b"BASH_ENV" in self._environment:
            return False
        is_done = self.name(task) in self._before
        return not is_done and self._timeout is None and self._workflow.spec(task).timeout is None

    def run(
        self,
        attempt: int,
        task: int,
        desk: Desk,
        worker: FunctionWorker,
        stop: Stop,
        gate: Gate | None = None,
    ) -> News:
        """Run an attempt to its end; a command only once its gate is open, if it has one."""
        try:
            if self._calls is None:
                return self._run_command(attempt, task, desk, stop, gate)
            return self._run_call(attempt, task, desk, worker, stop)
        finally:
            forget_progress(desk.path + ENDING)

    def _run_command(
        self, attempt: int, task: int, desk: Desk, stop: Stop, gate: Gate | None
    ) -> News:
        spec = self._workflow.spec(task)
        job = CommandJob(
            task=self.name(task),
            command=spec.run or "",
            dir=self._data,
            scratch=desk.path,
            log=self._log(attempt, task),
            inputs=self._files(self._in, task),
            outputs=self._files(self._out, task),
            attempt=attempt,
            home=self.home,
            timeout=self._timeout if spec.timeout is None else spec.timeout,
            keep_scratch=self._keep_scratch,
            anywhere=self._anywhere,
            progress=desk.path + ENDING,
            shell=spec.shell or "",
            ignores=spec.ignores,
        )
        outcome = run_command(job, stop, self._environment, desk, gate)
        if outcome.problem is None:
            return _finished(outcome.seconds, outcome.sizes)
        if self._keep_scratch:
            with contextlib.suppress(OSError):
                os.rename(job.scratch, f"{desk.path}-{attempt}{_KEPT}")
        kind, fault, detail = self._failed(
            outcome.problem, outcome.seconds, outcome.tail, outcome.log, code=outcome.exit
        )
        forgotten = unlisted(job)
        return kind, fault, detail | ({"unlisted": forgotten} if forgotten else {})

    def _run_call(
        self, attempt: int, task: int, desk: Desk, worker: FunctionWorker, stop: Stop
    ) -> News:
        assert self._calls is not None
        call, spec = self._calls[task], self._workflow.spec(task)
        job = FunctionJob(
            call=call,
            results={other: self.result(other) for other in refs(call)},
            result=desk.path + ".pkl",
            error=error_path(os.path.join(self.home, "results"), task),
            log=self._log(attempt, task),
            live_log=desk.path,
            environment={
                "WEFT_DIR": self._data,
                "WEFT_TASK": self.name(task),
                "WEFT_ATTEMPT": str(attempt),
                VARIABLE: desk.path + ENDING,
            },
            timeout=self._timeout if spec.timeout is None else spec.timeout,
        )
        outcome = worker.run(job, stop)
        if outcome.problem is not None or stop.asked:
            fault = OWN_FAULT if outcome.own_fault else MACHINE_LOST
            problem = outcome.problem or "it was stopped"
            return self._failed(problem, outcome.seconds, outcome.tail, outcome.log, fault)
        try:
            self._publish(job.result, attempt, task, outcome)
        except OSError as error:
            return self._failed(explain(error), outcome.seconds, "", None)
        return _finished(outcome.seconds, self._result_sizes(task, outcome.size))

    def _publish(self, source: str, attempt: int, task: int, outcome: FunctionOutcome) -> None:
        path = self.result(task)
        os.replace(source, path)
        status = outcome.size, os.stat(path).st_mtime_ns
        with contextlib.suppress(OSError):  # without the note the attempt is only repeated
            note_done(
                self._done, done_line(self.name(task), attempt, outcome.seconds, {path: status})
            )

    def result(self, task: int) -> str:
        """The file of a call's result."""
        return result_path(self.results, task)

    def is_there(self, item: int) -> bool:
        """Whether the file of an item is there; what has no file always is."""
        name = self._names[item]
        if self._calls is not None:
            return os.path.exists(self.result(int(self._workflow.item_producer[item])))
        return name is None or os.path.exists(os.path.join(self._data, name))

    def interrupted(self, running: Sequence[StartTask], ended: Mapping[int, float]) -> list[News]:
        """How attempts ended that ran when the coordinator was killed, once nothing runs.

        `ended` says of some when they were; of others their files tell until when they ran.
        """
        done = read_done(self._done)
        self._before = {task: end for (task, _), end in done.items()}
        return [
            self._interrupted(start, done.get((self.name(start.task), start.attempt)), ended)
            for start in running
        ]

    def _interrupted(
        self,
        start: StartTask,
        done: tuple[float, Mapping[str, int]] | None,
        ended: Mapping[int, float],
    ) -> News:
        log, desk = self._log(start.attempt, start.task), self._desk(start.processor)
        until = ended.get(start.attempt) or last_change(desk, *(desk + end for end in LOG_ENDS))
        keep_logs(desk, log)
        if done is None or not still_there(self._data, done[1]):
            tail, path = tail_of(log)
            kind, fault, detail = self._failed("it was interrupted", None, tail, path, NO_FAULT)
            return kind, fault, detail | {"until": until}
        return self._as_done(start.task, *done)

    def done_before(self, task: int) -> News | None:
        """How a task ended in an earlier sitting, if the journal has lost that and all is there."""
        done = self._before.pop(self.name(task), None)
        if done is None or not still_there(self._data, done[1]):
            return None
        return self._as_done(task, *done)

    def _as_done(self, task: int, seconds: float, sizes: Mapping[str, int]) -> News:
        if self._calls is not None:
            return _finished(seconds, self._result_sizes(task, *sizes.values()))
        return _finished(seconds, sizes)

    def clear(self) -> None:
        """Remove what attempts have left, once nothing runs; but not what is to be looked at."""
        place = os.path.join(self.home, "attempts")
        for entry in os.scandir(place):
            if entry.path == self._done or (self._keep_scratch and entry.name.endswith(_KEPT)):
                continue
            if entry.is_dir(follow_symlinks=False):
                remove(entry.path)
            else:
                os.unlink(entry.path)

    def report(self, processor: int) -> str:
        """The file that the attempt on a processor may write its progress to."""
        return self._desk(processor) + ENDING

    def _desk(self, processor: int) -> str:
        return os.path.join(self.home, "attempts", str(processor + 1))

    def _log(self, attempt: int, task: int) -> str:
        name = _ODD.sub("_", self.name(task))[:60]
        return os.path.join(self.home, "logs", f"{attempt}-{name}")

    def _files(self, rows: tuple[list[int], list[int]], task: int) -> tuple[str, ...]:
        pointers, items = rows
        names = (self._names[item] for item in items[pointers[task] : pointers[task + 1]])
        return tuple(name for name in names if name is not None)

    def _result_sizes(self, task: int, size: int) -> dict[str | int, int]:
        pointers, items = self._out
        made = items[pointers[task] : pointers[task + 1]]
        return {self._names[item] or item: size for item in made}

    def _failed(
        self,
        reason: str,
        seconds: float | None,
        tail: str,
        log: str | None,
        fault: float = OWN_FAULT,
        code: int | None = None,
    ) -> News:
        detail = {
            "reason": reason,
            "exit": code,
            "log": None if log is None else os.path.relpath(log, self.home),
            "tail": tail,
            "seconds": seconds,
        }
        return EventKind.TASK_FAILED, fault, detail


def _finished(seconds: float, sizes: Mapping[Any, int]) -> News:
    return EventKind.TASK_FINISHED, 0.0, {"seconds": seconds, "sizes": dict(sizes)}
