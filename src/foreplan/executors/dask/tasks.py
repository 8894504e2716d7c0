"""What runs on Dask's side: the tasks, who reports on them, and what the scheduler is asked for.

foreplan must therefore be installed on the workers and on the scheduler. Little is imported here:
while the scheduler or a worker imports, the whole run waits.
"""

from __future__ import annotations

import math
import os
import pickle
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle
from dask.sizeof import sizeof
from distributed import get_worker
from distributed.diagnostics.plugin import SchedulerPlugin, WorkerPlugin
from distributed.protocol.serialize import (
    dask_deserialize,
    dask_serialize,
    serialize,
    to_serialize,
)

from foreplan.executors import packing
from foreplan.executors.calls import await_result, is_immutable, load_call
from foreplan.executors.cpu_share import (
    INTERVAL,
    CpuTimes,
    cpu_share,
    differs,
    times_of_thread,
    times_of_tree,
)
from foreplan.executors.dask.messages import (
    CopyMessage,
    Message,
    PulseMessage,
    TaskMessage,
    UnreadableMessage,
    Worker,
    WorkersMessage,
    pack,
    read_dask_event,
)
from foreplan.executors.forking import ending_children
from foreplan.executors.progress import ENDING, Report, forget_progress, read_progress, report_to
from foreplan.executors.usage import COPIED, COPYING, ThreadMeter

if TYPE_CHECKING:
    from foreplan.executors.command import CommandJob, CommandOutcome
    from foreplan.executors.holdings import Holdings
    from foreplan.executors.processes import Stop

BIG = 1_000_000  # bytes; what is smaller travels with the task that reads it
_LARGEST_ERROR = 65536  # bytes
SMALL = 1024  # bytes; a result that is kept travels with the report up to this size
MOST_PACKED = 64_000_000  # bytes that a worker holds for the client beside the results themselves
PAUSE = 0.005  # seconds; the first report goes at once, those soon after it together
TAIL_LINES = 20
SILENT = 3.0  # seconds without a sign of life after which a worker is taken to stand still
_PER_WORKER = 0.02  # more: where there are many, each is heard of less often
_LATE = 10.0  # seconds after which nothing of a killed client is on its way any more
RETIRING = "closing_gracefully"  # Dask's word for a worker that takes no more, and is to go


Held = tuple[Sequence[int], Mapping[str, float], bool]  # cores, amounts, whether GPUs are counted
Program = tuple[Mapping[str, str], bool]  # the digests of bindings, and whether they may differ


class _Doing:
    """A task that runs."""

    def __init__(
        self,
        times: Callable[[], CpuTimes | None],
        report: Callable[[], Report | None],
        cores: float = math.inf,
    ) -> None:
        self._times, self._report, self.begun = times, report, time.monotonic()
        self._cores = cores
        self._before: CpuTimes | None = None
        self._said: tuple[float, float | None] = (1.0, None)  # the share, and what is done

    def take_news(self) -> tuple[float, Report | None] | None:
        """The share that it got since the last look, and its progress, if either has changed."""
        before, self._before = self._before, self._times()
        share = cpu_share(before, self._before, self._cores) if before and self._before else 1.0
        report = self._report()
        said = share, None if report is None else report[0]
        if not differs(share, self._said[0]) and said[1] == self._said[1]:
            return None
        self._said = said
        return share, report


