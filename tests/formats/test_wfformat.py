"""WfFormat: what is read from a trace, and what is wrong with a wrong one."""

import copy
from typing import Any

import numpy as np
import pytest

from foreplan.errors import InputError
from foreplan.formats import (
    load,
    load_platform,
    workflow_from_dict,
    workflow_from_wfformat,
    workflow_to_wfformat,
)
from foreplan.formats.stg import dump_stg
from foreplan.model.amounts import Amount
from foreplan.model.resources import Request

TRACE: dict[str, Any] = {
    "name": "small",
    "schemaVersion": "1.5",
    "author": {"name": "someone"},
    "workflow": {
        "specification": {
            "tasks": [
                {
                    "name": "mProject_ID0000001",
                    "id": "mProject_ID0000001",
                    "parents": [],
                    "children": ["mAdd_ID0000002"],
                    "inputFiles": ["raw.fits"],
                    "outputFiles": ["p.fits"],
                },
                {
                    "name": "mAdd_ID0000002",
                    "id": "mAdd_ID0000002",
                    "parents": ["mProject_ID0000001"],
                    "children": [],
                    "inputFiles": ["p.fits", "raw.fits"],
                },
                {"name": "NF.SORT", "id": "NF.SORT_3", "parents": ["mAdd_ID0000002"]},
                {"name": "plain", "id": "plain", "parents": [], "children": ["NF.SORT_3"]},
            ],
            "files": [
                {"id": "raw.fits", "sizeInBytes": 100},
                {"id": "p.fits", "sizeInBytes": 50},
                {"id": "unused", "sizeInBytes": 1},
            ],
        },
        "execution": {
            "makespanInSeconds": 9,
            "executedAt": "then",
            "tasks": [
                {
                    "id": "mAdd_ID0000002",
                    "runtimeInSeconds": 2.5,
                    "command": {"program": "add", "arguments": ["-e", "a b"]},
                },
                {"id": "mProject_ID0000001", "runtimeInSeconds": 4},
                {
                    "id": "NF.SORT_3",
                    "runtimeInSeconds": 1,
                    "command": {"program": "sort x\n> y", "arguments": []},
                },
                {"id": "plain", "runtimeInSeconds": 0},
            ],
        },
    },
}


def test_a_trace() -> None:
    workflow = load(TRACE)
    assert workflow.name == "small"
    assert workflow.base_cost.tolist() == [4, 2.5, 1, 0]
    assert workflow.item_names == (None, None, "raw.fits", "p.fits")
    assert workflow.item_size.tolist() == [0, 0, 100, 50]
    assert workflow.item_producer.tolist() == [1, 3, -1, 0]
    assert workflow.use_task.tolist() == [2, 2, 0, 1, 1]
    assert [workflow.spec(i).category for i in range(4)] == ["mProject", "add", "NF.SORT", None]
    assert [workflow.spec(i).run for i in range(4)] == [None, "add -e 'a b'", "sort x\n> y", None]


def _changed(change: str) -> dict[str, Any]:
    trace = copy.deepcopy(TRACE)
    outer = trace["workflow"]
    scope = {
        "trace": trace,
        "outer": outer,
        "specification": outer["specification"],
        "tasks": outer["specification"]["tasks"],
        "files": outer["specification"]["files"],
        "execution": outer["execution"],
        "runs": outer["execution"]["tasks"],
    }
    exec(change, scope)
    return trace


