"""Properties of predictions: spikes, units, the order of records, factors found again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.arrays import FloatArray
from foreplan.history.predictor import Prediction, Source
from foreplan.history.records import History, TaskRecord

from .samples import asked, bag, task

CATEGORIES, MACHINES = ["a", "b", "c", "w/d", "w/e"], ["m0", "m1", "m2", "m3"]
SECONDS = st.floats(1e-3, 1e4)


@st.composite
def some_records(draw: st.DrawFn) -> list[TaskRecord]:
    """Records of a few categories and machines; some have no size."""
    n = draw(st.integers(1, 60))
    sizes = st.one_of(st.just(float("nan")), st.floats(0, 1e9))
    return [
        task(
            draw(st.sampled_from(CATEGORIES)),
            draw(st.sampled_from(MACHINES)),
            draw(SECONDS),
            float(draw(st.integers(0, 30))),
            draw(sizes),
        )
        for _ in range(n)
    ]


def everything(records: list[TaskRecord]) -> Prediction:
    """All categories, one of them new, on all machines, one of them new; some with a size."""
    workflow = bag([*CATEGORIES, *CATEGORIES, "new"])
    sizes = np.array([np.nan] * 5 + [1e3, 1e5, 1e6, 1e7, 1e8] + [np.nan])
    return asked(workflow, [*MACHINES, "new"], History(records), sizes)


@given(some_records())
@settings(deadline=None)
def test_predictions_are_positive_numbers(records: list[TaskRecord]) -> None:
    found = everything(records)
    assert np.isfinite(found.estimates.cost).all()
    assert (found.estimates.cost > 0).all()
    assert np.isfinite(found.spread).all()
    assert (found.spread >= 0).all()


@given(some_records(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_records_of_one_age_does_not_matter(
    records: list[TaskRecord], random: np.random.Generator
) -> None:
    shuffled = list(records)
    random.shuffle(shuffled)
    one, two = everything(records), everything(shuffled)
    assert one.estimates.cost.tolist() == two.estimates.cost.tolist()
    assert one.spread.tolist() == two.spread.tolist()
    assert one.source.tolist() == two.source.tolist()


@given(some_records(), st.floats(0.1, 1000))
@settings(deadline=None)
def test_in_other_units_of_time_it_says_the_same(records: list[TaskRecord], unit: float) -> None:
    scaled = [task(r.category, r.machine, r.seconds * unit, r.at, float("nan")) for r in records]
    plain = [task(r.category, r.machine, r.seconds, r.at, float("nan")) for r in records]
    one, two = everything(plain), everything(scaled)
    assert two.estimates.cost == pytest.approx(one.estimates.cost * unit, rel=1e-3)
    assert two.spread == pytest.approx(one.spread, rel=1e-3, abs=1e-6)


@given(
    st.lists(st.floats(9, 11), min_size=4, max_size=30),
    st.floats(1e-3, 1e6),
    st.integers(0, 29),
)
@settings(deadline=None)
def test_one_wild_record_does_not_leave_the_others(
    usual: list[float], wild: float, position: int
) -> None:
    seconds = [*usual[:position], wild, *usual[position:]]
    records = History([task("a", "m0", s, at) for at, s in enumerate(seconds)])
    cost = asked(bag(["a"]), ["m0"], records).estimates.cost[0, 0]
    assert min(usual) <= cost * (1 + 1e-9)
    assert cost <= max(usual) * (1 + 1e-9)


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e4))
@settings(deadline=None, max_examples=40)
def test_one_wild_record_moves_no_estimate_by_much(seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    records, _ = measured(rng, spikes=0.0, noise=0.03, repeats=4)
    before = everything(records).estimates.cost[:5]
    hit = int(rng.integers(len(records)))
    old = records[hit]
    records[hit] = task(old.category, old.machine, old.seconds * factor, old.at)
    after = everything(records).estimates.cost[:5]
    assert np.abs(np.log(after / before)).max() < 0.08


def measured(
    rng: np.random.Generator, spikes: float, noise: float, repeats: int, share: float = 1.0
) -> tuple[list[TaskRecord], FloatArray]:
    """Records made of known factors of categories and machines, on a share of the pairs."""
    truth = np.outer(rng.uniform(0.5, 50, 5), 2 ** rng.uniform(-2, 2, 4))
    records: list[TaskRecord] = []
    for c, m in np.ndindex(5, 4):
        if (c + m) % 4 < 4 * share:
            for _ in range(repeats):
                wild = rng.uniform(5, 100) if rng.random() < spikes else 1.0
                seconds = float(truth[c, m]) * rng.lognormal(0, noise) * wild
                records.append(task(CATEGORIES[c], MACHINES[m], seconds, len(records)))
    return records, truth


@pytest.mark.parametrize("seed", range(10))
def test_factors_are_found_again(seed: int) -> None:
    # each category was seen on two machines of four; a tenth of the records is wild
    rng = np.random.default_rng(seed)
    records, truth = measured(rng, spikes=0.1, noise=0.03, repeats=9, share=0.5)
    found = everything(records)
    wrong = np.abs(np.log(found.estimates.cost[:5, :4] / truth))
    unseen = found.source[:5, :4] == Source.SCALED
    assert unseen.sum() == 10
    assert np.median(wrong[unseen]) < 0.03
    assert wrong.max() < 0.1


def test_the_spread_is_that_of_the_records() -> None:
    rng = np.random.default_rng(5)
    for noise in (0.05, 0.3):
        records = History([task("a", "m0", 10 * rng.lognormal(0, noise), at) for at in range(25)])
        assert asked(bag(["a"]), ["m0"], records).spread[0, 0] == pytest.approx(noise, rel=0.5)


def test_one_record_is_less_sure_than_many() -> None:
    records = [task("a", "m0", 10 + 0.1 * (at % 3), at) for at in range(9)]
    few = asked(bag(["a"]), ["m0"], History(records[:1])).spread[0, 0]
    many = asked(bag(["a"]), ["m0"], History(records)).spread[0, 0]
    assert few > 2 * many
