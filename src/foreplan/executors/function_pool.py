"""The base class for executors of Python functions: what there is to write is `submit`.

A pool is the place. `FunctionExecutor` does the rest of a run there: it packs calls with the
results that they take, keeps what comes back in the run's home, and turns it into events.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

from foreplan.durable import open_file
from foreplan.errors import InputError
from foreplan.executors import packing
from foreplan.executors.base import Scheme, Workload
from foreplan.executors.calls import pack_call
from foreplan.executors.listening import Listening
from foreplan.executors.local.executor import LocalJobs
from foreplan.executors.results import error_path, file_of_result, load_result, result_path
from foreplan.executors.workspace import done_line
from foreplan.model import Platform, Processor
from foreplan.model.call import Call, Calls, refs
from foreplan.model.causes import LOST, SYSTEM
from foreplan.model.events import MACHINE_LOST, Event, ProcessorGone, ProcessorJoined, StartTask
from foreplan.model.resources import Host
from foreplan.model.workflow import Workflow
from foreplan.store.making import Making
from foreplan.workers import cores

MOST = 4096  # slots


class FunctionPool(Scheme):
    """A place where functions are called, as many at a time as it has slots.

    A subclass has a `name`, `examples` and `submit`. `here`: the calls run on this machine.
    """

    def __init__(self, slots: int | None = None) -> None:
        self.slots = cores() if slots is None else slots
        if not 1 <= self.slots <= MOST:
            raise InputError(f"a pool has 1 to {MOST} slots, not {self.slots}")

    def submit(self, payload: bytes) -> Future[bytes]:
        """Have `foreplan.executors.calling.call(payload)` done by a worker; return its future.

        A future that ends with an exception means that the worker was lost.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Called when a run has ended: let go of the workers."""

    def find_pool(self, on: Any) -> FunctionPool:
        """Return the pool that is meant by `name` or `name:slots`, or that is given."""
        if not isinstance(on, str):
            return on if isinstance(on, FunctionPool) else self
        slots = on.partition(":")[2]
        if slots and not slots.isdecimal():
            raise InputError(f"{slots!r} is not a number of slots: say {self.examples}")
        return type(self)(int(slots)) if slots else type(self)()

    def check(self, on: Any) -> None:
        """Refuse what is not a number of slots."""
        self.find_pool(on)

    def check_work(self, work: Workload) -> None:
        """Refuse commands, and files that the workers may not see."""
        if len(work.functions) < work.workflow.n_tasks:
            raise InputError(f"`{self.name}` runs functions, not commands: take `local` or `dask`")
        if work.workflow.item_names is not None and not (work.shared or self.here):
            raise InputError(
                f"a flow with files needs a directory that the workers of `{self.name}` see, too: "
                "say shared=True (and dir=, if that is another than this)"
            )

    def limits(self, work: Workload) -> list[str]:
        """Return warnings about what a future cannot do."""
        warnings = list[str]()
        if work.times_functions:
            warnings += [f"`{self.name}` does not keep time-outs: it cannot stop a call"]
        if work.limit:
            warnings += [f"`{self.name}` does not hold functions to what they request"]
        return warnings

    def place(self, on: Any) -> str:
        """The pool in words that `--on` understands, if a package declares it."""
        return on if isinstance(on, str) else f"{self.name}:{self.find_pool(on).slots}"

    def look(self, on: Any) -> tuple[Platform, tuple[str, ...]]:
        """A processor for every slot."""
        pool = self.find_pool(on)
        return pool.platform(), (pool.name,) * pool.slots

    def platform(self) -> Platform:
        """All on one host: a result is at once where all calls can have it."""
        names = [f"{self.name}-{k}" for k in range(1, self.slots + 1)]
        return Platform.build([Processor(name, host=self.name) for name in names])

    def open(
        self,
        on: Any,
        work: Workload,
        home: Path,
        clock: Callable[[], float],
        known: Platform | None = None,
    ) -> FunctionExecutor:
        """The executor of a run."""
        return FunctionExecutor(self.find_pool(on), work, home, clock, known)


class _Attempt(NamedTuple):
    number: int
    task: int
    call: Call
    making: Making | None


class FunctionExecutor(Listening[Future[bytes] | None]):
    """The driver's side of a pool. Futures end in threads of the pool, which keep the results."""

    def __init__(
        self,
        pool: FunctionPool,
        work: Workload,
        home: Path,
        clock: Callable[[], float],
        known: Platform | None = None,
    ) -> None:
        super().__init__(clock)
        if known is not None and pool.slots > known.n_processors:
            raise InputError(
                f"the run knows {known.n_processors} processors: resume it with at most as many "
                f"slots, not {pool.slots}"
            )
        self.platform = pool.platform() if known is None else known
        self._pool, self._known = pool, known is not None
        self._jobs = LocalJobs(work, home, Host(pool.name, {}))
        self._unwanted = set[int]()  # attempts that were cancelled, and may still run
        self._is_closed = False

    def machine(self, processor: int) -> str:
        """The name of the pool: its slots are all alike."""
        return self._pool.name

    def start(self, command: StartTask) -> Future[bytes] | None:
        """Have a worker call the function of a task."""
        number, task, jobs = command.attempt, command.task, self._jobs
        making, end = jobs.begin(number, task)
        if end is None and (making is None or making.recipe is None):  # else the store would know
            end = jobs.take_done_before(number, task)
        call = jobs.call(task)
        if end is None and call is not None:
            attempt = _Attempt(number, task, call, making)
            try:
                payload = self._pack(attempt)
            except InputError as error:  # it says all itself
                end = jobs.failed(number, str(error), cause=SYSTEM)
            except Exception as error:  # pickling calls code of the objects
                what = f"{type(error).__name__}: {error}"
                end = jobs.failed(number, f"it cannot be sent to a worker: {what}", cause=SYSTEM)
            else:
                return self._submit(attempt, payload)
        assert end is not None
        self.post(end)
        return None

    def _pack(self, attempt: _Attempt) -> bytes:
        """A call as bytes, with the results that it takes."""
        jobs, taken = self._jobs, refs(attempt.call)
        results = dict[str, bytes]()
        for task in taken:
            results[str(task)] = Path(file_of_result(jobs.results, task)).read_bytes()
        call, met = pack_call(attempt.call)
        arguments = (attempt.call.args, dict(attempt.call.kwargs))
        asked = {
            "call": call,
            "program": (jobs.program.of(met, arguments).digests, jobs.may_differ),
            "is_kept": attempt.making is not None,
            "results": results,
            "names": {str(task): jobs.name_of_result(task) for task in taken},
            "folder": jobs.data,
        }
        return pickle.dumps(asked)

    def _submit(self, attempt: _Attempt, payload: bytes) -> Future[bytes] | None:
        try:
            future = self._pool.submit(payload)
        except Exception as error:  # whatever the pool does
            self.post(self._lost(attempt, error))
            return None
        future.add_done_callback(lambda ended: self._on_done(attempt, ended))
        return future

    def _on_done(self, attempt: _Attempt, future: Future[bytes]) -> None:
        """Post how an attempt has ended; called by a thread of the pool."""
        if self._is_closed or attempt.number in self._unwanted:
            return
        try:
            event = self._end_of(attempt, future)
        except Exception as error:  # a run that hangs would hide it
            reason = f"its result cannot be kept: {type(error).__name__}: {error}"
            event = self._jobs.failed(attempt.number, reason, cause=SYSTEM)
        self.post(event)

    def _end_of(self, attempt: _Attempt, future: Future[bytes]) -> Event:
        if future.cancelled():
            return self._lost(attempt, "the pool has cancelled the call")
        if (lost := future.exception()) is not None:
            return self._lost(attempt, lost)
        reply: dict[str, Any] = pickle.loads(future.result())
        number, task, jobs = attempt.number, attempt.task, self._jobs
        if "error" not in reply:
            warning = self._keep(attempt, reply)
            sizes = jobs.result_sizes(task, reply["size"])
            return jobs.finished(number, reply["seconds"], sizes, warning, reply["used"])
        if "raised" in reply:
            with contextlib.suppress(OSError):  # the reason is reported in words anyway
                packing.write_frames(error_path(jobs.results, task), packing.split(reply["raised"]))
        cause = reply["cause"]
        return jobs.failed(
            number, reply["error"], reply["seconds"], reply["traceback"],
            cause=cause, used=reply["used"],
        )  # fmt: skip

    def _lost(self, attempt: _Attempt, why: BaseException | str) -> Event:
        what = why if isinstance(why, str) else f"{type(why).__name__}: {why}"
        reason = f"its worker was lost: {what}"
        return self._jobs.failed(attempt.number, reason, fault=MACHINE_LOST, cause=LOST)

    def _keep(self, attempt: _Attempt, reply: dict[str, Any]) -> str:
        """Put a result in its place; return what is to be said about it."""
        number, task, jobs = attempt.number, attempt.task, self._jobs
        source, path = os.path.join(jobs.home, "attempts", f"{number}.pkl"), self._path(task)
        same = [*map(self._path, refs(attempt.call)), *jobs.former_files(attempt.making)]
        packing.write_frames(source, packing.split(reply["result"]), same)
        content, warning = jobs.add_result(
            task, attempt.making, reply["content"], source, reply["other"], reply["seconds"]
        )
        os.replace(source, path)
        if jobs.store is not None:
            jobs.store.note(task, {}, content)
        status = reply["size"], os.stat(path).st_mtime_ns
        with contextlib.suppress(OSError):  # without the note the attempt is only repeated
            notes = open_file(jobs.done, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            with open(notes, "ab", buffering=0) as file:
                file.write(done_line(jobs.name(task), number, reply["seconds"], {path: status}))
        return warning

    def _path(self, task: int) -> str:
        return result_path(self._jobs.results, task)

    def cancel(self, attempt: int, grace: float) -> None:
        """Forget a call; one that runs cannot be stopped, and keeps its worker until it ends."""
        self._unwanted.add(attempt)
        future = self.open[attempt]
        if future is not None:
            future.cancel()

    def add(self, count: int) -> None:
        """Slots cannot be added."""
        raise InputError(f"`{self._pool.name}` has the slots that it began with")

    def extend(self, workflow: Workflow, calls: Calls | None) -> None:
        """Know the tasks that were added."""
        self._jobs.take_tasks(workflow, calls)

    def recover(self, running: Sequence[StartTask], held: Sequence[tuple[int, int]]) -> list[Event]:
        """Return the events since the journal ended."""
        jobs, n = self._jobs, self.platform.n_processors if self._known else 0
        ends = jobs.find_ends(running, {})
        jobs.clear()
        lost = [jobs.lost(item, host) for item, host in held if not jobs.is_there(item)]
        joined = [ProcessorJoined(p, 0.0) for p in range(min(n, self._pool.slots))]
        gone = [ProcessorGone(p, 0.0) for p in range(self._pool.slots, n)]
        # before the ends: what follows from those must not start there
        return self.stamped([*joined, *gone, *ends, *lost])

    def result(self, task: int) -> Any:
        """The result of a function that has finished."""
        return load_result(self._jobs.results, task, self._jobs.name(task))

    def close(self) -> None:
        """Forget what still runs, and let go of the workers."""
        if self._is_closed:
            return
        self._is_closed = True
        for future in self.open.values():
            if future is not None:
                future.cancel()
        self._pool.close()
        self.open.clear()
        self.moving.clear()
