"""A plan or a run as trace events, for the viewers of Chrome and Perfetto; a run as JSON lines.

A host is a process and a processor one of its threads; a transfer is an asynchronous event of the
host it goes to, since transfers overlap.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from foreplan.arrays import IntArray
from foreplan.errors import InputError
from foreplan.files import write_text
from foreplan.formats.foreplan_platform import platform_to_dict
from foreplan.formats.foreplan_workflow import workflow_to_dict
from foreplan.model import ENDS, AttemptLog, Platform, Run, Schedule
from foreplan.model.resources import Cores, held

MICROSECONDS = 1e6  # per second


def trace_events(schedule: Schedule) -> dict[str, Any]:
    """The content of a trace events file of what is planned."""
    bars = _bars(schedule, np.arange(schedule.workflow.n_tasks, dtype=np.int32), schedule)
    return _content(_names(schedule.platform) + bars + _transfers(schedule))


def run_trace_events(run: Run) -> dict[str, Any]:
    """The content of a trace events file of what happened."""
    log = run.attempts
    bars = _bars(run, log.task, log)
    rows, _ = held(log.processor, log.cores)
    for bar, end in zip(bars, log.end[rows].tolist(), strict=True):
        bar["args"] = {"end": ENDS[end]}
    asked = [
        {
            "ph": "i",
            "s": "g",
            "name": "new plan" if e.taken else "plan not taken",
            "cat": "plan",
            "pid": 0,
            "tid": 0,
            "ts": e.time * MICROSECONDS,
            "args": {"reason": e.reason},
        }
        for e in run.evaluations
    ]
    return _content(_names(run.platform) + bars + _moved(run) + asked)


def write_trace(schedule: Schedule, path: str | os.PathLike[str]) -> None:
    """Write a trace events file of a schedule."""
    _write(trace_events(schedule), path)


def write_run_trace(run: Run, path: str | os.PathLike[str]) -> None:
    """Write a trace events file of a run."""
    _write(run_trace_events(run), path)


def _write(content: dict[str, Any], path: str | os.PathLike[str]) -> None:
    write_text(path, json.dumps(content, ensure_ascii=False, allow_nan=False))


def _content(events: list[dict[str, Any]]) -> dict[str, Any]:
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _names(platform: Platform) -> list[dict[str, Any]]:
    """Metadata: what the numbers of hosts and processors are called."""
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


def _bars(of: Schedule | Run, tasks: IntArray, log: Schedule | AttemptLog) -> list[dict[str, Any]]:
    """One event per time a task was run, or should be, on each of its cores."""
    workflow, hosts = of.workflow, of.platform.host.tolist()
    rows, processors = held(log.processor, log.cores)
    begin = (log.start * MICROSECONDS).tolist()
    duration = ((log.finish - log.start) * MICROSECONDS).tolist()
    return [
        {
            "ph": "X",
            "name": workflow.task_names[task],
            "cat": workflow.spec(task).category or "task",
            "pid": hosts[processor],
            "tid": processor,
            "ts": begin[k],
            "dur": duration[k],
        }
        for k, task, processor in zip(
            rows.tolist(), tasks[rows].tolist(), processors.tolist(), strict=True
        )
    ]


def _transfers(schedule: Schedule) -> list[dict[str, Any]]:
    """Each item once per host it goes to, sent as soon as its producer is done."""
    workflow, platform = schedule.workflow, schedule.platform
    items, producers, consumers = workflow.dependencies()
    source = platform.host[schedule.processor[producers]]
    target = platform.host[schedule.processor[consumers]]
    arrival = schedule.arrivals(items, producers, consumers)
    events: list[dict[str, Any]] = []
    seen: set[tuple[int, int]] = set()
    for e in np.flatnonzero(source != target).tolist():
        item, host = int(items[e]), int(target[e])
        if (item, host) in seen:
            continue
        seen.add((item, host))
        begin, end = float(schedule.finish[producers[e]]), float(arrival[e])
        thread = int(schedule.processor[consumers[e]])
        hosts = (int(source[e]), host)
        events += _transfer(schedule, len(seen), item, hosts, thread, (begin, end))
    return events


def _moved(run: Run) -> list[dict[str, Any]]:
    """Every transfer that arrived, beside the first processor of the host it went to."""
    log = run.transfers
    first = {host: p for p, host in reversed(list(enumerate(run.platform.host.tolist())))}
    events: list[dict[str, Any]] = []
    for k in np.flatnonzero(np.isfinite(log.arrival)).tolist():
        hosts = (int(log.source[k]), int(log.target[k]))
        times = (float(log.sent[k]), float(log.arrival[k]))
        item, thread = int(log.item[k]), first[hosts[1]]
        events += _transfer(run, k + 1, item, hosts, thread, times)
    return events


def _transfer(
    of: Schedule | Run,
    number: int,
    item: int,
    hosts: tuple[int, int],
    thread: int,
    times: tuple[float, float],
) -> list[dict[str, Any]]:
    """The beginning and the end of a transfer, as a pair of asynchronous events."""
    common = {
        "name": of.workflow.item_name(item),
        "cat": "transfer",
        "id": number,
        "pid": hosts[1],
        "tid": thread,
    }
    size = float(of.workflow.item_size[item])
    about = {"from": of.platform.host_names[hosts[0]], "size": size}
    return [
        {**common, "ph": "b", "ts": times[0] * MICROSECONDS, "args": about},
        {**common, "ph": "e", "ts": times[1] * MICROSECONDS},
    ]


VERSION = 1
_ORDER = ("event", "evaluation", "plan")  # at one time: what happened, what was made of it


def write_journal(run: Run, path: str | os.PathLike[str]) -> None:
    """Write the journal of a run whose every event was kept."""
    lines = (json.dumps(entry, ensure_ascii=False, allow_nan=False) for entry in journal(run))
    write_text(path, "\n".join(lines) + "\n")


def journal(run: Run) -> list[dict[str, Any]]:
    """The lines: a header, the first plan, then all in the order of time.

    Lines of one type are in their exact order; an evaluation follows the events of its time.
    """
    if run.events is None:
        raise InputError("this run kept no events: simulate it with by_events")
    header = {
        "type": "run",
        "version": VERSION,
        "strategy": run.strategy,
        "makespan": run.makespan,
        "workflow": workflow_to_dict(run.workflow),
        "platform": platform_to_dict(run.platform),
    }
    plans = [_plan(t, plan) for t, plan in zip(run.plan_times, run.plans, strict=True)]
    entries = [{"type": "event", **event.to_dict()} for event in run.events]
    # without the seconds that planning took: a journal is the same wherever it is made
    entries += [{"type": "evaluation", **e.to_dict()} for e in run.evaluations]
    entries += plans[1:]
    entries.sort(key=lambda entry: (entry["time"], _ORDER.index(entry["type"])))
    return [header, *plans[:1], *entries]


def _plan(time: float, plan: Schedule) -> dict[str, Any]:
    """A plan by index, as short as it can be."""
    return {
        "type": "plan",
        "time": time,
        "planner": plan.planner,
        "processor": plan.processor.tolist(),
        "start": plan.start.tolist(),
        "finish": plan.finish.tolist(),
        **({} if plan.cores is None else {"cores": [c.tolist() for c in _rows(plan.cores)]}),
    }


def _rows(cores: Cores) -> list[IntArray]:
    """The processors of each row."""
    return [cores.of(row) for row in range(len(cores.ptr) - 1)]
