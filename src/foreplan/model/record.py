"""The record of a run: what was planned, what happened, and what was decided."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from foreplan.arrays import FloatArray, FrozenArrays, IntArray, frozen
from foreplan.files import one_line
from foreplan.lazy import drawn_by
from foreplan.model.events import (
    Event,
    NewEstimates,
    ProcessorGone,
    ProcessorJoined,
    TaskFailed,
    TaskFinished,
)
from foreplan.model.money import ROUNDING, Bill, Usage, affordable
from foreplan.model.platform import Platform
from foreplan.model.resources import Cores, held
from foreplan.model.schedule import ProcessorTime, Schedule
from foreplan.model.workflow import Workflow
from foreplan.quantities import duration, many

ENDS = ("running", "finished", "failed", "cancelled", "rewound")
_ENDINGS = (TaskFinished, TaskFailed)


@dataclass(frozen=True)
class Evaluation:
    """One time that a new plan was asked for: when, why, and whether it was taken."""

    time: float
    reason: str
    forced: bool  # the plan before could not be followed any more
    taken: bool
    makespan: float  # the candidate's; infinite if none could be made
    projected: float = float("nan")  # the current plan's from then on, where they were compared
    migrated: int = 0  # tasks moved that had begun to gather inputs, or to run
    seconds: float = field(default=0.0, compare=False, repr=False)  # that the planner took

    def to_dict(self) -> dict[str, Any]:
        """What can be repeated of it, for JSON, which knows no infinity."""
        names = ("time", "reason", "forced", "taken", "migrated")
        content = {name: getattr(self, name) for name in names}
        for name in ("makespan", "projected"):
            value = getattr(self, name)
            content[name] = value if math.isfinite(value) else None
        return content


@dataclass(frozen=True, eq=False)
class AttemptLog(FrozenArrays):
    """Every attempt in the order of their starts; `end` is an index into ENDS."""

    task: IntArray
    processor: IntArray
    start: FloatArray
    finish: FloatArray
    end: IntArray
    work: FloatArray  # what it needed, in seconds at full availability; NaN where nobody knows
    cores: Cores | None = None  # None: each held its processor
    amount: FloatArray | None = None  # attempts x (kinds, then pools): what each held of them
    beyond: FloatArray | None = None  # cores that each paid for beyond those that it held

    def width(self, attempt: int) -> int:
        """How many cores an attempt held."""
        return 1 if self.cores is None else len(self.cores.of(attempt))


@dataclass(frozen=True, eq=False)
class TransferLog(FrozenArrays):
    """Every transfer in the order of their starts; infinite arrivals were cut, or forgotten."""

    item: IntArray
    source: IntArray
    target: IntArray
    sent: FloatArray
    arrival: FloatArray  # NaN: still under way when the run ended
    forgotten: FloatArray  # when what came was left behind; infinite: never


@dataclass(frozen=True, eq=False)
class Run:
    """A run that is over."""

    strategy: str
    workflow: Workflow
    platform: Platform
    attempts: AttemptLog
    transfers: TransferLog
    plans: tuple[Schedule, ...]  # the plans followed, one after the other
    plan_times: tuple[float, ...]
    evaluations: tuple[Evaluation, ...]  # but for the first plan
    changes: tuple[Event, ...] = ()  # what happened to the machines
    events: tuple[Event, ...] | None = None  # everything, in order, where it was kept
    planning_seconds: float = field(default=0.0)
    new_estimates: tuple[NewEstimates, ...] = ()  # how estimates changed meanwhile
    real: bool = False  # on real machines: transfers take what they take
    budget: float = math.inf
    over_budget_at: float = math.nan  # when it was known that the budget was not enough
    deadline: float = math.inf  # by the run's clock
    late_at: float = math.nan  # when it was known that it would be late
    added: tuple[tuple[float, int], ...] = ()  # when tasks were added, and how many there were
    planned_from: float = 0.0  # later, if it began just in time and followed plans from then on

    def __repr__(self) -> str:
        done = f"{self.n_done:,} of {many(self.workflow.n_tasks, 'task')} done"
        plans = f", {many(self.replans, 'new plan')}" if self.replans else ""
        by = f" by {self.strategy}" if self.strategy else ""
        name = one_line(self.workflow.name) or "a workflow"
        return f"<Run of {name}{by}: {done} in {duration(self.makespan)}{plans}>"

    _repr_html_ = drawn_by("foreplan.charts.html", "of_run")

    @property
    def makespan(self) -> float:
        """When the last attempt ended; those still open count until they began."""
        log = self.attempts
        return float(np.fmax(log.finish, log.start).max(initial=0.0))

    @property
    def cost(self) -> float:
        """The money spent: every attempt and transfer costs, also those that came to nothing."""
        return self.usage.cost(self.platform)

    @cached_property
    def usage(self) -> Usage:
        """The use of every processor; attempts that are still open count for nothing."""
        log, sent = self.attempts, self.transfers
        over = ~np.isnan(log.finish)
        sizes = self.workflow.item_size[sent.item]
        money = float(np.dot(sizes, self.platform.link_price[sent.source, sent.target]))
        if log.beyond is not None:
            price = self.platform.price[log.processor[over]]
            money += float(np.dot(log.beyond[over] * price, (log.finish - log.start)[over]))
        rows, processors = held(log.processor, log.cores)
        rows, processors = rows[over[rows]], processors[over[rows]]
        nothing = Usage.none(self.platform.n_processors)
        return nothing.and_then(processors, log.start[rows], log.finish[rows], money)

    @property
    def bill(self) -> Bill:
        """What the attempts on each processor have cost, and the transfers."""
        log, shares = self.attempts, np.zeros(self.platform.n_processors)
        if log.beyond is not None:
            paid = log.beyond * self.platform.price[log.processor] * (log.finish - log.start)
            np.add.at(shares, log.processor, np.nan_to_num(paid))
        return Bill.of(self.usage, self.platform, shares)

    @cached_property
    def task_seconds(self) -> FloatArray:
        """How long the task of each attempt ran: as its machine measured it, where it did.

        An attempt takes longer: to start the task, to fetch its files and to bring them back.
        """
        log, result = self.attempts, self.attempts.finish - self.attempts.start
        for event in self.events or () if self.real else ():
            told = (event.detail or {}).get("seconds")
            if isinstance(event, _ENDINGS) and isinstance(told, int | float):
                result[event.attempt] = min(float(told), result[event.attempt])
        result[np.isnan(log.finish)] = np.nan
        seconds: FloatArray = frozen(result, np.float64)
        return seconds

    def closed(self, now: float = 0.0) -> Run:
        """The run with its open attempts ended now, so that every figure of it is a number."""
        log = self.attempts
        is_open = np.isnan(log.finish)
        if not is_open.any():
            return self
        now = max(now, self.makespan, float(np.nanmax(log.finish, initial=0.0)))
        return replace(self, attempts=replace(log, finish=np.where(is_open, now, log.finish)))

    def presence(self, until: float) -> list[list[tuple[float, float]]]:
        """For each processor the times it was there, until then."""
        since = [0.0 if joined <= 0 else None for joined in self.platform.joins.tolist()]
        there: list[list[tuple[float, float]]] = [[] for _ in since]
        for event in self.changes:
            if isinstance(event, ProcessorJoined):
                since[event.processor] = event.time
            elif isinstance(event, ProcessorGone) and (begun := since[event.processor]) is not None:
                there[event.processor].append((begun, event.time))
                since[event.processor] = None
        for spans, begun in zip(there, since, strict=True):
            if begun is not None:
                spans.append((begun, max(begun, until)))
        return there

    @cached_property
    def processor_time(self) -> ProcessorTime:
        """Where the time of the processors went, as long as the run did; open attempts not."""
        log, n, until = self.attempts, self.platform.n_processors, self.makespan
        present = [
            sum(max(0.0, min(end, until) - begun) for begun, end in spans)
            for spans in self.presence(until)
        ]
        tasks, spans = np.nan_to_num(self.task_seconds), np.nan_to_num(log.finish - log.start)
        rows, processors = held(log.processor, log.cores)
        busy = np.bincount(processors, weights=tasks[rows], minlength=n)
        used = np.bincount(processors, weights=(spans - tasks)[rows], minlength=n)
        return ProcessorTime(np.array(present), busy.astype(float), used.astype(float))

    @property
    def within_budget(self) -> bool:
        """Whether it has cost no more than it might."""
        return affordable(self.cost, self.budget)

    @property
    def in_time(self) -> bool:
        """Whether its last attempt has ended by the deadline."""
        return self.makespan <= self.deadline * (1 + ROUNDING)

    @property
    def n_done(self) -> int:
        """How many tasks are done."""
        return int(np.count_nonzero(self.final_attempts() >= 0))

    @property
    def considered(self) -> int:
        """How often a new plan was asked for."""
        return len(self.evaluations)

    @property
    def planned(self) -> float | None:
        """The makespan of the first plan; None without one, or if it knew not all tasks."""
        known = [p.makespan for p in self.plans[:1] if len(p.processor) == self.workflow.n_tasks]
        return known[0] if known else None

    @property
    def replans(self) -> int:
        """How often a new plan was taken."""
        return sum(evaluation.taken for evaluation in self.evaluations)

    @property
    def migrations(self) -> int:
        """How often a new plan moved a task that had begun to gather its inputs, or to run."""
        return sum(evaluation.migrated for evaluation in self.evaluations)

    @property
    def failed_attempts(self) -> int:
        """How many attempts failed."""
        return self._count("failed")

    @property
    def restarts(self) -> int:
        """How many running attempts were cancelled to be run elsewhere."""
        return self._count("cancelled")

    @property
    def rewound(self) -> int:
        """How many finished tasks had to be computed again."""
        return self._count("rewound")

    @property
    def rewound_levels(self) -> int:
        """On how many levels of the workflow there are such tasks, or attempts that were lost."""
        again = np.isin(self.attempts.end, [ENDS.index("rewound"), ENDS.index("failed")])
        return len(np.unique(self.workflow.level[self.attempts.task[again]]))

    @property
    def lost_seconds(self) -> float:
        """The time of processors that went into attempts that came to nothing in the end."""
        log = self.attempts
        rows, _ = held(log.processor, log.cores)  # a second on each of its cores
        nothing = log.end[rows] > ENDS.index("finished")
        return float((log.finish - log.start)[rows][nothing].sum())

    @property
    def copies_used(self) -> int:
        """How many items were sent from another host than the one that made them."""
        log, sent = self.attempts, self.transfers
        made = np.isin(log.end, [ENDS.index("finished"), ENDS.index("rewound")])
        places = {
            (int(task), int(self.platform.host[p]))
            for task, p in zip(log.task[made], log.processor[made], strict=True)
        }
        producers = self.workflow.item_producer[sent.item]
        pairs = zip(producers.tolist(), sent.source.tolist(), strict=True)
        return sum(pair not in places for pair in pairs)

    def recovery(self) -> dict[str, Any]:
        """What new plans and losses cost: tasks moved, computed again, and time lost."""
        return {
            "migrations": self.migrations,
            "restarts": self.restarts,
            "rewound": self.rewound,
            "rewound_levels": self.rewound_levels,
            "copies_used": self.copies_used,
            "lost_seconds": self.lost_seconds,
        }

    def budget_figures(self) -> dict[str, Any]:
        """The budget, if there was one, and when it was known that it was not enough."""
        if math.isinf(self.budget):
            return {}
        known = None if math.isnan(self.over_budget_at) else self.over_budget_at
        return {
            "budget": self.budget,
            "within_budget": self.within_budget,
            "over_budget_at": known,
        }

    def deadline_figures(self) -> dict[str, Any]:
        """The deadline, if there was one, and when it was known that it would not be kept."""
        if math.isinf(self.deadline):
            return {}
        known = None if math.isnan(self.late_at) else self.late_at
        return {"deadline": self.deadline, "in_time": self.in_time, "late_at": known}

    def _count(self, end: str) -> int:
        return int(np.count_nonzero(self.attempts.end == ENDS.index(end)))

    def final_attempts(self) -> IntArray:
        """The attempt that finished each task, by task."""
        finished = np.flatnonzero(self.attempts.end == ENDS.index("finished"))
        result = np.full(self.workflow.n_tasks, -1, dtype=np.int32)
        result[self.attempts.task[finished]] = finished
        return result

    def to_dict(self) -> dict[str, Any]:
        """What `foreplan simulate --json` prints."""
        last, attempts, hosts = self.final_attempts(), self.attempts, self.platform.host_names
        width = np.ones(len(attempts.task)) if attempts.cores is None else attempts.cores.width
        memory = np.zeros(len(attempts.task)) if attempts.amount is None else attempts.amount[:, 0]
        return {
            "strategy": self.strategy,
            "makespan": self.makespan,
            "cost": self.cost,
            **self.budget_figures(),
            **self.deadline_figures(),
            "replans": self.replans,
            "considered": self.considered,
            **self.recovery(),
            "evaluations": [evaluation.to_dict() for evaluation in self.evaluations],
            "tasks": {
                name: {
                    "processor": self.platform.processor_names[attempts.processor[k]],
                    "host": hosts[self.platform.host[attempts.processor[k]]],
                    "cores": int(width[k]),
                    "memory": float(memory[k]),
                    "start": float(attempts.start[k]),
                    "finish": float(attempts.finish[k]),
                }
                for name, k in zip(self.workflow.task_names, last, strict=True)
                if k >= 0
            },
        }
