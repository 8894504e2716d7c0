"""Calls of Python functions, made in worker processes that are kept from one call to the next."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.executors import function_worker
from weft.executors.command import killed_by
from weft.executors.function_worker import receive, send
from weft.executors.logs import keep_logs, opened_logs, tail_of
from weft.executors.processes import GRACE, Stop, end_group, exit_descriptor, wait_readable
from weft.model.call import Call, Ref, refs
from weft.quantities import duration


@dataclass(frozen=True)
class FunctionJob:
    """All that an attempt at a call needs to know. Paths are absolute."""

    call: Call
    results: Mapping[int, str]  # the files of the results that it refers to, by task
    result: str  # the file that its own is written to
    log: str  # what it prints is kept as this path + ".out" and ".err"
    live_log: str  # where it is written; if nothing is, left there and not kept
    environment: Mapping[str, str]
    error: str = ""  # the file that an error is written to
    timeout: float | None = None


@dataclass(frozen=True)
class FunctionOutcome:
    """How a call ended; it has succeeded if there is no problem."""

    seconds: float = 0.0
    size: int = 0  # of the pickled result
    problem: str | None = None
    own_fault: bool = True
    tail: str = ""
    log: str | None = None


class FunctionWorker:
    """A worker process, started when it is first needed and again after it was killed."""

    def __init__(self, data: str, environment: Mapping[bytes, bytes]) -> None:
        self._data, self._environment = data, environment
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._exit: int | None = None

    def run(self, job: FunctionJob, stop: Stop) -> FunctionOutcome:
        """Make a call; whatever happens is told by the outcome."""
        try:
            payload = pickled(job.call)
        except Exception as error:  # pickling calls code of the objects, which may raise anything
            what = f"{type(error).__name__}: {error}"
            return FunctionOutcome(problem=f"it cannot be sent to a worker process: {what}")
        try:
            process = self._alive() or self._start(job.live_log)
            with stop.over(process.pid):
                reply, timed_out = self._ask(job, payload)
        except OSError as error:
            self.end()
            problem = f"its worker process cannot be used: {error.strerror or error}"
            return FunctionOutcome(problem=problem, own_fault=False)
        code = None
        if reply is None or stop.asked:  # asked a moment later, it has not spared the process
            code = self.end(GRACE if timed_out else 0.0)
        keep_logs(job.live_log, job.log)
        return _outcome(job, reply, timed_out, code)

    def _alive(self) -> subprocess.Popen[bytes] | None:
        """The process, if there is one that has not died since the last call."""
        if self._exit is not None and wait_readable((self._exit,), 0.0):
            self.end()
        return self._process

    def _start(self, log: str) -> subprocess.Popen[bytes]:
        mine, its = socket.socketpair()
        with its, opened_logs(log) as (out, err):
            self._channel = mine
            self._process = subprocess.Popen(
                [sys.executable, "-P", function_worker.__file__],
                stdin=its.fileno(),
                stdout=out,
                stderr=err,
                cwd=self._data,
                env=self._environment,
                start_new_session=True,
            )
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
            "log": job.live_log,
            "result": job.result,
            "error": job.error,
            "results": {str(task): path for task, path in job.results.items()},
            "environment": dict(job.environment),
        }
        with contextlib.suppress(ConnectionError):
            send(self._channel, request, payload)
        channel = self._channel.fileno()
        # a process that it has forked may hold its socket open after it has died
        watched = [channel] if self._exit is None else [channel, self._exit]
        ready = wait_readable(watched, job.timeout)
        return (receive(self._channel) if channel in ready else None), not ready

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
        return process.wait()


def _outcome(
    job: FunctionJob, reply: dict[str, Any] | None, timed_out: bool, code: int | None
) -> FunctionOutcome:
    if reply is not None and "error" not in reply:
        return FunctionOutcome(reply["seconds"], reply["size"])
    tail, log = tail_of(job.log)
    if reply is not None:
        return FunctionOutcome(
            reply["seconds"], problem=reply["error"], tail=reply["traceback"], log=log
        )
    if timed_out:
        problem = f"it took longer than its time-out of {duration(job.timeout or 0.0)}"
        return FunctionOutcome(job.timeout or 0.0, problem=problem, tail=tail, log=log)
    how = killed_by(-code) if code is not None and code < 0 else f"it exited with code {code}"
    problem = f"its worker process died: {how}"
    return FunctionOutcome(problem=problem, own_fault=False, tail=tail, log=log)


def pickled(call: Call) -> bytes:
    """A call as bytes, with places kept for the results that it refers to."""
    import cloudpickle

    known = set(refs(call))

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def persistent_id(self, value: Any) -> int | None:
            return value.task if type(value) is Ref and value.task in known else None

    buffer = io.BytesIO()
    Pickler(buffer, protocol=5).dump((call.function, call.args, dict(call.kwargs)))
    return buffer.getvalue()
