"""Tasks as processes of this machine: shell commands, or Python functions in worker processes."""

from __future__ import annotations

import contextlib
import math
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from foreplan.errors import ForeplanError, InputError
from foreplan.executors.allotments import Allotment
from foreplan.executors.base import Workload
from foreplan.executors.command import explain, marks, own_environment, run_command
from foreplan.executors.containers import end_containers, has_containers
from foreplan.executors.cpu_share import CpuTimes, cpu_share, times_of_tree, wanted_cores
from foreplan.executors.gpus import gpu_names
from foreplan.executors.holdings import Holdings
from foreplan.executors.jobs import Jobs
from foreplan.executors.kept import ENDING as KEPT
from foreplan.executors.listening import Listening
from foreplan.executors.local.functions import FunctionJob, FunctionOutcome, FunctionWorker
from foreplan.executors.local.scheme import MOST
from foreplan.executors.local.this_machine import (
    available_processors,
    platform_of,
    this_host,
    usable_cpus,
)
from foreplan.executors.local.worker_processes import POOL, Settings
from foreplan.executors.monitor import Monitor
from foreplan.executors.open_files import (
    ShortageError,
    is_shortage,
    most_attempts,
    raise_limit,
)
from foreplan.executors.paths import check_paths
from foreplan.executors.processes import Stop, kill_left_behind
from foreplan.executors.progress import ENDING, forget_progress, read_progress
from foreplan.executors.results import (
    error_path,
    file_of_result,
    is_kept,
    load_result,
    result_path,
)
from foreplan.executors.shared_arguments import SharedArguments
from foreplan.executors.workspace import (
    LOG_ENDS,
    Workspace,
    done_line,
    keep_logs,
    last_change,
    read_done,
    remove,
    still_there,
    tail_of,
)
from foreplan.model.call import Call, Calls, refs
from foreplan.model.causes import CAUSE, LOST, SYSTEM
from foreplan.model.events import (
    MACHINE_LOST,
    NO_FAULT,
    OWN_FAULT,
    Event,
    ProcessorGone,
    ProcessorJoined,
    StartTask,
    TaskFailed,
)
from foreplan.model.platform import Platform
from foreplan.model.resources import GPUS, Host
from foreplan.model.workflow import Workflow
from foreplan.store.making import Making


class LocalAttempt(NamedTuple):
    """An attempt under way, and how it is ended."""

    number: int
    task: int
    processor: int
    stop: Stop
    begun: float
    command: StartTask
    making: Making | None = None
    former: tuple[str, ...] = ()  # files of what its function gave before

    @property
    def cores(self) -> tuple[int, ...]:
        """All that it holds."""
        return self.command.cores or (self.processor,)

    @property
    def width(self) -> float:
        """How many it has asked for; no end where nobody counts."""
        return len(self.cores) if self.command.cores else math.inf


