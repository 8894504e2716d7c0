"""Variables, containers and conda environments of tasks, in workflow files and journals."""

from pathlib import Path
from typing import Any

import pytest

from foreplan.errors import InputError
from foreplan.formats import load, save, workflow_from_dict, workflow_to_dict
from foreplan.model.surroundings import Surroundings
from foreplan.runs.entries import workflow_from_entry, workflow_to_entry


def around(**fields: Any) -> Surroundings | None:
    return workflow_from_dict({"tasks": {"a": {"run": "true", **fields}}}).spec(0).around


def test_they_are_read_written_and_journalled(tmp_path: Path) -> None:
    tasks = {
        "a": {"run": "true", "env": {"A": "x y", "B": "1"}},
        "b": {"run": "true", "container": "docker://alpine:3"},
        "c": {"run": "true", "container": {"image": "tool.sif", "engine": "singularity"}},
        "d": {"run": "true", "conda": "envs/mine", "env": {"A": ""}},
        "e": {"run": "true"},
    }
    workflow = workflow_from_dict({"tasks": tasks})
    assert workflow.spec(0).around == Surroundings((("A", "x y"), ("B", "1")))
    assert workflow.spec(4).around is None
    assert workflow_to_dict(workflow) == {"tasks": tasks}
    save(workflow, tmp_path / "w.yaml")
    assert load(tmp_path / "w.yaml").specs == workflow.specs
    assert workflow_from_entry(workflow_to_entry(workflow)).specs == workflow.specs


def test_a_number_is_text_and_the_order_does_not_count() -> None:
    assert around(env={"N": 3, "A": "x"}) == around(env={"A": "x", "N": "3"})


def test_defaults_are_for_what_tasks_do_not_say() -> None:
    defaults = {"env": {"A": "1", "B": "2"}, "container": "python:3.12"}
    tasks: dict[str, Any] = {
        "a": {"run": "true"},
        "b": {"run": "true", "env": {"B": "3"}, "conda": "mine"},
        "c": {"run": "true", "env": None, "container": None},
    }
    workflow = workflow_from_dict({"defaults": defaults, "tasks": tasks})
    found = [workflow.spec(task).around for task in range(3)]
    assert found[0] == Surroundings((("A", "1"), ("B", "2")), "python:3.12")
    assert found[1] == Surroundings((("A", "1"), ("B", "3")), conda="mine")
    assert found[2] is None


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"env": ["A"]}, "tasks.a.env: expected a mapping"),
        ({"env": {"A": 0.5}}, "tasks.a.env.A: expected text, not 0.5: quote it"),
        ({"env": {"A": True}}, "tasks.a.env.A: expected text, not true"),
        ({"env": {"A": "\0"}}, "tasks.a.env.A: a variable cannot hold a null character"),
        ({"env": {"A-B": "1"}}, "tasks.a.env: 'A-B' is no name of a variable"),
        ({"env": {"FOREPLAN_DIR": "1"}}, "tasks.a.env: FOREPLAN_DIR is set by foreplan itself"),
        ({"container": 3}, "tasks.a.container: expected a string"),
        ({"container": "--privileged"}, "tasks.a.container: '--privileged' is no name of an image"),
        ({"container": {"img": "x"}}, "unknown field 'img'"),
        ({"container": {"engine": "docker"}}, "the field 'image' is missing"),
        ({"container": {"image": "x", "engine": "dokcer"}}, "did you mean 'docker'"),
        ({"container": {"image": "x.sif", "engine": "docker"}}, "docker cannot run 'x.sif'"),
        ({"conda": "environment.yaml"}, "tasks.a.conda: expected the name or the prefix"),
        ({"conda": "a", "container": "b"}, "tasks.a: a task has a container or a conda"),
    ],
)
def test_what_cannot_be_meant_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as error:
        around(**fields)
    assert problem in str(error.value)


def test_wrong_defaults_are_refused_where_they_stand() -> None:
    with pytest.raises(InputError, match=r"defaults\.env: FOREPLAN_X"):
        workflow_from_dict({"defaults": {"env": {"FOREPLAN_X": "1"}}, "tasks": {"a": {}}})


@pytest.mark.parametrize(
    ("image", "engines"),
    [
        ("tool.sif", ("apptainer", "singularity")),
        ("/opt/images/tool", ("apptainer", "singularity")),
        ("library://tool", ("apptainer", "singularity")),
        ("docker://tool", ("apptainer", "singularity", "docker", "podman")),
        ("ghcr.io/me/tool:1", ("apptainer", "singularity", "docker", "podman")),
    ],
)
def test_an_image_tells_which_engines_can_run_it(image: str, engines: tuple[str, ...]) -> None:
    assert Surroundings(container=image).engines == engines
