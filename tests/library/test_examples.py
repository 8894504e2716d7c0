"""The examples: commands and functions come to the same, and the files are whole."""

import importlib
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from foreplan.formats import load
from foreplan.model import EXTERNAL, Workflow
from library.computing import make_call

EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = EXAMPLES / "words"
SHORT = 30_000  # words of a book, instead of as many as keep a machine busy for a while


@pytest.fixture(scope="module")
def pipeline() -> Workflow:
    return load(WORDS / "pipeline.yaml")


def files_of(workflow: Workflow, task: int, which: str) -> set[str]:
    ptr, items = getattr(workflow, f"{which}_ptr"), getattr(workflow, f"{which}_item")
    return {workflow.item_name(int(item)) for item in items[ptr[task] : ptr[task + 1]]}


def test_the_pipeline_is_about_thirty_commands_without_costs(pipeline: Workflow) -> None:
    assert pipeline.n_tasks == 33
    assert all(pipeline.base_cost != pipeline.base_cost)
    specs = [pipeline.spec(task) for task in range(pipeline.n_tasks)]
    assert all(spec.run and spec.category for spec in specs)
    assert len({spec.category for spec in specs}) == 7


def test_every_input_is_made_by_a_task_or_stands_beside_the_pipeline(pipeline: Workflow) -> None:
    outside = [i for i in range(pipeline.n_items) if pipeline.item_producer[i] == EXTERNAL]
    assert [pipeline.item_name(i) for i in outside] == ["words.py"]
    assert (WORDS / "words.py").is_file()


def test_each_command_names_its_inputs_and_outputs(pipeline: Workflow) -> None:
    for task in range(pipeline.n_tasks):
        python, *words = shlex.split(pipeline.spec(task).run or "")
        named = {word for word in words if "." in word}
        assert python == "python3"
        assert named == files_of(pipeline, task, "in") | files_of(pipeline, task, "out")


def run_commands(pipeline: Workflow, tmp_path: Path) -> Path:
    """Run every command in a directory that holds its inputs only, and keep its outputs."""
    store = tmp_path / "store"
    store.mkdir()
    script = (WORDS / "words.py").read_text()
    assert "LENGTH = 600_000 " in script
    (store / "words.py").write_text(script.replace("600_000", str(SHORT)))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for task in pipeline.order.tolist():
        home = tmp_path / "attempts" / pipeline.task_names[task]
        home.mkdir(parents=True)
        for file in files_of(pipeline, task, "in"):
            os.link(store / file, home / file)
        command = pipeline.spec(task).run or ""
        environment = {**os.environ, "PATH": path}
        subprocess.run(command, shell=True, check=True, cwd=home, env=environment, timeout=120)
        for file in files_of(pipeline, task, "out"):
            os.rename(home / file, store / file)
    return store


def test_commands_and_functions_come_to_the_same(
    pipeline: Workflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = run_commands(pipeline, tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    words_flow = importlib.import_module("words_flow")
    monkeypatch.setattr(words_flow.words, "LENGTH", SHORT)
    flow, summary, chart = words_flow.words_flow()
    workflow, calls = flow.build()
    assert workflow.n_tasks == pipeline.n_tasks
    results: dict[int, Any] = {}
    for task in workflow.order.tolist():
        results[task] = make_call(calls[task], results)
    text = (store / "summary.md").read_text(encoding="utf-8")
    assert results[flow.index(summary)] == text
    assert results[flow.index(chart)] == (store / "chart.svg").read_text(encoding="utf-8")
    assert "# 4 books, 120,000 words" in text
    assert "| sea | " in text
    sea = next(line for line in text.splitlines() if line.startswith("| sea |"))
    assert {"anchor", "sail", "reef"} & set(sea.replace(",", "").split())


def test_both_have_the_same_shape(pipeline: Workflow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    workflow, _ = importlib.import_module("words_flow").words_flow()[0].build()

    def levels(of: Workflow) -> list[int]:
        """How many tasks stand how deep."""
        depth = [0] * of.n_tasks
        _, producers, consumers = of.dependencies()
        into: dict[int, list[int]] = {}
        for producer, consumer in zip(producers.tolist(), consumers.tolist(), strict=True):
            into.setdefault(consumer, []).append(producer)
        for task in of.order.tolist():
            depth[task] = max((depth[p] + 1 for p in into.get(task, ())), default=0)
        return sorted(depth)

    assert levels(workflow) == levels(pipeline)