class Pulse:
    """The tasks of a run on a worker; looked at by its loop while there are any.

    It says by itself what they get of the processors, about once a second, where something has
    changed: nobody has to ask, which would mean to wait for a worker that stands still.
    """

    def __init__(self, name: str, worker: Any) -> None:
        self._name, self._worker = name, worker
        self._doing: dict[str, _Doing] = {}
        self._timer: Any = None
        self._is_closed = False

    def begin(self) -> None:
        """A task is about to run; called in the worker's loop."""
        if self._timer is None and not self._is_closed:
            self._timer = self._worker.loop.call_later(INTERVAL, self._beat)

    def close(self) -> None:
        """Say nothing more; called in the worker's loop."""
        self._is_closed = True
        if self._timer is not None:
            self._worker.loop.remove_timeout(self._timer)
            self._timer = None

    @contextmanager
    def call(self, key: str) -> Iterator[None]:
        """While this lasts, this thread runs the function of a task."""
        thread, told = threading.get_native_id(), list[tuple[float, float]]()

        def hear(share: float) -> None:
            told[:] = [(share, time.monotonic())]

        def report() -> Report | None:
            return (told[0][0], time.monotonic() - told[0][1]) if told else None

        self._doing[key] = _Doing(lambda: times_of_thread(thread), report)
        try:
            with report_to(hear):
                yield
        finally:
            self._doing.pop(key, None)

    @contextmanager
    def command(self, key: str, stop: Stop, cores: float) -> Iterator[str]:
        """While this lasts, the command of a task runs; the file for its progress."""
        report = os.path.join(os.path.abspath(self._worker.local_directory), key + ENDING)

        def times() -> CpuTimes | None:
            found = times_of_tree(stop.group)
            stop.note_memory(0 if found is None else found.memory)
            return found

        self._doing[key] = _Doing(times, lambda: read_progress(report), cores)
        try:
            yield report
        finally:
            self._doing.pop(key, None)
            forget_progress(report)

    def _beat(self) -> None:
        self._timer, said, now = None, list[PulseMessage](), time.monotonic()
        for key, doing in list(self._doing.items()):
            if (news := doing.take_news()) is not None:
                said.append(PulseMessage(key, now - doing.begun, *news))
        if said:
            self._worker.log_event(self._name, pack(said))
        if self._doing:
            self.begin()


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
        self.records: dict[str, TaskMessage] = {}  # of tasks that have run, not yet in memory
        self.stops: dict[str, Stop] = {}  # of commands that run
        self.unwanted: set[str] = set()
        self.flights: dict[str, float] = {}
        self.waiting: list[Message] = []
        self.told = 0.0
        self.pulse = Pulse(self.name, worker)
        self._packed: dict[str, Packed] = {}  # results that are to be brought home
        self._packed_bytes = 0
        worker.handlers[self.name] = self.send_packed  # `client.run` would log each call
        self._holdings: Holdings | None = None
        self._lock = threading.Lock()

    @property
    def holdings(self) -> Holdings:
        """What the run's commands hold of this worker; GPUs by what CUDA calls them here."""
        with self._lock:  # the first commands may come at once
            if self._holdings is None:
                from foreplan.executors.gpus import gpu_names
                from foreplan.executors.holdings import Holdings

                limit = self.worker.memory_manager.memory_limit or 0
                has = Worker("", 1, "", limit, self.worker.state.total_resources).amounts
                self._holdings = Holdings(has, gpu_names(int(has.get("gpus", 0))))
            return self._holdings

    def stop(self, keys: Iterable[str], grace: float) -> None:
        """End commands, those that wait for what they are to hold as well."""
        for key in keys:
            if key in self.stops:
                self.stops[key].ask(grace)
            else:
                self.unwanted.add(key)
        if self._holdings is not None:
            self._holdings.wake()

    def teardown(self, worker: Any) -> None:
        """The run is over, or the worker is."""
        worker.handlers.pop(self.name, None)
        self.pulse.close()
        for stop in list(self.stops.values()):
            stop.ask()
        if self._holdings is not None:
            self._holdings.wake()

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """A task or a copy of a result has changed its state on this worker."""
        if not isinstance(key, str) or not key.startswith(self.prefix):
            return
        if finish == "memory":
            self._note_in_memory(key)
        elif finish == "flight":
            self.flights[key] = time.perf_counter()
        elif finish == "executing":
            self.pulse.begin()
        elif finish == "error" and start == "flight":
            self._note_unreadable(key)
        elif finish == "error":
            self._note_error(key)
        elif finish in ("released", "forgotten"):
            for known in (self.records, self.flights):
                known.pop(key, None)
            self.take_packed(key)
            self.unwanted.discard(key)

    def hold_packed(self, key: str, packed: Packed, limit: float) -> bool:
        """Hold a result until the client takes it; False if there are too many bytes of them.

        Results of unlimited size have to be kept, so they are held in any case.
        """
        size = packed.__sizeof__()
        with self._lock:
            if self._packed_bytes + size > max(limit, MOST_PACKED):
                return False
            self._packed[key] = packed
            self._packed_bytes += size
            return True

    def take_packed(self, key: str) -> Packed | None:
        """Return a result that is held, and hold it no longer."""
        with self._lock:
            packed = self._packed.pop(key, None)
            self._packed_bytes -= 0 if packed is None else packed.__sizeof__()
            return packed

    def send_packed(self, keys: Sequence[str]) -> dict[str, Any]:
        """Answer the client, which asks for these results; one that is not held is empty."""
        results = [self.take_packed(key) or Packed() for key in keys]
        return {"results": to_serialize(results)}  # type: ignore[no-untyped-call]

    def _note_in_memory(self, key: str) -> None:
        record, flown = self.records.pop(key, None), self.flights.pop(key, None)
        nbytes = self.worker.state.tasks[key].nbytes
        if record is not None:
            self._tell(record if record.size is not None else record._replace(size=nbytes))
        elif flown is not None and nbytes >= BIG:
            seconds = time.perf_counter() - flown
            self._tell(CopyMessage(key, self.worker.address, nbytes, seconds))

    def _note_error(self, key: str) -> None:
        """The task could not even be begun: what a task itself raises is caught before."""
        task = self.worker.state.tasks[key]
        reason = getattr(task, "exception_text", None) or "Dask could not run it"
        tail = _last_lines(getattr(task, "traceback_text", None) or "")
        self._tell(TaskMessage(key, 0.0, reason=reason, tail=tail, cause="system"))

    def _note_unreadable(self, key: str) -> None:
        """Report a result that was fetched and cannot be read: its readers would wait for ever.

        The worker that sent it still waits for a confirmation, so the connection, which Dask would
        use again, must be closed: with all that are idle, for they are opened again when needed.
        """
        self.flights.pop(key, None)
        task = self.worker.state.tasks[key]
        for idle in self.worker.rpc.available.values():
            for comm in idle:
                comm.abort()
        reason = getattr(task, "exception_text", None) or "Dask could not fetch it"
        self._tell(UnreadableMessage(key, self.worker.address, reason))

    def _tell(self, message: Message) -> None:
        # not at once: what this transition tells the scheduler must reach it before; but in the
        # same turn of the loop, so that both travel together: the next message waits for 2 ms
        if not self.waiting:
            pause = self.told + PAUSE - time.perf_counter()
            if pause > 0:
                self.worker.loop.call_later(pause, self._flush)
            else:
                self.worker.loop.add_callback(self._flush)
        self.waiting.append(message)

    def _flush(self) -> None:
        told, self.waiting = self.waiting, []
        self.told = time.perf_counter()
        self.worker.log_event(self.name, pack(told))


