"""Graphs that grow on Dask: with a directory that all workers see, and with files that travel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.model.causes import EXPANSION
from runs.test_growing import SPLIT, WORK

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(processes=False, protocol="tcp", host="127.0.0.1", **options) as c,
        distributed.Client(c) as client,
    ):
        yield client


@pytest.mark.parametrize("shared", [True, False])
def test_commands_add_commands(client: Any, tmp_path: Path, shared: bool) -> None:
    (tmp_path / "list.txt").write_text("1 2 3")
    split = {"run": SPLIT.replace(" | tee -a log.txt", ""), "inputs": ["list.txt"], "expand": True}
    early = {"run": "cp list.txt early.out", "inputs": ["list.txt"], "outputs": ["early.out"]}
    late = {"run": "cat early.out > late.out", "inputs": ["early.out"], "outputs": ["late.out"]}
    work = {"tasks": {**WORK["tasks"], "split": split, "early": early, "late": late}}  # type: ignore[dict-item]
    outcome = foreplan.run(work, client, dir=tmp_path, shared=shared)
    assert outcome.ok, outcome.failures
    check_run(outcome.run)
    assert (tmp_path / "all.txt").read_text() == "1\n2\n3\n"
    (tmp_path / "list.txt").write_text("1 4")
    again = foreplan.run(work, client, dir=tmp_path, shared=shared)
    assert again.ok, again.failures
    assert (tmp_path / "all.txt").read_text() == "1\n4\n"
    if shared:
        assert again.reused == ("part-1",)


def test_an_added_task_reads_what_others_have_read(client: Any, tmp_path: Path) -> None:
    """What nobody needed any more is made again for it."""
    adds = (
        "tasks: {more: {run: cat early.out > more.out, inputs: [early.out], outputs: [more.out]}}"
    )
    (tmp_path / "adds.yaml").write_text(adds)
    tasks = {
        "early": {"run": "echo early > early.out", "outputs": ["early.out"]},
        "late": {
            "run": "cat early.out > late.out",
            "inputs": ["early.out"],
            "outputs": ["late.out"],
        },
        "split": {"run": "cat adds.yaml", "inputs": ["adds.yaml", "late.out"], "expand": True},
    }
    outcome = foreplan.run({"tasks": tasks}, client, dir=tmp_path)
    assert outcome.ok, outcome.failures
    assert (tmp_path / "more.out").read_text() == "early\n"


def test_amounts_that_nobody_counts_cannot_be_asked_for(client: Any, tmp_path: Path) -> None:
    (tmp_path / "adds.yaml").write_text("tasks: {p: {run: date, memory: 1MB}}")
    split = {"run": "cat adds.yaml", "inputs": ["adds.yaml"], "expand": True}
    outcome = foreplan.run({"tasks": {"split": split}}, client, dir=tmp_path, shared=True)
    (failure,) = outcome.failures
    assert failure.cause == EXPANSION
    assert "no declared one does" in failure.reason
