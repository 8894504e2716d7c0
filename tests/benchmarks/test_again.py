"""`weft bench again`: how many tasks run again after a change."""

from __future__ import annotations

import pytest

from weft.errors import InputError
from weft_benchmarks import again, again_functions


def test_by_weft() -> None:
    shares: list[float] = []
    (one,) = again.measure([again.WeftTool()], ["an intermediate is deleted"], shares.append)
    assert (one.tool, one.ran, one.exit, shares) == ("weft", 0, 0, [1.0])


def test_both_describe_the_same_pipeline() -> None:
    """A Snakefile has a rule of each step, weft's file a task of each sample."""
    rules = again.rules()
    assert len(again.weft_workflow(rules)["tasks"]) == 122
    text = again.snakefile(rules)
    assert text.count("rule ") == len(rules) + 1
    assert "['report.txt']" in text


def test_no_such_program() -> None:
    with pytest.raises(InputError, match="there is no program"):
        again.find_snakemake("snakemake-that-is-not-here")


def test_functions() -> None:
    (one,) = again_functions.measure(["functions: the arguments of one task"], lambda share: None)
    assert (one.ran, one.exit) == (8, 0)
