"""What the attempts of a run used, by category, and what could be asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from foreplan.executors.usage import (
    AT_MOST,
    COPIED,
    COPYING,
    CPU,
    MEMORY,
    READ,
    WRITTEN,
    plain,
)
from foreplan.history.memory import Suggestion, cores_of, model_of, suggestion
from foreplan.history.records import Measured
from foreplan.model.causes import USED
from foreplan.model.events import TaskFailed, TaskFinished
from foreplan.model.profiles import amounts_held

if TYPE_CHECKING:
    from foreplan.arrays import FloatArray
    from foreplan.model import Run, Workflow
    from foreplan.runs.replay import Replayed


@dataclass(frozen=True)
class CategoryUse:
    """What the attempts of a category used; what nobody has measured is None."""

    category: str
    attempts: int  # of which anything is known
    memory_median: float | None  # bytes
    memory_most: float | None
    at_most: bool  # it is only known to be no more than that
    asked: float | None  # the most memory that one of its tasks asked for
    held: float | None  # the most that one of its attempts held: asked for, learnt or raised
    wasted: float | None  # of the memory held, over time: the share that was not used
    cores_held: int  # the most by one of its attempts
    cpu: float | None  # seconds of processors, all in all
    cores: float | None  # kept busy, on average
    read: float | None  # bytes, all in all
    written: float | None
    copied: float | None  # bytes, so that functions on Dask have arguments of their own
    copying: float | None  # seconds that this took


def used_by_attempt(replayed: Replayed) -> dict[int, dict[str, Any]]:
    """What the journal says of each attempt, where it says anything."""
    events = (e for e in replayed.driver.events or () if isinstance(e, TaskFinished | TaskFailed))
    told = ((event.attempt, plain((event.detail or {}).get(USED))) for event in events)
    return {attempt: used for attempt, used in told if used}


def asked_memory(workflow: Workflow, task: int) -> float:
    """The bytes of memory that a task asks for at its first try; NaN if it does not say."""
    request = workflow.spec(task).request
    if request is None or request.memory is None:
        return math.nan
    first, end = workflow.in_ptr[task], workflow.in_ptr[task + 1]
    return request.memory.value(float(workflow.item_size[workflow.in_item[first:end]].sum()))


def uses_of(run: Run, used: Mapping[int, Mapping[str, Any]]) -> tuple[CategoryUse, ...]:
    """Return a row for every category, the one with the most memory first.

    A task without a category is one of its own.
    """
    held = amounts_held(run, MEMORY)
    rows = [_use(run, name, found, held) for name, found in _by_category(run, used).items()]
    return tuple(sorted(rows, key=lambda row: (-(row.memory_most or 0.0), row.category)))


def _by_category(
    run: Run, used: Mapping[int, Mapping[str, Any]]
) -> dict[str, dict[int, Mapping[str, Any]]]:
    found: dict[str, dict[int, Mapping[str, Any]]] = {}
    for attempt, amounts in used.items():
        task = int(run.attempts.task[attempt])
        category = run.workflow.spec(task).category or run.workflow.task_names[task]
        found.setdefault(category, {})[attempt] = amounts
    return found


def _use(
    run: Run, category: str, used: Mapping[int, Mapping[str, Any]], held: FloatArray
) -> CategoryUse:
    memory = [amounts[MEMORY] for amounts in used.values() if MEMORY in amounts]
    asked = [asked_memory(run.workflow, int(run.attempts.task[k])) for k in used]
    asked = [amount for amount in asked if not math.isnan(amount)]
    return CategoryUse(
        category=category,
        attempts=len(used),
        memory_median=median(memory) if memory else None,
        memory_most=max(memory, default=None),
        at_most=any(AT_MOST in u and u[MEMORY] == max(memory) for u in used.values()),
        asked=max(asked, default=None),
        held=max(float(held[k]) for k in used) or None,
        wasted=_wasted(run, held, used),
        cores_held=max(run.attempts.width(k) for k in used),
        cpu=_sum(used, CPU),
        cores=cores_of(_records(run, used)),
        read=_sum(used, READ),
        written=_sum(used, WRITTEN),
        copied=_sum(used, COPIED),
        copying=_sum(used, COPYING),
    )


def _wasted(run: Run, held: FloatArray, used: Mapping[int, Mapping[str, Any]]) -> float | None:
    """The share of memory held, weighted by how long, that attempts never used."""
    known = [k for k in used if held[k] > 0 and MEMORY in used[k]]
    seconds = {k: float(run.task_seconds[k]) for k in known}
    had = math.fsum(float(held[k]) * seconds[k] for k in known)
    filled = math.fsum(min(used[k][MEMORY], float(held[k])) * seconds[k] for k in known)
    return 1 - filled / had if had > 0 else None


def _sum(used: Mapping[int, Mapping[str, Any]], kind: str) -> float | None:
    known = [amounts[kind] for amounts in used.values() if kind in amounts]
    return math.fsum(known) if known else None


def _records(run: Run, used: Mapping[int, Mapping[str, Any]]) -> list[Measured]:
    """The attempts as the history would have them; the sizes of inputs are in no report."""
    return [
        Measured(
            0.0, float(run.task_seconds[k]), math.nan, "", amounts.get(MEMORY, math.nan),
            AT_MOST in amounts, amounts.get(CPU, math.nan),
        )
        for k, amounts in used.items()
    ]  # fmt: skip


def suggestions_of(run: Run, used: Mapping[int, Mapping[str, Any]]) -> tuple[Suggestion, ...]:
    """Return what categories could ask for, by the attempts of this run that finished."""
    finished = set(run.final_attempts().tolist())
    specs, tasks = run.workflow.specs, run.attempts.task.tolist()
    named = {task for task, spec in specs.items() if spec.category}
    done = {k: used[k] for k in used if k in finished and tasks[k] in named}
    found = []
    for category, of_it in _by_category(run, done).items():
        asked = [asked_memory(run.workflow, int(run.attempts.task[k])) for k in of_it]
        model = model_of(_records(run, of_it))
        if model is not None:
            most = max((amount for amount in asked if not math.isnan(amount)), default=None)
            found.append(suggestion(category, model, most))
    return tuple(said for said in found if said.matters)
