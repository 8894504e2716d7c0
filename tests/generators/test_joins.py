"""Platforms that grow: who joins, when, and that nobody else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.errors import InputError
from foreplan.formats import load_platform
from foreplan.formats.foreplan_platform import platform_to_dict
from foreplan.generators import generate_platform
from foreplan.generators.platform import growing_platform

JOINS: dict[str, Any] = {"join_every": 400, "join_share": 0.2, "join_until": 4000}


def test_a_fifth_more_every_400_seconds() -> None:
    p = generate_platform(10, **JOINS)
    assert p.processor_names == tuple(f"p{i}" for i in range(30))
    assert p.host_names == p.processor_names
    assert p.joins.tolist() == [0.0] * 10 + [400.0 * (1 + i // 2) for i in range(20)]
    assert np.all(np.isinf(p.leaves))
    assert [int(p.present(t).sum()) for t in (0, 399, 400, 799, 800, 3999, 4000, 1e9)] == [
        *[10, 10, 12, 12, 14, 28, 30, 30]
    ]


@settings(deadline=None)
@given(
    n=st.integers(1, 30),
    cores=st.integers(1, 4),
    share=st.floats(0.01, 1.5),
    times=st.integers(1, 6),
    every=st.floats(0.01, 1e4),
    seed=st.integers(0, 1000),
)
def test_joins_leave_the_others_alone(
    n: int, cores: int, share: float, times: int, every: float, seed: int
) -> None:
    options: dict[str, Any] = {
        **{"cores": cores, "bandwidth_spread": 1.0, "startup": 0.5, "heterogeneity": 1.0},
        **{"price": 2.0, "bandwidth": 3.0, "seed": seed},
    }
    fixed = generate_platform(n, **options)
    joins: dict[str, Any] = {"join_every": every, "join_share": share}
    sooner = generate_platform(n, join_until=every, **joins, **options)
    grown = generate_platform(n, join_until=every * times, **joins, **options)
    each = max(1, round(share * n))
    assert grown.n_processors == n + each * times
    assert grown.n_hosts == -(-n // cores) + times * -(-each // cores)
    assert np.all(np.diff(grown.joins) >= 0)  # those that join later have higher numbers
    assert np.allclose(np.unique(grown.joins), every * np.arange(times + 1))
    for small, large in ((fixed, sooner), (fixed, grown), (sooner, grown)):
        k, h = small.n_processors, small.n_hosts
        assert np.array_equal(small.host, large.host[:k])
        assert np.array_equal(small.speed, large.speed[:k])
        assert np.array_equal(small.price, large.price[:k])
        assert np.array_equal(small.joins, large.joins[:k])
        assert np.array_equal(small.time_per_unit, large.time_per_unit[:h, :h])
    for host in range(grown.n_hosts):  # a host comes as a whole
        assert len(set(grown.joins[grown.host == host])) == 1
        assert 1 <= int((grown.host == host).sum()) <= cores
    between = ~np.eye(grown.n_hosts, dtype=np.bool_)
    assert np.array_equal(grown.time_per_unit, grown.time_per_unit.T)
    assert np.all((grown.time_per_unit > 0) == between)
    assert np.all((grown.startup == 0.5) == between)


def test_those_that_join_are_drawn_like_the_others() -> None:
    options: dict[str, Any] = {"heterogeneity": 1.0, "bandwidth_spread": 1.0, "price_noise": 0.0}
    p = generate_platform(10, join_every=1, join_share=20, join_until=5, **options)
    late = p.joins > 0
    assert int(late.sum()) == 1000
    assert p.speed[late].mean() == pytest.approx(1.0, rel=0.03)
    assert p.speed[late].std() == pytest.approx(1 / np.sqrt(12), rel=0.05)
    assert p.price == pytest.approx(p.speed)
    bandwidth = 1 / p.time_per_unit[np.triu_indices(p.n_hosts, 1)]
    assert bandwidth.mean() == pytest.approx(1.0, rel=0.01)
    assert bandwidth.std() == pytest.approx(1 / np.sqrt(12), rel=0.01)
    assert len(np.unique(bandwidth)) > 0.99 * len(bandwidth)


@pytest.mark.parametrize(
    ("processors", "share", "each"), [(10, 0.1, 1), (10, 0.25, 2), (30, 0.15, 4), (3, 0.1, 1)]
)
def test_how_many_join_each_time(processors: int, share: float, each: int) -> None:
    for p in (
        generate_platform(processors, join_every=5, join_share=share, join_until=14),
        growing_platform(processors, 5, share, 14),
    ):
        times, counts = np.unique(p.joins, return_counts=True)
        assert times.tolist() == [0, 5, 10]
        assert counts.tolist() == [processors, each, each]


def test_the_last_time_counts_even_if_rounding_is_against_it() -> None:
    p = growing_platform(2, 0.1, 0.5, 0.3)
    assert p.joins.tolist() == pytest.approx([0, 0, 0.1, 0.2, 0.3])
    assert p.joins.max() <= 0.3


def test_the_pool_of_the_experiments() -> None:
    p = growing_platform(20, 400, 0.25, 1200)
    assert p.n_processors == p.n_hosts == 35
    assert p.processor_names[-1] == "p34"
    assert np.all(p.speed == 1)
    assert np.all(p.price == 0)
    assert np.all(p.startup == 0)
    assert np.array_equal(p.time_per_unit, 1 - np.eye(35))
    assert np.array_equal(
        p.joins, generate_platform(20, **{**JOINS, "join_share": 0.25}).joins[:35]
    )


@pytest.mark.parametrize("arguments", [(0, 0.2, 100), (50, 0.0, 100), (50, 0.2, 0), (50, 0.2, 49)])
def test_a_pool_that_does_not_grow(arguments: tuple[float, float, float]) -> None:
    assert growing_platform(7, *arguments).joins.tolist() == [0.0] * 7


def test_files_keep_the_joins() -> None:
    made = generate_platform(4, cores=2, **JOINS)
    loaded = load_platform(platform_to_dict(made))
    assert np.array_equal(loaded.joins, made.joins)
    assert np.array_equal(loaded.host, made.host)
    assert np.array_equal(loaded.speed, made.speed)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"join_share": 0.2}, "join_share: needs join_every and join_until too"),
        ({"join_every": 9}, "join_every: needs join_share and join_until too"),
        ({"join_until": 9}, "join_until: needs join_share and join_every too"),
        ({"join_every": 9, "join_until": 90}, "join_every: needs join_share too"),
        ({"join_every": 9, "join_share": 0.1}, "join_share: needs join_until too"),
        ({**JOINS, "join_until": 399}, r"join_until: must be at least join_every \(400\)"),
        ({**JOINS, "join_every": -1}, "join_every: must be at least 0"),
        ({**JOINS, "join_share": float("nan")}, "join_share: must be a number"),
        ({**JOINS, "join_until": "late"}, "join_until: must be a number"),
        ({**JOINS, "join_every": 0.5}, "processors: 8,004 hosts; the most is 5,000"),
        ({**JOINS, "join_every": 1e-300}, "this would make .* processors"),
    ],
)
def test_bad_joins(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        generate_platform(4, **options)


@pytest.mark.parametrize(
    ("arguments", "place"),
    [((0, 1, 0.1, 5), "processors"), ((2, -1, 0.1, 5), "every"), ((2, 1, 0.1, "5"), "until")],
)
def test_bad_pools(arguments: Any, place: str) -> None:
    with pytest.raises(InputError, match=f"^{place}: "):
        growing_platform(*arguments)
