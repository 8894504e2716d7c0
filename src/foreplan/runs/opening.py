"""How a run is begun or resumed: everything that it needs is looked at before anything is done."""

from __future__ import annotations

import importlib
import math
import shutil
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from foreplan import registry
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.state import TaskState
from foreplan.errors import ForeplanError, InputError
from foreplan.executors.base import Workload, find_scheme
from foreplan.executors.processes import LockSignature
from foreplan.files import in_file
from foreplan.model import Platform, Workflow
from foreplan.model.call import Calls
from foreplan.model.events import (
    Command,
    Event,
    ItemLost,
    Paused,
    ProcessorGone,
    ProcessorJoined,
    RetryDue,
    SendItem,
    StartTask,
    TaskFailed,
    TaskFinished,
    WakeAt,
)
from foreplan.model.resources import check_fits
from foreplan.quantities import amount, first_few
from foreplan.runs.entries import (
    Header,
    JournalRecorder,
    check_same,
    now_in_words,
)
from foreplan.runs.estimates import Estimating, with_links
from foreplan.runs.growing import Growing
from foreplan.runs.home import RunHome, check_system
from foreplan.runs.journal import Contents, Journal
from foreplan.runs.lock import RunLock, claim, release
from foreplan.runs.money import (
    budget_event,
    check_foreseeable,
    check_in_time,
    check_payable,
    check_strategy,
    costs_money,
    give_budget,
    give_deadline,
    in_words,
    priced,
    unused,
    within_limits,
)
from foreplan.runs.options import PLANNED, WARN, Options, chosen_strategy
from foreplan.runs.preparing import prepare_directory
from foreplan.runs.replay import Replayed, replay, reused_attempts, set_out
from foreplan.runs.rest import Rest
from foreplan.runs.session import (
    Clock,
    Listener,
    Session,
    Silent,
    at_their_times,
    last_moment,
    moment,
)
from foreplan.runs.surveys import uses_store
from foreplan.runs.unmade import note_origin
from foreplan.shell import check_listed, check_redirections
from foreplan.store.digests import PYTHON, check_calls, digests_of

if TYPE_CHECKING:
    from foreplan.contracts import Machines
    from foreplan.store.run import RunStore


def workload(
    workflow: Workflow,
    calls: Calls | None,
    options: Options,
    store: RunStore | None = None,
) -> Workload:
    """What the machines have to know of a run."""
    return Workload(
        workflow,
        calls,
        options.directory.absolute(),
        options.shared,
        options.timeout,
        options.keep_results,
        options.absolute,
        store,
        options.limit,
        options.targets,
        options.tasks_per_worker,
        options.mismatch == WARN,
    )


def open_machines(
    workflow: Workflow,
    calls: Calls | None,
    options: Options,
    home: RunHome,
    clock: Callable[[], float],
    store: RunStore | None,
    known: Platform | None = None,
) -> Machines:
    """The executor for `--on`; on resume, with the platform that the run knew."""
    work = workload(workflow, calls, options, store)
    return find_scheme(options.on).open(options.on, work, home.path, clock, known)


def check_work(workflow: Workflow, calls: Calls | None, options: Options) -> None:
    """Every task must have something to run, and its files must stay where they belong."""
    if calls is not None and len(calls) != workflow.n_tasks:
        raise ForeplanError(f"{len(calls)} functions for {workflow.n_tasks} tasks")
    if calls is not None and any(s.expand and calls[t] is None for t, s in workflow.specs.items()):
        raise InputError("the commands of a flow cannot add tasks: `expand` is for workflow files")
    if options.tasks_per_worker is not None and not find_scheme(options.on).here:
        raise InputError(
            f"`tasks_per_worker` is for worker processes of this machine, not for {options.place}: "
            "leave it out, or run on `local`"
        )
    work = workload(workflow, calls, options)
    if workflow.item_names is not None or len(work.functions) < workflow.n_tasks:
        from foreplan.executors.paths import check_paths

        check_paths(workflow, options.absolute, work.functions)
        check_listed(workflow)
    find_scheme(options.on).check_work(work)


