"""What runs on Dask's side: the tasks, who reports on them, and what the scheduler is asked for.

weft must therefore be installed on the workers and on the scheduler. Little is imported here: while
the scheduler or a worker imports, the whole run waits.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle
from distributed import get_worker
from distributed.diagnostics.plugin import SchedulerPlugin, WorkerPlugin

from weft.executors.dask_pulse import Pulse

if TYPE_CHECKING:
    from weft.executors.command import CommandJob, CommandOutcome
    from weft.executors.processes import Stop

BIG = 1_000_000  # bytes; what is smaller travels with the task that reads it
_LARGEST_ERROR = 65536  # bytes
SMALL = 1024  # bytes; a product up to this size travels with the report
PAUSE = 0.005  # seconds; the first report goes at once, those soon after it together
TAIL_LINES = 20
SILENT = 3.0  # seconds without a sign of life after which a worker is taken to stand still
_PER_WORKER = 0.02  # more: where there are many, each is heard of less often
RETIRING = "closing_gracefully"  # Dask's word for a worker that takes no more, and is to go


class Reporter(WorkerPlugin):
    """Tells the client what has become of a run's tasks on a worker, many in one message.

    A task is reported once its result is in the worker's memory and the scheduler has been told.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.prefix = name + "-"

    def setup(self, worker: Any) -> None:
        """Begin to look at a worker."""
        self.worker = worker
        self.records: dict[str, dict[str, Any]] = {}  # of tasks that have run, not yet in memory
        self.stops: dict[str, Stop] = {}  # of commands that run
        self.unwanted: set[str] = set()
        self.flights: dict[str, float] = {}
        self.waiting: list[dict[str, Any]] = []
        self.told = 0.0
        self.pulse = Pulse(self.name, worker)

    def teardown(self, worker: Any) -> None:
        """The run is over, or the worker is."""
        self.pulse.close()
        for stop in list(self.stops.values()):
            stop.ask()

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """A task or a copy of a result has changed its state on this worker."""
        if not isinstance(key, str) or not key.startswith(self.prefix):
            return
        if finish == "memory":
            self._in_memory(key)
        elif finish == "flight":
            self.flights[key] = time.perf_counter()
        elif finish == "executing":
            self.pulse.begin()
        elif finish == "error":
            self._erred(key)
        elif finish in ("released", "forgotten"):
            for known in (self.records, self.flights):
                known.pop(key, None)
            self.unwanted.discard(key)

    def _in_memory(self, key: str) -> None:
        record, flown = self.records.pop(key, None), self.flights.pop(key, None)
        nbytes = self.worker.state.tasks[key].nbytes
        if record is not None:
            record.setdefault("bytes", nbytes)
            self._tell(record)
        elif flown is not None and nbytes >= BIG:
            seconds = time.perf_counter() - flown
            self._tell(
                {"there": key, "at": self.worker.address, "bytes": nbytes, "seconds": seconds}
            )

    def _erred(self, key: str) -> None:
        """The task could not even be begun: what a task itself raises is caught before."""
        task = self.worker.state.tasks[key]
        reason = getattr(task, "exception_text", None) or "Dask could not run it"
        tail = _last_lines(getattr(task, "traceback_text", None) or "")
        self._tell({"key": key, "seconds": 0.0, "reason": reason, "tail": tail})

    def _tell(self, record: dict[str, Any]) -> None:
        # not at once: what this transition tells the scheduler must reach it before; but in the
        # same turn of the loop, so that both travel together: the next message waits for 2 ms
        if not self.waiting:
            pause = self.told + PAUSE - time.perf_counter()
            if pause > 0:
                self.worker.loop.call_later(pause, self._flush)
            else:
                self.worker.loop.add_callback(self._flush)
        self.waiting.append(record)

    def _flush(self) -> None:
        told, self.waiting = self.waiting, []
        self.told = time.perf_counter()
        self.worker.log_event(self.name, {"reports": told})


