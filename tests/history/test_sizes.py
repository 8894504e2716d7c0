"""Sizes and links: a line is used where it explains what is seen, and only there."""

from __future__ import annotations

import math

import numpy as np
import pytest

from foreplan.history.levels import robust_line
from foreplan.history.predictor import predict_links
from foreplan.history.records import History
from foreplan.model import Link

from .samples import asked, bag, move, task

MB = 1e6


def grown(rng: np.random.Generator, n: int = 25, wild: float = 0.1) -> History:
    """Seconds are 2 + 3 per MB on m0 and twice that on m1."""
    records = []
    for at in range(n):
        for machine, slow in (("m0", 1.0), ("m1", 2.0)):
            size = rng.uniform(1, 100)
            spike = 20.0 if rng.random() < wild else 1.0
            seconds = slow * (2 + 3 * size) * rng.lognormal(0, 0.03) * spike
            records.append(task("a", machine, seconds, at, size * MB))
    return History(records)


@pytest.mark.parametrize("seed", range(5))
def test_time_that_grows_with_size(seed: int) -> None:
    records = grown(np.random.default_rng(seed))
    sizes = np.array([10.0, 50.0, 200.0]) * MB
    found = asked(bag(["a"] * 3), ["m0", "m1"], records, sizes)
    truth = np.outer(2 + 3 * sizes / MB, [1, 2])
    assert found.estimates.cost == pytest.approx(truth, rel=0.1)
    assert (found.spread < 0.3).all()


def test_without_a_size_the_median_is_taken() -> None:
    records = grown(np.random.default_rng(0), wild=0)
    found = asked(bag(["a"] * 2), ["m0"], records, np.array([np.nan, 50 * MB]))
    none = asked(bag(["a"]), ["m0"], records)
    assert found.estimates.cost[0, 0] == pytest.approx(none.estimates.cost[0, 0], rel=0.01)
    assert found.spread[0, 0] > 2 * found.spread[1, 0]


def test_size_is_not_used_where_it_explains_nothing() -> None:
    used = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        records = History(
            [task("a", "m0", 10 * rng.lognormal(0, 0.1), at, rng.uniform(1, 100) * MB)
             for at in range(20)]
        )  # fmt: skip
        small, large = asked(
            bag(["a"] * 2), ["m0"], records, np.array([1.0, 99.0]) * MB
        ).estimates.cost[:, 0]
        used += small != large
    assert used <= 5


def test_few_records_or_few_sizes_are_not_enough() -> None:
    few = [task("a", "m0", s, at, s * MB) for at, s in enumerate([1.0, 2.0, 3.0, 4.0, 5.0])]
    two = [task("b", "m0", 1.0 + at % 2, at, (1 + at % 2) * MB) for at in range(20)]
    found = asked(bag(["a", "b"]), ["m0"], History(few + two), np.array([50.0, 50.0]) * MB)
    assert found.estimates.cost[:, 0] == pytest.approx([3.0, math.sqrt(2)])


def test_a_machine_where_the_category_is_new() -> None:
    records = grown(np.random.default_rng(1))
    for at in range(9):
        for machine, slow in (("m0", 1.0), ("m1", 2.0), ("m2", 5.0)):
            records.observe("b", machine, 4 * slow, at=at)
    found = asked(bag(["a"]), ["m2"], records, np.array([50 * MB]))
    assert found.estimates.cost[0, 0] == pytest.approx(5 * (2 + 150), rel=0.15)


def test_a_line_never_falls_below_nothing() -> None:
    x = np.arange(1.0, 20.0)
    assert robust_line(x, 3 + 2 * x) == pytest.approx((3, 2))
    start, slope = robust_line(x, 2 * x - 1) or (-1.0, -1.0)
    assert start == 0
    assert 1 < slope < 2
    assert robust_line(x, 100 - x) is None
    assert robust_line(np.ones(9), x[:9]) is None


def test_a_link() -> None:
    rng = np.random.default_rng(2)
    records = History()
    for _ in range(25):
        size = rng.uniform(1, 100) * MB
        wild = 30 if rng.random() < 0.1 else 1
        records.observe_transfer("x", "y", size, (0.5 + size / (20 * MB)) * wild)
    found = predict_links("x", "y", records)
    assert found is not None
    assert found.link.startup == pytest.approx(0.5, rel=0.1)
    assert found.bandwidth == pytest.approx(20 * MB, rel=0.05)
    assert found.count == 25
    assert predict_links("y", "x", records) == found
    assert predict_links("x", "z", records) is None


def test_a_link_from_few_transfers_has_no_startup() -> None:
    found = predict_links("m0", "m1", History((), [move(size=10 * MB, seconds=2.0)]))
    assert found is not None
    assert found.link == Link(time_per_unit=2 / (10 * MB), startup=0.0)
    assert found.spread > 0


def test_a_link_that_is_all_startup() -> None:
    same = [move(size=1000.0, seconds=0.2, at=at) for at in range(10)]
    found = predict_links("m0", "m1", History((), same))
    assert found is not None
    assert found.link.startup == pytest.approx(0.2)
    assert 0 < found.link.time_per_unit <= 0.2 / 1000
    assert predict_links("m0", "m1", History((), [move(size=0.0)])) is None
