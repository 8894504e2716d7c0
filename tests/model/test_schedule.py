"""Schedule: what it adds up to, and the dict that `foreplan plan --json` prints."""

from __future__ import annotations

import json

import numpy as np
import pytest

import foreplan
from foreplan.model import Item, Link, Platform, Processor, Schedule, Workflow


def schedule() -> Schedule:
    """a on p, then b (same processor) and c (across the link: 1 + 2 x 3)."""
    items = [Item(3.0, 0, (1, 2), "x")]
    workflow = Workflow.from_items("w", ["a", "b", "c"], [4.0, 2.0, 6.0], items)
    processors = [Processor("p", price=0.5), Processor("q", speed=2.0, price=2.0), Processor("r")]
    platform = Platform.build(processors, Link(2.0, startup=1.0))
    made = Schedule(
        "by hand",
        workflow,
        platform,
        np.array([0, 0, 1], dtype=np.int32),
        np.array([0.0, 4.0, 11.0]),
        np.array([4.0, 6.0, 14.0]),
    )
    foreplan.check_schedule(made)
    return made


def test_sums() -> None:
    s = schedule()
    assert s.makespan == 14.0
    assert s.busy.tolist() == [6.0, 3.0, 0.0]
    assert s.cost == 6.0 * 0.5 + 3.0 * 2.0


def test_arrivals() -> None:
    s = schedule()
    assert s.arrivals(*s.workflow.dependencies()).tolist() == [4.0, 11.0]
    # what is not on its way leaves no earlier than now; inside a host it is there since made
    assert s.arrivals(*s.workflow.dependencies(), now=5.0).tolist() == [4.0, 12.0]


def test_the_dict_has_the_shape_of_the_contract() -> None:
    content, plain = schedule().to_dict(), {"cores": 1, "memory": 0.0}
    assert content == {
        "planner": "by hand",
        "makespan": 14.0,
        "cost": 9.0,
        "tasks": {
            "a": {"processor": "p", "host": "p", **plain, "start": 0.0, "finish": 4.0},
            "b": {"processor": "p", "host": "p", **plain, "start": 4.0, "finish": 6.0},
            "c": {"processor": "q", "host": "q", **plain, "start": 11.0, "finish": 14.0},
        },
    }
    assert list(content) == ["planner", "makespan", "cost", "tasks"]
    assert list(content["tasks"]) == ["a", "b", "c"]
    assert json.loads(json.dumps(content)) == content  # plain numbers, no numpy ones


def test_no_tasks_take_no_time() -> None:
    none = np.empty(0)
    workflow = Workflow.from_items("w", [], [], [])
    empty = Schedule("x", workflow, schedule().platform, none.astype(np.int32), none, none)
    foreplan.check_schedule(empty)
    assert (empty.makespan, empty.cost, empty.to_dict()["tasks"]) == (0.0, 0.0, {})


def test_nothing_can_be_written_to() -> None:
    s = schedule()
    for name in ("processor", "start", "finish"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(s, name)[0] = 1