class Announcer(SchedulerPlugin):
    """Tells the client when a worker is about to be retired, or is not any more.

    Dask says so only to who listens for that very worker.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    async def start(self, scheduler: Any) -> None:
        """Begin to look at the scheduler."""
        self.scheduler = scheduler

    def log_event(self, topic: str, msg: Any) -> None:
        """Pass on what concerns the status of workers."""
        if isinstance(msg, dict) and msg.get("action") == "worker-status-change":
            told = {"action": "worker-status", "worker": topic, "status": msg["status"]}
            self.scheduler.log_event(self.name, told)


def _reporter() -> tuple[Reporter, str]:
    worker: Any = get_worker()
    key: str = worker.get_current_task()
    return worker.plugins[key.rsplit("-", 2)[0]], key


def run_call(function: bytes, arguments: bytes, product: bool, inputs: Sequence[Any]) -> Any:
    """Call a function; what it raises is reported, so it never reaches the client as an object.

    The result of a product is bytes for the client, who does not need to understand them.
    """
    reporter, key = _reporter()
    record: dict[str, Any] = {"key": key}
    begin = time.perf_counter()
    result = None
    try:
        call = _loaded(function)
        args, kwargs, tasks = pickle.loads(arguments)
        if tasks:
            from weft.model.call import filled

            args, kwargs = filled((args, kwargs), dict(zip(tasks, inputs, strict=True)))
        begin = time.perf_counter()
        with reporter.pulse.call(key):
            result = call(*args, **kwargs)
        record["seconds"] = time.perf_counter() - begin
        if product:
            result = cloudpickle.dumps(result, protocol=5)
            record["bytes"] = len(result)
            if len(result) <= SMALL:
                record["content"], result = result, None
    except BaseException as error:  # a task that calls sys.exit must not end the worker
        result = None
        record["seconds"] = time.perf_counter() - begin
        record["reason"] = "".join(traceback.format_exception_only(error)).strip()[-500:]
        record["tail"] = _last_lines(traceback.format_exc())
        record["error"] = _pickled(error)
    reporter.records[key] = record
    return result


@lru_cache(maxsize=256)
def _loaded(function: bytes) -> Any:
    return pickle.loads(function)


def _pickled(error: BaseException) -> bytes | None:
    """An error for the client, if it can travel with the report."""
    try:
        content = cloudpickle.dumps(error, protocol=5) if isinstance(error, Exception) else b""
    except Exception:  # pickling calls code of the objects, which may raise anything
        return None
    return content if 0 < len(content) <= _LARGEST_ERROR else None


def _last_lines(text: str) -> str:
    return "\n".join(text.splitlines()[-TAIL_LINES:])


def run_shell(job: CommandJob, carried: bool, inputs: Sequence[dict[str, bytes]]) -> Any:
    """Run a command in the shared directory, or in one made for it from the files it is given."""
    # not before there is one: every import is time that all workers keep the run waiting
    from weft.executors.command import CommandOutcome, run_command
    from weft.executors.processes import Stop

    reporter, key = _reporter()
    stop = reporter.stops[key] = Stop()
    if key in reporter.unwanted:
        stop.ask()
    outputs: dict[str, bytes] | None = None
    try:
        with reporter.pulse.command(key, stop) as report:
            job = replace(job, progress=report)
            if carried:
                outcome, outputs = _run_carried(job, inputs, stop)
            else:
                os.makedirs(os.path.dirname(job.scratch), exist_ok=True)
                os.makedirs(os.path.dirname(job.log), exist_ok=True)
                outcome = run_command(job, stop=stop)
    except OSError as error:
        reason = f"the worker cannot run it: {error.strerror or error}"
        outcome = CommandOutcome(0.0, problem=reason)
    finally:
        reporter.stops.pop(key, None)
    record = {"key": key, "seconds": outcome.seconds, "sizes": dict(outcome.sizes)}
    if outcome.problem is not None:
        record |= {"reason": outcome.problem, "tail": outcome.tail, "exit": outcome.exit}
        record["log"] = None if carried else outcome.log
    reporter.records[key] = record
    return outputs


def _run_carried(
    job: CommandJob, inputs: Sequence[dict[str, bytes]], stop: Stop
) -> tuple[CommandOutcome, dict[str, bytes]]:
    from weft.executors.command import run_command

    with tempfile.TemporaryDirectory(prefix="weft-", ignore_cleanup_errors=True) as place:
        data = Path(place, "data")
        data.mkdir()
        for name, content in (file for given in inputs for file in given.items()):
            if name in job.inputs:
                (data / name).parent.mkdir(parents=True, exist_ok=True)
                (data / name).write_bytes(content)
        here = replace(job, dir=str(data), scratch=f"{place}/scratch", log=f"{place}/log")
        outcome = run_command(here, stop=stop)
        if outcome.problem is not None:
            return outcome, {}
        return outcome, {name: (data / name).read_bytes() for name in job.outputs}


def stop_commands(name: str, keys: Sequence[str], grace: float, dask_worker: Any = None) -> None:
    """End the commands of these tasks on a worker, with all their processes."""
    reporter = dask_worker.plugins[name]
    for key in keys:
        if key in reporter.stops:
            reporter.stops[key].ask(grace)
        else:
            reporter.unwanted.add(key)


def tell_workers(name: str, dask_scheduler: Any = None) -> dict[str, tuple[Any, int, str]]:
    """The name, threads and host of each worker by its address; the client is told in turn, too.

    Those that are being retired are left out, unless there are no others.
    """
    found = dask_scheduler.workers
    stay = {address: state for address, state in found.items() if state.status.name != RETIRING}
    workers = {
        address: (state.name, state.nthreads, state.host)
        for address, state in (stay or found).items()
    }
    dask_scheduler.log_event(name, {"workers": workers})
    return workers


def fetch(name: str, wanted: Sequence[tuple[str, str]], dask_scheduler: Any = None) -> None:
    """Have workers fetch results, given as (key, address); what is there is told at once."""
    there = []
    for key, address in wanted:
        task, worker = dask_scheduler.tasks.get(key), dask_scheduler.workers.get(address)
        if task is None or worker is None or not task.who_has:
            continue  # the client hears of such losses by other ways
        if worker in task.who_has:
            there.append({"there": key, "at": address, "bytes": task.nbytes})
        else:
            dask_scheduler.request_acquire_replicas(address, [key], stimulus_id=f"{name}-fetch")
    if there:
        dask_scheduler.log_event(name, {"reports": there})


def move_out(
    name: str, leaving: Sequence[str], places: Mapping[str, str], dask_scheduler: Any = None
) -> dict[str, str]:
    """Have what only these workers hold be copied to others: the keys, and where each goes.

    `places` says where some keys are wanted; only these, and those of the run, are looked at.
    """
    stay = {w.address: w for w in dask_scheduler.running if w.address not in leaving}
    going = [dask_scheduler.workers[a] for a in leaving if a in dask_scheduler.workers]
    moved: dict[str, str] = {}
    for task in (task for worker in going for task in worker.has_what):
        key, held = task.key, any(w.address in stay for w in task.who_has)
        ours = key in places or (isinstance(key, str) and key.startswith(name + "-"))
        if stay and ours and not held:
            best = min(stay.values(), key=lambda w: (w.nbytes, w.address)).address
            moved[key] = places[key] if places.get(key) in stay else best
    for target in sorted(set(moved.values())):
        keys = [key for key, to in moved.items() if to == target]
        dask_scheduler.request_acquire_replicas(target, keys, stimulus_id=f"{name}-move-out")
    return moved


def silent_workers(dask_scheduler: Any = None) -> list[str]:
    """The addresses of workers that the scheduler has not heard of for long."""
    from distributed.metrics import time as now

    workers = dask_scheduler.workers
    oldest = now() - SILENT - _PER_WORKER * len(workers)
    return [address for address, state in workers.items() if state.last_seen < oldest]
