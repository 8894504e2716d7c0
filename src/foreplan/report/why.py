"""Why a task waits, is where it is, ran again, failed or moved: from plan, journal and store."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreplan.display.waiting import needed_by, reason
from foreplan.engine.state import TaskState
from foreplan.errors import ForeplanError
from foreplan.model import ENDS
from foreplan.model.causes import CAUSE
from foreplan.model.events import (
    OWN_FAULT,
    REUSED,
    Event,
    Paused,
    ProcessorGone,
    TaskFailed,
    TaskFinished,
)
from foreplan.quantities import duration, first_few, many
from foreplan.report.known import KnownTask, is_keyed, known_of_run, known_of_workflow
from foreplan.report.placing import Placing, place_of
from foreplan.report.states import task_states, undeclared_in
from foreplan.runs.finding import standing
from foreplan.runs.logs import CUT_SHORT, OPEN, printed_by
from foreplan.runs.undeclared import NotKept
from foreplan.store.survey import WILL_BE_REPLACED

if TYPE_CHECKING:
    from foreplan.runs.home import RunHome
    from foreplan.runs.journal import Contents
    from foreplan.runs.logs import Printed
    from foreplan.runs.replay import Replayed

ALWAYS_RUNS = "its results are not known by what they are made from: it is run by every run"


@dataclass(frozen=True)
class Needed:
    """A task that another waits for, and what that is."""

    task: str
    state: str


@dataclass(frozen=True)
class Tried:
    """An attempt: where, when, how it ended, and what came of that."""

    processor: str
    start: float
    finish: float | None
    end: str
    reason: str  # why it came to nothing
    then: str  # what was done about it
    scratch: str | None = None  # its directory, if that was kept


@dataclass(frozen=True)
class Move:
    """A new plan that has put the task elsewhere."""

    time: float
    source: str
    target: str
    reason: str


@dataclass(frozen=True)
class Why:
    """All that is known of a task; what is None or empty does not apply."""

    task: str
    run: str | None  # None: no run was asked
    status: str | None  # of the run
    state: str  # of the task
    damage: str | None = None
    waits: str = ""  # what for
    needs: tuple[Needed, ...] = ()
    because: str = ""  # why the run has it to do
    blind: bool = False  # nothing was known of the times of tasks
    place: Placing | None = None
    moves: tuple[Move, ...] = ()
    attempts: tuple[Tried, ...] = ()
    known: KnownTask | None = None  # what the store knows of it
    undeclared: NotKept | None = None  # files that it made beside its outputs
    stale: tuple[str, ...] = ()  # older files that it reads, and what to do about it

    def to_dict(self) -> dict[str, Any]:
        """What `foreplan why --json` prints."""
        return asdict(self)


@dataclass
class _Asked:
    """A task of a run that was replayed."""

    home: RunHome
    contents: Contents
    replayed: Replayed
    status: str
    task: int
    name: str
    printed: list[Printed] = field(default_factory=list)

    @property
    def driven(self) -> bool:
        """Whether somebody drives the run now."""
        return self.status == "running"


def why_in_run(home: RunHome, task: str) -> Why:
    """Of a run, under way or over. Nothing is changed."""
    from foreplan.runs.journal import read
    from foreplan.runs.replay import replay
    from foreplan.runs.summary import summarise

    status = summarise(home).status  # before the look: a run that ends meanwhile has written it
    contents = read(home.journal)
    replayed = replay(contents, home.data)
    damage = None if contents.damage is None or status == "running" else contents.damage.message
    no_part = standing(replayed.header, task)
    if no_part is not None:
        known = known_of_run(home, replayed.header, task)
        return Why(task, home.id, status, no_part, damage, known=known)
    replayed.driver.coordinator.pass_time(replayed.until)
    index = replayed.header.workflow.task_names.index(task)
    asked = _Asked(home, contents, replayed, status, index, task)
    asked.printed = printed_by(replayed, home, index)
    return _told(asked, damage)


def why_now(directory: Path, source: str | Path, task: str, params: Mapping[str, object]) -> Why:
    """Of a workflow in a directory, whatever was run there: up to date or not."""
    known = known_of_workflow(directory, source, task, params)
    return Why(task, None, None, known.now or "", known=known)


def _told(asked: _Asked, damage: str | None) -> Why:
    header, coordinator = asked.replayed.header, asked.replayed.driver.coordinator
    states = task_states(asked.replayed, asked.driven)
    state = states[asked.task]
    last = asked.printed[-1] if asked.printed else None
    if state == "done" and last is not None and _reused_from(asked, last.attempt) is not None:
        state = "up to date"
    needed = needed_by(coordinator, asked.task) if state in ("waiting", "blocked") else []
    names = header.workflow.task_names
    not_kept = undeclared_in(asked.replayed)
    return Why(
        task=asked.name,
        run=asked.home.id,
        status=asked.status,
        state=state,
        damage=damage,
        waits=_waits(asked, state, states),
        needs=tuple(Needed(names[t], states[t]) for t in needed),
        because=_past(header.reasons.get(asked.name, ""), state) or _why_at_all(header, asked.task),
        blind=header.blind,
        place=_place(asked, state),
        moves=_moves(asked),
        attempts=tuple(_tried(asked, k) for k in range(len(asked.printed))),
        known=known_of_run(asked.home, header, asked.name, live=asked.driven),
        undeclared=next((made for made in not_kept if made.task == asked.name), None),
        stale=tuple(
            line
            for made in not_kept
            for read, line in zip(made.read, made.stale_reads(), strict=True)
            if asked.name in (made.task, read.task)
        ),
    )


# ---- why it waits


def _past(reason: str, state: str) -> str:
    """Why a task was to run, without advice that comes too late."""
    head, found, _ = reason.partition(WILL_BE_REPLACED)
    return f"{head} was replaced" if found and state == "done" else reason


def _why_at_all(header: Any, task: int) -> str:
    """Why a task ran that the run did not know beforehand, or that all runs run."""
    added_by = header.workflow.spec(task).added_by
    if added_by is not None:
        return f"{added_by} has added it"
    return "" if is_keyed(header) else ALWAYS_RUNS


def _waits(asked: _Asked, state: str, states: Sequence[str]) -> str:
    coordinator = asked.replayed.driver.coordinator
    if state == "blocked":
        names = coordinator.workflow.task_names
        failed = [names[t] for t in _failed_before(asked, states)]
        return f"it will not run: {', '.join(failed) or 'a task that it needs'} was given up"
    if state != "waiting":
        return ""
    if not asked.driven:
        from foreplan.runs.journal import resume_words

        of_functions = asked.replayed.header.functions
        if asked.status == "failed":
            again = f"`foreplan{'.' if of_functions else ' '}run` does it"
        else:
            again = f"{resume_words(asked.home.journal, 'foreplan resume')} takes it up"
        text = f"nobody drives the run, which is {asked.status}: {again}"
        if needed := needed_by(coordinator, asked.task):
            names = coordinator.workflow.task_names
            return f"{text}; then it needs {first_few(names[t] for t in needed)}"
        if coordinator.tracker.holds:
            return f"{text}; then it {reason(coordinator, asked.task)}"
        return text
    return reason(coordinator, asked.task)


def _failed_before(asked: _Asked, states: Sequence[str]) -> list[int]:
    """The tasks that failed and without which this one cannot run."""
    _, producers, consumers = asked.replayed.header.workflow.dependencies()
    before: dict[int, list[int]] = {}
    for producer, consumer in zip(producers.tolist(), consumers.tolist(), strict=True):
        before.setdefault(consumer, []).append(producer)
    found, todo, seen = list[int](), [asked.task], {asked.task}
    while todo:
        for other in before.get(todo.pop(), ()):
            if other not in seen and states[other] in ("failed", "blocked"):
                seen.add(other)
                todo.append(other)
                found += [other] if states[other] == "failed" else []
    return sorted(found)


# ---- why it is there


def _place(asked: _Asked, state: str) -> Placing | None:
    """The place of a task that waits or has begun: then as things were at its start."""
    if state == "waiting":
        coordinator = asked.replayed.driver.coordinator
        resting = asked.task in coordinator.state.tasks(TaskState.RESTING)  # no plan has it
        if resting or not (asked.driven or coordinator.plan is not None):
            return None
        return place_of(asked.replayed, asked.task, begun=False, driven=asked.driven)
    then = _at_start(asked, asked.printed[-1].attempt) if asked.printed else None
    if then is None or _reused_from(asked, asked.printed[-1].attempt) is not None:
        return None
    return place_of(then, asked.task, begun=True)


def _at_start(asked: _Asked, attempt: int) -> Replayed | None:
    """The run at the moment at which an attempt was begun."""
    from foreplan.runs.replay import replay

    for k, entry in enumerate(asked.contents.entries):
        if entry.get("t") == "commands" and any(
            command[:2] == ["start", attempt] for command in entry["do"]
        ):
            cut = replace(asked.contents, entries=asked.contents.entries[: k + 1], damage=None)
            try:
                return replay(cut, asked.home.data)
            except ForeplanError:  # what was decided by former rules may not be told in pieces
                return None
    return None


def _moves(asked: _Asked) -> tuple[Move, ...]:
    """New plans that have moved the task before it began, or while it ran."""
    driver, found = asked.replayed.driver, list[Move]()
    platform = driver.coordinator.platform.processor_names
    last = asked.printed[-1].start if asked.printed else math.inf
    reasons = {e.time: e.reason for e in driver.coordinator.evaluations if e.taken}
    for (at, old), (time, new) in zip(_plans(asked), _plans(asked)[1:], strict=False):
        if old == new or time > last or at > last:
            continue
        found.append(Move(time, platform[old], platform[new], reasons.get(time, "a new plan")))
    return tuple(found)


def _plans(asked: _Asked) -> list[tuple[float, int]]:
    """When each plan was taken, and where it puts the task."""
    driver = asked.replayed.driver
    plans = zip(driver.plan_times, driver.plans, strict=False)
    known = ((time, plan) for time, plan in plans if asked.task < len(plan.processor))
    return [(time, int(plan.processor[asked.task])) for time, plan in known]


# ---- what became of it


def _tried(asked: _Asked, k: int) -> Tried:
    printed = asked.printed[k]
    end, why = printed.end, printed.reason
    reused = _reused_from(asked, printed.attempt)
    if reused is not None:
        end = "up to date"
        why = "what it reads is as it was" + (f": made by run {reused}" if reused else "")
    elif end == ENDS[2] and not why:  # failed without a word: its machine has
        why = _lost(asked, printed)
    elif end == ENDS[3]:  # cancelled
        why = _moved(asked, printed)
    elif end == ENDS[4]:  # rewound
        why = "its results were lost, and are needed again"
    elif end == CUT_SHORT:
        why = "the process that drove the run has died"
    finish = printed.finish if math.isfinite(printed.finish) else None
    return Tried(
        printed.processor, printed.start, finish, end, why, _then(asked, k), printed.place or None
    )


def _reused_from(asked: _Asked, attempt: int) -> str | None:
    """The run that made what an attempt found there; None if it found nothing."""
    for event in _events(asked):
        if isinstance(event, TaskFinished) and event.attempt == attempt:
            detail = event.detail or {}
            return str(detail[REUSED]) if REUSED in detail else None
    return None


def _events(asked: _Asked) -> list[Event]:
    return asked.replayed.driver.events or []


def _lost(asked: _Asked, printed: Printed) -> str:
    for event in _events(asked):
        gone = isinstance(event, ProcessorGone) and event.processor == printed.row
        if gone and abs(event.time - printed.finish) < 1e-9:
            return f"{printed.processor} was lost"
    return "it failed"


def _moved(asked: _Asked, printed: Printed) -> str:
    """Why an attempt was cancelled: for a new plan, or for want of money."""
    for evaluation in asked.replayed.driver.coordinator.evaluations:
        if evaluation.taken and abs(evaluation.time - printed.finish) < 1e-9:
            return f"a new plan moved it: {evaluation.reason}"
    if asked.replayed.driver.coordinator.tracker.cuts:
        return "the money was gone"
    return "it was stopped"


def _then(asked: _Asked, k: int) -> str:
    """What was done about an attempt that came to nothing."""
    printed, coordinator = asked.printed[k], asked.replayed.driver.coordinator
    if printed.end in (ENDS[1], OPEN):
        return ""
    if k + 1 < len(asked.printed):
        again = asked.printed[k + 1]
        return f"tried again at {duration(again.start)} on {again.processor}"
    if asked.task in coordinator.state.tasks(TaskState.GIVEN_UP):
        if printed.end == ENDS[2]:
            return f"given up: {_allowed(asked)}"
        return "given up"
    until = coordinator.state.rests_until(asked.task)
    if asked.driven and math.isfinite(until):
        return f"to be tried again at {duration(until)}"
    return "to be tried again" if asked.driven else ""


def _allowed(asked: _Asked) -> str:
    """How often the task failed for what it failed of last, and how often it might."""
    policy = asked.replayed.driver.coordinator.retries.policy
    spec = asked.replayed.header.workflow.spec(asked.task)
    tried = {printed.attempt for printed in asked.printed}
    limits = list[tuple[str, int]]()
    for event in _events(asked):
        if isinstance(event, Paused):  # a resume counts from zero
            limits.clear()
        elif isinstance(event, TaskFailed) and event.attempt in tried:
            cause = str((event.detail or {}).get(CAUSE, ""))
            limits.append(policy.most(spec, cause, event.fault == OWN_FAULT))
    if not limits:
        return "its processors were lost too often"
    failed, most = limits.count(limits[-1]), limits[-1][1]
    times = "once" if failed == 1 else f"{failed} times"
    return f"it failed {times}, with {many(most, 'retry', 'retries') if most else 'no retries'}"
