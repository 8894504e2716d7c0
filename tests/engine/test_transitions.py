"""The tables of states and events at the head of `engine/state.py`, held against the rules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from engine.transitions import NEW
from foreplan.engine.state import (
    ANYTHING,
    ATTEMPT_STEPS,
    ITEM_STEPS,
    TASK_STEPS,
    TRANSFER_STEPS,
    Transition,
)

WORLDS = 60
TABLES = {
    "TaskState": TASK_STEPS,
    "AttemptState": ATTEMPT_STEPS,
    "ItemState": ITEM_STEPS,
    "TransferState": TRANSFER_STEPS,
}
# what may happen and is so rare that none of these worlds shows it
RARE = {
    # a plan that uses no copies leaves some behind
    ("ItemState", "HERE", "ABSENT"): {"new_plan"},
    # a host is lost with the result of a task whose producer rests
    ("TaskState", "WAITING", "RESTING"): {"gone", "tasks_added"},
    # tasks are added only where a task says that it adds some: see test_growing
    ("TaskState", "WAITING", "GIVEN_UP"): {"tasks_added"},
    ("TaskState", "DONE", "WAITING"): {"tasks_added"},
    ("AttemptState", "FINISHED", "REWOUND"): {"tasks_added"},
}


def observed() -> dict[tuple[str, str, str], set[str]]:
    """What the rules do, uncompiled, in random worlds."""
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "engine.transitions", str(WORLDS)],
        env={**os.environ, "FOREPLAN_PLAIN_KERNELS": "1", "PYTHONPATH": str(tests)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {(kind, old, new): set(events) for kind, old, new, events in json.loads(done.stdout)}


def test_the_rules_keep_to_the_tables_and_the_tables_to_the_rules() -> None:
    seen = observed()
    rows: dict[tuple[str, str, str], Transition] = {}
    for kind, steps in TABLES.items():
        for step in steps:
            rows[kind, NEW if step.before is None else step.before.name, step.after.name] = step
    assert seen.keys() == rows.keys()
    for row, events in seen.items():
        told = rows[row].heard
        if told == ANYTHING:
            assert {"new_plan", "task_finished"} < events, row  # and others, or it could be said
        else:
            assert events <= told, row
            assert told - events == RARE.get(row, set()), row