class LocalExecutor(Listening[LocalAttempt]):
    """Each processor is a lane: a thread that runs its attempts one after another.

    An attempt that holds several cores is run by the lane of the first of them, and waits until
    the others are free, too.
    """

    def __init__(
        self,
        work: Workload,
        processors: int | None,
        home: Path,
        clock: Callable[[], float],
        known: Platform | None = None,
        asked: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(clock)
        check_paths(work.workflow, work.absolute, work.functions)
        self.platform, self._usable = platform_of(processors, known, asked)
        self._machine, self._known = socket.gethostname(), known is not None
        # a host of cores alone is not written to the journal
        host = self.platform.hosts[0] if self.platform.hosts else this_host(asked or {})
        self._jobs = LocalJobs(work, home, host)
        self._lanes: dict[int, _Lane] = {}
        self._watch = _Watch(self.post, self._jobs.report)

    def machine(self, processor: int) -> str:
        """The name of this machine: its processors are all alike."""
        return self._machine

    def start(self, command: StartTask) -> LocalAttempt:
        """Have the processor's lane run an attempt."""
        number, task, processor = command.attempt, command.task, command.processor
        making, end = self._jobs.begin(number, task)
        begun = time.monotonic()
        former = self._jobs.former_files(making)
        attempt = LocalAttempt(number, task, processor, Stop(), begun, command, making, former)
        if end is None and (making is None or making.recipe is None):  # else the store would know
            end = self._jobs.take_done_before(number, task)
        if end is not None:
            self.post(end)
            return attempt
        if processor not in self._lanes:
            name = f"foreplan-{self.platform.processor_names[processor]}"
            self._lanes[processor] = _Lane(self._jobs, processor, name, self.post)
            self._jobs.lanes = len(self._lanes)
        self._lanes[processor].orders.put(attempt)
        self._start_lanes()
        return attempt

    def _start_lanes(self) -> None:
        """Start the threads of lanes; where the system has no more, those that run must do."""
        waiting = [lane for lane in self._lanes.values() if lane.thread.ident is None]
        for lane in waiting:
            try:
                lane.thread.start()
            except RuntimeError as error:  # so Python says it
                if len(waiting) == len(self._lanes):
                    raise ForeplanError(f"cannot run tasks: {error}; see ulimit -u") from None
                return

    def cancel(self, attempt: int, grace: float) -> None:
        """End its processes."""
        self.open[attempt].stop.ask(grace)
        self._jobs.holdings.wake()

    def look(self) -> None:
        """Measure what runs, if it is time."""
        self._start_lanes()
        self.look_at = self._watch.look(self.open)

    def add(self, count: int) -> None:
        """Have so many processors more, told of by JOINED."""
        n = self.platform.n_processors
        if not 1 <= count <= MOST - n:
            raise InputError(f"cannot add {count} processors: 1 to {MOST - n} are possible")
        # all are there before the first is heard of, so that they are planned for at once
        self.platform, _ = platform_of(n + count, self.platform)
        for p in range(n, n + count):
            more = p < n + count - 1
            self.post(ProcessorJoined(p, 0.0, more))

    def extend(self, workflow: Workflow, calls: Calls | None) -> None:
        """Know the tasks that were added."""
        self._jobs.take_tasks(workflow, calls)

    def recover(self, running: Sequence[StartTask], held: Sequence[tuple[int, int]]) -> list[Event]:
        """What happened since the journal ended: what is left of that time is ended first."""
        ended = dict.fromkeys(kill_left_behind(self._jobs.home), time.time())
        if has_containers(self._jobs.workflow):
            end_containers(self._jobs.home)
        ends = self._jobs.find_ends(running, ended)
        self._jobs.clear()
        lost = [self._jobs.lost(item, host) for item, host in held if not self._jobs.is_there(item)]
        processors = range(self.platform.n_processors if self._known else 0)
        joined = [ProcessorJoined(p, 0.0) for p in processors if p < self._usable]
        gone = [ProcessorGone(p, 0.0) for p in processors if p >= self._usable]
        # before the ends: what follows from those must not start there
        return self.stamped([*joined, *gone, *ends, *lost])

    def result(self, task: int) -> Any:
        """The result of a function that has finished."""
        return load_result(self._jobs.results, task, self._jobs.name(task))

    def on_end(self) -> None:
        """Let worker processes rest, for the next run of this process."""
        self._jobs.keeps_workers = True

    def close(self) -> None:
        """Stop what still runs, as if cancelled, and leave nothing behind."""
        for attempt in self.open.values():
            attempt.stop.ask()
        self._jobs.holdings.wake()
        for lane in self._lanes.values():
            lane.orders.put(None)
        for lane in self._lanes.values():
            if lane.thread.ident is not None:
                lane.thread.join()
        if self._jobs.may_leave_processes:
            kill_left_behind(self._jobs.home)  # who has left its group
        if self._lanes:
            self._jobs.clear()
        if self._jobs.calls is not None and not self._jobs.keeps_workers:
            POOL.end_idle()
        self._lanes.clear()
        self.open.clear()
        self.moving.clear()


class _Lane:
    """The thread of a processor, with its workspace, and its worker process for functions."""

    def __init__(
        self, jobs: LocalJobs, processor: int, name: str, tell: Callable[[Event], None]
    ) -> None:
        self._jobs, self._tell = jobs, tell
        self._workspace = Workspace(jobs.place(processor), jobs.done)
        self._worker = FunctionWorker(jobs.settings, jobs.home, jobs.shared, jobs.tasks_per_worker)
        self.orders: queue.SimpleQueue[LocalAttempt | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._serve, name=name, daemon=True)

    def _serve(self) -> None:
        try:
            while (order := self.orders.get()) is not None:
                try:
                    end = self._run(order)
                    if end is None:
                        continue
                except Exception as error:  # a fault of foreplan; a run that hangs would hide it
                    reason = f"foreplan failed: {type(error).__name__}: {error}"
                    end = TaskFailed(order.number, 0.0, detail={"reason": reason, CAUSE: SYSTEM})
                finally:
                    forget_progress(self._workspace.path + ENDING)
                    if self._jobs.shares_descriptors:
                        self._let_go()
                    self._jobs.holdings.free(order.number)
                self._tell(end)
                self._workspace.tidy()  # while the coordinator thinks
        finally:
            if self._jobs.keeps_workers:
                self._worker.rest()
            self._worker.end()
            if self._worker.may_leave_processes:  # lanes do this at the same time
                self._jobs.may_leave_processes = True
            self._workspace.close()

    def _run(self, order: LocalAttempt) -> Event | None:
        """Run an attempt to its end; None if it was stopped before it began.

        While the system has too few descriptors or processes for it, it waits for others to end.
        """
        while (given := self._jobs.take(order)) is not None:
            call = self._jobs.call(order.task)
            try:
                if call is None:
                    return self._run_command(order, given)
                return self._run_call(order, given, call)
            except ShortageError as error:
                self._let_go()
                if not self._jobs.holdings.give_back(order.number):
                    return self._jobs.failed(order.number, str(error), None, cause=SYSTEM)
        return None

    def _let_go(self) -> None:
        """Close all descriptors of this lane: others need them."""
        self._worker.end()
        self._workspace.close_files()

    def _run_command(self, order: LocalAttempt, given: Allotment) -> Event:
        jobs, place = self._jobs, self._workspace.path
        attempt, task = order.number, order.task
        job = jobs.command(
            attempt,
            task,
            place,
            jobs.log(attempt, task),
            given,
            progress=place + ENDING,
            making=order.making,
        )
        jobs.may_leave_processes = True
        outcome = run_command(job, order.stop, jobs.environment, self._workspace)
        if outcome.shortage is not None and not order.stop.asked:
            raise ShortageError(outcome.problem or "", outcome.shortage)
        if outcome.problem is None and jobs.store is not None:
            jobs.store.note(task, outcome.contents)
        return jobs.ended(job, outcome)

    def _run_call(self, order: LocalAttempt, given: Allotment, call: Call) -> Event:
        jobs, place = self._jobs, self._workspace.path
        attempt, task, stop = order.number, order.task, order.stop
        job = FunctionJob(
            attempt=attempt,
            call=call,
            names={other: jobs.name_of_result(other) for other in refs(call)},
            results={other: file_of_result(jobs.results, other) for other in refs(call)},
            result=place + ".pkl",
            former=order.former,
            error=error_path(jobs.results, task),
            log=jobs.log(attempt, task),
            live_log=place,
            environment={
                **marks(jobs.data, jobs.home, jobs.name(task), attempt, place + ENDING),
                **given.variables,
            },
            fixed=given.fixed,
            limit=given.limit,
            timeout=jobs.timeout(task),
            is_kept=order.making is not None,
            program=jobs.program,
            may_differ=jobs.may_differ,
        )
        outcome = self._worker.run(job, stop)
        if outcome.shortage is not None and not stop.asked:
            raise ShortageError(outcome.problem or "", outcome.shortage)
        if outcome.problem is not None or stop.asked:
            fault = OWN_FAULT if outcome.own_fault else MACHINE_LOST
            problem = outcome.problem or "it was stopped"
            return jobs.failed(
                attempt, problem, outcome.seconds, outcome.tail, outcome.log, fault,
                cause=outcome.cause, used=outcome.used,
            )  # fmt: skip
        try:
            warning = self._publish(job.result, order, outcome)
        except OSError as error:
            if is_shortage(error):
                raise ShortageError(explain(error), error) from None
            return jobs.failed(attempt, explain(error), outcome.seconds, cause=SYSTEM)
        sizes = jobs.result_sizes(task, outcome.size)
        return jobs.finished(attempt, outcome.seconds, sizes, warning, used=outcome.used)

    def _publish(self, source: str, order: LocalAttempt, outcome: FunctionOutcome) -> str:
        """Put a result in its place; what is to be said about it."""
        attempt, task = order.number, order.task
        path = result_path(self._jobs.results, task)
        content, warning = self._jobs.add_result(
            task, order.making, outcome.content, source, outcome.other, outcome.seconds
        )
        warning = warning or self._jobs.warn_of_changes(task, outcome.changed)
        os.replace(source, path)
        if self._jobs.store is not None:
            self._jobs.store.note(task, {}, content)
        status = outcome.size, os.stat(path).st_mtime_ns
        with contextlib.suppress(OSError):  # without the note the attempt is only repeated
            self._workspace.note(
                done_line(self._jobs.name(task), attempt, outcome.seconds, {path: status})
            )
        return warning


class _Watch:
    """Looks about once a second what attempts get of the processors, and what they report.

    A first look at an attempt tells little.
    """

    def __init__(self, post: Callable[[Event], None], report_of: Callable[[int], str]) -> None:
        self._monitor, self._report_of = Monitor(post), report_of
        self._seen: dict[int, CpuTimes | None] = {}  # by attempt, at the last look

    @cached_property
    def _cores(self) -> int:
        return available_processors()

    def look(self, attempts: Mapping[int, LocalAttempt]) -> float:
        """Measure what runs, if it is time; when that is next."""
        if not self._monitor.is_due():
            return self._monitor.due_at
        begun, before = time.monotonic(), self._seen
        self._seen = {k: times_of_tree(attempt.stop.group) for k, attempt in attempts.items()}
        for k, times in self._seen.items():
            attempts[k].stop.note_memory(0 if times is None else times.memory)
        pairs = {k: (old, new) for k, new in self._seen.items() if new and (old := before.get(k))}
        # what the attempts take from each other, nobody takes from the run
        greedy = sum(wanted_cores(*pair, len(attempts[k].cores)) for k, pair in pairs.items())
        fair = min(1.0, self._cores / max(greedy, 1))
        for k, attempt in attempts.items():
            share = cpu_share(*pairs[k], attempt.width) if k in pairs else 1.0
            report = read_progress(self._report_of(attempt.processor))
            if k not in before and report is None:
                continue
            self._monitor.note_share(
                attempt.processor, k, attempt.begun, min(1.0, share / fair), report
            )
        self._monitor.end_look(begun, attempts)
        return self._monitor.due_at


class LocalJobs(Jobs):
    """The jobs of a run, what of them was done before, and where their files are."""

    def __init__(self, work: Workload, home: Path, host: Host) -> None:
        super().__init__(work, os.path.realpath(work.directory), os.path.realpath(home))
        count = int(host.amounts.get(GPUS, 0))
        # whoever is added may ask for some
        may_ask = work.workflow.grows
        gpus = gpu_names(count) if self.allotting.counts_gpus or may_ask else ()
        raise_limit()
        self.holdings = Holdings(host.amounts, gpus, most_attempts())
        self.lanes = 0
        self._cpus = usable_cpus()
        self.done = os.path.join(self.home, "attempts", "done.jsonl")
        self.environment = own_environment()
        self.settings = Settings.now(self.data, self.environment)
        self.tasks_per_worker = work.tasks_per_worker
        self.keeps_workers = False
        self.may_leave_processes = False
        self.shared = SharedArguments(os.path.join(self.home, "attempts"))  # gone with the run
        self._before: dict[str, tuple[float, Mapping[str, int]]] = {}  # done in earlier sessions

    @property
    def shares_descriptors(self) -> bool:
        """Return whether there are more lanes than may keep their files open."""
        return self.lanes > self.holdings.most

    def take(self, order: LocalAttempt) -> Allotment | None:
        """What an attempt holds from now on; None if it was stopped before all of it was free."""
        amounts = self.allotting.amounts(order.command)
        gpus = self.holdings.take(order.number, order.cores, amounts, lambda: order.stop.asked)
        if gpus is None:
            return None
        cpus = sorted({self._cpus[core % len(self._cpus)] for core in order.cores})
        return self.allotting.allot(order.command, gpus, cpus)

    def is_there(self, item: int) -> bool:
        """Whether the file of an item is there; what has no file always is."""
        producer = int(self.workflow.item_producer[item])
        if producer >= 0 and self.call(producer) is not None:
            return is_kept(self.results, producer)
        return self.has_files(item)

    def find_ends(self, running: Sequence[StartTask], ended: Mapping[int, float]) -> list[Event]:
        """How attempts ended that ran when the coordinator was killed, once nothing runs.

        `ended` says of some when they were; of others their files tell until when they ran.
        """
        done = read_done(self.done)
        self._before = {task: end for (task, _), end in done.items()}
        return [
            self._find_end(start, done.get((self.name(start.task), start.attempt)), ended)
            for start in running
        ]

    def _find_end(
        self,
        start: StartTask,
        done: tuple[float, Mapping[str, int]] | None,
        ended: Mapping[int, float],
    ) -> Event:
        log, place = self.log(start.attempt, start.task), self.place(start.processor)
        until = ended.get(start.attempt) or last_change(place, *(place + end for end in LOG_ENDS))
        keep_logs(place, log)
        if (end := self.told_by_store(start)) is not None:
            return end
        if done is not None and still_there(self.data, done[1]):
            return self._as_done(start.attempt, start.task, *done)
        why = "it was interrupted"
        tail, kept = tail_of(log)
        return self.failed(
            start.attempt, why, None, tail, kept, NO_FAULT, until=until, cause=LOST
        )  # fmt: skip

    def take_done_before(self, attempt: int, task: int) -> Event | None:
        """How a task ended in an earlier session, if the journal has lost that and all is there."""
        done = self._before.pop(self.name(task), None) if self._before else None
        if done is None or not still_there(self.data, done[1]):
            return None
        return self._as_done(attempt, task, *done)

    def _as_done(self, attempt: int, task: int, seconds: float, sizes: Mapping[str, int]) -> Event:
        if self.call(task) is not None:
            return self.finished(attempt, seconds, self.result_sizes(task, *sizes.values()))
        return self.finished(attempt, seconds, sizes)

    def clear(self) -> None:
        """Remove what attempts have left, once nothing runs; but not what is to be looked at."""
        try:
            entries = list(os.scandir(os.path.join(self.home, "attempts")))
        except OSError:  # somebody has removed it: the journal's next line tells
            return
        for entry in entries:
            if entry.path == self.done or entry.name.endswith(KEPT):
                continue
            if entry.is_dir(follow_symlinks=False):
                remove(entry.path)
                continue
            with contextlib.suppress(OSError):  # it is busy, and is left to `foreplan clean`
                os.unlink(entry.path)

    def report(self, processor: int) -> str:
        """The file that the attempt on a processor may write its progress to."""
        return self.place(processor) + ENDING

    def place(self, processor: int) -> str:
        """Where the attempts on a processor run."""
        return os.path.join(self.home, "attempts", str(processor + 1))
