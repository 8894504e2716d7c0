"""How often a task is tried again and how long it may take, in workflow files."""

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


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_limits_survive_a_file(tmp_path: Path, ending: str) -> None:
    spec = TaskSpec("c", "true", 3, 0.25)
    path = tmp_path / f"w.{ending}"
    save(Workflow.from_items("w", ["a"], [1.0], [], specs={0: spec}), path)
    assert load(path).spec(0) == spec
