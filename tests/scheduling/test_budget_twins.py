"""LOSS and GAIN give what their slow, obvious twins give, to the letter and carefully."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan import registry
from foreplan.checks.schedules import check_schedule
from foreplan.errors import UnaffordableError
from foreplan.generators import generate, generate_platform
from foreplan.model import Schedule, Situation
from repeated import examples, repetitions
from twins import hbmct, heft
from twins.budget import Shop, Unaffordable, gain, loss, makespan
from twins.priced import between, priced, with_prices
from twins.situations import random_situation

STARTS = {"heft": heft, "hbmct": hbmct}
FAMILIES: dict[str, dict[str, Any]] = {
    "fft": {"points": 8},
    "fork-join": {"stages": 4, "width": 6},
    "laplace": {"size": 6},
    "random_layered": {"tasks": 40},
}
names = st.sampled_from(["loss1", "loss2", "loss3", "gain1", "gain2", "gain3"])
every_name = pytest.mark.parametrize("name", ["loss1", "loss2", "loss3", "gain1", "gain2", "gain3"])
both_ways = pytest.mark.parametrize("faithful", [True, False])


def budget_of(situation: Situation, start: str, k: float) -> float:
    """So far between the cheapest assignment's cost and that of the start."""
    shop = Shop(situation)
    return between(shop.bill(shop.cheapest()), shop.bill(STARTS[start](situation)), k)


def planned(name: str, start: str, faithful: bool, budget: float, situation: Situation) -> Schedule:
    spec = f"{name}[start={start},faithful={str(faithful).lower()},budget={budget!r}]"
    schedule = registry.planner(spec).plan(situation)
    check_schedule(schedule, situation)
    return schedule


def compare(
    name: str, start: str, faithful: bool, k: float, situation: Situation, exact: bool = True
) -> Schedule:
    """The planner's schedule, which is the twin's."""
    budget = budget_of(situation, start, k)
    family, variant = name[:4], int(name[4])
    twin = {"loss": loss, "gain": gain}[family](situation, variant, budget, STARTS[start], faithful)
    ours = planned(name, start, faithful, budget, situation)
    tasks = range(situation.workflow.n_tasks)
    assert ours.processor.tolist() == [twin[t][0] for t in tasks]
    bill, end = Shop(situation).bill(twin), makespan(twin)
    if exact:
        assert ours.finish.tolist() == [twin[t][2] for t in tasks]
        assert (ours.cost, ours.makespan) == (bill, end)
    else:
        np.testing.assert_allclose(ours.finish, [twin[t][2] for t in tasks], rtol=1e-9)
        assert (ours.cost, ours.makespan) == pytest.approx((bill, end), rel=1e-9)
    return ours


@settings(max_examples=examples(120), deadline=None)
@given(
    name=names,
    start=st.sampled_from(sorted(STARTS)),
    faithful=st.booleans(),
    k=st.integers(0, 8),
    situation=priced(),
)
def test_same_as_twin(name: str, start: str, faithful: bool, k: int, situation: Situation) -> None:
    compare(name, start, faithful, k / 8, situation)


@every_name
@both_ways
def test_same_as_twin_on_larger_graphs(name: str, faithful: bool) -> None:
    seen: Counter[str] = Counter()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        start = ("heft", "hbmct")[seed % 2]
        situation = random_situation(
            rng, int(rng.integers(6, 16)), int(rng.integers(2, 5)), exact=True, changes=False,
            at_start=seed % 3 > 0,
        )  # fmt: skip
        situation = with_prices(situation, rng)
        ours = compare(name, start, faithful, (seed % 7 + 0.5) / 7, situation)
        other = {t: p for t, (p, _, _) in STARTS[start](situation).items()}
        shop = Shop(situation)
        cheap = {t: p for t, (p, _, _) in shop.cheapest().items()}
        mine = dict(enumerate(ours.processor.tolist()))
        seen["between"] += mine not in (other, cheap)
    assert seen["between"] > 3  # else nothing was decided


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("start", STARTS)
@every_name
@both_ways
def test_same_as_twin_on_the_paper_s_graphs(
    family: str, start: str, name: str, faithful: bool
) -> None:
    for seed in repetitions(1):
        k = (0.1, 0.5, 0.9)[(seed + int(name[-1])) % 3]
        workflow = generate(family, seed, processors=3, beta=1.0, **FAMILIES[family])
        platform = generate_platform(3, heterogeneity=1.0, price_noise=1.0, seed=seed)
        situation = Situation.at_start(workflow, platform)
        compare(name, start, faithful, k, situation, exact=False)


@settings(max_examples=60, deadline=None)
@given(
    name=names,
    start=st.sampled_from(sorted(STARTS)),
    faithful=st.booleans(),
    share=st.sampled_from([0.0, 0.5, 0.875]),
    situation=priced(),
)
def test_what_nobody_can_afford(
    name: str, start: str, faithful: bool, share: float, situation: Situation
) -> None:
    shop = Shop(situation)
    least = shop.bill(shop.cheapest())
    budget = least * share
    if least == 0:
        return
    twin = {"loss": loss, "gain": gain}[name[:4]]
    with pytest.raises(Unaffordable):
        twin(situation, int(name[4]), budget, STARTS[start], faithful)
    with pytest.raises(UnaffordableError) as caught:
        planned(name, start, faithful, budget, situation)
    assert (caught.value.budget, caught.value.cost) == (budget, least)
    assert caught.value.cheapest.cost == least
    check_schedule(caught.value.cheapest, situation)
