"""The attempts of a run as spans, and what each of them read, and when it was there."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from foreplan.model import ENDS, Run
from foreplan.model.resources import kinds_and_pools
from foreplan.scheduling.critical import Arrivals, Spans

OUTSIDE = -1  # the source of an input that nobody made
MADE = tuple(ENDS.index(end) for end in ("finished", "rewound"))


def spans_of_run(run: Run) -> Spans:
    """The attempts, as they were."""
    log = run.attempts
    return Spans(
        log.processor,
        log.start,
        log.finish,
        np.arange(len(log.task), dtype=np.int32),
        run.platform.host[log.processor],
        log.cores,
        log.amount,
        len(kinds_and_pools(run.workflow)[0]),
    )


# One row per item that an attempt read: who made it (an attempt, or OUTSIDE), by which transfer it
# came, and whether this is shown: it is the first to read what a transfer brought.
_READ = np.dtype(
    [("item", "i4"), ("source", "i4"), ("target", "i4"), ("sent", "f8"), ("arrival", "f8"),
     ("shown", "?")]
)  # fmt: skip


def made_within(reads: Any) -> Arrivals:
    """Those that an attempt made."""
    made = reads[reads["source"] != OUTSIDE]
    return Arrivals(*(made[name] for name in _READ.names or ()))


def reads_of(run: Run) -> Any:
    """What every attempt read: the latest complete copy on its host when it started."""
    wf, log, reads = run.workflow, run.attempts, list[tuple[int, int, int, float, float, bool]]()
    host = run.platform.host[log.processor].tolist()
    start, finish, tasks = log.start.tolist(), log.finish.tolist(), log.task.tolist()
    makers, moves = _makers(run), _moves(run)
    seen: set[tuple[int, int, float]] = set()
    for k, task in enumerate(tasks):
        for item in wf.in_item[wf.in_ptr[task] : wf.in_ptr[task + 1]].tolist():
            producer = int(wf.item_producer[item])
            if producer < 0:
                reads.append((item, OUTSIDE, k, 0.0, 0.0, False))
                continue
            made = _latest(makers[producer], start[k])
            if made is None:
                continue
            maker = int(made[1])
            moved = _latest(moves[item, host[k]], start[k])
            if moved is None or host[maker] == host[k]:
                reads.append((item, maker, k, finish[maker], finish[maker], False))
                continue
            arrival, sent = moved
            made = _latest(makers[producer], sent)  # what was moved, not what was made again later
            maker = maker if made is None else int(made[1])
            new = (item, host[k], arrival) not in seen
            seen.add((item, host[k], arrival))
            reads.append((item, maker, k, sent, arrival, new))
    return np.array(reads, dtype=_READ)


def _makers(run: Run) -> dict[int, list[tuple[float, int]]]:
    """By task: when attempts at it finished, and which they were."""
    log = run.attempts
    result: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for k in np.flatnonzero(np.isin(log.end, MADE)).tolist():
        result[int(log.task[k])].append((float(log.finish[k]), k))
    for entries in result.values():
        entries.sort()
    return result


def _moves(run: Run) -> dict[tuple[int, int], list[tuple[float, float]]]:
    """By item and host: when it arrived there, and when it was sent."""
    log = run.transfers
    result: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for k in np.flatnonzero(np.isfinite(log.arrival)).tolist():
        result[int(log.item[k]), int(log.target[k])].append(
            (float(log.arrival[k]), float(log.sent[k]))
        )
    for entries in result.values():
        entries.sort()
    return result


def _latest(entries: Sequence[tuple[float, float]], time: float) -> tuple[float, float] | None:
    """The last of the entries, which are in order, that is not after the time."""
    at = bisect_right(entries, (time, math.inf))
    return entries[at - 1] if at else None
