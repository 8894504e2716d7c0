"""What a report tells of a run, from its journal alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.cli.figures import FAILED, FINISHED, Shares, busy, closed, n_done, overhead, shares, there
from weft.kernels import board as b
from weft.model.events import EventKind

if TYPE_CHECKING:
    from weft.journal.places import RunHome
    from weft.live.replay import Replayed
    from weft.model import Evaluation, Money, Run
    from weft.model.events import NewStrategy

NO_CATEGORY = "(no category)"


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


@dataclass(frozen=True)
class TaskTime:
    """A finished task: expected when the run began, and in fact."""

    task: str
    category: str
    processor: str
    expected: float
    seconds: float


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
    overhead: float  # seconds that weft itself took: starting tasks, moving files
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
    tasks: int
    done: int
    given_up: int
    running: int
    attempts: int
    makespan: float
    planned: float | None
    planning: float
    utilisation: float  # the share of the processors' time in which tasks ran
    overhead: float  # the share of it that weft itself took
    moved: int  # transfers
    failures: tuple[FailedTry, ...]
    times: tuple[TaskTime, ...]  # the slowest first
    categories: tuple[CategoryTime, ...]  # the one with the most seconds first
    evaluations: tuple[Evaluation, ...]
    replans: int
    processors: tuple[ProcessorUse, ...]
    money: Money | None  # of a run with a plan that is not finished: with what is to come
    run: Run

    @property
    def shares(self) -> Shares:
        """Where the time of the processors went."""
        return Shares(self.utilisation, self.overhead)

    @property
    def paid(self) -> bool:
        """Whether anything of it costs money, or might."""
        pf = self.run.platform
        return bool(pf.price.any() or pf.link_price.any() or np.isfinite(self.run.budget))

    def to_dict(self) -> dict[str, Any]:
        """What `weft report --json` prints."""
        result = {key: value for key, value in vars(self).items() if key not in ("run", "money")}
        for key in ("failures", "times", "categories", "processors"):
            result[key] = [asdict(row) for row in result[key]]
        result["switched"] = None if self.switched is None else asdict(self.switched)
        result["evaluations"] = [{**e.to_dict(), "seconds": e.seconds} for e in self.evaluations]
        return {**result, **self.run.recovery(), **self._money(), **self._deadline()}

    def _deadline(self) -> dict[str, Any]:
        """When it was to be over, and whether it was."""
        at, known = self.run.deadline, self.run.late_at
        return {
            "deadline": at if np.isfinite(at) else None,
            "in_time": self.run.in_time if np.isfinite(at) else None,
            "late_at": None if np.isnan(known) else known,
        }

    def _money(self) -> dict[str, Any]:
        """What it cost, and of a run that is not finished what more is expected."""
        usage, budget, known = self.run.usage, self.run.budget, self.run.over_budget_at
        return {
            "cost": self.run.cost,
            "transfers_cost": usage.transfers,
            "budget": budget if np.isfinite(budget) else None,
            "within_budget": self.run.within_budget if np.isfinite(budget) else None,
            "over_budget_at": None if np.isnan(known) else known,
            "money": None if self.money is None else self.money.to_dict(),
        }


def report_of(home: RunHome) -> Report:
    """Read the journal and let it tell; nothing is changed, and the run may be under way."""
    from weft.journal.log import read
    from weft.journal.summary import summarise
    from weft.live.replay import replay

    status = summarise(home).status
    contents = read(home.journal)
    replayed = replay(contents, home.data)
    replayed.progress.coordinator.pass_time(replayed.until)  # what was running has cost until then
    # the last line of a run under way may just be being written
    damage = None if contents.damage is None or status == "running" else contents.damage.message
    return tell(replayed, home, status, damage)


def tell(replayed: Replayed, home: RunHome, status: str, damage: str | None = None) -> Report:
    """The report of a run that was replayed."""
    from weft.live.switching import why

    header, coordinator = replayed.header, replayed.progress.coordinator
    ended = [float(end["time"]) for end in replayed.ends if "time" in end]
    run = closed(replayed.run(), max([coordinator.now, *ended]))
    times, went = _times(replayed, run), shares(run)
    return Report(
        id=header.id,
        home=str(home.path),
        name=header.workflow.name,
        status=status,
        damage=damage,
        created=header.created,
        sittings=1 + len(replayed.sittings),
        strategy=header.strategy,
        why=why(header),
        switched=replayed.progress.switched,
        on=header.options.place,
        blind=header.blind,
        tasks=header.workflow.n_tasks,
        done=n_done(run),
        given_up=int(coordinator.board.counts[b.N_GIVEN_UP]),
        running=int((coordinator.board.running >= 0).sum()),
        attempts=len(run.attempts.task),
        makespan=run.makespan,
        planned=run.plans[0].makespan if run.plans else None,
        planning=run.planning_seconds,
        utilisation=went.tasks,
        overhead=went.weft,
        moved=int(np.isfinite(run.transfers.arrival).sum()),
        failures=_failures(replayed, run),
        times=times,
        categories=_categories(times),
        evaluations=run.evaluations,
        replans=run.replans,
        processors=_processors(run),
        money=coordinator.money() if status != "finished" and coordinator.plan else None,
        run=run,
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _failures(replayed: Replayed, run: Run) -> tuple[FailedTry, ...]:
    events = [e for e in replayed.progress.events or () if e.kind == EventKind.TASK_FAILED]
    given_up = set(replayed.progress.coordinator.given_up)
    last = {int(run.attempts.task[e.which]): e.which for e in events}
    result = []
    for event in events:
        task, detail = int(run.attempts.task[event.which]), event.detail or {}
        log = detail.get("log")
        result.append(
            FailedTry(
                task=run.workflow.task_names[task],
                processor=run.platform.processor_names[run.attempts.processor[event.which]],
                time=event.time,
                reason=str(detail.get("reason", "it failed")),
                log=None if log is None else str(log),
                tail=str(detail.get("tail") or ""),
                final=task in given_up and last[task] == event.which,
                command=run.workflow.spec(task).run,
                unlisted=tuple(map(str, detail.get("unlisted") or ())),
            )
        )
    return tuple(result)


def _times(replayed: Replayed, run: Run) -> tuple[TaskTime, ...]:
    """Every task that is done, the slowest first."""
    wf, log = run.workflow, run.attempts
    # what was expected at first; processors that came later were not known then
    first, later = replayed.header.estimates.cost, replayed.progress.coordinator.estimates.cost
    result = []
    for task, k in enumerate(run.final_attempts().tolist()):
        if k < 0:
            continue
        p = int(log.processor[k])
        result.append(
            TaskTime(
                task=wf.task_names[task],
                category=wf.spec(task).category or NO_CATEGORY,
                processor=run.platform.processor_names[p],
                expected=float(first[task, p] if p < first.shape[1] else later[task, p]),
                seconds=float(run.task_seconds[k]),
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
    pf, log, used, present = run.platform, run.attempts, busy(run), there(run)
    own = overhead(run)
    n = pf.n_processors
    finished = np.bincount(log.processor[log.end == FINISHED], minlength=n)
    failed = np.bincount(log.processor[log.end == FAILED], minlength=n)
    cost = run.usage.by_processor(pf)
    return tuple(
        ProcessorUse(
            processor=name,
            host=pf.host_names[pf.host[p]],
            tasks=int(finished[p]),
            failed=int(failed[p]),
            busy=float(used[p]),
            share=_share(float(used[p]), float(present[p])),
            overhead=float(own[p]),
            cost=float(cost[p]),
        )
        for p, name in enumerate(pf.processor_names)
    )
