"""How attempts on Dask end, as events: heard from a worker, cut short, or found after a restart."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft.executors.dask_cluster import Cluster
from weft.executors.dask_jobs import Jobs
from weft.model.events import NO_FAULT, OWN_FAULT, Event, EventKind, StartTask


def finished(attempt: int, seconds: float, sizes: dict[Any, int]) -> Event:
    """An attempt has ended well."""
    detail = {"seconds": seconds, "sizes": sizes}
    return Event(EventKind.TASK_FINISHED, attempt, 0.0, detail=detail)


def failed(attempt: int, report: dict[str, Any], home: str, unlisted: list[str]) -> Event:
    """An attempt has failed, as a worker says."""
    log = report.get("log")
    detail = {
        "reason": report["reason"],
        "exit": report.get("exit"),
        "log": log and os.path.relpath(log, home),
        "tail": report.get("tail", ""),
        "seconds": report["seconds"],
    }
    if unlisted:
        detail["unlisted"] = unlisted
    return Event(EventKind.TASK_FAILED, attempt, 0.0, OWN_FAULT, detail)


def cut_short(attempt: int, reason: str, **more: Any) -> Event:
    """An attempt comes to nothing through no fault of its own."""
    detail = {"reason": reason, "exit": None, "log": None, "tail": "", "seconds": 0.0, **more}
    return Event(EventKind.TASK_FAILED, attempt, 0.0, NO_FAULT, detail)


def since(
    cluster: Cluster,
    jobs: Jobs,
    running: Sequence[StartTask],
    held: Sequence[tuple[int, int]],
    ended: Mapping[int, float],
    now: float,
) -> list[Event]:
    """What happened while nobody looked: who is there, how attempts ended, which items are lost.

    Joins come first: what follows is told in the numbers of the platform as it is now. Attempts
    end before their processors go, for nothing is heard of them afterwards.
    """
    here = [cluster.is_here(p) for p in range(cluster.platform.n_processors)]
    events = [Event(EventKind.JOINED, p, now) for p, there in enumerate(here) if there]
    events += [replace(_end_of(jobs, start, ended), time=now) for start in running]
    events += [Event(EventKind.GONE, p, now) for p, there in enumerate(here) if not there]
    n = jobs.workflow.n_items
    lost = [host * n + item for item, host in held if not jobs.is_on_disk(item)]
    return events + [Event(EventKind.ITEM_LOST, which, now) for which in lost]


def _end_of(jobs: Jobs, start: StartTask, ended: Mapping[int, float]) -> Event:
    done = jobs.done_before(start.task, start.attempt)
    if done:
        return finished(start.attempt, *done)
    until = {"until": ended[start.attempt]} if start.attempt in ended else {}
    return cut_short(start.attempt, "interrupted", seconds=None, **until)  # nobody measured it