class Announcer(SchedulerPlugin):
    """Tells the client which workers come and go, and which are about to be retired.

    While such a plugin is there, Dask's Active Memory Manager is off: it would drop copies that
    the run counts on. If the client disappears, all that the run has changed in the cluster is
    undone.
    """

    def __init__(self, name: str, client: str) -> None:
        self.name = name
        self.client = client  # its id

    async def start(self, scheduler: Any) -> None:
        """Begin to look at the scheduler."""
        self.scheduler = scheduler
        manager = scheduler.extensions.get("amm")
        self.has_stopped_manager = manager is not None and manager.running
        if self.has_stopped_manager:
            manager.stop()
        if self.client not in scheduler.clients:  # it was killed a moment ago
            scheduler.loop.call_later(_LATE, restore_cluster, self.name, scheduler)

    def log_event(self, topic: str, msg: Any) -> None:
        """Pass on what concerns workers."""
        message = read_dask_event(topic, msg) if isinstance(msg, dict) else None
        if message is not None:
            self.scheduler.log_event(self.name, pack([message]))

    def remove_client(self, scheduler: Any, client: str) -> None:
        """Undo what the run has changed: its client is gone."""
        if client == self.client:
            scheduler.loop.add_callback(restore_cluster, self.name, scheduler)
            # a plugin for the workers that it asked for at last may be on its way
            scheduler.loop.call_later(_LATE, restore_cluster, self.name, scheduler)

    def close_run(self) -> None:
        """Start the memory manager again, unless another run needs it to be off."""
        self.scheduler.plugins.pop(self.name, None)
        if not self.has_stopped_manager:
            return
        others = [p for p in self.scheduler.plugins.values() if isinstance(p, Announcer)]
        if others:
            others[0].has_stopped_manager = True
        else:
            self.scheduler.extensions["amm"].start()


