"""Worker processes for Python functions, kept from one run of this process to the next.

A worker that a run has finished with rests in the pool, and the next run takes it if it would
start one just like it. One that rests for too long is ended. All are started by one thread, the
keeper: the system kills a worker when the thread that started it ends.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from foreplan.executors.local import function_worker
from foreplan.executors.local.function_worker import receive, send
from foreplan.executors.open_files import restore_limit
from foreplan.executors.processes import OF_RUN, end_group, exit_descriptor, wait_readable

try:
    import resource
except ImportError:  # not on every system
    resource = None  # type: ignore[assignment]

_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
IDLE = 60.0  # seconds that a worker rests at most
_PATIENCE = 1.0  # seconds for a worker to say that it rests
_LARGE = 1 << 29  # bytes; a worker that has more for itself is not kept
_LONGEST_HOME = 4096  # bytes of the path of a run's home
Environment = Mapping[bytes, bytes]


@dataclass(frozen=True)
class Settings:
    """All that a worker has from its start on; another run may use it only if it wants the same."""

    data: str  # the data directory, in which it runs
    environment: Environment
    path: tuple[str, ...]  # sys.path of this process
    inherited: tuple[Any, ...]

    @staticmethod
    def now(data: str, environment: Environment) -> Settings:
        """Return what a worker that is started now would have."""
        # room for the home of any run, see function_worker
        marked = {**environment, OF_RUN.encode(): b"/" * _LONGEST_HOME}
        try:
            here = os.getcwd()
        except OSError:  # it is gone, so nothing is found there
            here = ""
        path = tuple(place for entry in sys.path if (place := entry or here))
        return Settings(data, marked, path, _inherited())


def _inherited() -> tuple[Any, ...]:
    """Return the processors, priority, limits and umask that a new process inherits."""
    cpus = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    limits = [resource.getrlimit(limit) for limit in _LIMITS]
    return cpus, os.getpriority(os.PRIO_PROCESS, 0), _umask(), limits


def _umask() -> str:
    """The umask of this process; empty where it cannot be read without being changed."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        return next((line for line in file if line.startswith("Umask:")), "")
    return ""


@dataclass(eq=False)
class WorkerProcess:
    """A worker process, and the socket by which it is asked."""

    settings: Settings
    process: subprocess.Popen[bytes]
    channel: socket.socket
    exit: int | None  # can be read once it has exited; None: the system has no such thing
    tasks: int = 0  # that it was asked to run
    rests_since: float = field(default=0.0)

    @property
    def has_exited(self) -> bool:
        """Return whether it has ended by itself, or was killed."""
        return self.exit is not None and bool(wait_readable((self.exit,), 0.0))

    def greet(self, home: str) -> None:
        """Let it serve a run."""
        hello = {"parent": os.getpid(), "path": self.settings.path, "dir": self.settings.data}
        with contextlib.suppress(ConnectionError):  # its end is seen when it does not answer
            send(self.channel, {**hello, "home": home})

    def rest(self) -> tuple[bool, bool]:
        """Ask it to rest; False if it should be ended, for what tasks have left in it.

        The second is True if none of its tasks of this run has started a process.
        """
        with contextlib.suppress(OSError, ValueError):
            send(self.channel, {"rest": True})
            if wait_readable((self.channel.fileno(),), _PATIENCE):
                reply = receive(self.channel) or {}
                is_small = _own_memory(self.process.pid) < _LARGE
                return reply.get("rests") is True and is_small, reply.get("quiet") is True
        return False, False

    def close(self) -> None:
        """Close its descriptors."""
        self.channel.close()
        if self.exit is not None:
            os.close(self.exit)
            self.exit = None

    def end(self, grace: float = 0.0) -> int:
        """End it and all of its group; return its exit code."""
        self.close()
        end_group(self.process, grace)
        return self.process.wait()


