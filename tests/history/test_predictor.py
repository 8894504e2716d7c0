"""The predictor's chain, link by link; what it says of itself; that it is fast and repeats."""

from __future__ import annotations

import time

import numpy as np
import pytest

from foreplan.formats import load
from foreplan.history.predictor import DEFAULT_SPREAD, Source, predict
from foreplan.history.records import NEWEST, History, categories_of
from foreplan.model import Estimates

from .samples import asked, bag, processors, task

NOTHING = History()


def test_categories() -> None:
    assert categories_of(bag(["align", None])) == ("align", "bag/t1")


def test_the_same_category_and_machine() -> None:
    records = History([task("a", "m0", s, at) for at, s in enumerate([9.0, 10.0, 11.0])])
    found = asked(bag(["a"]), ["m0"], records)
    assert found.estimates.cost == pytest.approx(np.array([[10.0]]))
    assert found.source.tolist() == [[Source.MEASURED]]
    assert not found.blind


def test_only_the_newest_records_count() -> None:
    old = [task("a", "m0", 50.0, at) for at in range(100)]
    new = [task("a", "m0", 2.0, 1000 + at) for at in range(NEWEST)]
    assert asked(bag(["a"]), ["m0"], History(new + old)).estimates.cost[0, 0] == pytest.approx(2.0)


