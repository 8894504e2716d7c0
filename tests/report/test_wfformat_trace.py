"""A run as a WfFormat trace: what is read back is what happened."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.formats import load, load_platform
from foreplan.report.data import Report, report_of
from foreplan.report.wfformat_trace import write_wfformat
from foreplan.runs.home import RunHome

CONTENT = {
    "name": "small",
    "shell": "bash -e",
    "tasks": {
        "make-1": {
            "category": "make",
            "run": "printf 12345 > a/one.txt",
            "outputs": [{"path": "a/one.txt", "temp": True}],
            "cores": 2,
            "env": {"X": "1"},
        },
        "copy": {
            "run": "cat in.txt a/one.txt > two.txt",
            "inputs": ["in.txt", "a/one.txt"],
            "outputs": ["two.txt"],
        },
        "look": {"run": "test -s two.txt", "inputs": ["two.txt"]},
    },
}


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """A run of three tasks."""
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "home"))
    (tmp_path / "in.txt").write_text("abc")
    assert foreplan.run(CONTENT, on="local:2", dir=tmp_path).status == "finished"
    return report_of(RunHome.find(tmp_path, "last"))


def test_it_is_read_back_as_it_was(told: Report, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    assert write_wfformat(told, trace) == 3
    workflow, run = load(trace), told.run
    assert workflow.name == "small"
    assert workflow.task_names == run.workflow.task_names
    assert [workflow.spec(t).category for t in range(3)] == ["make", None, None]
    assert workflow.spec(1).run == "cat in.txt a/one.txt > two.txt"
    assert np.array_equal(workflow.base_cost, run.task_seconds[run.final_attempts()])
    sizes = dict(zip(workflow.item_names or (), workflow.item_size.tolist(), strict=True))
    assert sizes == {"a/one.txt": 5, "in.txt": 3, "two.txt": 8}
    assert [(r.cores if (r := workflow.spec(t).request) else (1,)) for t in range(3)] == [
        (2,), (1,), (1,)
    ]  # fmt: skip
    platform = load_platform(trace)
    assert platform.host_names == run.platform.host_names
    assert platform.n_processors == 2
    again = tmp_path / "again.json"
    foreplan.formats.save(workflow, again, "wfformat")
    assert np.array_equal(load(again).base_cost, workflow.base_cost)


def test_what_happened_is_in_it(told: Report, tmp_path: Path) -> None:
    write_wfformat(told, tmp_path / "trace.json")
    content = json.loads((tmp_path / "trace.json").read_text())
    assert content["schemaVersion"] == "1.6"
    assert content["runtimeSystem"]["name"] == "foreplan"
    execution = content["workflow"]["execution"]
    assert execution["makespanInSeconds"] == told.makespan
    assert execution["executedAt"] == content["createdAt"]
    (machine,) = execution["machines"]
    for fields in execution["tasks"]:
        assert fields["machines"] == [machine["nodeName"]]
        assert fields["executedAt"] >= execution["executedAt"]
        assert math.isfinite(fields["runtimeInSeconds"])
    assert execution["tasks"][0]["coreCount"] == 2


def test_what_was_up_to_date_is_no_part_of_it(told: Report, tmp_path: Path) -> None:
    assert foreplan.run(CONTENT, on="local:2", dir=tmp_path, force="look").status == "finished"
    again = report_of(RunHome.find(tmp_path, "last"))
    assert write_wfformat(again, tmp_path / "trace.json") == 1
    workflow = load(tmp_path / "trace.json")
    assert workflow.task_names == ("look",)
    assert workflow.item_producer.tolist() == [-1]


def test_a_run_that_did_nothing_has_no_trace(tmp_path: Path, told: Report) -> None:
    from dataclasses import replace

    reused = replace(told, reused=told.run.workflow.task_names)
    with pytest.raises(InputError, match="the run has done no task"):
        write_wfformat(reused, tmp_path / "trace.json")
