"""One sitting of a run on real machines: from its start, or a resume, until it ends or stops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from weft.coordinator import Coordinator
from weft.kernels import board as b
from weft.live import heartbeat
from weft.live.deadlines import Lateness
from weft.live.estimating import Estimating
from weft.live.header import Header
from weft.live.heartbeat import Heartbeat
from weft.live.measured import Links, as_measured
from weft.live.outcome import FAILED, FINISHED, STOPPED, Failure, Outcome
from weft.live.overdue import WHY, Overdue
from weft.live.prices import priced
from weft.live.recorder import JournalRecorder
from weft.live.replay import live_record
from weft.live.spending import Spending
from weft.live.switching import KNOWN, PLANNED, knows_enough
from weft.model.events import (
    CancelTask,
    Command,
    DropTransfer,
    Event,
    EventKind,
    NewEstimates,
    NewStrategy,
    Prepare,
)
from weft.wiring import Progress, perform, stuck

if TYPE_CHECKING:
    from weft.contracts import Machines
    from weft.live.requests import Requests

UNDONE = (CancelTask, DropTransfer)
BATCH = 512  # events that are heard before anything is done about them


class Listener(Protocol):
    """Whoever shows a run while it goes on."""

    def began(self, session: Session) -> None:
        """The run is about to start, or to go on."""
        ...

    def happened(self, session: Session, events: list[Event]) -> None:
        """These things happened, and what they lead to is under way."""
        ...

    def said(self, message: str) -> None:
        """Something that people should know."""
        ...

    def over(self, session: Session, outcome: Outcome) -> None:
        """The run has ended, or was stopped."""
        ...


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
class Told:
    """What the machines were told to come next on a processor, and under which plan."""

    processor: int
    tasks: tuple[int, ...]
    version: int
    end: int  # in the queue
    whole: bool  # else the next task in the queue is not ready

    @staticmethod
    def by(coordinator: Coordinator, coming: Prepare) -> Told:
        """What was told just now."""
        board, p = coordinator.board, coming.processor
        end = int(board.queue_at[p]) + len(coming.tasks)
        whole = end >= board.queue_end[p] or board.missing[board.queue[end]] == 0
        return Told(p, coming.tasks, coordinator.version, end, bool(whole))

    def will_do(self, coordinator: Coordinator) -> bool:
        """Whether more than half of it is still to come: many are told of at a time."""
        if self.version != coordinator.version or not self.whole:
            return False
        return 2 * (self.end - int(coordinator.board.queue_at[self.processor])) > len(self.tasks)


class Session:
    """The coordinator, the machines and the journal of a run, while somebody drives it."""

    def __init__(
        self,
        header: Header,
        progress: Progress,
        machines: Machines,
        recorder: JournalRecorder,
        estimating: Estimating,
        clock: Callable[[], float],
        listener: Listener,
    ) -> None:
        self.header, self.progress, self.machines = header, progress, machines
        self.recorder, self.estimating = recorder, estimating
        self.clock, self.listener = clock, listener
        self.failures: dict[int, Failure] = {}  # by task, the last one
        self.measured: dict[int, float] = {}  # seconds by attempt, on the machine
        self.reported: dict[int, float] = {}  # the share done, by attempt, as the task says
        self.warnings: list[str] = []
        self.stopping = False  # the user has asked for it
        self.attempts_before = 0  # of former sittings
        self._told: dict[int, Told] = {}  # by processor
        self._links = Links()
        self.requests: Requests | None = None  # what people ask of it meanwhile
        self.spending = Spending(self.coordinator, self.warn)
        self.overdue = Overdue(self.coordinator, machines.post, clock)
        self.lateness = Lateness(self.coordinator, self.warn)
        self.heartbeat = Heartbeat(machines.post, clock, self._something_runs)

    @property
    def coordinator(self) -> Coordinator:
        """The run's coordinator."""
        return self.progress.coordinator

    def warn(self, message: str) -> None:
        """Tell people now, and in the end again."""
        self.warnings.append(message)
        self.listener.said(message)

    def stop(self) -> None:
        """Finish what runs, and stop. May be called by a signal handler."""
        self.stopping = True
        self.machines.post(Event(EventKind.PAUSED, 0, 0.0, 1.0))

    def drive(self, commands: list[Command]) -> None:
        """Until every task is done or given up, or the run is held back and nothing runs."""
        events: list[Event] = []
        self._forget_speeds()
        self.heartbeat.begin()
        while True:
            self._perform(commands)
            for event in events:
                self.note(event)
            if self.requests is not None:
                self.requests.heard(events)
            self._perform(self._learn())
            self._prepare()
            self.spending.look()
            self.lateness.look()
            self.overdue.watch()
            self.listener.happened(self, events)
            self.estimating.learner.flush()
            if self.coordinator.done or self.coordinator.halted:
                return
            commands, events = self._listen()

    def _perform(self, commands: list[Command]) -> None:
        """Have it done at once: what is noted and shown of what was heard can wait."""
        if not commands and not self.recorder.pending:
            return
        self.machines.foresee(commands)
        perform(self.progress, self.machines, commands)
        self.machines.flush()

    def _something_runs(self) -> bool:
        return bool((self.coordinator.board.running >= 0).any())

    def _forget_speeds(self) -> None:
        """What was measured in an earlier sitting counts no more."""
        for p in np.flatnonzero(self.coordinator.board.availability != 1).tolist():
            self.machines.post(Event(EventKind.AVAILABILITY, p, 0.0, 1.0))

    def _listen(self) -> tuple[list[Command], list[Event]]:
        """All that has happened meanwhile, and what it leads to."""
        commands, events = list[Command](), list[Event]()
        event = self.machines.next_event()
        if event is None:
            raise stuck(self.coordinator)
        while event is not None:
            if event.detail == heartbeat.WHY:
                self.recorder.note("beat", **heartbeat.moment(self.clock))
            else:
                commands += self.hear(event)
                events.append(event)
            # what is cancelled or dropped must be so before more is heard of it
            more = len(events) < BATCH and not any(isinstance(c, UNDONE) for c in commands)
            event = self.machines.next_event(wait=False) if more else None
        return commands, events

    def hear(self, event: Event) -> list[Command]:
        """Tell the coordinator, after the processors that it does not know yet."""
        commands = []
        if event.kind == EventKind.AVAILABILITY:
            overdue, detail = event.detail == WHY, event.detail or {}
            if "progress" in detail:
                self.reported[int(detail["attempt"])] = float(detail["progress"])
            measured = self.overdue.told(event) if overdue else as_measured(event, self.coordinator)
            if measured is None:
                return []
            event = measured
        if event.kind == EventKind.JOINED and event.which >= self.coordinator.platform.n_processors:
            commands = self.progress.hear(self._new_processors(event.time))
        return commands + self.progress.hear(event)

    def _new_processors(self, now: float) -> NewEstimates:
        options, known = self.header.options, self.coordinator.platform
        platform = self.machines.platform
        platform = priced(
            platform, self.machines.machine, options.price, options.transfer_price, known
        )
        estimates = self.estimating.estimates(platform, self.machines)
        return NewEstimates(now, estimates, platform)

    def note(self, event: Event) -> None:
        """Remember what people and the history want to know."""
        board, detail = self.coordinator.board, event.detail or {}
        if event.kind == EventKind.ITEM_ARRIVED and detail:
            ends = int(board.transfer_from[event.which]), int(board.transfer_to[event.which])
            self.estimating.observe_transfer(*ends, detail, self.machines)
            told = self._links.arrived(event.which, detail, self.coordinator, event.time)
            if told is not None:
                self.machines.post(told)
        if event.kind not in (EventKind.TASK_FINISHED, EventKind.TASK_FAILED):
            return
        self.reported.pop(event.which, None)
        task, processor = int(board.attempt_task[event.which]), int(board.attempt_on[event.which])
        if event.kind == EventKind.TASK_FINISHED:
            self.failures.pop(task, None)
            seconds = self.estimating.observe(task, processor, detail, self.machines)
            if seconds is not None:
                self.measured[event.which] = seconds
            return
        workflow = self.coordinator.workflow
        self.failures[task] = Failure(
            workflow.task_names[task],
            str(detail.get("reason", "it failed")),
            detail.get("log"),
            str(detail.get("tail", "")),
            workflow.spec(task).run,
            tuple(detail.get("unlisted", ())),
        )

    def _learn(self) -> list[Command]:
        """Tell the coordinator what the run has taught so far, if that changes much."""
        platform = self.coordinator.platform
        estimates = self.estimating.revised(platform, self.machines)
        commands = []
        if estimates is not None:
            commands = self.progress.hear(NewEstimates(self.clock(), estimates, platform))
        if knows_enough(self.header, self.coordinator, self.estimating):
            new = NewStrategy(self.clock(), PLANNED, KNOWN)
            self.listener.said(f"from now on by plans (`{PLANNED}`): {KNOWN}")
            commands += self.progress.hear(new)
        return commands

    def _prepare(self) -> None:
        """Tell the machines what comes next, where that has changed."""
        if self.machines.ahead <= 0:
            return
        coordinator = self.coordinator
        pace = self.estimating.pace
        seconds, alone = self.machines.ahead / pace, self.machines.alone / pace
        for p in np.flatnonzero(coordinator.board.present).tolist():
            told = self._told.get(p)
            if told is not None and told.will_do(coordinator):
                continue
            coming = coordinator.coming(p, seconds)
            if not coming.tasks and alone > seconds:
                coming = replace(coming, tasks=coordinator.coming(p, alone).tasks[:1])
            if told is None or told.tasks[len(told.tasks) - len(coming.tasks) :] != coming.tasks:
                self.machines.perform(coming)
            self._told[p] = Told.by(coordinator, coming)

    def outcome(self, fetch: Callable[[Any], Any] | None) -> Outcome:
        """How it ended."""
        c, wf = self.coordinator, self.header.workflow
        given_up, money = c.given_up, self.spending.last()
        status = FAILED if given_up else STOPPED
        status = FINISHED if c.n_done == wf.n_tasks else status
        undone = np.flatnonzero(c.board.status != b.DONE).tolist()
        return Outcome(
            id=self.header.id,
            home=self.recorder.journal.path.parent,
            status=status,
            run=live_record(self.progress, self.header.strategy, self.header.platform.n_processors),
            failures=tuple(self.failures[t] for t in given_up if t in self.failures),
            not_done=tuple(wf.task_names[t] for t in undone),
            warnings=tuple(self.warnings),
            measured=self.measured,
            fetch=fetch,
            money=money,
            needed=self.spending.needed(),
        )
