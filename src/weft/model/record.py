"""The record of a run: what was planned, what happened, and what was decided."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from weft.arrays import FloatArray, IntArray, frozen
from weft.model.events import Event, EventKind, NewEstimates
from weft.model.money import ROUNDING, Usage, affordable
from weft.model.platform import Platform
from weft.model.schedule import Schedule
from weft.model.workflow import Workflow

ENDS = ("running", "finished", "failed", "cancelled", "rewound")
_ENDINGS = (EventKind.TASK_FINISHED, EventKind.TASK_FAILED)


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
class AttemptLog:
    """Every attempt in the order of their starts; `end` is an index into ENDS."""

    task: IntArray
    processor: IntArray
    start: FloatArray
    finish: FloatArray
    end: IntArray
    work: FloatArray  # what it needed, in seconds at full availability; NaN where nobody knows

    def __post_init__(self) -> None:
        for name in ("task", "processor", "end"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.int32))
        for name in ("start", "finish", "work"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64))


@dataclass(frozen=True, eq=False)
class TransferLog:
    """Every transfer in the order of their starts; infinite arrivals were cut, or forgotten."""

    item: IntArray
    source: IntArray
    target: IntArray
    sent: FloatArray
    arrival: FloatArray  # NaN: still under way when the run ended
    forgotten: FloatArray  # when what came was left behind; infinite: never

    def __post_init__(self) -> None:
        for name in ("item", "source", "target"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.int32))
        for name in ("sent", "arrival", "forgotten"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64))


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
    lessons: tuple[NewEstimates, ...] = ()  # how estimates changed meanwhile
    real: bool = False  # on real machines: transfers take what they take
    budget: float = math.inf
    over_budget_at: float = math.nan  # when it was known that the budget would not do
    deadline: float = math.inf  # by the run's clock
    late_at: float = math.nan  # when it was known that it would be late
    planned_from: float = 0.0  # later, if it began just in time and followed plans from then on

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
        return Usage.none(self.platform.n_processors).and_then(
            log.processor[over], log.start[over], log.finish[over],
            float(np.dot(sizes, self.platform.link_price[sent.source, sent.target])),
        )  # fmt: skip

    @cached_property
    def task_seconds(self) -> FloatArray:
        """How long the task of each attempt ran: as its machine measured it, where it did.

        An attempt takes longer: to start the task, to fetch its files and to bring them back.
        """
        log, result = self.attempts, self.attempts.finish - self.attempts.start
        for event in self.events or () if self.real else ():
            told = (event.detail or {}).get("seconds")
            if event.kind in _ENDINGS and isinstance(told, int | float):
                result[event.which] = min(float(told), result[event.which])
        result[np.isnan(log.finish)] = np.nan
        seconds: FloatArray = frozen(result, np.float64)
        return seconds

    @property
    def within_budget(self) -> bool:
        """Whether it has cost no more than it might."""
        return affordable(self.cost, self.budget)

    @property
    def in_time(self) -> bool:
        """Whether its last attempt has ended by the deadline."""
        return self.makespan <= self.deadline * (1 + ROUNDING)

    @property
    def considered(self) -> int:
        """How often a new plan was asked for."""
        return len(self.evaluations)

    @property
    def replans(self) -> int:
        """How often a new plan was taken."""
        return sum(evaluation.taken for evaluation in self.evaluations)

    @property
    def migrations(self) -> int:
        """How often a new plan moved a task that had begun to gather its inputs, or to run."""
        return sum(evaluation.migrated for evaluation in self.evaluations)

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
        nothing = log.end > ENDS.index("finished")
        return float((log.finish - log.start)[nothing].sum())

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

    def _budget(self) -> dict[str, Any]:
        """The budget, if there was one, and when it was known that it would not do."""
        if math.isinf(self.budget):
            return {}
        known = None if math.isnan(self.over_budget_at) else self.over_budget_at
        return {
            "budget": self.budget,
            "within_budget": self.within_budget,
            "over_budget_at": known,
        }

    def _deadline(self) -> dict[str, Any]:
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
        """What `weft simulate --json` prints."""
        last, attempts = self.final_attempts(), self.attempts
        return {
            "strategy": self.strategy,
            "makespan": self.makespan,
            "cost": self.cost,
            **self._budget(),
            **self._deadline(),
            "replans": self.replans,
            "considered": self.considered,
            **self.recovery(),
            "evaluations": [evaluation.to_dict() for evaluation in self.evaluations],
            "tasks": {
                name: {
                    "processor": self.platform.processor_names[attempts.processor[k]],
                    "start": float(attempts.start[k]),
                    "finish": float(attempts.finish[k]),
                }
                for name, k in zip(self.workflow.task_names, last, strict=True)
                if k >= 0
            },
        }
