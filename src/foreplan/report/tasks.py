"""Every task of a run: what it is, where and when it ran, as planned and in fact, and its log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreplan.executors.paths import log_name
from foreplan.model.profiles import amounts_held
from foreplan.model.resources import MEMORY

if TYPE_CHECKING:
    from foreplan.report.data import Report

ENDS = (".err", ".out")
TAIL = 2000  # bytes of a log that are read


@dataclass(frozen=True)
class Planned:
    """Where and when a task was to run, as the first plan had it."""

    processor: str
    start: float
    finish: float


@dataclass(frozen=True)
class ListedTask:
    """A task; what is None has not happened, or nobody knows it."""

    task: str
    category: str | None
    state: str
    command: str | None
    attempts: int
    planned: Planned | None
    processor: str | None  # of the last attempt, as are the times
    start: float | None
    finish: float | None
    seconds: float | None
    logs: tuple[str, ...]  # of the last attempt, in the run's home
    cores: int | None = None  # that the last attempt holds, or held
    memory: float | None = None  # the same of bytes
    used: dict[str, Any] | None = None  # by the last attempt, see foreplan.executors.usage
    slack: float | None = None  # seconds that it could have ended later, and all ended when it did
    spare: float | None = None  # and nothing else started later
    critical: bool | None = None  # it had no slack


def tasks_of(report: Report) -> Iterator[ListedTask]:
    """All of them, in the order of the workflow."""
    run, attempts = report.run, report.run.attempts
    names, processors = run.workflow.task_names, run.platform.processor_names
    count, last = [0] * len(names), [-1] * len(names)
    for k, task in enumerate(attempts.task.tolist()):
        count[task] += 1
        last[task] = k
    kept, memory = _kept(Path(report.home)), amounts_held(run, MEMORY)
    plan, reused = run.plans[0] if run.plans else None, {*report.reused}
    late = report.margins
    for task, name in enumerate(names):
        k, spec = last[task], run.workflow.spec(task)
        tried = k >= 0
        over = tried and report.states[task] != "running"
        base = f"logs/{log_name(k, name)}"
        yield ListedTask(
            task=name,
            category=spec.category,
            state="up to date" if name in reused else report.states[task],
            command=spec.run,
            attempts=count[task],
            planned=None
            if plan is None or task >= len(plan.processor)  # it was added later
            else Planned(
                processors[plan.processor[task]], float(plan.start[task]), float(plan.finish[task])
            ),
            processor=processors[attempts.processor[k]] if tried else None,
            start=float(attempts.start[k]) if tried else None,
            finish=float(attempts.finish[k]) if over else None,
            seconds=float(run.task_seconds[k]) if over else None,
            logs=tuple(base + end for end in ENDS if tried and base + end in kept),
            cores=attempts.width(k) if tried else None,
            memory=float(memory[k]) if tried else None,
            used=report.used.get(k),
            slack=None if late is None else float(late.slack[task]),
            spare=None if late is None else float(late.spare[task]),
            critical=None if late is None else bool(late.critical[task]),
        )


def _kept(home: Path) -> set[str]:
    """The logs that are there."""
    with suppress(OSError):
        return {f"logs/{name}" for name in os.listdir(home / "logs")}
    return set()


def last_lines(home: Path, log: str) -> str:
    """The end of a log, from the beginning of a line on."""
    try:
        with (home / log).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            text = file.read(TAIL).decode("utf-8", "replace")
    except OSError:
        return ""
    return text.partition("\n")[2] if size > TAIL and "\n" in text else text
