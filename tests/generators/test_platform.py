"""Random platforms: speeds, prices, links and hosts as asked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.formats import load_platform, platform_to_dict
from foreplan.generators import generate, generate_platform
from foreplan.model import Estimates


@settings(deadline=None)
@given(
    n=st.integers(1, 40),
    cores=st.integers(1, 5),
    heterogeneity=st.floats(0, 2),
    spread=st.floats(0, 2),
    noise=st.floats(0, 2),
    seed=st.integers(0, 1000),
)
def test_properties(
    n: int, cores: int, heterogeneity: float, spread: float, noise: float, seed: int
) -> None:
    p = generate_platform(
        n,
        cores=cores,
        speed=2.0,
        heterogeneity=heterogeneity,
        bandwidth=10.0,
        bandwidth_spread=spread,
        startup=0.5,
        price=3.0,
        price_noise=noise,
        seed=seed,
    )
    assert p.processor_names == tuple(f"p{i}" for i in range(n))
    assert p.n_hosts == -(-n // cores)
    assert np.array_equal(p.host, np.arange(n) // cores)
    close = 1 + 1e-12
    assert np.all(p.speed > 0)
    assert np.all(np.abs(p.speed / 2.0 - 1) <= heterogeneity / 2 * close + 1e-12)
    assert np.all(np.abs(p.price / (3.0 * p.speed / 2.0) - 1) <= noise / 2 * close + 1e-12)
    between = ~np.eye(p.n_hosts, dtype=np.bool_)
    assert np.all(np.diag(p.time_per_unit) == 0)
    assert np.all(p.startup == np.where(between, 0.5, 0.0))
    assert np.array_equal(p.time_per_unit, p.time_per_unit.T)
    bandwidth = 1 / p.time_per_unit[between]
    assert np.all(np.abs(bandwidth / 10.0 - 1) <= spread / 2 + 1e-9)
    assert p.present(0.0).all()


def test_billing_units_and_prices_of_transfers() -> None:
    free = generate_platform(6, cores=2, bandwidth_spread=1.0, seed=5)
    assert not free.billing.any()
    assert not free.link_price.any()
    paid = generate_platform(
        6, cores=2, bandwidth_spread=1.0, seed=5, billing=3600, transfer_price=0.01
    )
    assert paid.billing.tolist() == [3600] * 6
    assert np.array_equal(paid.link_price, 0.01 * ~np.eye(3, dtype=np.bool_))
    assert paid.network.price == 0.01
    for name in ("speed", "price", "time_per_unit"):  # the rest is as it was
        assert np.array_equal(getattr(paid, name), getattr(free, name))
    back = load_platform(platform_to_dict(paid))
    assert np.array_equal(back.billing, paid.billing)
    assert np.array_equal(back.link_price, paid.link_price)
    joined = generate_platform(
        2, join_every=5, join_share=1, join_until=5, billing=60, transfer_price=2
    )
    assert joined.billing.tolist() == [60] * 4
    assert joined.link_price[0].tolist() == [0, 2, 2, 2]


def test_means() -> None:
    p = generate_platform(2000, heterogeneity=1.0, bandwidth_spread=1.0, bandwidth=4.0)
    assert p.speed.mean() == pytest.approx(1.0, rel=0.03)
    assert p.speed.std() == pytest.approx(1 / np.sqrt(12), rel=0.05)
    links = p.time_per_unit[np.triu_indices(2000, 1)]
    assert (1 / links).mean() == pytest.approx(4.0, rel=0.01)
    assert np.corrcoef(p.speed, p.price)[0, 1] > 0.9


def test_cores_of_a_host_are_alike_and_one_core_is_its_own_host() -> None:
    p = generate_platform(6, cores=3)
    assert p.host_names == ("h0", "h1")
    assert len(set(p.speed[:3])) == len(set(p.price[:3])) == 1
    assert generate_platform(3).host_names == ("p0", "p1", "p2")


def test_without_spread_every_link_is_the_network() -> None:
    p = generate_platform(5, bandwidth=3.0, heterogeneity=0, price_noise=0)
    between = ~np.eye(5, dtype=np.bool_)
    assert np.all(p.time_per_unit[between] == p.network.time_per_unit)
    assert np.all(p.speed == 1.0)
    assert np.all(p.price == 1.0)


def test_costs_per_processor_fit_a_generated_platform() -> None:
    workflow = generate("gaussian", processors=4)
    cost = Estimates.declared(workflow, generate_platform(4)).cost
    assert np.array_equal(cost[:, 2], workflow.processor_cost["p2"])