def outputs(workflow: Workflow) -> list[str]:
    """The files that a run makes; functions declare none."""
    if workflow.item_names is None:
        return []
    made = zip(workflow.item_names, workflow.item_producer.tolist(), strict=True)
    return [name for name, task in made if name is not None and task >= 0]


def warn_of_limits(session: Session, calls: Calls | None) -> None:
    """Say what these machines cannot do, before people count on it."""
    options = session.header.options
    work = workload(session.header.workflow, calls, options)
    for limit in find_scheme(options.on).limits(work):
        session.warn(limit)


def tell_ways(session: Session, calls: Calls | None, options: Options) -> None:
    """Say how these machines do what was asked for."""
    work = workload(session.header.workflow, calls, options)
    for way in find_scheme(options.on).ways(work):
        session.listener.said(way)


def take_up(
    session: Session,
    set_clock: Callable[[float], None],
    known: tuple[float, float] | None,
    budget: float | None,
    outdated: Collection[int] = (),
) -> list[Command]:
    """What happened while nobody looked, and what is to be done now.

    The run's clock stands still while nobody drives it, but not while anything of it still ran:
    `known` is the last moment that the journal has by both clocks, the run's and the wall's. What
    tasks that are `outdated` have made counts as lost.
    """
    coordinator, state = session.coordinator, session.coordinator.state
    now, running = coordinator.now, sorted(state.running())  # in the order of their starts
    begun = [StartTask(k.number, k.task, k.processor, now) for k in running]
    held = state.items_held()
    commands: list[Command] = []
    events = session.machines.recover(begun, held)
    if outdated or any(isinstance(event, ItemLost) for event in events):
        commands += session.driver.take(Paused(now, True))  # nothing reads it before that is heard
    if coordinator.asked is not None and state.present().any():
        commands += session.driver.settle([coordinator.asked])
    events = at_their_times(events, state, session.clock(), known)
    if events:
        set_clock(max(session.clock(), events[-1].time))
    session.recorder.note("beat", **moment(session.clock))
    for event in events:
        if not _is_known(coordinator, event):
            commands += session.driver.take(event)
            session.note(event if session.growing is None else session.growing.as_heard(event))
    n, producer = coordinator.workflow.n_items, coordinator.workflow.item_producer
    for item, host in state.items_held() if outdated else ():
        if int(producer[item]) in outdated:
            commands += session.driver.take(ItemLost(host * n + item, session.clock()))
    told = budget_event(coordinator, budget, session.clock())
    if told is not None:
        commands += session.driver.take(told)
    if not coordinator.tracker.holds and (state.held_back or coordinator.given_up):
        commands += session.driver.take(Paused(session.clock(), False))
    for again in _sends(coordinator, commands):
        session.machines.perform(again)
    alarm = coordinator.alarm()  # nobody knows of it any more
    session.machines.perform(replace(alarm, time=max(session.clock(), alarm.time)))
    if (retry := state.next_retry()) < math.inf:
        session.machines.perform(WakeAt(max(session.clock(), retry), RetryDue))
    leaves = state.leaves()
    for p in np.flatnonzero(state.present() & np.isfinite(leaves)).tolist():
        session.machines.drain(p, float(leaves[p]))  # the machines do not know of it yet
    return commands


def with_added(on: Any, coordinator: Coordinator) -> Any:
    """Where a run is resumed: with the processors that were added to it."""
    names, present = coordinator.platform.processor_names, coordinator.state.present()
    there = {p: name for p, name in enumerate(names) if present[p]}
    return find_scheme(on).grown(on, there)


def _is_known(coordinator: Coordinator, event: Event) -> bool:
    """Whether a processor is known to be there or away, as is said; or an attempt to be over.

    A plan that was being made when the run was stopped may just have ended the attempt.
    """
    if isinstance(event, TaskFinished | TaskFailed):
        return not coordinator.state.attempt(event.attempt).is_open
    if not isinstance(event, ProcessorJoined | ProcessorGone):
        return False
    present = coordinator.state.present()
    there = event.processor < len(present) and bool(present[event.processor])
    return there == isinstance(event, ProcessorJoined)


def _sends(coordinator: Coordinator, commands: list[Command]) -> list[Command]:
    """Transfers that were under way are begun again."""
    new = {c.transfer for c in commands if isinstance(c, SendItem)}
    moving = coordinator.state.under_way()
    return [SendItem(*sent, coordinator.now) for sent in moving if sent.number not in new]


