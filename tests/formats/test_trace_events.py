"""Trace events: tasks on their processors, transfers once per host, in microseconds."""

import json
from pathlib import Path

import numpy as np

from foreplan.checks.schedules import check_schedule
from foreplan.formats import platform_from_dict, trace_events, workflow_from_dict, write_trace
from foreplan.model import Schedule


def _schedule() -> Schedule:
    workflow = workflow_from_dict(
        {
            "tasks": {
                "a": {"cost": 2, "outputs": ["f"], "category": "first"},
                "b": {"cost": 1, "inputs": ["f"]},
                "c": {"cost": 1, "inputs": ["f"]},
                "d": {"cost": 1, "inputs": ["f", "outside"]},
            },
            "files": {"f": 3},
        }
    )
    platform = platform_from_dict(
        {
            "processors": {"r1": {"host": "h"}, "r2": {"host": "g"}, "r3": {"host": "g"}},
            "network": {"time_per_unit": 0.5, "startup": 1},
        }
    )
    schedule = Schedule(
        "by hand",
        workflow,
        platform,
        np.array([0, 1, 2, 0]),
        np.array([0, 4.5, 5, 2]),
        np.array([2, 5.5, 6, 3]),
    )
    check_schedule(schedule)
    return schedule


def test_tasks_and_names() -> None:
    events = trace_events(_schedule())["traceEvents"]
    tasks = {e["name"]: e for e in events if e["ph"] == "X"}
    assert set(tasks) == {"a", "b", "c", "d"}
    assert (tasks["b"]["ts"], tasks["b"]["dur"]) == (4_500_000, 1_000_000)
    assert [(tasks[t]["pid"], tasks[t]["tid"]) for t in "abcd"] == [(0, 0), (1, 1), (1, 2), (0, 0)]
    assert [tasks[t]["cat"] for t in "ab"] == ["first", "task"]
    meta = {(e["name"], e["pid"], e["tid"]): e["args"] for e in events if e["ph"] == "M"}
    assert meta["process_name", 1, 0] == {"name": "g"}
    assert meta["thread_name", 1, 2] == {"name": "r3"}


def test_a_transfer_goes_once_to_a_host() -> None:
    transfers = [e for e in trace_events(_schedule())["traceEvents"] if e["ph"] in "be"]
    begin, end = transfers
    assert (begin["ph"], begin["ts"], end["ph"], end["ts"]) == ("b", 2_000_000, "e", 4_500_000)
    assert begin["args"] == {"from": "h", "size": 3}
    assert {(e["name"], e["pid"], e["id"], e["cat"]) for e in transfers} == {
        ("f", 1, 1, "transfer")
    }


def test_the_file_is_json(tmp_path: Path) -> None:
    write_trace(_schedule(), tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text()) == trace_events(_schedule())