async def restore_cluster(name: str, dask_scheduler: Any = None) -> None:
    """Undo all that a run has changed in a cluster; called again, it does nothing."""
    announcer = dask_scheduler.plugins.get(name)
    if isinstance(announcer, Announcer):
        announcer.close_run()
    if name in dask_scheduler.worker_plugins:
        await dask_scheduler.unregister_worker_plugin(None, name)
    # what was told would stay there for ever, and the last of it may be on its way
    dask_scheduler._broker._topics.pop(name, None)
    dask_scheduler.loop.call_later(_LATE, dask_scheduler._broker._topics.pop, name, None)


def _reporter() -> tuple[Reporter, str]:
    worker: Any = get_worker()
    key: str = worker.get_current_task()
    return worker.plugins[key.rsplit("-", 2)[0]], key


class Packed:
    """A result as it was produced, in the memory of a worker or on its way.

    Whoever reads it loads a value of its own, so nobody sees what another has done to it. The
    client does not need to understand it.
    """

    def __init__(self, *frames: Any) -> None:
        self.frames = [memoryview(frame) for frame in frames]
        self._file: packing.MemoryFile | None = None
        self._is_unread = True
        self._lock = threading.Lock()

    def detach(self) -> int:
        """Copy what others may still write to; the bytes that were copied."""
        self.frames[1:] = map(packing.copy_buffer, self.frames[1:])
        return sum(map(len, self.frames[1:]))

    def load(self) -> tuple[Any, int]:
        """The value, in memory that is the caller's own; the bytes that were copied for it.

        The first reader has a copy, which is quick to write to. Others map large buffers, so as
        not to fill the memory: a page is copied when it is written to, which is not counted.
        """
        size = len(self.frames[0])
        if (file := self._as_file()) is not None:
            with suppress(OSError):  # too many files are open
                return packing.unpack(file.map()), size
        buffers = list(map(packing.copy_buffer, self.frames[1:]))
        return packing.unpack([self.frames[0], *buffers]), size + sum(map(len, buffers))

    def _as_file(self) -> packing.MemoryFile | None:
        """Return the memory file that readers map after the first; None if buffers are copied."""
        with self._lock:
            is_first, self._is_unread = self._is_unread, False
            is_large = sum(map(len, self.frames[1:])) >= packing.MAPPED
            if is_large and not is_first and self._file is None:
                with suppress(OSError):
                    file = packing.MemoryFile(self.frames)
                    self.frames = [memoryview(frame) for frame in file.view()]
                    self._file = file
            return self._file

    def __sizeof__(self) -> int:  # as Dask asks what a worker holds
        return sum(map(len, self.frames))

    def __reduce__(self) -> tuple[Any, ...]:  # to a disk; else as follows
        return Packed, tuple(map(bytes, self.frames))


@dask_serialize.register(Packed)  # type: ignore[untyped-decorator, no-untyped-call]
def _frames_of(packed: Packed) -> tuple[dict[str, Any], list[memoryview]]:
    """Its buffers travel as they are, as those of arrays do."""
    return {}, packed.frames


@dask_deserialize.register(Packed)  # type: ignore[untyped-decorator, no-untyped-call]
def _from_frames(header: dict[str, Any], frames: Sequence[Any]) -> Packed:
    return Packed(*frames)


