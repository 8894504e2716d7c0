"""What is different between two runs: workflow, options, machines, figures, and task by task."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from foreplan.formats.foreplan_workflow import workflow_to_literals
from foreplan.report.data import Report, tell
from foreplan.report.states import task_states

if TYPE_CHECKING:
    from foreplan.model import Platform, Workflow
    from foreplan.runs.home import RunHome
    from foreplan.runs.replay import Replayed

Pair = tuple[Any, Any]


@dataclass(frozen=True)
class TaskDifference:
    """A task in both runs; what one of them does not have is None."""

    task: str
    states: tuple[str | None, str | None]
    seconds: tuple[float | None, float | None]  # of the attempt that counts
    attempts: tuple[int, int]
    processors: tuple[str | None, str | None]

    @property
    def by(self) -> float:
        """Seconds more than before; 0 where they cannot be compared."""
        before, after = self.seconds
        return 0.0 if before is None or after is None else after - before

    @property
    def is_other(self) -> bool:
        """Whether more than its time and place is different."""
        return self.states[0] != self.states[1] or self.attempts[0] != self.attempts[1]


@dataclass(frozen=True)
class Difference:
    """Two runs, the first as what was before."""

    runs: tuple[str, str]
    figures: dict[str, Pair]  # all, also those that are alike
    added: list[str]
    removed: list[str]
    changed: dict[str, dict[str, Pair]]  # by task and field of the file
    edges: tuple[int, int]  # dependencies that are new, and that are gone
    options: dict[str, Pair]
    machines: dict[str, Pair]
    tasks: list[TaskDifference]  # the largest difference in time first

    @property
    def is_same(self) -> bool:
        """Whether nothing but times is different."""
        found = (self.added, self.removed, self.changed, self.options, self.machines)
        return not (any(found) or any(self.edges) or any(task.is_other for task in self.tasks))

    def to_dict(self) -> dict[str, Any]:
        """What `foreplan diff --json` prints."""
        return {key: getattr(self, key) for key in vars(self) if key != "tasks"} | {
            "tasks": [asdict(task) for task in self.tasks]
        }


class _Side:
    """One of the two."""

    def __init__(self, home: RunHome) -> None:
        from foreplan.runs.journal import read
        from foreplan.runs.replay import replay
        from foreplan.runs.summary import summarise

        self.status = summarise(home).status
        self.replayed: Replayed = replay(read(home.journal), home.data)
        self.replayed.driver.coordinator.pass_time(self.replayed.until)
        self.report: Report = tell(self.replayed, home, self.status)
        self.workflow: Workflow = self.replayed.header.workflow
        self.platform: Platform = self.report.run.platform
        states = task_states(self.replayed, self.status == "running")
        names = self.workflow.task_names
        self.states = dict(zip(names, states, strict=True))
        self.times = {row.task: row for row in self.report.times}
        self.attempts = Counter(names[task] for task in self.report.run.attempts.task.tolist())

    def figures(self) -> dict[str, Any]:
        """What a run comes to."""
        told = self.report
        return {
            "status": self.status,
            "tasks": told.tasks,
            "done": told.done,
            "makespan": told.makespan,
            "planned": told.planned,
            "cost": told.run.cost if told.paid else None,
            "processors": len(told.processors),
            "utilisation": told.utilisation,
            "overhead": told.overhead,
            "attempts": told.attempts,
            "failed attempts": len(told.failures),
            "new plans": told.replans,
        }

    def options(self) -> dict[str, Any]:
        """What was asked for, and the strategy that was chosen."""
        header = self.replayed.header
        return {**header.options.to_dict(), "strategy": header.strategy}

    def machines(self) -> dict[str, Any]:
        """What there is to say of each processor."""
        pf = self.platform
        return {
            name: {"host": pf.host_names[pf.host[p]], "speed": pf.speed[p], "price": pf.price[p]}
            for p, name in enumerate(pf.processor_names)
        }

    def pairs(self) -> set[tuple[str, str]]:
        """Who needs whom."""
        _, producers, consumers = self.workflow.dependencies()
        names = self.workflow.task_names
        ends = zip(producers.tolist(), consumers.tolist(), strict=True)
        return {(names[a], names[b]) for a, b in ends}


def difference(before: RunHome, after: RunHome) -> Difference:
    """Compare two runs by their journals; neither is changed."""
    old, new = _Side(before), _Side(after)
    were, are = _tasks(old.workflow), _tasks(new.workflow)
    both = [name for name in were if name in are]
    changes = {name: _unlike(were[name], are[name]) for name in both}
    gone, come = old.pairs() - new.pairs(), new.pairs() - old.pairs()
    every = [_task(name, old, new) for name in dict.fromkeys([*were, *are])]
    return Difference(
        runs=(before.id, after.id),
        figures=_side_by_side(old.figures(), new.figures()),
        added=[name for name in are if name not in were],
        removed=[name for name in were if name not in are],
        changed={name: found for name, found in changes.items() if found},
        edges=(len(come), len(gone)),
        options=_unlike(old.options(), new.options()),
        machines=_unlike(old.machines(), new.machines()),
        tasks=sorted(every, key=lambda task: (-abs(task.by), not task.is_other)),
    )


def _tasks(workflow: Workflow) -> dict[str, dict[str, Any]]:
    """The tasks as a file has them."""
    tasks = workflow_to_literals(workflow)["tasks"]
    assert isinstance(tasks, dict)
    return tasks


def _side_by_side(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Pair]:
    names = dict.fromkeys([*old, *new])
    return {name: (_plain(old.get(name)), _plain(new.get(name))) for name in names}


def _unlike(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Pair]:
    """What is not the same, by name; None where there is nothing."""
    return {name: pair for name, pair in _side_by_side(old, new).items() if pair[0] != pair[1]}


def _plain(value: Any) -> Any:
    """As JSON has it: a number that nobody knows is None."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return list(map(_plain, value)) if isinstance(value, list | tuple) else value


def _task(name: str, old: _Side, new: _Side) -> TaskDifference:
    was, now = old.times.get(name), new.times.get(name)
    return TaskDifference(
        task=name,
        states=(old.states.get(name), new.states.get(name)),
        seconds=(None if was is None else was.seconds, None if now is None else now.seconds),
        attempts=(old.attempts[name], new.attempts[name]),
        processors=(None if was is None else was.processor, None if now is None else now.processor),
    )
