"""Workflows in the journal come back exactly as they were."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import weft
from twins.situations import random_instance
from weft.errors import InputError
from weft.journal.plain import plain
from weft.live.workflows import check_same, workflow_from_entry, workflow_to_entry
from weft.model import Workflow

FILES: dict[str, Any] = {
    "name": "files",
    "tasks": {
        "a": {"run": "cp in x", "inputs": ["in"], "outputs": ["x"], "retries": 2},
        "b": {"run": "cp x y", "inputs": ["x"], "outputs": ["y"], "timeout": 3.5, "shell": "sh"},
        "c": {"cost": {"p": 2, "q": 3}, "inputs": ["x"], "category": "third"},
        "d": {"run": "ls y *", "ignores": ["y", "*"]},
    },
    "edges": [["a", "c", 4]],
}


def same(first: Workflow, second: Workflow) -> None:
    for name in ("base_cost", "item_size", "item_producer", "use_ptr", "use_task", "order"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert first.task_names == second.task_names
    assert first.item_names == second.item_names
    assert dict(first.specs) == dict(second.specs)
    assert first.processor_cost.keys() == second.processor_cost.keys()
    for key, cost in first.processor_cost.items():
        np.testing.assert_array_equal(cost, second.processor_cost[key])


def written(workflow: Workflow) -> dict[str, Any]:
    """Through JSON, as a journal does it."""
    content: dict[str, Any] = json.loads(json.dumps(plain(workflow_to_entry(workflow))))
    return content


@pytest.mark.parametrize("seed", range(20))
def test_random_workflows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    workflow, _ = random_instance(rng, n_tasks=int(rng.integers(1, 30)), n_processors=3)
    same(workflow, workflow_from_entry(written(workflow)))


def test_files_and_flows() -> None:
    workflow = weft.load(FILES)
    same(workflow, workflow_from_entry(written(workflow)))
    flow = weft.Flow("f")
    first = flow.task(max, [1, 2])
    flow.task(sum, [first, first])
    flow.task(min, [first, 1], retries=1)
    built, _ = flow.build()
    same(built, workflow_from_entry(written(built)))


def changed(**tasks: Any) -> Workflow:
    body = {**FILES["tasks"], **tasks}
    return weft.load({**FILES, "tasks": {t: fields for t, fields in body.items() if fields}})


def test_what_has_changed_is_said() -> None:
    old = weft.load(FILES)
    check_same(old, weft.load(FILES), "r")
    cases: list[tuple[Workflow, str]] = [
        (changed(b={"run": "cp -r x y", "inputs": ["x"], "outputs": ["y"]}), "changed: b"),
        (changed(b={**FILES["tasks"]["b"], "shell": "bash"}), "changed: b"),
        (changed(d={"run": "ls y *", "ignores": ["y", "x", "*"]}), "changed: d"),
        (changed(e={"run": "true"}), "new: e"),
        (changed(b=None), "gone: b"),
        (weft.load({**FILES, "edges": [["a", "c", 5]]}), "edges, files, order or name"),
    ]
    for new, words in cases:
        with pytest.raises(InputError, match=words) as caught:
            check_same(old, new, "run-1")
        assert "run-1" in str(caught.value)
        assert "--as-started" in str(caught.value)
