"""Placeholders are replaced in every file, and text that looks like one can be written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan import formats
from foreplan.errors import InputError
from foreplan.formats.foreplan_workflow import (
    workflow_from_literals,
    workflow_to_dict,
    workflow_to_literals,
)
from foreplan.formats.placeholders import split_text
from foreplan.formats.texts import dump_yaml, parse_yaml
from foreplan.model import Workflow


def parse(text: str) -> Workflow:
    """Return the workflow of a file with this text."""
    document: Any = parse_yaml(text)
    return formats.workflow_from_dict(document)


def read(text: str) -> dict[str, Any]:
    """Return the tasks of a file, every text as it is meant."""
    tasks = workflow_to_literals(parse(text))["tasks"]
    assert isinstance(tasks, dict)
    return tasks


COMMANDS = [  # written, meant: with the input in.txt, the outputs o1 and o2, the parameter x = 7
    ("cat {input} > {outputs[1]}", "cat in.txt > o2"),
    ("cp {inputs} {outputs}", "cp in.txt o1 o2"),
    ("parallel {{input}}", "parallel {input}"),
    ("echo {{{input}}}", "echo {in.txt}"),
    ("echo {{{{input}}}}", "echo {{input}}"),
    ("echo {{input}", "echo {in.txt"),
    ("echo {{outputs[0]}}", "echo {outputs[0]}"),
    ("awk '{print}' {input}", "awk '{print}' in.txt"),
    ("echo ${input} ${x} {a,b} {} {1} {{y}} {y}", "echo ${input} ${x} {a,b} {} {1} {{y}} {y}"),
    ("echo ${{x}} {{x}} {x}", "echo ${x} {x} 7"),
]


@pytest.mark.parametrize(("written", "meant"), COMMANDS)
def test_placeholders_in_commands(written: str, meant: str) -> None:
    task = {"run": written, "inputs": ["in.txt"], "outputs": ["o1", "o2"]}
    with_params = dump_yaml({"params": {"x": 7}, "tasks": {"a": task}})
    assert read(with_params)["a"]["run"] == meant
    if "x" not in written.replace("in.txt", ""):  # without `params:` all is the same
        assert read(dump_yaml({"tasks": {"a": task}}))["a"]["run"] == meant


def test_names_outside_of_commands_are_known_or_escaped() -> None:
    text = (
        "tasks:\n  a-{{x}}:\n    inputs: ['{{x}}', $$y, $$y.txt, $y/z, '${z}']\n"
        "    category: '{{{{k}}}}'\nfiles: {'{{x}}': 3}\nname: $$n\n"
    )
    workflow = parse(text)
    content: Any = workflow_to_literals(workflow)
    assert (content["name"], list(content["tasks"])) == ("$n", ["a-{x}"])
    assert content["tasks"]["a-{x}"]["inputs"] == ["{x}", "$y", "$y.txt", "$y/z", "${z}"]
    assert content["tasks"]["a-{x}"]["category"] == "{{k}}"
    assert content["files"]["{x}"] == 3


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ("outputs: ['{smaple}.bam']", "'smaple' is neither a parameter (`params:`) nor"),
        ("category: $kind", "'kind' is neither a parameter"),
        ("run: cat {input}", "this one has no inputs: list it, or write {{input}}"),
        ("category: '{input}'", "{input} stands for files of the task in `run` only"),
    ],
)
def test_unknown_names_are_refused_with_their_line(
    tmp_path: Path, field: str, problem: str
) -> None:
    (tmp_path / "w.yaml").write_text(f"tasks:\n  a:\n    {field}\n")
    with pytest.raises(InputError) as caught:
        formats.load(tmp_path / "w.yaml")
    assert "w.yaml: line 3: tasks.a." in str(caught.value)
    assert problem in str(caught.value)


def test_parameters_are_known_in_included_files(tmp_path: Path) -> None:
    (tmp_path / "part.yaml").write_text("tasks:\n  p: {run: 'echo {n} {m}'}\n")
    text = "include: part.yaml\nparams: {n: 7}\ntasks: {a: {run: 'true'}}\n"
    (tmp_path / "w.yaml").write_text(text)
    workflow = formats.load(tmp_path / "w.yaml")
    assert workflow.spec(0).run == "echo 7 {m}"


PIECES = ("{", "}", "$", "input", "output", "s", "[0]", ".x", "a", "x y", " ", "'", "%")
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join)
NAMES = TEXTS.filter(lambda text: text == text.strip())


@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS, st.lists(NAMES, min_size=3, max_size=3, unique=True), NAMES)
def test_every_text_can_be_written(
    command: str, variable: str, files: list[str], category: str
) -> None:
    task = {
        "category": category,
        "run": command,
        "inputs": [f"i/{files[0]}"],
        "outputs": [files[1]],
        "env": {"V": variable},
    }
    content = {"name": category, "tasks": {files[2]: task}}
    workflow = workflow_from_literals(content)
    again = parse(dump_yaml(workflow_to_dict(workflow)))
    assert workflow_to_literals(again) == workflow_to_literals(workflow)


@given(TEXTS)
def test_texts_without_references_are_kept(text: str) -> None:
    assert split_text(text, lambda name: False) == ([text], [])