def _own_memory(pid: int) -> int:
    """The bytes in memory that a process shares with no file and no other; 0: not known."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            _, resident, shared = map(int, file.read().split()[:3])
    except (OSError, ValueError):
        return 0
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


class WorkerPool:
    """The worker processes of this process: those that runs use, and those that rest."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._living = set[WorkerProcess]()
        self._idle = list[WorkerProcess]()  # the last one came last
        self._orders: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._keeper: threading.Thread | None = None

    def take(self, settings: Settings, tasks: int | None = None) -> WorkerProcess | None:
        """Return a worker that rests and has these settings; None if there is none.

        Only a worker that has run fewer than `tasks` tasks counts. If there is none, another one is
        ended: a new one is about to take its place.
        """
        while True:
            with self._lock:
                fits = [
                    worker
                    for worker in self._idle
                    if worker.settings == settings and (tasks is None or worker.tasks < tasks)
                ]
                if not self._idle:
                    return None
                worker = fits[-1] if fits else self._idle[0]
                self._idle.remove(worker)
            if fits and not worker.has_exited:
                return worker
            self.end(worker)
            if not fits:
                return None

    def give(self, worker: WorkerProcess) -> None:
        """Let a worker rest until another run takes it."""
        worker.rests_since = time.monotonic()
        with self._lock:
            self._idle.append(worker)
            self._orders.put(None)  # the keeper must know when to look

    def start(self, settings: Settings, out: int, err: int) -> WorkerProcess:
        """Start a worker that prints to these descriptors."""
        answers: queue.SimpleQueue[WorkerProcess | BaseException] = queue.SimpleQueue()

        def work() -> None:
            try:
                worker = _start(settings, out, err)
                with self._lock:
                    self._living.add(worker)
                answers.put(worker)
            except BaseException as error:  # the keeper must live on
                answers.put(error)

        with self._lock:
            if self._keeper is None:
                self._start_keeper()
            self._orders.put(work)
        answer = answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _start_keeper(self) -> None:
        keeper = threading.Thread(target=self._keep, name="foreplan-workers", daemon=True)
        try:
            keeper.start()
        except RuntimeError as error:  # so Python says that the system has no more
            raise OSError(errno.EAGAIN, str(error)) from None
        self._keeper = keeper

    def end(self, worker: WorkerProcess, grace: float = 0.0) -> int:
        """End a worker that does not rest; return its exit code."""
        code = worker.end(grace)
        with self._lock:
            self._living.discard(worker)
            if not self._living:
                self._orders.put(None)  # the keeper may end
        return code

    def end_idle(self, since: float = float("inf")) -> None:
        """End all workers that rest, or those that have done so since before a moment."""
        with self._lock:
            ended = [worker for worker in self._idle if worker.rests_since <= since]
            self._idle = [worker for worker in self._idle if worker.rests_since > since]
        for worker in ended:
            self.end(worker)

    def _keep(self) -> None:
        """Start workers, and end those that rest for too long, until there are none."""
        while True:
            with contextlib.suppress(queue.Empty):
                order = self._orders.get(timeout=self._pause())
                if order is not None:
                    order()
                    continue
            with contextlib.suppress(Exception):  # whoever waits for a worker would wait for ever
                self.end_idle(time.monotonic() - IDLE)
            with self._lock:
                if not self._living and self._orders.empty():
                    self._keeper = None
                    return

    def _pause(self) -> float | None:
        """Seconds until the first worker has rested for too long; None: none rests."""
        with self._lock:
            first = min((worker.rests_since for worker in self._idle), default=None)
        return None if first is None else max(0.0, first + IDLE - time.monotonic())

    def leave_to_parent(self) -> None:
        """Forget all workers, in a process that was forked: they are its parent's."""
        for worker in self._living:
            with contextlib.suppress(OSError):
                worker.close()
            worker.process.returncode = 0  # it is not to be waited for
        self._reset()


def _start(settings: Settings, out: int, err: int) -> WorkerProcess:
    """Start a worker as the thread that asks for it would; called by the keeper."""
    cpus, priority, *_ = settings.inherited
    mine, its = socket.socketpair()
    with its:
        try:
            if cpus is not None and cpus != os.sched_getaffinity(0):
                os.sched_setaffinity(0, cpus)
            if priority > os.getpriority(os.PRIO_PROCESS, 0):
                os.setpriority(os.PRIO_PROCESS, 0, priority)
            process = subprocess.Popen(
                [sys.executable, "-P", function_worker.__file__],
                stdin=its.fileno(),
                stdout=out,
                stderr=err,
                cwd=settings.data,
                env=settings.environment,
                start_new_session=True,
            )
        except BaseException:
            mine.close()
            raise
    restore_limit(process.pid)
    return WorkerProcess(settings, process, mine, exit_descriptor(process.pid))


POOL = WorkerPool()
atexit.register(POOL.end_idle)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.leave_to_parent)
