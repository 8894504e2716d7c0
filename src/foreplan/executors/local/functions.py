"""Calls of Python functions, made in worker processes that are kept from one call to the next."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from foreplan.executors.command import killed_by
from foreplan.executors.limits import Fence, Limit, allocated, make_fence
from foreplan.executors.local import function_worker
from foreplan.executors.local.function_worker import receive, send
from foreplan.executors.open_files import is_shortage, restore_limit
from foreplan.executors.packing import pickler
from foreplan.executors.processes import GRACE, Stop, end_group, exit_descriptor, wait_readable
from foreplan.executors.usage import AT_MOST, MEMORY, Used, oom_kills
from foreplan.executors.workspace import LOG_ENDS, keep_logs, open_log, tail_of
from foreplan.model.call import Call, FileRef, Ref, files_of, refs
from foreplan.model.causes import EXIT, LOST, OUT_OF_MEMORY, SYSTEM, TIME_OUT, USED
from foreplan.quantities import duration


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
    # what it counts on of its program there; None: the store does not want to know of it
    imports: Mapping[str, str] | None = None


@dataclass(frozen=True)
class FunctionOutcome:
    """How a call ended; it has succeeded if there is no problem."""

    seconds: float = 0.0
    size: int = 0  # of the pickled result
    content: str | None = None  # what the result is, if more than its pickle tells
    other: str = ""  # what of its program was another there
    problem: str | None = None
    own_fault: bool = True
    tail: str = ""
    log: str | None = None
    cause: str = ""  # of the problem, see foreplan.model.causes
    used: Mapping[str, Any] = field(default_factory=dict)  # see foreplan.executors.usage
    shortage: OSError | None = None  # of descriptors or processes, which is the problem


class FunctionWorker:
    """A worker process, started when it is first needed and again after it was killed.

    Also if a call needs another number of threads, or other GPUs: libraries that it has loaded
    look at that only once.
    """

    def __init__(self, data: str, environment: Mapping[bytes, bytes]) -> None:
        self._data, self._environment = data, environment
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._exit: int | None = None
        self._fixed: Mapping[str, str | None] = {}
        self._fence: Fence | None = None

    def run(self, job: FunctionJob, stop: Stop) -> FunctionOutcome:
        """Make a call; whatever happens is told by the outcome."""
        try:
            payload = pickled(job.call)
        except Exception as error:  # pickling calls code of the objects, which may raise anything
            what = f"{type(error).__name__}: {error}"
            problem = f"it cannot be sent to a worker process: {what}"
            return FunctionOutcome(problem=problem, cause=SYSTEM)
        before = oom_kills()
        try:
            process = self._reap(job) or self._start(job)
            self._hold(process.pid, job.limit)
            with stop.aim_at(process.pid):
                reply, timed_out = self._ask(job, payload)
        except OSError as error:
            self.end()
            problem = f"its worker process cannot be used: {error.strerror or error}"
            short = error if is_shortage(error) else None
            return FunctionOutcome(problem=problem, own_fault=False, cause=LOST, shortage=short)
        used = _used(reply, stop)
        if reply is None and self._fence is not None:  # else the group would tell of former calls
            used = self._fence.measure(used)
        code, refused = None, self._refused(reply, used)
        if reply is None or refused or stop.asked:  # asked a moment later, it was not spared
            code = self.end(GRACE if timed_out else 0.0)
        keep_logs(job.live_log, job.log)
        killed = code == -signal.SIGKILL and not timed_out and oom_kills() > before
        outcome = replace(_outcome(job, reply, timed_out, code, killed), used=used)
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
        full = fence.has_killed if reply is None else bool(reply.get("out_of_memory"))
        return fence.explain(used) if full else ""

    def _reap(self, job: FunctionJob) -> subprocess.Popen[bytes] | None:
        """The process, if there is one that will do; one that has died meanwhile is put away."""
        died = self._exit is not None and wait_readable((self._exit,), 0.0)
        if died or job.fixed != self._fixed or self._is_full(job.limit):
            self.end()
        return self._process

    def _is_full(self, limit: Limit | None) -> bool:
        """Whether former calls have left it too little of the memory that one is held to."""
        if limit is None or limit.memory is None or self._process is None:
            return False
        return allocated(self._process.pid) > limit.memory / 2

    def _start(self, job: FunctionJob) -> subprocess.Popen[bytes]:
        mine, its = socket.socketpair()
        self._fixed = job.fixed
        variables = dict(self._environment)
        for name, value in job.fixed.items():
            variables[name.encode()] = os.fsencode(value or "")
        with its, contextlib.ExitStack() as logs:
            out, err = (
                logs.enter_context(open(open_log(job.live_log + e), "ab")) for e in LOG_ENDS
            )
            self._channel = mine
            self._process = subprocess.Popen(
                [sys.executable, "-P", function_worker.__file__],
                stdin=its.fileno(),
                stdout=out,
                stderr=err,
                cwd=self._data,
                env=variables,
                start_new_session=True,
            )
        restore_limit(self._process.pid)
        self._exit = exit_descriptor(self._process.pid)
        path = [entry or os.getcwd() for entry in sys.path]
        hello = {"parent": os.getpid(), "path": path, "dir": self._data}
        with contextlib.suppress(ConnectionError):  # its end is seen when it does not answer
            send(mine, hello)
        return self._process

    def _ask(self, job: FunctionJob, payload: bytes) -> tuple[dict[str, Any] | None, bool]:
        """The reply, if there is one, and whether the time was up."""
        assert self._channel is not None
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
            "imports": None if job.imports is None else dict(job.imports),
        }
        with contextlib.suppress(ConnectionError):
            send(self._channel, request, payload)
        channel = self._channel.fileno()
        # a process that it has forked may hold its socket open after it has died
        watched = [channel] if self._exit is None else [channel, self._exit]
        until = None if job.timeout is None else time.monotonic() + job.timeout
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            ready = wait_readable(watched, left)
            reply = receive(self._channel) if channel in ready else None
            # an answer of another attempt is of a process that a former function has left behind
            if reply is None or reply.get("attempt") == job.attempt:
                return reply, not ready

    def end(self, grace: float = 0.0) -> int | None:
        """End the process and all of its group; its return code, if there was one."""
        process, self._process = self._process, None
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._exit is not None:
            os.close(self._exit)
            self._exit = None
        if process is None:
            return None
        end_group(process, grace)
        code = process.wait()
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
        cause = OUT_OF_MEMORY if reply["out_of_memory"] else EXIT
        return FunctionOutcome(
            reply["seconds"], problem=reply["error"], tail=reply["traceback"], log=log, cause=cause
        )
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


def pickled(call: Call) -> bytes:
    """A call as bytes, with places kept for the results and files that it refers to."""
    known, files = set(refs(call)), set(files_of(call))

    class Pickler(pickler()):  # type: ignore[misc]
        def persistent_id(self, value: Any) -> tuple[int, tuple[Any, ...]] | str | None:
            if type(value) is Ref and value.task in known:
                return value.task, value.path
            return value.name if type(value) is FileRef and value.name in files else None

    buffer = io.BytesIO()
    Pickler(buffer, protocol=5).dump((call.function, call.args, dict(call.kwargs)))
    return buffer.getvalue()