SPECIFIED = "workflow.specification.tasks"
WRONG = [
    ("del trace['workflow']", "", "'workflow' is missing"),
    ("del outer['specification']", "workflow", "'specification' is missing"),
    ("outer['tasks'] = outer.pop('specification')", "workflow", "older WfFormat"),
    ("del specification['tasks']", "workflow.specification", "'tasks' is missing"),
    ("tasks.clear(); runs.clear()", SPECIFIED, "no tasks"),
    ("del tasks[1]['id']", f"{SPECIFIED}[1]", "has no id"),
    ("tasks[1]['id'] = tasks[0]['id']", f"{SPECIFIED}[1]", "given twice"),
    ("tasks[1]['id'] = 1.5", f"{SPECIFIED}[1].id", "quote it"),
    ("tasks[0]['parents'] = ['x']", f"{SPECIFIED}[0].parents", "unknown task 'x'"),
    ("tasks[3]['children'] = ['plain']", f"{SPECIFIED}[3].children", "depends on itself"),
    ("tasks[0]['parents'] = ['NF.SORT_3']", "", "cycle"),
    ("tasks[0]['inputFiles'] = 'f'", f"{SPECIFIED}[0].inputFiles", "expected a list"),
    ("tasks[0]['inputFiles'] = ['p.fits']", f"{SPECIFIED}[0].inputFiles", "own output 'p.fits'"),
    ("tasks[3]['outputFiles'] = ['p.fits']", f"{SPECIFIED}[3].outputFiles", "made by both"),
    ("tasks[3]['name'] = 4", f"{SPECIFIED}[3].name", "expected a string"),
    ("files[0]['sizeInBytes'] = -1", "workflow.specification.files[0].sizeInBytes", "negative"),
    ("files[2]['id'] = 'p.fits'", "workflow.specification.files[2]", "with two sizes"),
    ("del files[0]['id']", "workflow.specification.files[0].id", "a name is a string, not null"),
    ("del runs[3]", "workflow.execution.tasks", "'plain' has no runtimeInSeconds"),
    (
        "del runs[0]['runtimeInSeconds']",
        "workflow.execution.tasks",
        "'mAdd_ID0000002' has no runtimeInSeconds",
    ),
    ("runs[3]['id'] = 'x'", "workflow.execution.tasks[3]", "unknown task 'x'"),
    ("runs[3]['coreCount'] = 0", "workflow.execution.tasks.plain.coreCount", "at least 1 core"),
    (
        "runs[3]['memoryInBytes'] = -1",
        "workflow.execution.tasks.plain.memoryInBytes",
        "must not be negative",
    ),
    ("runs[3]['id'] = 'NF.SORT_3'", "workflow.execution.tasks[3]", "given twice"),
    (
        "runs[3]['runtimeInSeconds'] = 'long'",
        "workflow.execution.tasks.plain.runtimeInSeconds",
        "expected a number, not 'long'",
    ),
    ("runs[3]['command'] = 'ls'", "workflow.execution.tasks.plain.command", "a mapping"),
    (
        "runs[0]['command']['arguments'] = [3]",
        "workflow.execution.tasks.mAdd_ID0000002.command.arguments[0]",
        "expected a string, not 3",
    ),
]