class _CopyMeter:
    """Loads results for a call and keeps its own, and measures what that takes."""

    def __init__(self) -> None:
        self._bytes = 0
        self._seconds = 0.0

    def loader(self, given: Mapping[int, Any]) -> Callable[[int], Any]:
        """Load results by task: a call's own, unless they cannot be changed or all share them."""

        def load(task: int) -> Any:
            if type(given[task]) is not Packed:
                return given[task]
            begin = time.perf_counter()
            value, size = given[task].load()
            self._add(size, begin)
            return value

        return load

    def pack(self, result: Any, product: bool, shared: bool) -> Packed | None:
        """Pack a product, or a result that readers may change; check that others can be sent.

        A worker that asks another for a result which cannot be pickled waits for ever, and the
        connection between the two is of no use to anybody afterwards.
        """
        if not product and is_immutable(result):
            return None
        try:
            if product or not shared:
                return self._keep(result, shared)
            serialize(result, on_error="raise")  # large buffers are not copied
        except MemoryError:
            raise
        except Exception as error:  # pickling calls code of the objects, which may raise anything
            kind = f"{type(result).__module__}.{type(result).__qualname__}"
            cause = error.__cause__ or error  # Dask wraps it, with the whole result as text
            problem = f"of type {kind.removeprefix('builtins.')}, cannot be pickled"
            what = f"{type(cause).__name__}: {cause}"
            raise _UnsendableError(f"its result, {problem}: {what}") from None
        return None

    def _keep(self, value: Any, shared: bool) -> Packed:
        """A result as it is now, whatever becomes of it; of a shared one, nothing is copied."""
        begin = time.perf_counter()
        packed = Packed(*packing.pack(value))
        if not shared:
            self._add(len(packed.frames[0]) + packed.detach(), begin)
        return packed

    def _add(self, size: int, begin: float) -> None:
        self._bytes += size
        self._seconds += time.perf_counter() - begin

    def used(self) -> dict[str, Any]:
        """Return the bytes that were copied and the seconds that it took, if any."""
        if not self._bytes:
            return {}
        return {COPIED: self._bytes, COPYING: round(self._seconds, 6)}


def run_call(
    function: bytes,
    arguments: bytes,
    context: bytes,
    product: bool,
    limit: float,
    program: Program,
    shared: bool,
    inputs: Sequence[Any],
) -> Any:
    """Call a function; what it raises is reported, so it never reaches the client as an object.

    The result of a product is packed for the client; that of another task is held for it as well,
    if it has at most `limit` bytes. `program` are the bindings that the function uses (see
    foreplan.store.bindings), and whether they may differ here. If results are `shared`, functions
    are taken not to change their arguments, as is the convention of Dask's collections, and the
    client need not know what the result is; else each function has its own arguments.
    """
    reporter, key = _reporter()
    begin, result, meter, copies = time.perf_counter(), None, None, _CopyMeter()
    doing = "the call cannot be loaded: "
    try:
        tasks, names, folder = pickle.loads(context)
        given = dict(zip(tasks, inputs, strict=True))
        try:
            call, args, kwargs = load_call(arguments, copies.loader(given), names, folder)
            call = _loaded(function) if function else call
        finally:  # classes of a script may have registered themselves in a module as they came
            other, changed = _compare(*program)
        meter, begin, doing = ThreadMeter(), time.perf_counter(), ""
        with reporter.pulse.call(key), ending_children():
            result = await_result(call(*args, **kwargs))
        seconds, used = time.perf_counter() - begin, meter.read()
        packed = copies.pack(result, product, shared)
        kept = packed if product else _pack_within(result, packed, limit)
        content = None if shared else _content_of(result, packed or kept)
        used |= copies.used()
        end = TaskMessage(key, seconds, used=used, other=other, changed=changed, value=content)
        if packed is not None:
            result, end = packed, end._replace(size=packed.__sizeof__())
        if kept is not None and kept.__sizeof__() <= SMALL:
            result = None if product else result
            end = end._replace(content=bytes(kept.frames[0]))
        elif kept is not None and not product and reporter.hold_packed(key, kept, limit):
            end = end._replace(packed=kept.__sizeof__())
    except BaseException as error:  # a task that calls sys.exit must not end the worker
        result, cause = None, _cause_of(error)
        end = TaskMessage(
            key,
            time.perf_counter() - begin,
            reason=_reason_of(error, doing),
            tail="" if cause == "program" else _last_lines(traceback.format_exc()),
            error=None if cause == "program" else _pickled(error),
            cause=cause,
            used=None if meter is None else meter.read(),
        )
    reporter.records[key] = end
    return result


class _UnsendableError(Exception):
    """The result of a task cannot be sent to another process."""


def _pack_within(result: Any, packed: Packed | None, limit: float) -> Packed | None:
    """Return a result packed, if it has at most `limit` bytes; `packed` is the result if it is.

    Without a limit nobody reads the result before it is brought home. Otherwise readers may change
    it meanwhile, so its buffers are copied; and if it cannot be packed, it is just not kept.
    """
    if not limit:
        return None
    if packed is not None:
        return packed if packed.__sizeof__() <= limit else None
    if limit == math.inf:
        return Packed(*packing.pack(result))
    try:
        if sizeof(result) > limit:
            return None
        return Packed(*map(bytes, packing.pack(result, limit)))
    except Exception:  # it is too large after all, or pickling calls code that raises
        return None


