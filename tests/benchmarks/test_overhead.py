"""The overhead of foreplan: each way to run tasks is timed in turns with it, in this run."""

from __future__ import annotations

import pytest

from foreplan_benchmarks.dask_speed import Pair, ratios
from foreplan_benchmarks.overhead import EACH, ONE, Overhead, local_commands


def test_commands_beside_loops_with_the_same_shell() -> None:
    each, one = local_commands(tasks=3, processors=2, repeats=2)
    assert (each.what, one.what) == (EACH, ONE)
    assert (each.tasks, each.foreplan, len(each.ratios)) == (3, one.foreplan, 2)
    assert min(*each.ratios, *one.ratios) > 0


def test_the_ratio_is_the_median_of_the_turns() -> None:
    measured = Overhead(EACH, 10, 100.0, 90.0, (0.2, 0.86, 0.9), 0.1)
    assert (measured.ratio, measured.verdict) == (0.86, "as it should be")
    assert Overhead(ONE, 10, 1.0, 1.0, (0.84,), 0.1).verdict == "missed: goal 0.85"


@pytest.mark.parametrize(
    ("blind", "history", "verdict"),
    [
        (1.09, 1.09, "as it should be"),
        (1.11, 1.0, "missed: blind"),
        (1.0, 1.2, "missed: history > 1.1"),
    ],
)
def test_few_equal_workers_must_not_be_lost_on(blind: float, history: float, verdict: str) -> None:
    (found,) = ratios([Pair("few", "naps", 60, 1.0, blind, history)])
    assert found.verdict == verdict