def test_a_change_is_believed_after_half_of_those() -> None:
    records = History([task("a", "m0", 10.0, at) for at in range(100)])
    for _ in range(NEWEST // 2 + 1):
        records.observe("a", "m0", 20.0)
    assert asked(bag(["a"]), ["m0"], records).estimates.cost[0, 0] == pytest.approx(20.0)


def test_the_same_category_elsewhere_is_scaled_by_the_machines_speeds() -> None:
    # m1 takes three times as long as m0 for a and b; c was seen on m0 only
    times = {("a", "m0"): 1.0, ("a", "m1"): 3.0, ("b", "m0"): 5.0, ("b", "m1"): 15.0}
    records = History([task(c, m, s) for (c, m), s in times.items()] + [task("c", "m0", 7.0)])
    found = asked(bag(["c"]), ["m0", "m1"], records)
    assert found.estimates.cost[0] == pytest.approx([7.0, 21.0], rel=1e-3)
    assert found.source.tolist() == [[Source.MEASURED, Source.SCALED]]
    assert found.spread[0, 0] < found.spread[0, 1]


def test_a_machine_that_nobody_has_measured_is_as_it_is_declared() -> None:
    times = {("a", "m0"): 1.0, ("a", "m1"): 1.0, ("b", "m0"): 5.0, ("b", "m1"): 5.0}
    records = History([task(c, m, s) for (c, m), s in times.items()])
    found = asked(bag(["b"]), ["m0", "m1", "new"], records, speeds=[1, 1, 2])
    assert found.estimates.cost[0] == pytest.approx([5.0, 5.0, 2.5])
    assert found.source[0].tolist() == [Source.MEASURED, Source.MEASURED, Source.SCALED]
    assert found.spread[0, 2] > 0.5


def test_without_records_declared_costs_are_what_they_were() -> None:
    workflow = bag(["a", "b"], [4.0, np.nan], {"p0": [np.nan, 3.0], "p1": [np.nan, 8.0]})
    found = asked(workflow, ["m0", "m1"], NOTHING, speeds=[1, 2])
    plain = Estimates.declared(workflow, processors(2, [1, 2])).cost
    assert found.estimates.cost == pytest.approx(plain)
    assert (found.source == Source.DECLARED).all()
    assert not found.blind


def test_declared_costs_are_scaled_by_measured_speeds() -> None:
    times = {("a", "m0"): 1.0, ("a", "m1"): 4.0, ("b", "m0"): 5.0, ("b", "m1"): 20.0}
    records = History([task(c, m, s) for (c, m), s in times.items()])
    cost = asked(bag(["new"], [10.0]), ["m0", "m1"], records).estimates.cost[0]
    assert cost[1] / cost[0] == pytest.approx(4.0, rel=1e-3)
    assert np.sqrt(cost[0] * cost[1]) == pytest.approx(10.0, rel=1e-3)  # the level is as declared


def test_a_cost_declared_for_a_processor_is_not_scaled() -> None:
    times = {("a", "m0"): 1.0, ("a", "m1"): 4.0}
    records = History([task(c, m, s) for (c, m), s in times.items()])
    workflow = bag(["new"], [np.nan], {"p0": [14.0], "p1": [9.0]})
    assert asked(workflow, ["m0", "m1"], records).estimates.cost[0] == pytest.approx([14.0, 9.0])


def test_a_cost_declared_for_a_processor_is_better_than_an_unknown_speed() -> None:
    workflow = bag(["a"], [np.nan], {"p0": [14.0], "p1": [9.0]})
    found = asked(workflow, ["m0", "m1"], History([task("a", "m0", 13.0)]))
    assert found.estimates.cost[0] == pytest.approx([13.0, 9.0])
    assert found.source[0].tolist() == [Source.MEASURED, Source.DECLARED]


def test_declared_costs_in_other_units_are_brought_to_seconds() -> None:
    # three categories took ten times their declared cost: so will, probably, the fourth
    records = History([task(c, "m0", 10.0 * s) for c, s in zip("abc", (1, 2, 5), strict=True)])
    found = asked(bag(list("abcd"), [1, 2, 5, 3]), ["m0"], records)
    assert found.estimates.cost[:, 0] == pytest.approx([10, 20, 50, 30])
    assert found.source[3, 0] == Source.DECLARED
    two = asked(bag(list("abd"), [1, 2, 3]), ["m0"], records)  # two might be chance
    assert two.estimates.cost[2, 0] == pytest.approx(3)


def test_declared_costs_let_unlike_tasks_tell_of_machines() -> None:
    # every task is a category of its own, and was seen on one machine only
    costs = np.arange(1.0, 13.0)
    names = [f"c{i}" for i in range(12)]
    slow = {f"m{i}": 1.0 + 2 * i for i in range(2)}
    records = History(
        [task(n, f"m{i % 2}", costs[i] * slow[f"m{i % 2}"]) for i, n in enumerate(names)]
    )
    cost = asked(bag(names, list(costs)), ["m0", "m1"], records).estimates.cost
    assert cost == pytest.approx(costs[:, None] * np.array([1.0, 3.0]), rel=1e-3)


def test_a_run_of_unlike_tasks_tells_roughly_of_machines() -> None:
    # nothing is declared and no category repeats: then the typical task on each machine tells
    rng = np.random.default_rng(3)
    truth, slow = rng.uniform(0.1, 1, 200), np.array([0.25, 1.0, 4.0])
    where = rng.integers(3, size=200)
    records = History([task(f"bag/t{i}", f"m{p}", truth[i] * slow[p]) for i, p in enumerate(where)])
    cost = asked(bag([None] * 200), ["m0", "m1", "m2"], records).estimates.cost
    assert cost[:, 0] / cost[:, 1] == pytest.approx(0.25, rel=0.5)
    assert cost[:, 2] / cost[:, 1] == pytest.approx(4.0, rel=0.5)
    apart = [task(f"{'xyz'[p]}/t{i}", f"m{p}", truth[i] * slow[p]) for i, p in enumerate(where)]
    cost = asked(bag(["x/t0"]), ["m0", "m1", "m2"], History(apart)).estimates.cost
    assert cost[0] == pytest.approx([cost[0, 0]] * 3)  # three workflows on three machines do not


def test_a_default_is_what_the_other_tasks_take() -> None:
    records = History([task("a", "m0", 2.0), task("b", "m0", 4.0), task("c", "m0", 9.0)])
    found = asked(bag([*"abc", None]), ["m0"], records)
    assert found.estimates.cost[3, 0] == pytest.approx(4.0)
    assert found.source[3, 0] == Source.DEFAULT
    assert found.spread[3, 0] == DEFAULT_SPREAD


def test_blind() -> None:
    found = asked(bag([None] * 3), ["m0", "m1"], NOTHING)
    assert found.estimates.cost.tolist() == [[1.0, 1.0]] * 3
    assert found.blind
    assert found.origins() == ""
    times = {("a", "m0"): 1.0, ("a", "m1"): 4.0}
    found = asked(bag([None]), ["m0", "m1"], History([task(*k, s) for k, s in times.items()]))
    assert found.blind  # but speeds are known
    assert found.estimates.cost[0, 1] / found.estimates.cost[0, 0] == pytest.approx(4.0, rel=1e-3)


def test_counts_and_origins() -> None:
    records = History([task("a", "m0"), task("b", "elsewhere")])
    found = asked(bag(["a", "a", "b", "c", "d"], [np.nan] * 3 + [3.0, np.nan]), ["m0"], records)
    assert [n for n in found.counts().values() if n] == [2, 1, 1, 1]
    assert not found.blind
    assert found.origins() == (
        "2 measured here before, 1 measured on other machines, 1 by their declared cost, "
        "1 not measured yet"
    )


def test_processors_of_one_machine_are_alike() -> None:
    found = asked(bag(["a"]), ["m0", "m0"], History([task("a", "m0", 3.0)]))
    assert found.estimates.cost[0] == pytest.approx([3.0, 3.0])


def test_tasks_that_take_no_time() -> None:
    records = History([task("a", "m0", 0.0)] * 5)
    cost = asked(bag(["a", "b"], [0.0, 0.0]), ["m0", "m1"], records).estimates.cost
    assert (cost >= 0).all()
    assert (cost < 1e-3).all()


def test_wrong_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="one category"):
        predict(bag(["a"]), processors(2), ["m0"], ["a"], NOTHING)