def _cause_of(error: BaseException) -> str:
    if type(error).__name__ == "ProgramError":
        return "program"
    return "out-of-memory" if isinstance(error, MemoryError) else "exit"


def _reason_of(error: BaseException, doing: str) -> str:
    # these say all themselves
    if type(error).__name__ in ("NoPartError", "ProgramError", "_UnsendableError"):
        return str(error)
    return doing + "".join(traceback.format_exception_only(error)).strip()[-500:]


def _compare(bindings: Mapping[str, str], may_differ: bool) -> tuple[str, tuple[str, ...]]:
    if not bindings:
        return "", ()
    from foreplan.store.bindings import compare_program

    return compare_program(bindings, may_differ, f"the worker {get_worker().address}")


def _content_of(result: Any, packed: Packed | None) -> str:
    from foreplan.store.content import digest_of
    from foreplan.store.programs import content_of

    if content := content_of(result):
        return content
    # what only a pickle tells of: see `content_of_pickle`
    frames = packing.pack(result) if packed is None else packed.frames
    return digest_of(*frames)


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


def run_shell(
    job: CommandJob, carried: bool, held: Held | None, inputs: Sequence[dict[str, bytes]]
) -> Any:
    """Run a command in the shared directory, or in one made for it from the files it is given.

    What it holds of the worker it waits for: what was cancelled may take a moment to end.
    """
    # not before there is one: every import is time that all workers keep the run waiting
    from foreplan.executors.command import CommandOutcome, run_command
    from foreplan.executors.processes import Stop

    reporter, key = _reporter()
    stop = reporter.stops[key] = Stop()
    if key in reporter.unwanted:
        stop.ask()
    outputs: dict[str, bytes] | None = None
    contents: Mapping[str, Sequence[Any]] = {}
    try:
        width = math.inf if held is None else len(held[0])
        with (
            reporter.pulse.command(key, stop, width) as report,
            _holding(reporter, key, held, stop) as variables,
        ):
            job = replace(job, progress=report, variables={**job.variables, **variables})
            if carried:
                outcome, outputs, contents = _run_carried(job, inputs, stop)
            else:
                os.makedirs(os.path.dirname(job.scratch), exist_ok=True)
                os.makedirs(os.path.dirname(job.log), exist_ok=True)
                outcome = run_command(job, stop=stop)
                contents = {name: list(entry) for name, entry in outcome.contents.items()}
    except OSError as error:
        reason = f"the worker cannot run it: {error.strerror or error}"
        outcome = CommandOutcome(0.0, problem=reason, cause="system")
    finally:
        reporter.stops.pop(key, None)
    reporter.records[key] = TaskMessage(
        key,
        outcome.seconds,
        sizes=dict(outcome.sizes),
        reason=outcome.problem,
        tail=outcome.tail,
        exit=outcome.exit,
        log=None if carried else outcome.log,
        contents=contents,
        warning=outcome.warning,
        cause=outcome.cause,
        used=dict(outcome.used),
        undeclared=outcome.undeclared,
    )
    return outputs


@contextmanager
def _holding(
    reporter: Reporter, key: str, held: Held | None, stop: Stop
) -> Iterator[dict[str, str]]:
    """While this lasts, a command holds its cores and amounts; what it is told of its GPUs."""
    if held is None:
        yield {}
        return
    cores, amounts, counts_gpus = held
    holdings = reporter.holdings
    gpus = holdings.take(key, tuple(cores), amounts, lambda: stop.asked)
    try:
        yield {"CUDA_VISIBLE_DEVICES": ",".join(gpus or ())} if counts_gpus else {}
    finally:
        holdings.free(key)


