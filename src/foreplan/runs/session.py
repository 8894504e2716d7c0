"""A session of a run on real machines: from its start, or a resume, until it ends or stops."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.engine.state import RunState, TaskState
from foreplan.executors.processes import GRACE
from foreplan.model import Estimates, Platform, Workflow
from foreplan.model.causes import CAUSE, EXPECTED, LOST, UNDECLARED, WORKER
from foreplan.model.events import (
    MACHINE_LOST,
    OWN_FAULT,
    REUSED,
    Beat,
    Command,
    Event,
    Heard,
    ItemArrived,
    ItemLost,
    MachineMessage,
    NewEstimates,
    NewStrategy,
    Paused,
    Prepare,
    ProcessorGone,
    ProcessorJoined,
    SpeedChanged,
    TaskFailed,
    TaskFinished,
    TasksOverdue,
    WakeAt,
)
from foreplan.quantities import many
from foreplan.runs.entries import Header, JournalRecorder
from foreplan.runs.estimates import Estimating, Links, as_measured, with_links
from foreplan.runs.growing import Growing, as_lost
from foreplan.runs.home import RunHome
from foreplan.runs.journal import how_to_resume
from foreplan.runs.money import Lateness, Overdue, Spending, priced
from foreplan.runs.options import PLANNED
from foreplan.runs.outcome import FAILED, FINISHED, STOPPED, Failure, Outcome
from foreplan.runs.replay import found_up_to_date, live_record
from foreplan.runs.requests import Requests
from foreplan.runs.rest import Rest
from foreplan.runs.undeclared import find_not_kept
from foreplan.runs.unmade import report_orphans

if TYPE_CHECKING:
    from foreplan.contracts import Machines
    from foreplan.store.run import RunStore


_ENDS_IN = GRACE + 1.0  # seconds after the second signal; what runs is given a part of them
_INTERRUPTED = 130  # the exit code
# seconds between beats: a share of the time so far
LEAST_BEAT, BEAT_SHARE, MOST_BEAT = 1.0, 0.02, 60.0
UNTIL = "until"  # in the detail of an event: the moment, by the wall clock, until which it ran


class Clock:
    """The run's time: it goes on from where the journal ended, and stands still in between."""

    def __init__(self, begun: float = 0.0) -> None:
        self.set(begun)

    def set(self, now: float) -> None:
        """Let it be this time now."""
        self.origin = time.monotonic() - now

    def __call__(self) -> float:
        """Seconds of the run's time."""
        return time.monotonic() - self.origin


def moment(clock: Callable[[], float]) -> dict[str, float]:
    """The run's time and the wall clock's, as the journal has them."""
    return {"time": clock(), "wall": time.time()}


def last_moment(entries: list[dict[str, Any]]) -> tuple[float, float] | None:
    """The last time at which both clocks were noted."""
    for entry in reversed(entries):
        if "wall" in entry:
            return float(entry["time"]), float(entry["wall"])
    return None


def at_their_times(
    events: list[Event], state: RunState, now: float, known: tuple[float, float] | None
) -> list[Event]:
    """What happened while nobody looked, each end of an attempt when it came, in order."""

    def when(event: Event) -> float:
        detail = event.detail or {}
        if isinstance(event, TaskFinished):
            return state.attempt(event.attempt).start + float(detail.get("seconds") or 0.0)
        if known is None or UNTIL not in detail:
            return now
        return known[0] + float(detail[UNTIL]) - known[1]

    ends = (TaskFinished, TaskFailed)
    ended = iter(sorted((e for e in events if isinstance(e, ends)), key=when))
    timed = list[Event]()
    for event in events:
        told = next(ended) if isinstance(event, ends) else event
        now = max(now, when(told))
        timed.append(told.at(now))
    return timed


class StopNow(KeyboardInterrupt):
    """Stop without waiting for what runs."""


