"""Sittings: a run is started, or gone on with, and driven until it ends or stops."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from weft import registry
from weft.coordinator import Coordinator
from weft.errors import InputError, WeftError
from weft.journal.lock import RunLock
from weft.journal.log import Contents, Journal
from weft.journal.places import RunHome
from weft.kernels import board as b
from weft.live.estimating import Estimating
from weft.live.header import Header, now_in_words
from weft.live.machines import check_on, open_machines
from weft.live.options import Options
from weft.live.outcome import Outcome
from weft.live.recorder import JournalRecorder
from weft.live.replay import replay
from weft.live.requests import Requests
from weft.live.session import Listener, Session, Silent
from weft.live.signals import StopNow, listening
from weft.live.workflows import check_same
from weft.model import Call, Workflow
from weft.model.events import Command, Event, EventKind, SendItem, StartTask, WakeAt
from weft.wiring import Progress

AUTO = "auto"
REST = 50.0  # at most so small a share of a run is spent on plans because of late starts
PLANNED, BLIND = "slack", "fifo"  # what `auto` means with estimates, and without


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


def start(
    workflow: Workflow,
    options: Options,
    calls: Sequence[Call] | None = None,
    source: str | None = None,
    listener: Listener | None = None,
    fetch: Callable[[Path, Any], Any] | None = None,
) -> Outcome:
    """A new run. `fetch` finds the result of a function; without it a run has only files."""
    check_on(options.on)
    if options.strategy != AUTO:
        _check_strategy(options.strategy)
    _check_work(workflow, calls, options)
    listener = listener or Silent()
    with ExitStack() as stack:
        home = RunHome.create(options.directory, workflow.name)
        clock = Clock()
        stack.enter_context(RunLock(home))
        machines = open_machines(workflow, calls, options, home, clock)
        stack.callback(machines.close)
        estimating = Estimating.open(workflow, options, home.id, calls, listener.said)
        stack.callback(estimating.learner.close)
        prediction = estimating.predict(machines.platform, machines)
        strategy = options.strategy
        if strategy == AUTO:
            strategy = BLIND if prediction.blind else PLANNED
        listener.said(prediction.message())
        policy, planner = registry.strategy(strategy)
        platform, n = machines.platform, machines.platform.n_processors
        header = Header(
            id=home.id,
            workflow=workflow,
            platform=platform,
            machines=tuple(machines.machine(p) for p in range(n)),
            estimates=prediction.estimates,
            strategy=strategy,
            rest=REST,
            options=options,
            functions=calls is not None,
            blind=prediction.blind,
            source=source,
            created=now_in_words(),
        )
        journal = Journal.create(home.journal, header.to_dict())
        stack.callback(journal.close)
        coordinator = Coordinator(
            workflow, platform, prediction.estimates, policy, options.tolerance(), REST
        )
        recorder = JournalRecorder(journal)
        progress = Progress(coordinator, planner, recorder, events=[])
        session = Session(header, progress, machines, recorder, estimating, clock, listener)
        _warn_of_limits(session, calls)
        clock.set(0.0)
        return _sit(session, lambda: progress.settled(coordinator.begin()), fetch)


def resume(
    home: RunHome,
    workflow: Workflow | None = None,
    calls: Sequence[Call] | None = None,
    on: Any = None,
    listener: Listener | None = None,
    fetch: Callable[[Path, Any], Any] | None = None,
) -> Outcome:
    """Go on with a run. `workflow`, if given, must be what it was."""
    listener = listener or Silent()
    with ExitStack() as stack:
        stack.enter_context(RunLock(home))
        journal, contents = Journal.open(home.journal)
        stack.callback(journal.close)
        if contents.damage is not None:
            listener.said(contents.damage.message)
        replayed = replay(contents, home.data)
        header, progress = replayed.header, replayed.progress
        if workflow is not None:
            check_same(header.workflow, workflow, header.id)
        if header.functions and calls is None:
            raise InputError(
                f"run {header.id} is of Python functions, which are in no journal: go on with it "
                f"from Python, with weft.run(flow, resume={header.id!r})"
            )
        coordinator = progress.coordinator
        on = _with_added(header.options.on, coordinator) if on is None else on
        options = replace(header.options, on=on)
        clock = Clock(_last_time(contents, coordinator))
        machines = open_machines(header.workflow, calls, options, home, clock, coordinator.platform)
        stack.callback(machines.close)
        estimating = Estimating.open(header.workflow, options, header.id, calls, listener.said)
        stack.callback(estimating.learner.close)
        recorder = JournalRecorder(journal)
        progress.recorder = recorder
        session = Session(header, progress, machines, recorder, estimating, clock, listener)
        recorder.note("resumed", time=clock(), created=now_in_words())
        return _sit(session, lambda: _take_up(session), fetch)


def _take_up(session: Session) -> list[Command]:
    """What happened while nobody looked, and what is to be done now."""
    coordinator, board = session.coordinator, session.coordinator.board
    now = coordinator.now
    open_ones = np.flatnonzero(board.attempt_end[: board.counts[b.N_ATTEMPTS]] == b.OPEN).tolist()
    running = [
        StartTask(k, int(board.attempt_task[k]), int(board.attempt_on[k]), now) for k in open_ones
    ]
    here = np.flatnonzero(board.held == b.HERE).tolist()
    held = [divmod(pair, board.n_hosts) for pair in here]
    commands: list[Command] = []
    if coordinator.asked is not None and board.present.any():
        commands += session.progress.settled([coordinator.asked])
    for event in session.machines.recover(running, held):
        if not _is_known(coordinator, event):
            commands += session.hear(event)
            session.note(event)
    if board.counts[b.HELD_BACK] or coordinator.given_up:
        commands += session.hear(Event(EventKind.PAUSED, 0, session.clock(), 0.0))
    for again in _sends(coordinator, commands):
        session.machines.perform(again)
    if np.isfinite(coordinator.board.wake[0]):  # nor of the next rescheduling point
        session.machines.perform(WakeAt(max(session.clock(), float(coordinator.board.wake[0]))))
    leaves = coordinator.board.leaves
    for p in np.flatnonzero(coordinator.board.present & np.isfinite(leaves)).tolist():
        session.machines.drain(p, float(leaves[p]))  # the machines do not know of it yet
    return commands


def _with_added(on: Any, coordinator: Coordinator) -> Any:
    """Where a run goes on: `local:2` is more if processors were added to it."""
    name, _, declared = str(on).partition(":")
    if name != "local" or not declared.isdecimal():
        return on
    names = enumerate(coordinator.platform.processor_names, 1)
    own = [k for k, p in names if p == f"local-{k}" and coordinator.board.present[k - 1]]
    return f"local:{max([int(declared), *own])}"


def _is_known(coordinator: Coordinator, event: Event) -> bool:
    """Whether a processor that is said to come or go is known to be there or away."""
    if event.kind not in (EventKind.JOINED, EventKind.GONE):
        return False
    present = coordinator.board.present
    there = event.which < len(present) and bool(present[event.which])
    return there == (event.kind == EventKind.JOINED)


def _sends(coordinator: Coordinator, commands: list[Command]) -> list[Command]:
    """Transfers that were under way are begun again."""
    board, new = coordinator.board, {c.transfer for c in commands if isinstance(c, SendItem)}
    moving = np.flatnonzero(np.isnan(board.transfer_arrival[: board.counts[b.N_TRANSFERS]]))
    return [
        SendItem(
            k,
            int(board.transfer_item[k]),
            int(board.transfer_from[k]),
            int(board.transfer_to[k]),
            coordinator.now,
        )
        for k in moving.tolist()
        if k not in new
    ]


def _sit(
    session: Session,
    begin: Callable[[], list[Command]],
    fetch: Callable[[Path, Any], Any] | None,
) -> Outcome:
    """Drive the run, and say in the journal how it ended."""
    home = RunHome(session.recorder.journal.path.parent)
    results = home.results
    try:
        with listening(session), Requests(session, home):
            session.listener.began(session)
            session.drive(begin())
    except StopNow:
        session.stopping = True
    outcome = session.outcome(None if fetch is None else lambda task: fetch(results, task))
    session.recorder.note("end", status=outcome.status, time=session.clock())
    session.recorder.sync([])
    session.listener.over(session, outcome)
    return outcome


def _last_time(contents: Contents, coordinator: Coordinator) -> float:
    times = [entry["time"] for entry in contents.entries if "time" in entry]
    return max(coordinator.now, *(float(t) for t in times), 0.0)


def _check_strategy(spec: str) -> None:
    policy, _ = registry.strategy(spec)
    if policy.name == "ideal":
        raise InputError("`ideal` knows what tasks will really take: only a simulation can do that")


def _warn_of_limits(session: Session, calls: Sequence[Call] | None) -> None:
    """Say what these machines cannot do, before people count on it."""
    wf, options = session.header.workflow, session.header.options
    timed = options.timeout is not None or any(s.timeout is not None for s in wf.specs.values())
    if calls is not None and timed and not options.place.startswith("local"):
        session.warn("time-outs of functions are not kept on Dask: a thread cannot be stopped")


def _check_work(workflow: Workflow, calls: Sequence[Call] | None, options: Options) -> None:
    """Every task must have something to run, and its files must stay where they belong."""
    if calls is None:
        from weft.executors.paths import check_paths

        check_paths(workflow, options.absolute)
        _check_inputs(workflow, options.directory)
    elif len(calls) != workflow.n_tasks:
        raise WeftError(f"{len(calls)} functions for {workflow.n_tasks} tasks")


def _check_inputs(workflow: Workflow, directory: Path) -> None:
    """What no task makes must be there from the start."""
    names = workflow.item_names or ()
    outside = [names[i] for i in np.flatnonzero(workflow.item_producer < 0).tolist() if names]
    missing = [name for name in outside if name and not (directory / name).exists()]
    if missing:
        listed = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise InputError(
            f"{len(missing)} input files are not there, and no task makes them: {listed}; put "
            "them there, or say with --dir where they are",
            source=str(directory.absolute()),
        )
