"""A run's journal as JSON lines: what it was about, then plans, events and evaluations by time."""

from __future__ import annotations

import json
import os
from typing import Any

from weft.errors import InputError
from weft.files import write_text
from weft.formats.weft_platform import platform_to_dict
from weft.formats.weft_workflow import workflow_to_dict
from weft.model import Run, Schedule

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
    }
