"""Workers that join halfway: what is simulated, how low it can get, and how pairs are told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan import api
from foreplan.errors import ForeplanError
from foreplan.model import Platform, Processor
from foreplan_benchmarks import dask_joins
from foreplan_benchmarks.dask_joins import Case, JoinedRun, Pair, bound, case, ratios, simulated

SHAPES = sorted(dask_joins.QUICK)


@given(shape=st.sampled_from(SHAPES), seed=st.integers(0, 999), speed=st.floats(0.5, 4))
@settings(max_examples=30, deadline=None)
def test_no_strategy_is_below_the_bound(shape: str, seed: int, speed: float) -> None:
    one = case(shape, seed, 1.0, dask_joins.QUICK[shape])
    least = bound(one, speed)
    assert least > one.at  # there is something left for those that join
    for strategy in ("aheft", "static", "fifo"):
        assert simulated(one, strategy, speed) >= least * (1 - 1e-9)


def test_the_bound_is_reached_where_work_can_be_cut() -> None:
    """A task, many tiny ones on all workers, and a task."""
    one = case("fork_join", 3, 1.0, {"stages": 1, "width": 600})
    exact = replace(one, seconds=tuple(one.workflow.base_cost.tolist()))
    assert simulated(exact, "aheft", 1.0) == pytest.approx(bound(exact, 1.0), rel=0.02)


def test_static_does_not_care_who_joins() -> None:
    one = case("montage", 1, 1.0, dask_joins.SHAPES["montage"])
    platform = Platform.build(
        [Processor(f"w{k}") for k in range(dask_joins.WORKERS)], network=dask_joins.LINK
    )
    off = np.array(one.seconds) / one.workflow.base_cost
    world = {"durations": dict(zip(one.workflow.task_names, off.tolist(), strict=True))}
    alone = api.simulate(one.workflow, platform, "static", world).makespan
    assert simulated(one, "static", 1.0) == pytest.approx(alone)
    assert simulated(one, "static", 2.0) == pytest.approx(alone)


@pytest.mark.parametrize("shape", SHAPES)
def test_cases(shape: str) -> None:
    """The same each time; a larger unit changes nothing but the seconds; costs are nearly right."""
    options = dask_joins.SHAPES[shape]
    one, again, other = (case(shape, 5, unit, options) for unit in (1.0, 1.0, 0.5))
    assert one.seconds == again.seconds
    assert other.seconds == pytest.approx([s / 2 for s in one.seconds])
    assert other.at == pytest.approx(one.at / 2, rel=0.01)
    off = np.array(one.seconds) / one.workflow.base_cost
    assert np.all(np.abs(off - 1) <= dask_joins.SPREAD + 1e-12)
    assert off.std() > 0.05
    assert simulated(one, "aheft", 1.0) == simulated(again, "aheft", 1.0)


def pair(aheft: float, static: float, joined: float = 5.2, first: float | None = 5.5) -> Pair:
    used = 3 if first is not None else 0
    return Pair(
        shape="montage",
        tasks=80,
        seed=0,
        speed=1.0,
        at=5.0,
        went_first="aheft",
        aheft=JoinedRun(aheft, joined, first, used, 4, 1),
        static=JoinedRun(static, joined, None, 0, 0, 0),
        simulated_aheft=8.0,
        simulated_static=10.0,
        bound=7.0,
    )


def test_ratios() -> None:
    [row] = ratios([pair(8, 10), pair(9, 10, first=5.3), pair(9.5, 10, joined=5.4, first=None)])
    assert (row.pairs, row.static) == (3, 10)
    assert (row.ratio, row.worst) == (0.9, 0.95)
    assert (row.simulated, row.least) == (0.8, 0.7)
    assert row.told_to_joined == pytest.approx(0.2)
    assert row.joined_to_first == pytest.approx(0.2)  # of those that were used
    assert row.verdict == "always shorter"
    assert ratios([pair(8, 10), pair(8, 10), pair(11, 10)])[0].verdict == "mostly shorter"
    [unused] = ratios([pair(11, 10, first=None)])
    assert (unused.verdict, unused.joined_to_first) == ("not shorter", None)


def test_who_goes_first_alternates(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def really(client: Any, one: Case, strategy: str, speed: float, folder: str) -> JoinedRun:
        asked.append(strategy)
        return pair(8, 10).aheft

    monkeypatch.setattr(dask_joins, "really", really)
    for seed in range(3):
        one = case("montage", seed, 1.0, dask_joins.QUICK["montage"])
        assert dask_joins.pair_of(None, one, 1.0, "").went_first == asked[-2]
    assert asked == ["aheft", "static", "static", "aheft", "aheft", "static"]


def test_a_run_that_is_over_too_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    over = JoinedRun(1.0, None, None, 0, 0, 0)
    monkeypatch.setattr(dask_joins, "really", lambda *_: over)
    one = case("montage", 0, 0.1, dask_joins.QUICK["montage"])
    with pytest.raises(ForeplanError, match=r"over before a worker had joined.*larger --unit"):
        dask_joins.pair_of(None, one, 1.0, "")