class LastResort:
    """Ends this process if a run does not end soon after the second signal.

    A thread, a disk or Dask's event loop may hang. A signal handler must not take locks, as
    starting a thread does, so the thread is there before, and waits for a byte in a pipe.
    """

    def __init__(self, advice: str) -> None:
        reader, self._writer = os.pipe()
        self._is_over = threading.Event()
        self.thread = threading.Thread(target=self._wait, args=(reader, advice), daemon=True)
        self.thread.start()

    def begin(self) -> None:
        """Give the run its last seconds; may be called by a signal handler."""
        os.write(self._writer, b"!")

    def close(self) -> None:
        """Let the process live: the run is over."""
        self._is_over.set()
        with suppress(BrokenPipeError):  # the thread has been waked before
            self.begin()  # a process that was forked meanwhile may hold the pipe open
        os.close(self._writer)

    def _wait(self, reader: int, advice: str) -> None:
        with open(reader, "rb", buffering=0) as pipe:
            is_begun = pipe.read(1)
        if is_begun and not self._is_over.wait(_ENDS_IN):
            message = f"foreplan: the run did not stop in time; {advice} resumes it\n"
            os.write(2, message.encode())
            os._exit(_INTERRUPTED)


@contextmanager
def stop_on_signals(session: Session) -> Iterator[None]:
    """Handle SIGINT and SIGTERM while a run is driven; elsewhere than in the main thread, none."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        session.interrupted = session.interrupted or number == signal.SIGINT
        if session.stopping:
            if session.last_resort is not None:
                session.last_resort.begin()
            raise StopNow
        session.stop()
        running = len(session.coordinator.state.running())
        again = "Ctrl-C again" if number == signal.SIGINT else "a second SIGTERM"
        first = f"{many(running, 'running task')} will finish first; " if running else ""
        session.listener.said(f"stopping: {first}{again} stops at once")

    if session.last_resort is None:
        advice = how_to_resume(session.header.id, session.header.functions)
        session.last_resort = LastResort(advice)
    before = [(number, signal.signal(number, stop)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(
                number, signal.SIG_DFL if handler is None else handler
            )  # None: not Python's


WORTH_IT = 2  # tasks left per processor; with fewer there is little to plan
KNOWN = "every task that is left has a history now"


class Listener(Protocol):
    """Whoever shows a run while it goes on."""

    def began(self, session: Session) -> None:
        """The run is about to start, or to go on."""

    def happened(self, session: Session, events: list[Event]) -> None:
        """These things happened, and what they lead to is under way."""

    def said(self, message: str) -> None:
        """Something that people should know."""

    def over(self, session: Session, outcome: Outcome) -> None:
        """The run has ended, or was stopped."""


class Silent:
    """A listener that shows nothing."""

    def began(self, session: Session) -> None:
        """Show nothing."""

    def happened(self, session: Session, events: list[Event]) -> None:
        """Show nothing."""

    def said(self, message: str) -> None:
        """Show nothing."""

    def over(self, session: Session, outcome: Outcome) -> None:
        """Show nothing."""


@dataclass(frozen=True)
class Prepared:
    """What the machines were told to come next on a processor, and under which plan."""

    processor: int
    tasks: tuple[int, ...]
    version: int
    end: int  # in the queue
    whole: bool  # else the next task in the queue is not ready

    @staticmethod
    def by(coordinator: Coordinator, coming: Prepare) -> Prepared:
        """What was told just now."""
        state, p, told = coordinator.state, coming.processor, len(coming.tasks)
        queue, end = state.queue(p), state.queue_at(p) + told
        whole = told >= len(queue) or state.has_inputs(int(queue[told]))
        return Prepared(p, coming.tasks, coordinator.version, end, whole)

    def is_enough(self, coordinator: Coordinator) -> bool:
        """Whether more than half of it is still to come: many are told of at a time."""
        if self.version != coordinator.version or not self.whole:
            return False
        return 2 * (self.end - coordinator.state.queue_at(self.processor)) > len(self.tasks)


def knows_enough(header: Header, coordinator: Coordinator, estimating: Estimating) -> bool:
    """Whether it is time to plan: all that is left is of a kind that was measured."""
    if coordinator.policy is not None or not header.options.is_auto:
        return False
    state, left = coordinator.state, coordinator.state.tasks(TaskState.WAITING)
    usable = np.count_nonzero(state.present() & (state.leaves() > state.now))
    if state.held_back or not usable or len(left) < WORTH_IT * usable:
        return False
    return estimating.knows(left)


class Session:
    """The coordinator, the machines and the journal of a run, while somebody drives it."""

    def __init__(
        self,
        header: Header,
        driver: Driver,
        machines: Machines,
        recorder: JournalRecorder,
        estimating: Estimating,
        clock: Callable[[], float],
        listener: Listener,
    ) -> None:
        self.header, self.driver, self.machines = header, driver, machines
        driver.observer = self
        self.begin: Callable[[], list[Command]] = driver.begin  # what is to be done first
        self.rest: Rest | None = None  # what of the whole workflow it does
        self.whole: Workflow | None = None  # before tasks were added; None: the run is resumed
        self.store: RunStore | None = None  # None: results are not known by their keys
        self.growing: Growing | None = None  # tasks that add others
        self.resources = ExitStack()  # what is let go of in the end
        self.recorder, self.estimating = recorder, estimating
        self.clock, self.listener = clock, listener
        self.failures: dict[int, Failure] = {}  # by task, the last one
        self._lost_workers: dict[int, list[str]] = {}  # by task, those that were lost under it
        self.measured: dict[int, float] = {}  # seconds by attempt, on the machine
        self.reported: dict[int, float] = {}  # the share done, by attempt, as the task says
        self.reused = set[int]()  # attempts that found all of it there already
        self.warnings: list[str] = []
        self.stopping = False  # the user has asked for it
        self.interrupted = False  # by Ctrl-C
        self.last_resort: LastResort | None = None  # while signals are handled
        self.attempts_before = 0  # of former sessions
        self._prepared: dict[int, Prepared] = {}  # by processor
        self._links = Links()
        self.requests: Requests | None = None  # what people ask of it meanwhile
        self.spending = Spending(self.coordinator, self.warn)
        self.overdue = Overdue(self.coordinator, machines.perform)
        self.lateness = Lateness(self.coordinator, self.warn)
        self._unsized = len(self.coordinator.tries.unknown)  # of which that has been said

    @property
    def coordinator(self) -> Coordinator:
        """The run's coordinator."""
        return self.driver.coordinator

    def warn(self, message: str) -> None:
        """Tell people now, and in the end again."""
        self.warnings.append(message)
        self.listener.said(message)

    def stop(self) -> None:
        """Finish what runs, and stop. May be called by a signal handler."""
        self.stopping = True
        self.machines.post(Paused(0.0, True))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            # else a signal ends the program as ever: the run has ended by itself
            with stop_on_signals(self) if self.stopping else nullcontext():
                self.resources.close()
        finally:
            if self.last_resort is not None:
                self.last_resort.close()

    def drive(self) -> Outcome:
        """Until the run ends or is stopped, which the journal is told."""
        home = RunHome(self.recorder.journal.path.parent)
        try:
            with stop_on_signals(self), Requests(self, home):
                self.listener.began(self)
                self.drive_from(self.begin())
        except StopNow:
            self.stopping = True
            self.coordinator.pass_time(self.clock())  # what was still running has cost until now
        self.spending.look(final=True)
        outcome = self.outcome()
        self.recorder.note("end", status=outcome.status, time=self.clock(), **outcome.paid())
        self.recorder.sync([])
        if not self.stopping:
            self.machines.on_end()
        self.listener.over(self, outcome)
        return outcome

    def drive_from(self, commands: list[Command]) -> None:
        """Until every task is done or given up, or the run is held back and nothing runs."""
        self._forget_speeds()
        self.ask_for_beat()
        self.driver.drive(commands)

    def take_tasks(self, workflow: Workflow, rest: Rest) -> None:
        """There are more tasks, at the end."""
        self.header, self.rest = replace(self.header, workflow=workflow), rest
        if self.store is not None and rest.survey is not None:
            self.store.survey_again(rest.survey, rest.numbers, rest.outer, rest.first)

    def look(self, events: list[Event]) -> None:
        """Note and show what was heard, once what follows from it is under way."""
        if self.growing is not None:
            events = [self.growing.as_heard(event) for event in events]
        for event in events:
            self.note(event)
            if self.store is not None and isinstance(event, TaskFinished):
                self.store.remove_spent(self.coordinator.state.attempt(event.attempt).task)
        if self.requests is not None and self.requests.awaited:
            self.requests.note(events)
        for line in self.coordinator.tries.unknown[self._unsized :]:
            self._unsized += 1
            self.warn(line)
        self.driver.perform(self._learn())
        self._prepare()
        self.spending.look()
        self.lateness.look()
        self.overdue.watch()
        self.listener.happened(self, events)
        self.estimating.learner.flush()

    def ask_for_beat(self) -> None:
        """Have it told that time has passed, after a share of the time so far."""
        now = self.clock()
        pause = min(MOST_BEAT, max(LEAST_BEAT, BEAT_SHARE * now))
        self.machines.perform(WakeAt(now + pause, Beat))

    def _forget_speeds(self) -> None:
        """What was measured in an earlier session counts no more."""
        for p in np.flatnonzero(self.coordinator.state.availability() != 1).tolist():
            self.machines.post(SpeedChanged(p, 0.0, 1.0))

    def read(self, event: Event) -> list[Heard]:
        """What the coordinator is to hear of it: processors that it does not know come before."""
        if self.growing is not None and isinstance(event, TaskFinished):
            return self.growing.read(event)
        if isinstance(event, ItemLost):
            return [as_lost(event, self.coordinator.workflow)]
        if isinstance(event, Beat):
            if self.coordinator.state.running():
                self.recorder.note("beat", **moment(self.clock))
            self.ask_for_beat()
            return []
        if isinstance(event, MachineMessage):
            self.warn(str((event.detail or {})["message"]))
            return []
        if isinstance(event, TasksOverdue):
            return self.overdue.take(event)
        if isinstance(event, SpeedChanged):
            detail = event.detail or {}
            if "progress" in detail:
                self.reported[int(detail["attempt"])] = float(detail["progress"])
            measured = as_measured(event, self.coordinator)
            return [] if measured is None else [measured]
        if isinstance(event, ProcessorGone):
            self._note_lost_worker(event)
        if not isinstance(event, ProcessorJoined):
            return [event]
        is_known = event.processor < self.coordinator.platform.n_processors
        return [event] if is_known else [self._estimate_grown(event.time), event]

    def _note_lost_worker(self, event: ProcessorGone) -> None:
        """Remember which task ran on a processor that is lost: it may be why."""
        state, workflow = self.coordinator.state, self.coordinator.workflow
        detail = event.detail or {}
        if detail.get(EXPECTED):
            return
        worker = detail.get(WORKER) or self.coordinator.platform.processor_names[event.processor]
        for attempt in state.running():
            if event.processor not in state.cores_of(attempt.number):
                continue
            workers = self._lost_workers.setdefault(attempt.task, [])
            workers.append(worker)
            name, run = workflow.task_names[attempt.task], workflow.spec(attempt.task).run
            times = "" if len(workers) == 1 else f" {len(workers)} times"
            reason = f"its worker died{times}: {', '.join(workers)}"
            self.failures[attempt.task] = Failure(name, reason, command=run, cause=LOST)

    def _estimate_grown(self, now: float) -> NewEstimates:
        options, known = self.header.options, self.coordinator.platform
        platform = self.machines.platform
        platform = priced(
            platform, self.machines.machine, options.price, options.transfer_price, known
        )
        platform = with_links(platform, self.machines.machine, self.estimating.history, known)
        estimates = self.estimating.predict(platform, self.machines).estimates
        return self._new_estimates(now, estimates, platform)

    def _new_estimates(self, now: float, estimates: Estimates, platform: Platform) -> NewEstimates:
        """Times are learnt while it runs; what tasks need stays what it was."""
        needs = self.coordinator.estimates.needs
        return NewEstimates(now, replace(estimates, needs=needs), platform)

    def note(self, event: Event) -> None:
        """Remember what people and the history want to know."""
        state, detail = self.coordinator.state, event.detail or {}
        if isinstance(event, ItemArrived) and detail:
            sent = state.transfer(event.transfer)
            self.estimating.observe_transfer(sent.source, sent.target, detail, self.machines)
            told = self._links.note_arrival(event.transfer, detail, self.coordinator, event.time)
            if told is not None:
                self.machines.post(told)
        if not isinstance(event, TaskFinished | TaskFailed):
            return
        self.reported.pop(event.attempt, None)
        _, task, processor, *_ = state.attempt(event.attempt)
        if isinstance(event, TaskFinished):
            self.failures.pop(task, None)
            if warning := detail.get("warning"):
                self.warn(warning)
            if UNDECLARED in detail:
                for made in find_not_kept([event], state, self.coordinator.workflow):
                    for line in made.stale_reads():  # the outcome has them, too
                        self.listener.said(line)
            if REUSED in detail:  # it took no time here
                self.reused.add(event.attempt)
                return
            share = state.share_of(event.attempt)
            seconds = self.estimating.observe(task, processor, detail, self.machines, share)
            if seconds is not None:
                self.measured[event.attempt] = seconds
            return
        workflow = self.coordinator.workflow
        if event.fault == OWN_FAULT:
            self.estimating.observe_failure(task, processor, detail, self.machines)
        reason = str(detail.get("reason", "it failed"))
        if event.fault == MACHINE_LOST:
            lost = self._lost_workers.setdefault(task, [])
            lost.append(reason)
            reason += f" ({len(lost)} times)" if len(lost) > 1 else ""
        self.failures[task] = Failure(
            workflow.task_names[task],
            reason,
            detail.get("log"),
            str(detail.get("tail", "")),
            workflow.spec(task).run,
            tuple(detail.get("unlisted", ())),
            detail.get("scratch"),
            detail.get(CAUSE),
        )

    def _learn(self) -> list[Command]:
        """Tell the coordinator what the run has taught so far, if that changes much."""
        platform = self.coordinator.platform
        if self.store is not None:
            self.estimating.note_free(self.store.take_up_to_date())
        estimates = self.estimating.revise(platform, self.machines)
        commands = []
        if estimates is not None:
            commands = self.driver.hear(self._new_estimates(self.clock(), estimates, platform))
        if self.estimating.take_fresh() and knows_enough(
            self.header, self.coordinator, self.estimating
        ):
            new = NewStrategy(self.clock(), PLANNED, KNOWN)
            commands += self.driver.hear(new)
        return commands

    def _prepare(self) -> None:
        """Tell the machines what comes next, where that has changed."""
        if self.machines.ahead <= 0:
            return
        coordinator = self.coordinator
        pace = self.estimating.pace
        seconds, alone = self.machines.ahead / pace, self.machines.alone / pace
        for p in np.flatnonzero(coordinator.state.present()).tolist():
            told = self._prepared.get(p)
            if told is not None and told.is_enough(coordinator):
                continue
            coming = coordinator.coming(p, seconds)
            if not coming.tasks and alone > seconds:
                coming = replace(coming, tasks=coordinator.coming(p, alone).tasks[:1])
            if told is None or told.tasks[len(told.tasks) - len(coming.tasks) :] != coming.tasks:
                self.machines.perform(coming)
            self._prepared[p] = Prepared.by(coordinator, coming)

    def _failure(self, task: int) -> Failure:
        """Why a task failed last, and why it is not tried again, if that is not plain."""
        failure, why = self.failures[task], self.coordinator.tries.exhausted.get(task)
        return failure if why is None else replace(failure, reason=f"{failure.reason}; {why}")

    def _orphans(self, status: str) -> list[str]:
        """A sentence on outputs that no task makes any more, if all tasks are known."""
        rest, header = self.rest, self.header
        if self.whole is None or rest is None or rest.survey is None:
            return []
        if self.whole.grows and (status != FINISHED or rest.left_out):
            return []
        options = header.options
        store = rest.survey.store
        return report_orphans(store, header.source, options, self.whole, header.workflow)

    def outcome(self) -> Outcome:
        """How it ended."""
        c, wf = self.coordinator, self.header.workflow
        given_up = c.given_up
        status = FAILED if given_up else STOPPED
        status = FINISHED if c.n_done == wf.n_tasks else status
        undone = set(range(wf.n_tasks)) - set(c.state.tasks(TaskState.DONE).tolist())
        run = live_record(self.driver, self.header.strategy, self.header.platform.n_processors)
        return Outcome(
            id=self.header.id,
            home=self.recorder.journal.path.parent,
            status=status,
            run=run,
            estimated=None if self.header.blind else run.planned,
            failures=tuple(self._failure(t) for t in given_up if t in self.failures),
            not_done=tuple(wf.task_names[t] for t in sorted(undone)),
            reused=tuple(wf.task_names[t] for t in found_up_to_date(c.state, self.reused)),
            warnings=(*self.warnings, *self._orphans(status)),
            undeclared=find_not_kept(self.driver.events or (), c.state, c.workflow),
            measured=self.measured,
            rest=self.rest,
            money=self.spending.money,
            needed=self.spending.needed(),
        )
