"""What memory tasks of traces are given by several rules, beside what they had."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from foreplan.errors import InputError
from foreplan.history.memory import MemoryModel

Seen = Sequence[tuple[float, float]]  # memory and size of the inputs of earlier tasks
Rule = Callable[[Seen, float], float]


def learnt(seen: Seen, size: float) -> float:
    """As foreplan learns it."""
    memory, sizes = (np.array(column, dtype=np.float64) for column in zip(*seen, strict=True))
    model = MemoryModel.fit(memory, sizes)
    assert model is not None
    return model.need(size).memory


RULES: dict[str, Rule] = {
    "learnt": learnt,
    "the most seen": lambda seen, size: max(memory for memory, _ in seen),
    "the most seen, and 20% more": lambda seen, size: 1.2 * max(memory for memory, _ in seen),
    "twice the mean": lambda seen, size: 2 * statistics.fmean(memory for memory, _ in seen),
}


@dataclass(frozen=True)
class Figures:
    """How a rule did: the share of tasks that had more than it gave, and what it gave too much."""

    trace: str
    rule: str
    tasks: int
    under: float
    mean_ratio: float  # of what was given to what was had, by task
    given: float  # bytes, in all
    had: float

    @property
    def total_ratio(self) -> float:
        """Of all that was given to all that was had."""
        return self.given / self.had


def tasks_of(path: Path) -> list[tuple[str, float, float]]:
    """The category, memory and bytes of input of every task of a WfFormat trace that tells it."""
    try:
        workflow = json.loads(path.read_text())["workflow"]
        specified = {task["id"]: task for task in workflow["specification"]["tasks"]}
        files = workflow["specification"].get("files", [])
        sizes = {file["id"]: float(file["sizeInBytes"]) for file in files}
        executed = workflow["execution"]["tasks"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"this is no trace in WfFormat ({error!r})", source=str(path)) from None
    measured = [task for task in executed if task.get("memoryInBytes")]  # 0: it was over too soon
    own = [specified[task["id"]] for task in measured]
    memory = [float(task["memoryInBytes"]) for task in measured]
    return [(_category(t), m, _bytes(t, sizes)) for t, m in zip(own, memory, strict=True)]


def _category(task: dict[str, Any]) -> str:
    return str(task["name"]).rstrip("0123456789").rstrip("_").removesuffix("_ID")


def _bytes(task: dict[str, Any], sizes: dict[str, float]) -> float:
    return sum(sizes.get(file, 0.0) for file in task.get("inputFiles", []))


def figures(path: Path, leave_out: bool) -> list[Figures]:
    """Every rule on a trace: each task by all others of its category, or by those before it."""
    by_category: dict[str, list[tuple[float, float]]] = {}
    for category, memory, size in tasks_of(path):
        by_category.setdefault(category, []).append((memory, size))
    found = []
    for name, rule in RULES.items():
        given, had = list[float](), list[float]()
        for records in by_category.values():
            for k, (memory, size) in enumerate(records):
                seen = records[:k] + (records[k + 1 :] if leave_out else [])
                if seen:
                    given.append(rule(seen, size))
                    had.append(memory)
        if had:
            found.append(_summed_up(path.stem, name, given, had))
    return found


def _summed_up(trace: str, rule: str, given: list[float], had: list[float]) -> Figures:
    pairs = list(zip(given, had, strict=True))
    under = sum(g < h for g, h in pairs) / len(had)
    mean = statistics.fmean(g / h for g, h in pairs)
    return Figures(trace, rule, len(had), under, mean, sum(given), sum(had))


def together(rows: Sequence[Figures]) -> list[Figures]:
    """Every rule on all traces."""
    found = []
    for rule in RULES:
        of_it = [row for row in rows if row.rule == rule]
        tasks = sum(row.tasks for row in of_it)
        if not tasks:
            continue
        under, mean = (
            sum(getattr(row, name) * row.tasks for row in of_it) / tasks
            for name in ("under", "mean_ratio")
        )
        given, had = (sum(getattr(row, name) for row in of_it) for name in ("given", "had"))
        found.append(Figures("all", rule, tasks, under, mean, given, had))
    return found
