"""Figures of a real run that its summary and its report share."""

from __future__ import annotations

from dataclasses import replace

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
    """The seconds that every processor has worked."""
    log = run.attempts
    used = np.bincount(
        log.processor, weights=log.finish - log.start, minlength=run.platform.n_processors
    )
    return used.astype(np.float64)


def there(run: Run) -> FloatArray:
    """The seconds that every processor was there, as long as the run went."""
    from weft.charts.run_build import presence

    until = run.makespan
    return np.array(
        [sum(max(0.0, min(b, until) - a) for a, b in spans) for spans in presence(run, until)]
    )


def utilisation(run: Run) -> float:
    """The share of the processors' time in which attempts ran."""
    seconds = float(there(run).sum())
    return float(busy(run).sum()) / seconds if seconds > 0 else 0.0


def n_done(run: Run) -> int:
    """How many tasks are done."""
    return int(np.count_nonzero(run.final_attempts() >= 0))
