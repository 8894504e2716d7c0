"""What a report tells of a run, from its journal alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from foreplan.engine.state import TaskState
from foreplan.model import ENDS, Run
from foreplan.model.causes import CAUSE
from foreplan.model.events import TaskFailed
from foreplan.model.profiles import amounts_held
from foreplan.model.resources import MEMORY, held
from foreplan.report.states import reused_tasks, task_states, undeclared_in
from foreplan.report.tasks import tasks_of
from foreplan.report.usage import CategoryUse, suggestions_of, used_by_attempt, uses_of

if TYPE_CHECKING:
    from foreplan.history.memory import Suggestion
    from foreplan.model import Evaluation, Money
    from foreplan.model.events import NewStrategy
    from foreplan.runs.home import RunHome
    from foreplan.runs.replay import Replayed
    from foreplan.runs.undeclared import NotKept
    from foreplan.scheduling.margins import Margins

APART = ("run", "money", "states", "used", "margins")  # of what is told as it is
FINISHED, FAILED = ENDS.index("finished"), ENDS.index("failed")


@dataclass(frozen=True)
class FailedTry:
    """An attempt that failed."""

    task: str
    processor: str
    time: float
    reason: str
    log: str | None
    tail: str
    final: bool  # the task was given up then
    command: str | None = None
    unlisted: tuple[str, ...] = ()  # files of the data directory that it names, but does not list
    scratch: str | None = None  # its directory, kept in the run's home
    cause: str | None = None  # in a word; None: nobody knows


@dataclass(frozen=True)
class TaskTime:
    """A finished task: expected when the run began, and in fact."""

    task: str
    category: str
    processor: str
    expected: float
    seconds: float
    cores: int = 1
    memory: float = 0.0  # bytes that it held


@dataclass(frozen=True)
class CategoryTime:
    """The same for all finished tasks of a category: medians."""

    category: str
    tasks: int
    expected: float
    seconds: float
    total: float


@dataclass(frozen=True)
class ProcessorUse:
    """What a processor did."""

    processor: str
    host: str
    tasks: int
    failed: int
    busy: float  # seconds that tasks ran
    share: float  # of the time that it was there
    overhead: float  # seconds that foreplan itself took: starting tasks, moving files
    cost: float  # money


@dataclass(frozen=True, eq=False)
class Report:
    """A run as far as its journal goes."""

    id: str
    home: str
    name: str
    status: str
    damage: str | None
    created: str
    sittings: int
    strategy: str
    why: str  # it was chosen
    switched: NewStrategy | None  # a run that began just in time: what it went over to
    on: str
    blind: bool
    origins: str  # where the estimates come from, in words
    tasks: int
    done: int  # with those that were found up to date
    reused: tuple[str, ...]  # these
    given_up: int
    running: int
    attempts: int
    makespan: float
    planned: float | None
    planning: float
    utilisation: float  # the share of the processors' time in which tasks ran
    overhead: float  # the share of it that foreplan itself took
    moved: int  # transfers
    failures: tuple[FailedTry, ...]
    undeclared: tuple[NotKept, ...]  # files that tasks made beside their outputs
    times: tuple[TaskTime, ...]  # the slowest first
    categories: tuple[CategoryTime, ...]  # the one with the most seconds first
    usage: tuple[CategoryUse, ...]  # the one with the most memory first
    suggestions: tuple[Suggestion, ...]
    evaluations: tuple[Evaluation, ...]
    replans: int
    processors: tuple[ProcessorUse, ...]
    money: Money | None  # of a run with a plan that is not finished: with what is to come
    run: Run
    states: tuple[str, ...]  # of each task, see foreplan.report.states
    used: dict[int, dict[str, Any]]  # by attempt, see foreplan.executors.usage
    margins: Margins | None  # of a run that did everything: slack, spare and the critical path

    @property
    def paid(self) -> bool:
        """Whether anything of it costs money, or might."""
        pf = self.run.platform
        return bool(pf.price.any() or pf.link_price.any() or np.isfinite(self.run.budget))

    def to_dict(self) -> dict[str, Any]:
        """What `foreplan report --json` prints."""
        result = {key: value for key, value in vars(self).items() if key not in APART}
        for key in (
            "failures",
            "undeclared",
            "times",
            "categories",
            "usage",
            "suggestions",
            "processors",
        ):
            result[key] = [asdict(row) for row in result[key]]
        result["switched"] = None if self.switched is None else asdict(self.switched)
        result["evaluations"] = [{**e.to_dict(), "seconds": e.seconds} for e in self.evaluations]
        names, late = self.run.workflow.task_names, self.margins
        result["critical_path"] = None if late is None else [names[s.task] for s in late.path]
        result["task_list"] = [asdict(task) for task in tasks_of(self)]
        return {**result, **self.run.recovery(), **self._limits()}

    def _limits(self) -> dict[str, Any]:
        """What it cost, and of a run that is not finished what more is expected; the deadline."""
        return {
            "cost": self.run.cost,
            "transfers_cost": self.run.bill.transfers,
            **dict.fromkeys(("budget", "within_budget", "over_budget_at")),
            **self.run.budget_figures(),
            "money": None if self.money is None else self.money.to_dict(),
            **dict.fromkeys(("deadline", "in_time", "late_at")),
            **self.run.deadline_figures(),
        }


def report_of(home: RunHome) -> Report:
    """Read the journal and let it tell; nothing is changed, and the run may be under way."""
    from foreplan.runs.journal import read
    from foreplan.runs.replay import replay
    from foreplan.runs.summary import summarise

    status = summarise(home).status
    contents = read(home.journal)
    replayed = replay(contents, home.data)
    replayed.driver.coordinator.pass_time(replayed.until)  # what was running has cost until then
    # the last line of a run under way may just be being written
    damage = None if contents.damage is None or status == "running" else contents.damage.message
    return tell(replayed, home, status, damage)


def tell(replayed: Replayed, home: RunHome, status: str, damage: str | None = None) -> Report:
    """The report of a run that was replayed."""
    from foreplan.runs.options import why
    from foreplan.scheduling.margins import margins

    header, coordinator = replayed.header, replayed.driver.coordinator
    ended = [float(end["time"]) for end in replayed.ends if "time" in end]
    run = replayed.run().closed(max([coordinator.now, *ended]))
    times, went = _times(replayed, run), run.processor_time
    used = used_by_attempt(replayed)
    return Report(
        id=header.id,
        home=str(home.path),
        name=header.workflow.name,
        status=status,
        damage=damage,
        created=header.created,
        sittings=1 + len(replayed.sessions),
        strategy=header.strategy,
        why=why(header),
        switched=replayed.driver.switched,
        on=header.options.place,
        blind=header.blind,
        origins=header.origins,
        tasks=header.workflow.n_tasks,
        done=run.n_done,
        reused=tuple(header.workflow.task_names[t] for t in reused_tasks(replayed)),
        given_up=coordinator.state.count(TaskState.GIVEN_UP),
        running=len(coordinator.state.running()),
        attempts=len(run.attempts.task),
        makespan=run.makespan,
        planned=run.planned,
        planning=run.planning_seconds,
        utilisation=went.utilisation,
        overhead=went.overhead_share,
        moved=int(np.isfinite(run.transfers.arrival).sum()),
        failures=_failures(replayed, run),
        undeclared=undeclared_in(replayed),
        times=times,
        categories=_categories(times),
        usage=uses_of(run, used),
        suggestions=suggestions_of(run, used),
        evaluations=run.evaluations,
        replans=run.replans,
        processors=_processors(run),
        money=coordinator.money() if status != "finished" and coordinator.plan else None,
        run=run,
        states=tuple(task_states(replayed, status == "running")),
        used=used,
        margins=margins(run) if run.n_done == header.workflow.n_tasks else None,
    )


def _failures(replayed: Replayed, run: Run) -> tuple[FailedTry, ...]:
    events = [e for e in replayed.driver.events or () if isinstance(e, TaskFailed)]
    given_up = set(replayed.driver.coordinator.given_up)
    last = {int(run.attempts.task[e.attempt]): e.attempt for e in events}
    result = []
    for event in events:
        task, detail = int(run.attempts.task[event.attempt]), event.detail or {}
        log = detail.get("log")
        result.append(
            FailedTry(
                task=run.workflow.task_names[task],
                processor=run.platform.processor_names[run.attempts.processor[event.attempt]],
                time=event.time,
                reason=_reason(replayed, task, event, last[task] == event.attempt),
                log=None if log is None else str(log),
                tail=str(detail.get("tail") or ""),
                final=task in given_up and last[task] == event.attempt,
                command=run.workflow.spec(task).run,
                unlisted=tuple(map(str, detail.get("unlisted") or ())),
                scratch=detail.get("scratch"),
                cause=detail.get(CAUSE),
            )
        )
    return tuple(result)


def _reason(replayed: Replayed, task: int, event: TaskFailed, last: bool) -> str:
    """Why an attempt failed; and of the last one, why the task is not tried again."""
    said = str((event.detail or {}).get("reason", "it failed"))
    exhausted = replayed.driver.coordinator.tries.exhausted
    why = exhausted.get(task) if last else None
    return said if why is None else f"{said}; {why}"


def _times(replayed: Replayed, run: Run) -> tuple[TaskTime, ...]:
    """Every task that is done, the slowest first."""
    wf, log = run.workflow, run.attempts
    # what was expected at first; processors and tasks that came later were not known then
    coordinator = replayed.driver.coordinator
    first, later = replayed.header.estimates.cost, coordinator.estimates.cost
    memory, result = amounts_held(run, MEMORY), []
    for task, k in enumerate(run.final_attempts().tolist()):
        if k < 0:
            continue
        p = int(log.processor[k])
        result.append(
            TaskTime(
                task=wf.task_names[task],
                category=wf.spec(task).category or wf.task_names[task],
                processor=run.platform.processor_names[p],
                expected=coordinator.state.share_of(k)
                * float(
                    first[task, p] if task < len(first) and p < first.shape[1] else later[task, p]
                ),
                seconds=float(run.task_seconds[k]),
                cores=log.width(k),
                memory=float(memory[k]),
            )
        )
    return tuple(sorted(result, key=lambda row: -row.seconds))


def _categories(times: tuple[TaskTime, ...]) -> tuple[CategoryTime, ...]:
    groups: dict[str, list[TaskTime]] = {}
    for row in times:
        groups.setdefault(row.category, []).append(row)
    rows = [
        CategoryTime(
            category=category,
            tasks=len(group),
            expected=median(row.expected for row in group),
            seconds=median(row.seconds for row in group),
            total=sum(row.seconds for row in group),
        )
        for category, group in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.total))


def _processors(run: Run) -> tuple[ProcessorUse, ...]:
    pf, log, went, n = run.platform, run.attempts, run.processor_time, run.platform.n_processors
    shares = went.utilisations
    attempts, on = held(log.processor, log.cores)
    finished = np.bincount(on[log.end[attempts] == FINISHED], minlength=n)
    failed = np.bincount(on[log.end[attempts] == FAILED], minlength=n)
    cost = run.bill.processors
    return tuple(
        ProcessorUse(
            processor=name,
            host=pf.host_names[pf.host[p]],
            tasks=int(finished[p]),
            failed=int(failed[p]),
            busy=float(went.busy[p]),
            share=float(shares[p]),
            overhead=float(went.overhead[p]),
            cost=float(cost[p]),
        )
        for p, name in enumerate(pf.processor_names)
    )
