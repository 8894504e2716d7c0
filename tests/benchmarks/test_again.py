"""`foreplan bench again`: how many tasks run again after a change."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from foreplan import formats
from foreplan.errors import InputError
from foreplan_benchmarks import again, again_functions

ROOT = Path(__file__).parents[2]


def test_by_foreplan() -> None:
    shares: list[float] = []
    (one,) = again.measure([again.ForeplanTool()], ["an intermediate is deleted"], shares.append)
    assert (one.tool, one.ran, one.exit, shares) == ("foreplan", 0, 0, [1.0])


def test_both_describe_the_same_pipeline() -> None:
    """A Snakefile has a rule of each step, foreplan's file a task of each sample."""
    rules = again.rules()
    assert len(again.foreplan_workflow(rules)["tasks"]) == 122
    text = again.snakefile(rules)
    assert text.count("rule ") == len(rules) + 1
    assert "['report.txt']" in text


def test_the_short_form_is_the_same_pipeline() -> None:
    """In the benchmark, and as the example of the manual; which has its inputs beside it."""
    rules = again.rules()
    long = formats.workflow_to_dict(formats.load(again.foreplan_workflow(rules)))
    assert formats.workflow_to_dict(formats.load(again.short_workflow(rules))) == long
    example = ROOT / "examples/samples/pipeline.yaml"
    assert len(example.read_text().splitlines()) <= 45
    shown: Any = formats.workflow_to_dict(formats.load(example))
    for task in shown["tasks"].values():
        task["run"] += again.NOTED
    assert shown | {"name": "again"} == long


def test_the_example_has_the_same_inputs(tmp_path: Path) -> None:
    again.write_inputs(tmp_path)
    subprocess.run(["sh", ROOT / "examples/samples/reads.sh"], cwd=tmp_path / "scripts", check=True)
    for sample in again.SAMPLES:
        made = tmp_path / f"scripts/reads/{sample}.txt"
        assert made.read_text() == (tmp_path / f"reads/{sample}.txt").read_text()
    for name in ("scripts/count.sh", "ref.txt"):
        assert (ROOT / "examples/samples" / name).read_text() == (tmp_path / name).read_text()


def test_no_such_program() -> None:
    with pytest.raises(InputError, match="there is no program"):
        again.find_snakemake("snakemake-that-is-not-here")


def test_functions() -> None:
    (one,) = again_functions.measure(["functions: the arguments of one task"], lambda share: None)
    assert (one.ran, one.exit) == (8, 0)
