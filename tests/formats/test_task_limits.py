"""How a task is run, in workflow files: its shell, its tries and its time, what it ignores."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.errors import InputError
from foreplan.formats import load, save, workflow_from_dict, workflow_to_dict
from foreplan.model import TaskSpec, Workflow
from foreplan.runs.entries import workflow_from_entry, workflow_to_entry


def test_the_limits_of_a_task_are_read_and_written() -> None:
    tasks = {
        "a": {"category": "align", "run": "true", "retries": 2, "timeout": 30},
        "b": {"retries": 0},
        "c": {"timeout": 0.5},
        "d": {},
    }
    workflow = workflow_from_dict({"tasks": tasks})
    assert workflow.spec(0) == TaskSpec("align", "true", 2, 30.0)
    assert workflow.spec(1) == TaskSpec(retries=0)
    assert workflow.spec(2) == TaskSpec(timeout=0.5)
    assert workflow.specs.keys() == {0, 1, 2}
    assert type(workflow.spec(0).retries) is int
    assert type(workflow.spec(0).timeout) is float
    assert workflow_to_dict(workflow) == {"tasks": tasks}


def test_whether_a_task_is_cached_is_read_and_written(tmp_path: Path) -> None:
    tasks = {"a": {"run": "true", "cache": True}, "b": {"run": "true"}}
    workflow = workflow_from_dict({"tasks": tasks})
    assert [workflow.spec(t).cache for t in range(2)] == [True, False]
    assert workflow_to_dict(workflow) == {"tasks": tasks}
    save(workflow, tmp_path / "w.yaml")
    assert load(tmp_path / "w.yaml").specs == workflow.specs


def test_shells_and_what_is_ignored_are_read_and_written(tmp_path: Path) -> None:
    tasks = {
        "a": {"run": "true", "shell": "zsh -e"},
        "b": {"run": "true", "ignores": ["x", "*.csv"]},
        "c": {"cost": 1},
    }
    plain = workflow_from_dict({"tasks": tasks})
    assert plain.spec(0) == TaskSpec(run="true", shell="zsh -e")
    assert plain.spec(1) == TaskSpec(run="true", ignores=("x", "*.csv"))
    assert workflow_to_dict(plain) == {"tasks": tasks}
    whole = workflow_from_dict({"shell": "perl -e", "tasks": tasks})
    assert [whole.spec(task).shell for task in range(3)] == ["zsh -e", "perl -e", None]
    same: dict[str, Any] = {"shell": "sh", "tasks": {"a": {"run": "true"}, "b": {"run": "false"}}}
    for content in ({"shell": "perl -e", "tasks": tasks}, same):
        workflow = workflow_from_dict(content)
        for ending in ("yaml", "json"):
            save(workflow, tmp_path / f"w.{ending}")
            assert load(tmp_path / f"w.{ending}").specs == workflow.specs
    assert workflow_to_dict(workflow_from_dict(same)) == same
    with pytest.raises(InputError, match=r"tasks\.a\.shell: WfFormat has no word for the shell"):
        save(workflow_from_dict(same), tmp_path / "w.json", "wfformat")


def test_a_wrong_shell_of_the_workflow_is_an_error() -> None:
    with pytest.raises(InputError, match=r"^shell: '' is no shell"):
        workflow_from_dict({"shell": "", "tasks": {"a": {"run": "true"}}})


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("retries", -1, "must not be negative"),
        ("retries", 1.5, "expected a whole number, not 1.5"),
        ("retries", True, "expected a number, not true"),
        ("retries", "two", "expected a number, not 'two'"),
        ("retries", None, "expected a number, not null"),
        ("retries", float("inf"), "finite"),
        ("timeout", 0, "must be more than 0"),
        ("timeout", -0.0, "must be more than 0"),
        ("timeout", -3, "must not be negative"),
        ("timeout", "30s", "expected a number, not '30s'"),
        ("timeout", None, "expected a number, not null"),
        ("timeout", float("nan"), "finite"),
        ("shell", "", "is no shell"),
        ("shell", ["bash", "-c"], "expected a string"),
        ("shell", "bash '", "no closing quotation"),
        ("ignores", None, "expected a name or a list"),
        ("ignores", ["x", "x"], "listed twice"),
        ("cache", "yes", "expected true or false, not 'yes'"),
        ("cache", None, "expected true or false, not null"),
        ("cache", 1, "expected true or false, not 1"),
        ("retry", 2, "expected causes and how often each, as {exit: 1}, not 2"),
        ("retry", None, "for all causes together there is `retries`"),
        ("retry", {"time-up": 1}, "unknown cause 'time-up' (did you mean 'time-out'?)"),
        ("wait", -1, "must not be negative"),
        ("wait", "10 m", "expected seconds, or a time such as 10s (units: s, min, h), not '10 m'"),
        ("wait", "1e3s", "expected seconds"),
        ("wait", None, "expected a number, not null"),
        ("retr", 2, "unknown field 'retr' (did you mean 'retry'?)"),
    ],
)
def test_a_wrong_limit_is_an_error_at_its_place(field: str, value: Any, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        workflow_from_dict({"tasks": {"a": {field: value}}})
    assert problem in str(caught.value)
    assert str(caught.value).startswith("tasks.a" if field == "retr" else f"tasks.a.{field}: ")


@pytest.mark.parametrize("times", [-1, 1.5, "2", None])
def test_a_wrong_number_for_a_cause_is_an_error_at_its_place(times: Any) -> None:
    with pytest.raises(InputError) as caught:
        workflow_from_dict({"tasks": {"a": {"retry": {"exit": times}}}})
    assert str(caught.value).startswith("tasks.a.retry.exit: ")


@pytest.mark.parametrize(
    ("written", "seconds"), [(10, 10.0), ("10s", 10.0), ("1.5 min", 90.0), ("2h", 7200.0)]
)
def test_waits_and_causes_are_read_and_written(written: Any, seconds: float) -> None:
    causes = {"time-out": 0, "out-of-memory": 3, "exit": 1}
    fields = {"run": "x", "retries": 3, "wait": written, "retry": causes}
    workflow = workflow_from_dict({"tasks": {"a": fields}})
    spec = workflow.spec(0)
    assert (spec.wait, dict(spec.retry)) == (seconds, causes)
    again = workflow_from_dict(workflow_to_dict(workflow))
    assert again.spec(0) == spec
    assert workflow_from_entry(json.loads(json.dumps(workflow_to_entry(workflow)))).spec(0) == spec


@settings(deadline=None)
@given(
    st.one_of(st.none(), st.integers(0, 10**6)),
    st.one_of(st.none(), st.floats(1e-6, 1e12)),
)
def test_what_is_written_is_read_back(retries: int | None, timeout: float | None) -> None:
    spec = TaskSpec(None, "true", retries, timeout)
    workflow = Workflow.from_items("w", ["a"], [1.0], [], specs={0: spec})
    assert workflow_from_dict(workflow_to_dict(workflow)).spec(0) == spec


@pytest.mark.parametrize("field", ["inputs", "outputs"])
def test_what_is_ignored_is_not_listed(field: str) -> None:
    with pytest.raises(InputError, match=f"'x' is listed under {field}, too"):
        workflow_from_dict({"tasks": {"a": {"run": "true", field: ["x"], "ignores": ["x"]}}})


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_limits_survive_a_file(tmp_path: Path, ending: str) -> None:
    spec = TaskSpec("c", "true", 3, 0.25)
    path = tmp_path / f"w.{ending}"
    save(Workflow.from_items("w", ["a"], [1.0], [], specs={0: spec}), path)
    assert load(path).spec(0) == spec


def test_temporary_and_protected_outputs_are_read_and_written(tmp_path: Path) -> None:
    tasks: dict[str, Any] = {
        "a": {"run": "true", "outputs": ["x", {"path": "y", "temp": True}]},
        "b": {"outputs": ["z"], "protected": True},
        "c": {"outputs": ["u", {"path": "v", "protected": True}, {"path": "w", "temp": True}]},
        "d": {"outputs": ["t"]},
    }
    workflow = workflow_from_dict({"tasks": tasks})
    assert [workflow.spec(t).temp for t in range(4)] == [("y",), (), ("w",), ()]
    assert [workflow.spec(t).protected for t in range(4)] == [(), ("z",), ("v",), ()]
    assert workflow.specs.keys() == {0, 1, 2}
    save(workflow, tmp_path / "w.yaml")
    assert load(tmp_path / "w.yaml").specs == workflow.specs
    assert workflow_from_entry(workflow_to_entry(workflow)).specs == workflow.specs
    said = workflow_to_dict(workflow)["tasks"]
    assert said == tasks
    whole = {"a": {"outputs": ["x", {"path": "y", "temp": False}], "temp": True}}
    assert workflow_from_dict({"tasks": whole}).spec(0).temp == ("x",)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"temp": True}, "tasks.a.temp: it has no outputs"),
        ({"temp": "yes", "outputs": ["x"]}, "tasks.a.temp: expected true or false, not 'yes'"),
        ({"outputs": [{"path": "x", "tmp": True}]}, "unknown field 'tmp' (did you mean 'temp'?)"),
        ({"outputs": [{"temp": True}]}, "the field 'path' is missing"),
        ({"outputs": [{"path": "x", "temp": 1}]}, "tasks.a.outputs[0].temp: expected true"),
        (
            {"outputs": ["x"], "temp": True, "protected": True},
            "tasks.a.outputs: 'x' cannot be both temporary and protected",
        ),
        ({"outputs": ["x", {"path": "x", "temp": True}]}, "the file 'x' is listed twice"),
    ],
)
def test_wrong_marks_of_outputs_are_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as error:
        workflow_from_dict({"tasks": {"a": fields}})
    assert problem in str(error.value)
