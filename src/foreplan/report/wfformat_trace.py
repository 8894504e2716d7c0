"""A run as a WfFormat 1.6 trace: what its tasks were, and what they took where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from foreplan.arrays import FloatArray
from foreplan.errors import InputError
from foreplan.executors.usage import AT_MOST, CPU, MEMORY, READ, WRITTEN
from foreplan.files import write_text
from foreplan.formats import workflow_to_wfformat
from foreplan.formats.fields import plain
from foreplan.formats.resources import request_from_fields
from foreplan.model import TaskSpec, Workflow
from foreplan.model.events import TaskFinished
from foreplan.report.data import Report
from foreplan.version import __version__


def write_wfformat(told: Report, path: Path) -> int:
    """Write the tasks that the run itself has done; how many those are."""
    run = told.run
    last, reused = run.final_attempts(), {*told.reused}
    done = np.array(
        [
            k >= 0 and name not in reused
            for k, name in zip(last, run.workflow.task_names, strict=True)
        ]
    )
    if not done.any():
        raise InputError("the run has done no task: there is nothing to trace")
    attempts = last[done]
    measured = replace(run.workflow, item_size=_sizes(told), processor_cost={}, pools={})
    workflow = measured.part(done)
    specs = {i: _spec(told, workflow, i, int(k)) for i, k in enumerate(attempts)}
    seconds = run.task_seconds[attempts]
    content = workflow_to_wfformat(replace(workflow, base_cost=seconds, specs=specs))
    begun = datetime.fromisoformat(told.created)
    execution: dict[str, Any] = content["workflow"]["execution"]  # type: ignore[index]
    execution |= {"makespanInSeconds": plain(run.makespan), "executedAt": begun.isoformat()}
    for fields, k in zip(execution["tasks"], attempts.tolist(), strict=True):
        fields |= _happened(told, begun, k)
    execution["machines"] = _machines(told)
    head = {"name": content["name"], "createdAt": begun.isoformat()}
    by = {"name": "foreplan", "version": __version__}
    text = head | {"runtimeSystem": by} | content
    write_text(path, json.dumps(text, ensure_ascii=False, indent=1) + "\n")
    return len(attempts)


def _sizes(told: Report) -> FloatArray:
    """The bytes of every item: as measured when it was made, or as the file is now."""
    run, wf = told.run, told.run.workflow
    sizes = wf.item_size.copy()
    names = wf.item_names or (None,) * wf.n_items
    data = Path(told.home).parents[2]
    for item in np.flatnonzero(wf.item_producer < 0).tolist():
        path = data / str(names[item])
        with suppress(OSError, ValueError):
            if names[item] is not None and path.is_file():
                sizes[item] = path.stat().st_size
    for event in run.events or ():
        if isinstance(event, TaskFinished):
            found: Mapping[Any, Any] = (event.detail or {}).get("sizes") or {}
            task = int(run.attempts.task[event.attempt])
            for item in wf.out_item[slice(*wf.out_ptr[task : task + 2])].tolist():
                size = found.get(names[item], found.get(str(item), found.get(item)))
                sizes[item] = size if isinstance(size, int | float) else sizes[item]
    return sizes


def _spec(told: Report, workflow: Workflow, task: int, attempt: int) -> TaskSpec:
    """What the format has words for: a kind, a command, and what the attempt had."""
    used = told.used.get(attempt, {})
    had: dict[object, object] = {"cores": told.run.attempts.width(attempt)}
    if used.get(MEMORY) and AT_MOST not in used:
        had["memory"] = used[MEMORY]
    before = workflow.spec(task)
    return TaskSpec(before.category, before.run, request=request_from_fields(had))


def _happened(told: Report, begun: datetime, attempt: int) -> dict[str, Any]:
    """When and where an attempt ran, and what else it used."""
    run, used = told.run, told.used.get(attempt, {})
    start, seconds = float(run.attempts.start[attempt]), float(run.task_seconds[attempt])
    host = run.platform.host[run.attempts.processor[attempt]]
    fields: dict[str, Any] = {
        "executedAt": (begun + timedelta(seconds=start)).isoformat(),
        "machines": [run.platform.host_names[host]],
        "coreCount": run.attempts.width(attempt),
    }
    if CPU in used and seconds > 0:
        fields["avgCPU"] = round(100 * used[CPU] / seconds, 4)
    for key, word in ((READ, "readBytes"), (WRITTEN, "writtenBytes")):
        fields |= {word: plain(float(used[key]))} if key in used else {}
    return fields


def _machines(told: Report) -> list[dict[str, Any]]:
    """The hosts, with their cores and, where it is known, their memory."""
    platform = told.run.platform
    cores = np.bincount(platform.host, minlength=platform.n_hosts).tolist()
    memory = platform.host_amounts(MEMORY).tolist()
    return [
        {"nodeName": name, "cpu": {"coreCount": cores[host]}}
        | ({"memoryInBytes": plain(memory[host])} if np.isfinite(memory[host]) else {})
        for host, name in enumerate(platform.host_names)
    ]