@pytest.mark.parametrize(("change", "place", "problem"), WRONG)
def test_wrong_content_says_what_and_where(change: str, place: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        workflow_from_wfformat(_changed(change))
    assert caught.value.place == place
    assert problem in caught.value.problem


def test_children_alone_and_parents_alone_are_enough() -> None:
    only_children = _changed("[task.pop('parents', 0) for task in tasks]")
    only_children["workflow"]["specification"]["tasks"][1]["children"] = ["NF.SORT_3"]
    only_parents = _changed(
        "[task.pop('children', 0) for task in tasks]; tasks[2]['parents'].append('plain')"
    )
    for trace in (only_children, only_parents):
        workflow = workflow_from_wfformat(trace)
        assert workflow.item_producer.tolist() == [1, 3, -1, 0]


def test_an_edge_with_a_volume_becomes_a_file() -> None:
    edges = [["a", "b", 7], ["a", "c", 0]]
    tasks = {name: {"cost": 1} for name in "abc"}
    written: Any = workflow_to_wfformat(workflow_from_dict({"tasks": tasks, "edges": edges}))
    specification = written["workflow"]["specification"]
    assert specification["files"] == [{"id": "a -> b", "sizeInBytes": 7}]
    assert specification["tasks"][0]["children"] == ["b", "c"]
    assert written["workflow"]["execution"]["makespanInSeconds"] == 3


@pytest.mark.parametrize("cost", [None, {"r1": 2}])
def test_foreign_formats_need_one_cost_for_every_task(cost: object) -> None:
    fields = {} if cost is None else {"cost": cost}
    workflow = workflow_from_dict({"tasks": {"a": {"cost": 1}, "b": fields}})
    with pytest.raises(InputError, match=r"tasks\.b\.cost: WfFormat needs one cost"):
        workflow_to_wfformat(workflow)
    with pytest.raises(InputError, match=r"tasks\.b\.cost: STG needs one cost"):
        dump_stg(workflow)


def test_without_an_execution_nothing_is_known_of_the_tasks() -> None:
    workflow = load(_changed("trace['schemaVersion'] = '1.6'; del outer['execution']"))
    assert np.isnan(workflow.base_cost).all()
    assert workflow.n_tasks == 4
    written: Any = workflow_to_wfformat(workflow)
    assert written["schemaVersion"] == "1.6"
    assert "execution" not in written["workflow"]
    assert workflow_to_wfformat(workflow_from_wfformat(written)) == written


def test_cores_and_memory_are_what_a_task_asks_for_and_come_back() -> None:
    runs = "runs[0].update(coreCount=3.5, memoryInBytes=2e9); runs[1].update(coreCount=1)"
    workflow = load(_changed(f"{runs}; runs[2].update(memoryInBytes=0)"))
    asked = [workflow.spec(t).request for t in range(4)]
    assert asked == [None, Request(cores=(4,), memory=Amount("2000000000")), None, None]
    written: Any = workflow_to_wfformat(workflow)
    executed = written["workflow"]["execution"]["tasks"]
    assert (executed[1]["coreCount"], executed[1]["memoryInBytes"]) == (4, 2_000_000_000)
    assert "coreCount" not in executed[0]
    again = workflow_from_wfformat(written)
    assert [again.spec(t).request for t in range(4)] == asked


def test_a_trace_of_single_cores_is_as_in_the_papers() -> None:
    workflow = load(_changed("[run.update(coreCount=1) for run in runs]"))
    assert dict(workflow.specs) == dict(load(TRACE).specs)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"cores": [1, 2], "parallel": 1}, r"tasks\.a\.cores: .* a choice of cores"),
        ({"memory": "2 * inputs"}, r"tasks\.a\.memory: .* a formula"),
        ({"gpus": 1}, r"tasks\.a\.gpus: WfFormat has no word for gpus"),
        ({"on": "big"}, r"tasks\.a\.on: WfFormat has no word for on"),
    ],
)
def test_what_wfformat_has_no_word_for(fields: dict[str, Any], problem: str) -> None:
    workflow = workflow_from_dict({"tasks": {"a": {"cost": 1, **fields}}})
    with pytest.raises(InputError, match=problem):
        workflow_to_wfformat(workflow)


def test_the_machines_of_a_trace_are_a_platform() -> None:
    machines = (
        "[{'nodeName': 'n1', 'cpu': {'coreCount': 2}, 'memoryInBytes': 8}, {'nodeName': 'm'}]"
    )
    platform = load_platform(_changed(f"execution['machines'] = {machines}"))
    assert platform.processor_names == ("n1-1", "n1-2", "m-1")
    assert platform.host_amounts("memory").tolist() == [8, np.inf]
    with pytest.raises(InputError, match="names no machines"):
        load_platform(TRACE)
    wrong = _changed("execution['machines'] = [{'nodeName': 'n', 'cpu': {'coreCount': 0}}]")
    with pytest.raises(InputError, match=r"execution\.machines \(hosts\.n\.cores\): .* not 0"):
        load_platform(wrong)
