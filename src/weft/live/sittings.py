"""Sittings: a run is started, or gone on with, and driven until it ends or stops."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weft import registry
from weft.coordinator import Coordinator
from weft.errors import InputError
from weft.journal.claims import claim, release
from weft.journal.lock import RunLock
from weft.journal.log import Contents, Journal
from weft.journal.places import RunHome
from weft.journal.system import check_system
from weft.kernels import board as b
from weft.live.checks import check_work, outputs, warn_of_limits
from weft.live.deadlines import (
    check_foreseeable,
    check_in_time,
    give_deadline,
    within_limits,
)
from weft.live.digests import PYTHON, check_calls, digests_of
from weft.live.estimating import Estimating
from weft.live.header import RULES, Header, now_in_words, rules_of
from weft.live.heartbeat import last_moment, moment
from weft.live.machines import check_on, open_machines
from weft.live.options import Options
from weft.live.outcome import Outcome
from weft.live.prices import costs_money, in_words, priced, unused
from weft.live.recorder import JournalRecorder
from weft.live.replay import Replayed, replay
from weft.live.requests import Requests
from weft.live.session import Listener, Session, Silent
from weft.live.signals import StopNow, listening
from weft.live.spending import (
    check_payable,
    check_strategy,
    give_budget,
)
from weft.live.switching import AUTO, chosen_strategy, meanwhile_imported
from weft.live.taking_up import take_up, with_added
from weft.live.workflows import check_same, in_their_shell
from weft.model import Call, Platform, Workflow
from weft.model.events import Command
from weft.quantities import amount
from weft.wiring import Progress

if TYPE_CHECKING:
    from weft.contracts import Machines

REST = 50.0  # at most so small a share of a run is spent on plans because of late starts


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
    check_system()
    check_on(options.on)
    purse = options.purse()
    if options.strategy != AUTO:
        check_strategy(options.strategy, purse.kept)
    check_work(workflow, calls, options)
    listener = listener or Silent()
    with ExitStack() as stack:
        with meanwhile_imported(options):
            home = RunHome.create(options.directory, workflow.name)
            stack.callback(_remove_unused, home)
            clock = Clock()
            stack.enter_context(RunLock(home))
            claim(home, outputs(workflow, calls))
            machines = open_machines(workflow, calls, options, home, clock)
        stack.callback(machines.close)
        estimating = Estimating.open(workflow, options, home.id, calls, listener.said)
        stack.callback(estimating.learner.close)
        prediction = estimating.predict(machines.platform, machines)
        platform = _priced(machines, options, listener)
        if purse.kept:
            check_payable(platform, prediction.blind)
        strategy = chosen_strategy(options, prediction.blind)
        if options.deadline is not None:
            check_foreseeable(strategy, prediction.blind)
        listener.said(prediction.message(strategy if options.strategy == AUTO else None))
        policy, planner = registry.strategy(strategy)
        header = Header(
            id=home.id,
            workflow=workflow,
            platform=platform,
            machines=tuple(machines.machine(p) for p in range(platform.n_processors)),
            estimates=prediction.estimates,
            strategy=strategy,
            rest=REST,
            options=options,
            functions=calls is not None,
            blind=prediction.blind,
            source=source,
            created=now_in_words(),
            python=PYTHON,
            digests=None if calls is None else tuple(digests_of(calls)),
        )
        coordinator = Coordinator(
            workflow,
            platform,
            prediction.estimates,
            policy,
            options.tolerance(),
            REST,
            purse,
            options.ends_by,
        )
        planner = planner and within_limits(planner, coordinator)
        recorder = JournalRecorder()
        progress = Progress(coordinator, planner, recorder, events=[])
        # where no plan may keep the limits, nothing has begun before there is one
        first = progress.settled(coordinator.begin()) if options.limited else None
        check_in_time(coordinator)
        if coordinator.plan is not None and not purse.reserves_for(coordinator.plan):
            listener.said(
                f"the reserve of {options.reserve:.0%} cannot be kept: the cheapest plan found "
                f"costs {amount(coordinator.plan.cost)} of {amount(purse.budget)}"
            )
        recorder.begin(Journal.create(home.journal, header.to_dict()))
        stack.callback(recorder.journal.close)
        session = Session(header, progress, machines, recorder, estimating, clock, listener)
        warn_of_limits(session, calls)
        clock.set(0.0)
        recorder.note("beat", **moment(clock))
        begin = (lambda: progress.settled(coordinator.begin())) if first is None else lambda: first
        return _sit(session, begin, fetch)


def _remove_unused(home: RunHome) -> None:
    """A run that has not even begun its journal leaves nothing behind."""
    if not home.journal.exists():
        release(home)
        shutil.rmtree(home.path, ignore_errors=True)


def _priced(machines: Machines, options: Options, listener: Listener) -> Platform:
    """The machines with their prices, which are told."""
    rules = options.price
    platform = priced(machines.platform, machines.machine, rules, options.transfer_price)
    if costs_money(platform):
        listener.said(in_words(platform))
    for pattern in unused(platform, machines.machine, rules):
        known = ", ".join(platform.processor_names[:5])
        more = ", ..." if platform.n_processors > 5 else ""
        listener.said(f"no processor is meant by the price of {pattern!r} yet: {known}{more}")
    return platform


def resume(
    home: RunHome,
    workflow: Workflow | None = None,
    calls: Sequence[Call] | None = None,
    on: Any = None,
    listener: Listener | None = None,
    fetch: Callable[[Path, Any], Any] | None = None,
    budget: float | None = None,
    over_budget: str | None = None,
    deadline: float | None = None,
) -> Outcome:
    """Go on with a run. `workflow`, if given, must be what it was.

    With another `budget`, another thing to do `over_budget`, or another `deadline`, if given.
    """
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
        claim(home, outputs(header.workflow, calls))
        give_deadline(progress, header.id, deadline)
        changed = {} if calls is None else _check_calls(replayed, contents, calls, listener)
        give_budget(progress, header.id, budget, over_budget)
        coordinator = progress.coordinator
        on = with_added(header.options.on, coordinator) if on is None else on
        options = replace(header.options, on=on)
        clock, known = Clock(replayed.until), last_moment(contents.entries)
        work = in_their_shell(header.workflow, rules_of(contents.header))
        machines = open_machines(work, calls, options, home, clock, coordinator.platform)
        stack.callback(machines.close)
        estimating = Estimating.open(header.workflow, options, header.id, calls, listener.said)
        stack.callback(estimating.learner.close)
        recorder = JournalRecorder(journal)
        progress.recorder = recorder
        session = Session(header, progress, machines, recorder, estimating, clock, listener)
        session.attempts_before = int(coordinator.board.counts[b.N_ATTEMPTS])
        then: dict[str, Any] = {} if over_budget is None else {"over_budget": over_budget}
        then |= {} if deadline is None else {"deadline": deadline}
        then |= {"digests": changed} if changed else {}
        clock.set(replayed.until)  # finding the machines is no time of the run
        recorder.note("resumed", time=clock(), created=now_in_words(), rules=RULES, **then)
        coordinator.forget_alarm()
        return _sit(session, lambda: take_up(session, clock.set, known, budget), fetch)


def _check_calls(
    replayed: Replayed, contents: Contents, calls: Sequence[Call], listener: Listener
) -> dict[str, str | None]:
    """Refuse functions and arguments that are not what they were; what may have changed, if any."""
    header, board = replayed.header, replayed.progress.coordinator.board
    if header.digests is None or header.python != PYTHON:
        why = "its journal does not know them" if header.digests is None else "Python is another"
        listener.said(
            f"whether functions and arguments are what they were cannot be checked: {why}"
        )
        return {}
    known = dict(enumerate(header.digests))
    for entry in contents.entries:
        if entry.get("t") == "resumed":
            known |= {int(task): digest for task, digest in entry.get("digests", {}).items()}
    used = np.isin(board.status, [b.DONE, b.RUNNING])
    names = header.workflow.task_names
    changed = check_calls(names, known, calls, lambda task: bool(used[task]), header.id)
    unknown = [names[t] for t in np.flatnonzero(used).tolist() if known.get(t) is None]
    if unknown:
        listed = ", ".join(unknown[:5]) + (", ..." if unknown[5:] else "")
        listener.said(f"whether these tasks have changed cannot be checked: {listed}")
    return {str(task): digest for task, digest in changed.items()}


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
        session.coordinator.pass_time(session.clock())  # what was still running has cost until now
    finally:
        session.overdue.close()
        session.heartbeat.close()
    outcome = session.outcome(None if fetch is None else lambda task: fetch(results, task))
    session.recorder.note("end", status=outcome.status, time=session.clock(), **_paid(outcome))
    session.recorder.sync([])
    session.listener.over(session, outcome)
    return outcome


def _paid(outcome: Outcome) -> dict[str, float]:
    """For whoever only looks at the end of the journal."""
    if outcome.money is None:
        return {}
    amounts = {"cost": outcome.money.spent, "projected": outcome.money.projected}
    amounts["budget"] = outcome.run.budget
    return {name: amount for name, amount in amounts.items() if math.isfinite(amount)}