REST = 50.0  # at most so small a share of a run is spent on plans because of late starts


@contextmanager
def meanwhile_imported(options: Options) -> Iterator[None]:
    """While machines are waited for, import what the run needs next."""
    rooms = ["foreplan.history.repository"] if options.use_history else []
    rooms += ["foreplan.ic"] if options.is_auto else []  # for its order, if it is blind

    def work() -> None:
        with suppress(Exception):  # who needs it says so
            for room in (*rooms, "numpy.ma"):  # which medians need
                importlib.import_module(room)
            if options.is_auto:
                registry.strategy(PLANNED)

    if sys.modules.keys() >= {*rooms, "numpy.ma"}:
        yield
        return
    thread = threading.Thread(target=work, name="foreplan-imports", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def open_run(
    workflow: Workflow,
    options: Options,
    calls: Calls | None = None,
    source: str | None = None,
    listener: Listener | None = None,
    rest: Rest | None = None,
    place: Path | None = None,
) -> Session:
    """A new run of what is not up to date, ready to be driven.

    `rest` is what is left to do, if that is known. `place` is where the run keeps what is its own,
    if not in its data directory.
    """
    listener = listener or Silent()
    rest = rest or find_rest(workflow, options, calls, source=source)
    workflow, calls = rest.workflow, rest.calls
    with ExitStack() as stack:
        with meanwhile_imported(options):
            home = RunHome.create(place or options.directory, workflow.name)
            stack.callback(_remove_unused, home)
            clock = Clock()
            stack.enter_context(RunLock(home))
            claim(home, outputs(workflow))
            if (store := rest.open_store(home)) is not None:
                stack.callback(store.close)
            machines = open_machines(workflow, calls, options, home, clock, store)
        stack.callback(machines.close)
        estimating = Estimating.open(workflow, options, home.id, calls, listener.said)
        stack.callback(estimating.learner.close)
        estimating.taken = rest.sizes_taken()
        prediction = estimating.predict(machines.platform, machines)
        prediction = estimating.with_memory(prediction, machines.platform)
        platform = _priced(machines, options, listener)
        platform = with_links(platform, machines.machine, estimating.history)
        with nullcontext() if source is None else in_file(source):
            check_fits(workflow, platform, prediction.estimates.needs)
        if options.budget is not None:
            check_payable(platform, prediction.blind)
        strategy = chosen_strategy(options, prediction.blind)
        if options.deadline is not None:
            check_foreseeable(strategy, prediction.blind)
        for line in (*rest.notes, *rest.warnings, *rest.in_words()):
            listener.said(line)
        for line in estimating.without_sizes():
            listener.said(line)
        header = Header(
            id=home.id,
            workflow=workflow,
            platform=platform,
            machines=tuple(machines.machine(p) for p in range(platform.n_processors)),
            estimates=prediction.estimates,
            strategy=registry.recorded_spec(strategy),
            rest=REST,
            options=options,
            functions=calls is not None,
            blind=prediction.blind,
            origins=prediction.origins(),
            source=source,
            created=now_in_words(),
            python=PYTHON,
            digests=None if calls is None else tuple(digests_of(calls)),
            up_to_date=rest.up_to_date,
            left_out=rest.left_out,
            reasons=rest.reasons,
            after={} if rest.survey is None else rest.survey.keys_before(),
            temp={} if rest.survey is None else rest.survey.unread_after({*rest.numbers}),
            taken=rest.taken,
            expansions=rest.expansions,
            others=rest.others(),
            reads=estimating.reads(prediction.estimates.needs),
        )
        driver, recorder = set_out(header, strategy), JournalRecorder()
        coordinator, tracker = driver.coordinator, driver.coordinator.tracker
        driver.planner = driver.planner and within_limits(driver.planner, coordinator)
        driver.executor, driver.recorder = machines, recorder
        # where no plan may keep the limits, nothing has begun before there is one
        first = driver.begin() if options.limited else None
        check_in_time(coordinator)
        if coordinator.plan is not None and not tracker.reserves_for(coordinator.plan):
            listener.said(
                f"the reserve of {options.reserve:.0%} cannot be kept: the cheapest plan found "
                f"costs {amount(coordinator.plan.cost)} of {amount(tracker.budget)}"
            )
        recorder.begin(Journal.create(home.journal, header.to_dict()))
        stack.callback(recorder.journal.close)
        note_origin(store, source, options)
        session = Session(header, driver, machines, recorder, estimating, clock, listener)
        session.whole = rest.complete
        tell_ways(session, calls, options)
        warn_of_limits(session, calls)
        if not registry.is_recorded(header.strategy):
            session.warn(
                f"the strategy is an {header.strategy}, which no spec string makes again: this run "
                "can neither be resumed nor be looked at later"
            )
        session.warnings += rest.uncertain  # it is among the reasons that were told
        clock.set(0.0)
        recorder.note("beat", **moment(clock))
        session.begin = driver.begin if first is None else lambda: first
        session.rest, session.store, session.resources = rest, store, stack.pop_all()
        session.growing = _growing(session, home, options)
        return session


def find_rest(
    workflow: Workflow,
    options: Options,
    calls: Calls | None = None,
    ask_store: bool = True,
    only_look: bool = False,
    source: str | None = None,
) -> Rest:
    """What a run has to do, if all that it needs is there; nothing is begun.

    What killed runs of the directory have left behind is ended, unless it is to `only_look`.
    """
    check_system()
    find_scheme(options.on).check(options.on)
    kept = options.tracker().kept
    if not options.is_auto:
        check_strategy(options.strategy, kept)
    check_work(workflow, calls, options)
    has_commands = calls is None or any(call is None for call in calls)
    has_files = workflow.item_names is not None or has_commands
    notes = list[str]()
    if ask_store or has_files:
        files_of = workflow if has_files else None
        notes = prepare_directory(options.directory, files_of, only_look=only_look)
    if ask_store and uses_store(calls, options):
        rest = Rest.find(workflow, options, calls=calls, source=source)
        if rest.expansions:
            find_scheme(options.on).check_work(workload(rest.workflow, rest.calls, options))
    else:
        rest = Rest.whole(workflow, calls)
    check_redirections(rest.workflow, str(options.directory))
    return replace(rest, notes=tuple(notes))


def _remove_unused(home: RunHome) -> None:
    """A run that has not even begun its journal leaves nothing behind."""
    if not home.journal.exists():
        with suppress(ForeplanError, OSError):  # what led here is told, not what follows from it
            release(home)
        shutil.rmtree(home.path, ignore_errors=True)


def _priced(machines: Machines, options: Options, listener: Listener) -> Platform:
    """The machines with their prices, which are told."""
    rules = options.price
    platform = priced(machines.platform, machines.machine, rules, options.transfer_price)
    if costs_money(platform):
        listener.said(in_words(platform))
    for pattern in unused(platform, machines.machine, rules):
        known = first_few(platform.processor_names)
        listener.said(f"no processor is meant by the price of {pattern!r} yet: {known}")
    return platform


def reopen_run(
    home: RunHome,
    workflow: Workflow | None = None,
    calls: Calls | None = None,
    on: Any = None,
    listener: Listener | None = None,
    budget: float | None = None,
    over_budget: str | None = None,
    deadline: float | None = None,
) -> Session:
    """A run that is to be resumed, ready to be driven. `workflow`, if given, must be what it was.

    With another `budget`, another thing to do `over_budget`, or another `deadline`, if given.
    """
    listener = listener or Silent()
    with ExitStack() as stack:
        lock = stack.enter_context(RunLock(home))
        journal, contents = Journal.open(home.journal)
        stack.callback(journal.close)
        if contents.damage is not None:
            listener.said(contents.damage.message)
        replayed = replay(contents, home.data)
        header, driver = replayed.header, replayed.driver
        if workflow is not None:
            check_same(replayed.declared, header.own_part(workflow), header.id, header.functions)
        if header.functions and (calls is None or workflow is None):
            raise InputError(
                f"run {header.id} is of Python functions, which are in no journal: resume it "
                f"from Python, with foreplan.run(flow, resume={header.id!r})"
            )
        claim(home, outputs(header.workflow))
        give_deadline(driver, header.id, deadline)
        on = with_added(header.options.on, driver.coordinator) if on is None else on
        options = replace(header.options, on=on)
        work = header.workflow
        state = driver.coordinator.state
        done = [work.task_names[t] for t in state.tasks(TaskState.DONE).tolist()]
        keyed = calls is not None or uses_store(calls, options)
        has_files = keyed and work.item_names is not None
        for line in (
            *_left_elsewhere(lock.former, header.options),
            *prepare_directory(
                options.directory,
                work if has_files else None,
                done,
                moved=home if lock.former and options.place != header.options.place else None,
            ),
        ):
            listener.said(line)
        if calls is not None and workflow is not None:
            rest = Rest.resumed_calls(workflow, options, calls, done, header, replayed, home)
        elif keyed:
            rest = Rest.resumed(work, options, done, header)
        else:
            rest = Rest.whole(work)
        calls = rest.calls
        set_out = rest.set_out or calls
        changed = {} if set_out is None else _check_calls(replayed, contents, set_out, listener)
        give_budget(driver, header.id, budget, over_budget)
        coordinator = driver.coordinator
        clock, known = Clock(replayed.until), last_moment(contents.entries)
        outdated = set[int]()
        if has_files:
            outdated = rest.outdated()
        if (store := rest.open_store(home)) is not None:
            stack.callback(store.close)
            for line in rest.warnings:
                listener.said(line)
        machines = open_machines(work, calls, options, home, clock, store, coordinator.platform)
        stack.callback(machines.close)
        estimating = Estimating.open(header.workflow, options, header.id, calls, listener.said)
        stack.callback(estimating.learner.close)
        note_origin(store, header.source, options)
        recorder = JournalRecorder(journal)
        driver.executor, driver.recorder, driver.answers = machines, recorder, True
        session = Session(header, driver, machines, recorder, estimating, clock, listener)
        tell_ways(session, calls, options)
        session.attempts_before = len(coordinator.state.attempt_log(None).task)
        session.reused = reused_attempts(driver.events or ())
        then: dict[str, Any] = {} if over_budget is None else {"over_budget": over_budget}
        then |= {} if deadline is None else {"deadline": deadline}
        then |= {"digests": changed} if changed else {}
        clock.set(replayed.until)  # finding the machines is no time of the run
        recorder.note("resumed", time=clock(), created=now_in_words(), **then)
        coordinator.forget_alarm()
        session.begin = lambda: take_up(session, clock.set, known, budget, outdated)
        session.rest, session.store, session.resources = rest, store, stack.pop_all()
        session.growing = _growing(session, home, options)
        return session


def _left_elsewhere(died: LockSignature | None, options: Options) -> list[str]:
    """Say if a run was killed on another host: it is resumed here, as somebody has asked for."""
    if died is None or died.is_here or not find_scheme(options.on).here:
        return []
    return [
        f"the run was killed on host {died.host} (process {died.pid}): tasks of it that still run "
        "there are not ended, and may write over what is made now"
    ]


def _growing(session: Session, home: RunHome, options: Options) -> Growing | None:
    """What a run needs to add tasks; None if no task of it does."""
    if not session.header.workflow.grows:
        return None

    def claim_all(workflow: Workflow) -> None:
        claim(home, outputs(workflow))

    def work(workflow: Workflow, calls: Calls | None) -> Workload:
        return workload(workflow, calls, options)

    return Growing(session, work, claim_all, home.results)


def _check_calls(
    replayed: Replayed, contents: Contents, calls: Calls, listener: Listener
) -> dict[str, str | None]:
    """Refuse functions and arguments that are not what they were; what may have changed, if any."""
    header, state = replayed.header, replayed.driver.coordinator.state
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
    begun = state.tasks(TaskState.DONE, TaskState.RUNNING).tolist()
    used = dict.fromkeys(task for task in begun if task < len(calls))  # but for what was added
    names = header.workflow.task_names
    changed = check_calls(names, known, calls, lambda task: task in used, header.id)
    unknown = [names[t] for t in used if known.get(t) is None and calls[t] is not None]
    if unknown:
        listed = first_few(unknown)
        listener.said(f"whether these tasks have changed cannot be checked: {listed}")
    return {str(task): digest for task, digest in changed.items()}
