"""Figures of a real run that its summary and its report share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from weft.arrays import FloatArray
from weft.model import ENDS, Run

FINISHED, FAILED = ENDS.index("finished"), ENDS.index("failed")


def closed(run: Run, now: float = 0.0) -> Run:
    """The run with its open attempts ended now, so that every figure of it is a number."""
    log = run.attempts
    is_open = np.isnan(log.finish)
    if not is_open.any():
        return run
    now = max(now, run.makespan, float(log.start.max()), float(np.nanmax(log.finish, initial=0.0)))
    return replace(run, attempts=replace(log, finish=np.where(is_open, now, log.finish)))


def busy(run: Run) -> FloatArray:
    """The seconds that tasks ran on every processor."""
    return _by_processor(run, run.task_seconds)


def overhead(run: Run) -> FloatArray:
    """The seconds that attempts took on every processor beyond their tasks: what weft itself took.

    That is starting tasks, fetching their files and bringing them back.
    """
    log = run.attempts
    return _by_processor(run, log.finish - log.start - run.task_seconds)


def _by_processor(run: Run, seconds: FloatArray) -> FloatArray:
    used = np.bincount(run.attempts.processor, weights=seconds, minlength=run.platform.n_processors)
    return used.astype(np.float64)


def there(run: Run) -> FloatArray:
    """The seconds that every processor was there, as long as the run went."""
    from weft.charts.run_build import presence

    until = run.makespan
    return np.array(
        [sum(max(0.0, min(b, until) - a) for a, b in spans) for spans in presence(run, until)]
    )


@dataclass(frozen=True)
class Shares:
    """Where the time of the processors went."""

    tasks: float  # they ran
    weft: float  # it was starting them, fetching their files and bringing them back

    def __str__(self) -> str:
        idle = max(0.0, 1 - self.tasks - self.weft)
        return (
            f"tasks ran {self.tasks:.0%} of the time, weft itself took {self.weft:.0%} "
            f"(starting them, moving files), idle {idle:.0%}"
        )


def shares(run: Run) -> Shares:
    """Where the time of all processors went, as long as they were there."""
    seconds = float(there(run).sum())
    if seconds <= 0:
        return Shares(0.0, 0.0)
    return Shares(float(busy(run).sum()) / seconds, float(overhead(run).sum()) / seconds)


def n_done(run: Run) -> int:
    """How many tasks are done."""
    return int(np.count_nonzero(run.final_attempts() >= 0))
