"""STG, the format of the Standard Task Graph set.

The number of tasks, then a line `id time npred pred...` per task, then comments (`#`). In the
variant with communication every predecessor is followed by its cost. The two dummy tasks of cost
0 stay tasks, whether the number counts them or not.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from foreplan.errors import InputError, place_of
from foreplan.formats.fields import amount, plain, shown, wrong_line
from foreplan.model import Item, Workflow


@dataclass(frozen=True)
class _Task:
    """One line, as numbers; the rest is predecessors, with or without costs."""

    line: int
    time: float
    n_predecessors: int
    rest: list[str]

    @property
    def with_costs(self) -> bool:
        return len(self.rest) == 2 * self.n_predecessors


def parse_stg(text: str, name: str = "") -> Workflow:
    """A workflow from the text of an STG file."""
    lines = [
        (number, fields)
        for number, line in enumerate(text.split("\n"), start=1)
        if (fields := line.split()) and not fields[0].startswith("#")
    ]
    if not lines:
        raise InputError("the file is empty")
    first, header = lines[0]
    if len(header) != 1:
        raise wrong_line("expected the number of tasks alone on the first line", first)
    declared = _whole(header[0], "the number of tasks", first)
    tasks = _tasks(lines[1:])
    if len(tasks) not in (declared, declared + 2):
        problem = f"{declared} tasks are announced (or {declared + 2} with the two dummies)"
        raise InputError(f"{problem}, but {len(tasks)} are there", place=f"line {lines[-1][0]}")
    if not tasks:
        raise wrong_line("the workflow has no tasks", first)
    return Workflow.from_items(
        name, [str(task) for task in tasks], [t.time for t in tasks.values()], _items(tasks)
    )


def _tasks(lines: list[tuple[int, list[str]]]) -> dict[int, _Task]:
    tasks: dict[int, _Task] = {}
    for line, fields in lines:
        if len(fields) < 3:
            raise wrong_line("expected: id, time, number of predecessors, predecessors", line)
        task = _whole(fields[0], "the id", line)
        if task in tasks:
            raise wrong_line(f"the task {task} is given twice", line)
        count = _whole(fields[2], "the number of predecessors", line)
        rest = fields[3:]
        if len(rest) not in (count, 2 * count):
            problem = f"{count} predecessors are announced, but {len(rest)} fields follow"
            raise wrong_line(problem, line)
        tasks[task] = _Task(line, amount(fields[1], "the time", f"line {line}"), count, rest)
    return tasks


def _items(tasks: dict[int, _Task]) -> list[Item]:
    """One item per predecessor; all lines must agree on whether costs are given."""
    index = {task: i for i, task in enumerate(tasks)}
    linked = [(task, t) for task, t in tasks.items() if t.n_predecessors]
    with_costs = bool(linked) and linked[0][1].with_costs
    step = 2 if with_costs else 1
    items: list[Item] = []
    for task, t in linked:
        if t.with_costs != with_costs:
            other = f"line {linked[0][1].line}"
            raise wrong_line(f"this line and {other} differ on giving communication costs", t.line)
        seen: set[int] = set()
        for k in range(0, len(t.rest), step):
            before = _whole(t.rest[k], "a predecessor", t.line)
            if before not in index:
                raise wrong_line(f"the predecessor {before} is not a task", t.line)
            if before == task:
                raise wrong_line(f"the task {task} depends on itself", t.line)
            if before in seen:
                raise wrong_line(f"the predecessor {before} is given twice", t.line)
            seen.add(before)
            cost = 0.0
            if with_costs:
                cost = amount(t.rest[k + 1], "a communication cost", f"line {t.line}")
            items.append(Item(cost, index[before], (index[task],)))
    return items


def _whole(text: str, what: str, line: int) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    raise wrong_line(f"{what} must be a whole number, not {shown(text)}", line)


def dump_stg(workflow: Workflow) -> str:
    """An STG text; names become numbers, and all data between two tasks one communication cost."""
    _check_costs(workflow)
    order, position = workflow.order.tolist(), workflow.position.tolist()
    before: list[dict[int, float]] = [{} for _ in order]
    items, producers, consumers = workflow.dependencies()
    sizes = workflow.item_size[items].tolist()
    for p, c, size in zip(producers.tolist(), consumers.tolist(), sizes, strict=True):
        before[c][p] = min(before[c].get(p, 0.0) + size, sys.float_info.max)
    with_costs = any(size > 0 for size in sizes)
    lines = [str(len(order) - 2 * _has_dummies(workflow))]
    for number, task in enumerate(order):
        fields = [number, plain(float(workflow.base_cost[task])), len(before[task])]
        for p in sorted(before[task], key=position.__getitem__):
            fields += [position[p], plain(before[task][p])] if with_costs else [position[p]]
        lines.append(" ".join(map(repr, fields)))
    return "\n".join(lines) + "\n"


def _check_costs(workflow: Workflow) -> None:
    """STG has one time per task."""
    unsaid = np.isnan(workflow.base_cost)
    for column in workflow.processor_cost.values():
        unsaid = unsaid | ~np.isnan(column)
    for task in np.flatnonzero(unsaid)[:1].tolist():
        problem = "STG needs one cost, in seconds at speed 1, for every task"
        raise InputError(problem, place=place_of("tasks", workflow.task_names[task], "cost"))


def _has_dummies(workflow: Workflow) -> bool:
    """Whether the first task starts all and the last ends all, both at no cost."""
    _, producers, consumers = workflow.dependencies()
    sources = np.setdiff1d(workflow.order, consumers)
    sinks = np.setdiff1d(workflow.order, producers)
    if len(sources) != 1 or len(sinks) != 1 or workflow.n_tasks < 3:
        return False
    ends = [int(sources[0]), int(sinks[0])]
    return not workflow.base_cost[ends].any()