def _run_carried(
    job: CommandJob, inputs: Sequence[dict[str, bytes]], stop: Stop
) -> tuple[CommandOutcome, dict[str, bytes], Mapping[str, Sequence[Any]]]:
    from foreplan.executors.command import run_command
    from foreplan.store.content import NO_INODE, hash_file

    with tempfile.TemporaryDirectory(prefix="foreplan-", ignore_cleanup_errors=True) as place:
        data = Path(place, "data")
        data.mkdir()
        for name, content in (file for given in inputs for file in given.items()):
            if name in job.inputs:
                (data / name).parent.mkdir(parents=True, exist_ok=True)
                (data / name).write_bytes(content)
        here = replace(
            job, dir=str(data), scratch=f"{place}/scratch", log=f"{place}/log", keep="", making=None
        )
        outcome = run_command(here, stop=stop)
        if outcome.problem is not None:
            return outcome, {}, {}
        made = {name: (data / name).read_bytes() for name in job.outputs}
        if job.making is None:
            return outcome, made, {}
        digests = {name: hash_file(str(data / name)) for name in made}
        return outcome, made, {n: (len(made[n]), 0, NO_INODE, d) for n, d in digests.items()}


def stop_commands(name: str, keys: Sequence[str], grace: float, dask_worker: Any = None) -> None:
    """End the commands of these tasks on a worker, with all their processes."""
    dask_worker.plugins[name].stop(keys, grace)


def tell_workers(name: str, dask_scheduler: Any = None) -> dict[str, tuple[Any, ...]]:
    """By address, what the scheduler knows of each worker; the client is told in turn, too.

    Those that are being retired are left out, unless there are no others.
    """
    found = dask_scheduler.workers
    stay = {address: state for address, state in found.items() if state.status.name != RETIRING}
    workers = {
        address: tuple(
            Worker(
                state.name,
                state.nthreads,
                state.host,
                float(state.memory_limit or 0),
                {str(name): float(amount) for name, amount in state.resources.items()},
            )
        )
        for address, state in (stay or found).items()
    }
    dask_scheduler.log_event(name, pack([WorkersMessage(workers)]))
    return workers


def fetch(name: str, wanted: Sequence[tuple[str, str, str]], dask_scheduler: Any = None) -> None:
    """Have workers fetch results, given as (key, to, from); what is there is told at once."""
    there = list[CopyMessage]()
    for key, address, source in wanted:
        task, worker = dask_scheduler.tasks.get(key), dask_scheduler.workers.get(address)
        if task is None or worker is None or not task.who_has:
            continue  # the client hears of such losses by other ways
        if worker in task.who_has:
            there.append(CopyMessage(key, address, task.nbytes))
        elif any(holder.address == source for holder in task.who_has):
            # what the scheduler's own request would say, but that it names every holder; if this
            # one fails, the worker asks the scheduler for others
            told = {"who_has": {key: [source]}, "nbytes": {key: task.nbytes}}
            request = {"op": "acquire-replicas", "stimulus_id": f"{name}-fetch", **told}
            dask_scheduler.stream_comms[address].send(request)
        else:
            dask_scheduler.request_acquire_replicas(address, [key], stimulus_id=f"{name}-fetch")
    if there:
        dask_scheduler.log_event(name, pack(there))


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


def find_waiting(keys: Sequence[str], dask_scheduler: Any = None) -> list[tuple[Any, ...]]:
    """Return those of the tasks that do not run: key, worker, its silence, what it has to fetch.

    The silence is in seconds, 0 if the worker was heard of lately. What has to be fetched are
    pairs of a key and the workers that have it.
    """
    from distributed.metrics import time as now

    patience = SILENT + _PER_WORKER * len(dask_scheduler.workers)
    found = list[tuple[Any, ...]]()
    for key in keys:
        task = dask_scheduler.tasks.get(key)
        worker = None if task is None else task.processing_on
        if task is None or worker is None:
            found.append((key, "", 0.0, ()))
            continue
        silence = now() - worker.last_seen
        silence = silence if silence > patience else 0.0
        if silence or not (task in worker.executing or task in worker.long_running):
            absent = [other for other in task.dependencies if worker not in other.who_has]
            fetched = [(str(o.key), [w.address for w in o.who_has]) for o in absent]
            found.append((key, worker.address, silence, fetched))
    return found


def silent_workers(dask_scheduler: Any = None) -> list[str]:
    """The addresses of workers that the scheduler has not heard of for long."""
    from distributed.metrics import time as now

    workers = dask_scheduler.workers
    oldest = now() - SILENT - _PER_WORKER * len(workers)
    return [address for address, state in workers.items() if state.last_seen < oldest]
