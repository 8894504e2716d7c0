"""How a task is run, in workflow files: its shell, its tries and its time, what it ignores."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import InputError
from weft.formats import load, save, workflow_from_dict, workflow_to_dict
from weft.model import TaskSpec, Workflow


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
        ("ignores", "x", "expected a list"),
        ("ignores", ["x", "x"], "listed twice"),
        ("retry", 2, "unknown field 'retry' (did you mean 'retries'?)"),
    ],
)
def test_a_wrong_limit_is_an_error_at_its_place(field: str, value: Any, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        workflow_from_dict({"tasks": {"a": {field: value}}})
    assert problem in str(caught.value)
    assert str(caught.value).startswith("tasks.a" if field == "retry" else f"tasks.a.{field}: ")


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
