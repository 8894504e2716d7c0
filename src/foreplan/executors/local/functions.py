"""Calls of Python functions, made in worker processes that are kept from one call to the next."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from foreplan.errors import InputError
from foreplan.executors.calls import pack_call
from foreplan.executors.command import killed_by
from foreplan.executors.gpus import VISIBLE
from foreplan.executors.limits import Fence, Limit, allocated, make_fence
from foreplan.executors.local.agreement import Agreed, Agreement
from foreplan.executors.local.function_worker import receive, send
from foreplan.executors.local.worker_processes import POOL, Settings, WorkerProcess
from foreplan.executors.open_files import is_shortage
from foreplan.executors.processes import GRACE, Stop, wait_readable
from foreplan.executors.shared_arguments import SharedArguments
from foreplan.executors.usage import AT_MOST, MEMORY, Used, oom_kills
from foreplan.executors.workspace import LOG_ENDS, keep_logs, open_log, tail_of
from foreplan.model.call import Call
from foreplan.model.causes import LOST, OUT_OF_MEMORY, SYSTEM, TIME_OUT, USED
from foreplan.quantities import duration
from foreplan.store.bindings import Bindings, ProgramBindings


@dataclass(frozen=True)
class FunctionJob:
    """All that an attempt at a call needs to know. Paths are absolute."""

    attempt: int
    call: Call
    results: Mapping[int, str]  # the files of the results that it refers to, by task
    names: Mapping[int, str]  # of these tasks
    result: str  # the file that its own is written to
    log: str  # what it prints is kept as this path + ".out" and ".err"
    live_log: str  # where it is written; if nothing is, left there and not kept
    environment: Mapping[str, str | None]  # None: not to be set
    former: tuple[str, ...] = ()  # files of which its own may become a link
    error: str = ""  # the file that an error is written to
    timeout: float | None = None
    fixed: Mapping[str, str | None] = field(default_factory=dict)  # from the process's start on
    limit: Limit | None = None  # what it is held to
    is_kept: bool = False  # the store wants to know what the result is
    program: ProgramBindings | None = None  # that the worker must have; None: it is not compared
    may_differ: bool = False  # the function is called also where the program differs


@dataclass(frozen=True)
class FunctionOutcome:
    """How a call ended; it has succeeded if there is no problem."""

    seconds: float = 0.0
    size: int = 0  # of the pickled result
    content: str | None = None  # what the result is, if more than its pickle tells
    other: str = ""  # what of its program differed there
    changed: tuple[str, ...] = ()  # what of its program tasks before it have changed there
    problem: str | None = None
    own_fault: bool = True
    tail: str = ""
    log: str | None = None
    cause: str = ""  # of the problem, see foreplan.model.causes
    used: Mapping[str, Any] = field(default_factory=dict)  # see foreplan.executors.usage
    shortage: OSError | None = None  # of descriptors or processes, which is the problem


class FunctionWorker:
    """A worker process, taken or started when it is first needed and again after it was killed.

    Also if a call needs another number of threads, or other GPUs: libraries that it has loaded
    look at that only once. After `tasks_per_worker` calls, if that is given, it is ended.
    """

    def __init__(
        self, settings: Settings, home: str, shared: SharedArguments, tasks_per_worker: int | None
    ) -> None:
        self._settings, self._home, self._most = settings, home, tasks_per_worker
        self._shared = shared
        self._worker: WorkerProcess | None = None
        self.may_leave_processes = False  # that have left their group
        self._fixed: Mapping[str, str | None] = {}
        self._fence: Fence | None = None
        self._agreed = Agreed()

    def run(self, job: FunctionJob, stop: Stop) -> FunctionOutcome:
        """Make a call; whatever happens is told by the outcome."""
        try:
            payload, met = pack_call(job.call, find_place=partial(self._shared.find, call=job.call))
            bindings = Bindings("", {})
            if job.program is not None:
                bindings = job.program.of(met, (job.call.args, dict(job.call.kwargs)))
        except InputError as error:  # it says all itself
            return FunctionOutcome(problem=str(error), cause=SYSTEM)
        except Exception as error:  # pickling calls code of the objects, which may raise anything
            what = f"{type(error).__name__}: {error}"
            problem = f"it cannot be sent to a worker process: {what}"
            return FunctionOutcome(problem=problem, cause=SYSTEM)
        agreement = Agreement(bindings, job.may_differ)
        before = oom_kills()
        try:
            reply, timed_out = self._call(job, payload, agreement, stop)
        except OSError as error:
            self.end()
            if is_shortage(error):
                POOL.end_idle()
            problem = f"its worker process cannot be used: {error.strerror or error}"
            short = error if is_shortage(error) else None
            return FunctionOutcome(problem=problem, own_fault=False, cause=LOST, shortage=short)
        used = _used(reply, stop)
        if reply is None and self._fence is not None:  # else the group would tell of former calls
            used = self._fence.measure(used)
        code, refused = None, self._refused(reply, used)
        if reply is None or refused or stop.asked:  # asked a moment later, it was not spared
            code = self.end(GRACE if timed_out else 0.0)
        elif self._worker is not None and self._worker.tasks == self._most:
            self.end()
        keep_logs(job.live_log, job.log)
        killed = code == -signal.SIGKILL and not timed_out and oom_kills() > before
        outcome = _outcome(job, reply, timed_out, code, killed)
        outcome = replace(outcome, used=used, changed=tuple(agreement.changed))
        if not refused or timed_out or stop.asked:
            return outcome
        return replace(outcome, problem=refused, own_fault=True, cause=OUT_OF_MEMORY)

    def _hold(self, pid: int, limit: Limit | None) -> None:
        """Hold the process to what a call asks for; to nothing, if it was held before."""
        if limit is None and self._fence is None:
            return
        if self._fence is None:
            self._fence = make_fence(Limit())
            if self._fence.group is not None:
                self._fence.group.take(pid)
        self._fence.change(limit or Limit())
        self._fence.pin_process(pid)

    def _refused(self, reply: dict[str, Any] | None, used: Used) -> str:
        """What was asked for and used, if it was more than it is held to."""
        fence = self._fence
        if fence is None:
            return ""
        full = fence.has_killed if reply is None else reply.get("cause") == OUT_OF_MEMORY
        return fence.explain(used) if full else ""

    def _call(
        self, job: FunctionJob, payload: bytes, agreement: Agreement, stop: Stop
    ) -> tuple[dict[str, Any] | None, bool]:
        """Have a process make a call: the reply, if there is one, and whether the time was up.

        One of a former run may turn out to be another than a new one would be, before the call.
        """
        while True:
            worker = self._worker = self._reap(job) or self._take(job) or self._start(job)
            self._fixed = job.fixed
            worker.tasks += 1
            self._hold(worker.process.pid, job.limit)
            with stop.aim_at(worker.process.pid):
                reply, timed_out = self._ask(job, payload, agreement, worker)
            if reply is None or "unfit" not in reply:
                return reply, timed_out
            self.end()

    def _reap(self, job: FunctionJob) -> WorkerProcess | None:
        """The process, if there is one that will do; one that has died meanwhile is put away."""
        worker = self._worker
        if worker is not None and (
            worker.has_exited or job.fixed != self._fixed or self._is_full(job.limit)
        ):
            self.end()
        return self._worker

    def _take(self, job: FunctionJob) -> WorkerProcess | None:
        """A process that rests, if it would be started like this."""
        if job.limit is not None:  # memory of former calls would count
            return None
        self._agreed = Agreed()
        worker = POOL.take(self._settings_for(job), self._most)
        if worker is not None:
            worker.greet(self._home)
        return worker

    def _settings_for(self, job: FunctionJob) -> Settings:
        variables = dict(self._settings.environment)
        for name, value in job.fixed.items():
            variables[name.encode()] = os.fsencode(value or "")
        return replace(self._settings, environment=variables)

    def _is_full(self, limit: Limit | None) -> bool:
        """Whether former calls have left it too little of the memory that one is held to."""
        if limit is None or limit.memory is None or self._worker is None:
            return False
        return allocated(self._worker.process.pid) > limit.memory / 2

    def _start(self, job: FunctionJob) -> WorkerProcess:
        self._agreed = Agreed()
        with contextlib.ExitStack() as logs:
            out, err = (
                logs.enter_context(open(open_log(job.live_log + e), "ab")) for e in LOG_ENDS
            )
            worker = POOL.start(self._settings_for(job), out.fileno(), err.fileno())
        worker.greet(self._home)
        return worker

    def _ask(
        self, job: FunctionJob, payload: bytes, agreement: Agreement, worker: WorkerProcess
    ) -> tuple[dict[str, Any] | None, bool]:
        """The reply, if there is one, and whether the time was up."""
        request = {
            "attempt": job.attempt,
            "log": job.live_log,
            "result": job.result,
            "former": job.former,
            "error": job.error,
            "results": {str(task): path for task, path in job.results.items()},
            "names": {str(task): name for task, name in job.names.items()},
            "environment": dict(job.environment),
            "data_limit": None if self._fence is None else self._fence.data_limit,
            "is_kept": job.is_kept,
            "program": self._agreed.request(agreement.bindings),
        }
        with contextlib.suppress(ConnectionError):
            send(worker.channel, request, payload)
        channel = worker.channel.fileno()
        # a process that it has forked may hold its socket open after it has died
        watched = [channel] if worker.exit is None else [channel, worker.exit]
        until = None if job.timeout is None else time.monotonic() + job.timeout
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            ready = wait_readable(watched, left)
            reply = receive(worker.channel) if channel in ready else None
            if reply is not None and "differs" in reply:
                with contextlib.suppress(ConnectionError):
                    agreement.answer(reply, worker.channel)
            # an answer of another attempt is of a process that a former function has left behind
            elif reply is None or reply.get("attempt") == job.attempt:
                return reply, not ready

    def rest(self) -> None:
        """Let the process rest until another run takes it, if nothing of this run is left in it."""
        worker = self._worker
        # a group or GPUs are not to be held while it rests
        may_rest = self._fence is None and not self._fixed.get(VISIBLE) and self._most != 1
        if worker is None or not may_rest:
            self.end()
            return
        rests, is_quiet = worker.rest()
        if not rests:
            self.end()
            return
        self.may_leave_processes |= not is_quiet
        self._worker = None
        POOL.give(worker)

    def end(self, grace: float = 0.0) -> int | None:
        """End the process and all of its group; its return code, if there was one."""
        worker, self._worker = self._worker, None
        if worker is None:
            return None
        self.may_leave_processes = True
        code = POOL.end(worker, grace)
        if self._fence is not None:
            self._fence.remove()
            self._fence = None
        return code


def _used(reply: dict[str, Any] | None, stop: Stop) -> dict[str, Any]:
    """What the worker says, or what was seen of it; of processes that it has begun, too."""
    used = {} if reply is None else dict(reply.get(USED) or {})
    if stop.memory > used.get(MEMORY, 0):
        used[MEMORY] = stop.memory
        used.pop(AT_MOST, None)
    return used


def _outcome(
    job: FunctionJob, reply: dict[str, Any] | None, timed_out: bool, code: int | None, oom: bool
) -> FunctionOutcome:
    if reply is not None and "error" not in reply:
        return FunctionOutcome(reply["seconds"], reply["size"], reply["content"], reply["other"])
    tail, log = tail_of(job.log)
    if reply is not None:
        problem, tail, cause = reply["error"], reply["traceback"], reply["cause"]
        return FunctionOutcome(reply["seconds"], problem=problem, tail=tail, log=log, cause=cause)
    if timed_out:
        problem = f"it took longer than its time-out of {duration(job.timeout or 0.0)}"
        return FunctionOutcome(
            job.timeout or 0.0, problem=problem, tail=tail, log=log, cause=TIME_OUT
        )
    if oom:  # its own doing: another worker would be killed as well
        problem = "its worker process was killed: out of memory"
        return FunctionOutcome(problem=problem, tail=tail, log=log, cause=OUT_OF_MEMORY)
    how = killed_by(-code) if code is not None and code < 0 else f"it exited with code {code}"
    problem = f"its worker process died: {how}"
    return FunctionOutcome(problem=problem, own_fault=False, tail=tail, log=log, cause=LOST)