def test_no_tasks() -> None:
    found = asked(bag([]), ["m0"], NOTHING)
    assert found.estimates.cost.shape == (0, 1)
    assert sum(found.counts().values()) == 0


def test_it_learns_as_it_goes_and_knows_what_it_would_have_read() -> None:
    rng = np.random.default_rng(1)
    seen = [(f"c{rng.integers(3)}", f"m{rng.integers(3)}", rng.uniform(1, 9)) for _ in range(200)]
    learnt, workflow, machines = History(), bag(["c0", "c1", "c2"]), ["m0", "m1", "m2"]
    for category, machine, seconds in seen:
        learnt.observe(category, machine, seconds)
        asked(workflow, machines, learnt)
    read = History([task(c, m, s, at) for at, (c, m, s) in enumerate(seen)])
    one, two = (asked(workflow, machines, h) for h in (learnt, read))
    assert one.estimates.cost.tolist() == two.estimates.cost.tolist()
    assert one.spread.tolist() == two.spread.tolist()


def test_many_tasks_are_fast() -> None:
    n, p, rng = 10_000, 64, np.random.default_rng(0)
    workflow = bag([f"bag/c{i}" if i % 2 else f"c{i % 50}" for i in range(n)])
    machines = [f"m{i}" for i in range(p)]
    categories = categories_of(workflow)
    records = History(
        [task(categories[rng.integers(n)], f"m{rng.integers(p)}", rng.uniform(1, 9), i, 5.0 * i)
         for i in range(20_000)]
    )  # fmt: skip
    platform, sizes = processors(p), rng.uniform(1, 1e5, n)
    predict(workflow, platform, machines, categories, records, sizes)
    records.observe("c0", "m0", 1.0)
    start = time.process_time()
    predict(workflow, platform, machines, categories, records, sizes)
    assert time.process_time() - start < 2  # about 0.3 s on a quiet machine


def test_estimates_keep_what_tasks_need() -> None:
    tasks = load({"tasks": {"a": {"memory": "1GB", "cores": 2}, "b": None}})
    found = asked(tasks, ["m0"], History())
    assert found.estimates.needs is not None
    assert found.estimates.needs.of("memory").tolist() == [1e9, 0.0]
    plain = asked(load({"tasks": {"a": None}}), ["m0"], History())
    assert plain.estimates.needs is None
