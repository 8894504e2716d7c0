"""Workflows in the journal come back exactly as they were."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.model import Estimates, Platform, Schedule, Workflow
from foreplan.model.events import NewEstimates, NewPlan, StartTask
from foreplan.model.resources import Cores
from foreplan.runs.entries import (
    check_same,
    commands_to_dict,
    entry_from_dict,
    entry_to_dict,
    workflow_from_entry,
    workflow_to_entry,
)
from foreplan.runs.journal import plain
from twins.situations import random_instance

FILES: dict[str, Any] = {
    "name": "files",
    "tasks": {
        "a": {"run": "cp in x", "inputs": ["in"], "outputs": ["x"], "retries": 2},
        "b": {"run": "cp x y", "inputs": ["x"], "outputs": ["y"], "timeout": 3.5, "shell": "sh"},
        "c": {"cost": {"p": 2, "q": 3}, "inputs": ["x"], "category": "third"},
        "d": {"run": "ls y *", "ignores": ["y", "*"], "cache": True},
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
    workflow = foreplan.load(FILES)
    same(workflow, workflow_from_entry(written(workflow)))
    flow = foreplan.Flow("f")
    first = flow.task(max, [1, 2])
    flow.task(sum, [first, first])
    flow.task(min, [first, 1], retries=1)
    built, _ = flow.build()
    same(built, workflow_from_entry(written(built)))


def changed(**tasks: Any) -> Workflow:
    body = {**FILES["tasks"], **tasks}
    return foreplan.load({**FILES, "tasks": {t: fields for t, fields in body.items() if fields}})


def test_what_has_changed_is_said() -> None:
    old = foreplan.load(FILES)
    check_same(old, foreplan.load(FILES), "r")
    cases: list[tuple[Workflow, str]] = [
        (changed(b={"run": "cp -r x y", "inputs": ["x"], "outputs": ["y"]}), "changed: b"),
        (changed(b={**FILES["tasks"]["b"], "shell": "bash"}), "changed: b"),
        (changed(d={"run": "ls y *", "ignores": ["y", "x", "*"]}), "changed: d"),
        (changed(e={"run": "true"}), "new: e"),
        (changed(b=None), "gone: b"),
        (
            foreplan.load({**FILES, "edges": [["a", "c", 5]]}),
            "edges, files, order, name or options of tasks",
        ),
    ]
    for new, words in cases:
        with pytest.raises(InputError, match=words) as caught:
            check_same(old, new, "run-1")
        assert "run-1" in str(caught.value)
        assert "--as-started" in str(caught.value)


ASKING: dict[str, Any] = {
    "pools": {"licence": 2},
    "defaults": {"memory": "1GB"},
    "tasks": {
        "a": {"cost": 4, "cores": [1, 2], "parallel": {"1": 4, "2": 3}, "on": "big*"},
        "b": {"cost": 1, "memory": "2GB + inputs", "gpus": 1, "pools": {"licence": 1}},
        "c": {"cost": 1},
    },
}


def test_what_tasks_ask_for_is_journalled() -> None:
    workflow = foreplan.load(ASKING)
    again = workflow_from_entry(written(workflow))
    same(workflow, again)
    assert again.pools == {"licence": 2.0}
    assert written(again) == written(workflow)
    assert "pools" not in written(foreplan.load(FILES))
    assert not any("request" in spec for spec in written(foreplan.load(FILES))["specs"].values())
    other = foreplan.load({**ASKING, "tasks": {**ASKING["tasks"], "c": {"cost": 1, "cores": 2}}})
    with pytest.raises(InputError, match="changed: c"):
        check_same(workflow, other, "r")


def hosts() -> Platform:
    return foreplan.load_platform(
        {"hosts": {"big": {"cores": 2, "memory": "8GB", "gpus": 1}}, "pools": {"licence": 1}}
    )


def test_estimates_are_journalled_with_the_needs_of_tasks() -> None:
    workflow, platform = foreplan.load(ASKING), hosts()
    new = NewEstimates(3.0, Estimates.declared(workflow, platform), platform)
    content = json.loads(json.dumps(plain(entry_to_dict(new))))
    again = entry_from_dict(content, workflow, platform)
    assert isinstance(again, NewEstimates)
    one, other = new.estimates.needs, again.estimates.needs
    assert one is not None
    assert other is not None
    assert (one.kinds, one.pools) == (other.kinds, other.pools)
    for name in ("amount", "width_ptr", "width", "factor"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert again.platform.hosts == platform.hosts
    bare = NewEstimates(3.0, replace(new.estimates, needs=None), platform)
    assert "needs" not in entry_to_dict(bare)


def test_plans_and_commands_are_journalled_with_cores() -> None:
    workflow, platform = foreplan.load(ASKING), hosts()
    needs = Estimates.declared(workflow, platform).needs
    cores = Cores(np.array([0, 2, 3, 4]), np.array([0, 1, 0, 1]))
    times = np.arange(3.0)
    plan = Schedule("x", workflow, platform, np.array([0, 0, 1]), times, times + 1, cores=cores)
    content = json.loads(json.dumps(plain(entry_to_dict(NewPlan(0.0, 1, plan, 0.1)))))
    again = entry_from_dict(content, workflow, platform, needs)
    assert isinstance(again, NewPlan)
    assert again.schedule is not None
    assert again.schedule.needs is needs
    assert again.schedule.cores is not None
    assert again.schedule.cores.of(0).tolist() == [0, 1]
    said = commands_to_dict([StartTask(0, 0, 0, 0.0, (0, 1), (1.0,)), StartTask(1, 1, 0, 0.0)])
    assert said["do"] == [["start", 0, 0, 0, [0, 1], [1.0]], ["start", 1, 1, 0]]
    assert "cores" not in entry_to_dict(NewPlan(0.0, 1, replace(plan, cores=None), 0.1))


def test_categories_of_functions_may_change() -> None:
    """They follow from where the program is."""
    old, new = (foreplan.load({"tasks": {"f": {"category": c}}}) for c in ("__main__.f", "rna/f"))
    check_same(old, new, "r", functions=True)
    with pytest.raises(InputError, match="changed: f"):
        check_same(old, new, "r")
