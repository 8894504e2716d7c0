"""Trace events: a schedule for the viewers of Chrome and Perfetto.

A host is a process and a processor one of its threads; a transfer is an asynchronous event of the
host it goes to, since transfers overlap.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from weft.files import write_text
from weft.model import Schedule

MICROSECONDS = 1e6  # per second


def trace_events(schedule: Schedule) -> dict[str, Any]:
    """The content of a trace events file."""
    events = _names(schedule) + _tasks(schedule) + _transfers(schedule)
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def write_trace(schedule: Schedule, path: str | os.PathLike[str]) -> None:
    """Write a trace events file."""
    write_text(path, json.dumps(trace_events(schedule), ensure_ascii=False, allow_nan=False))


def _names(schedule: Schedule) -> list[dict[str, Any]]:
    """Metadata: what the numbers of hosts and processors are called."""
    platform = schedule.platform
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": host, "tid": 0, "args": {"name": name}}
        for host, name in enumerate(platform.host_names)
    ]
    hosts = platform.host.tolist()
    for processor, name in enumerate(platform.processor_names):
        where = {"ph": "M", "pid": hosts[processor], "tid": processor}
        events.append({**where, "name": "thread_name", "args": {"name": name}})
        events.append({**where, "name": "thread_sort_index", "args": {"sort_index": processor}})
    return events


def _tasks(schedule: Schedule) -> list[dict[str, Any]]:
    hosts = schedule.platform.host.tolist()
    start = (schedule.start * MICROSECONDS).tolist()
    duration = ((schedule.finish - schedule.start) * MICROSECONDS).tolist()
    return [
        {
            "ph": "X",
            "name": schedule.workflow.task_names[task],
            "cat": schedule.workflow.spec(task).category or "task",
            "pid": hosts[processor],
            "tid": processor,
            "ts": start[task],
            "dur": duration[task],
        }
        for task, processor in enumerate(schedule.processor.tolist())
    ]


def _transfers(schedule: Schedule) -> list[dict[str, Any]]:
    """Each item once per host it goes to, sent as soon as its producer is done."""
    workflow, platform = schedule.workflow, schedule.platform
    items, producers, consumers = workflow.dependencies()
    source = platform.host[schedule.processor[producers]]
    target = platform.host[schedule.processor[consumers]]
    sent = schedule.finish[producers]
    size = workflow.item_size[items]
    arrival = (
        sent + platform.startup[source, target] + size * platform.time_per_unit[source, target]
    )
    events: list[dict[str, Any]] = []
    seen: set[tuple[int, int]] = set()
    for e in np.flatnonzero(source != target).tolist():
        item, host = int(items[e]), int(target[e])
        if (item, host) in seen:
            continue
        seen.add((item, host))
        common = {
            "name": workflow.item_name(item),
            "cat": "transfer",
            "id": len(seen),
            "pid": host,
            "tid": int(schedule.processor[consumers[e]]),
        }
        about = {"from": platform.host_names[source[e]], "size": float(size[e])}
        begin, end = (float(x) * MICROSECONDS for x in (sent[e], arrival[e]))
        events.append({**common, "ph": "b", "ts": begin, "args": about})
        events.append({**common, "ph": "e", "ts": end})
    return events
