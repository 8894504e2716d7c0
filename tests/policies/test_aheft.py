"""AHEFT: woken by what changes, and a new plan only if it is expected to end earlier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from foreplan import registry
from foreplan.contracts import Verdict
from foreplan.engine.policies.planned import Aheft
from foreplan.errors import InputError
from foreplan.model import Item, Link, Platform, Processor, Situation, Workflow
from model.told import what
from simulation.adapting import (
    GONE,
    JOINED,
    case_of,
    checked_run,
    comes_to,
    first_plan,
    joining,
    leaving,
    made,
    plain,
)
from simulation.worlds import Case, random_case, same_record

# The sample of the paper (its graph is that of the HEFT paper); r4 joins at 15.
COST = {
    "r1": [14, 13, 11, 13, 12, 13, 7, 5, 18, 21],
    "r2": [16, 19, 13, 8, 13, 16, 15, 11, 12, 7],
    "r3": [9, 18, 19, 17, 10, 9, 11, 14, 20, 16],
    "r4": [14, 17, 14, 15, 14, 16, 15, 20, 13, 15],
}
EDGES = [
    (1, 2, 18), (1, 3, 12), (1, 4, 9), (1, 5, 11), (1, 6, 14), (2, 8, 19), (2, 9, 16),
    (3, 7, 23), (4, 8, 27), (4, 9, 23), (5, 9, 13), (6, 8, 15), (7, 10, 17), (8, 10, 11),
    (9, 10, 13),
]  # fmt: skip


def sample(joins: float = 15.0) -> Case:
    columns = {name: np.array(cost, dtype=np.float64) for name, cost in COST.items()}
    items = [Item(float(volume), a - 1, [b - 1]) for a, b, volume in EDGES]
    names = [f"n{i}" for i in range(1, 11)]
    workflow = Workflow.from_items("sample", names, [np.nan] * 10, items, columns)
    processors = [Processor("r1"), Processor("r2"), Processor("r3"), Processor("r4", joins=joins)]
    return case_of(workflow, Platform.build(processors, Link(1.0)))


@pytest.mark.parametrize("by_events", [False, True])
def test_the_papers_sample_keeps_its_plan(by_events: bool) -> None:
    run = sample().run("aheft", by_events)
    assert run.makespan == 80
    (evaluation,) = run.evaluations
    assert (evaluation.time, evaluation.reason) == (15, "r4 joined")
    assert evaluation.projected == 80
    assert evaluation.makespan >= 80
    assert (evaluation.taken, evaluation.forced) == (False, False)
    assert (run.considered, run.replans, run.migrations) == (1, 0, 0)
    assert "r4" not in comes_to(run)
    assert comes_to(run)["r3"] == [("n1", 0, 9), ("n3", 9, 28), ("n5", 28, 38), ("n7", 38, 49)]
    assert run.new_estimates == ()


def test_whenever_the_fourth_processor_joins() -> None:
    """It never makes it worse; at the start it is planned with."""
    assert max(sample(joins).run("aheft").makespan for joins in range(1, 81, 4)) == 80
    assert sample(80.5).run("aheft").evaluations == ()


def test_joins_at_every_kind_of_moment() -> None:
    """As estimated but for the joins: never worse than the plan that ignores them."""
    compared = taken = together = better = 0
    for seed in range(50):
        case = joining(seed)
        run, n = checked_run(case)
        joins = case.platform.joins[case.platform.joins > 0]
        within = np.unique(joins[joins < run.attempts.start.max()])  # there is something to plan
        assert {e.time for e in run.evaluations} >= set(within.tolist())
        assert run.considered == len({e.time for e in run.evaluations})
        assert run.makespan <= case.run("static").makespan * (1 + 1e-9)
        assert np.isin(run.attempts.end, [1]).all()  # no attempt is in vain
        assert not np.isinf(run.transfers.arrival).any()  # nothing on its way is cut
        compared, taken = compared + n, taken + run.replans
        together += len(joins) > len(np.unique(joins))
        better += run.makespan < case.run("static").makespan * (1 - 1e-9)
    assert compared > 40
    assert min(taken, together, better) > 5
    assert compared > taken + 5


@pytest.mark.parametrize("planner", ["dls", "peft", "hbmct", "min-min"])
def test_joins_with_other_planners(planner: str) -> None:
    for seed in range(100, 106):
        case = joining(seed)
        run, _ = checked_run(case, f"aheft[planner={planner}]")
        static = case.run(f"static[planner={planner}]")
        assert run.makespan <= static.makespan * (1 + 1e-9)


WORLDS: dict[str, Callable[[int], Case]] = {
    "leaving": leaving,
    "leaving, tied": lambda seed: leaving(seed, exact=True),
    "variance": lambda seed: random_case(seed, quiet=True),
    "speeds": lambda seed: random_case(seed, losses=False, stops=False),
    "losses": lambda seed: random_case(seed, stops=False),
    "everything": lambda seed: random_case(seed),
}


@pytest.mark.parametrize("kind", WORLDS)
def test_acceptance_in_any_world(kind: str) -> None:
    compared = taken = 0
    for seed in range(14):
        run, n = checked_run(WORLDS[kind](seed))
        compared, taken = compared + n, taken + run.replans
    assert compared > 15
    assert taken > 1


def test_the_new_plan_leaves_alone_what_is_on_its_way() -> None:
    """The item for t1 is half way to p1 when p2 joins: it is not sent again, nor cut."""
    workflow = made({"p0": [5, 60], "p1": [50, 40], "p2": [50, 20]}, [(0, 1, 10)])
    case = case_of(workflow, plain(1, 1, 1, joins={2: 10.0}))
    run = case.run("aheft")
    assert run.transfers.sent.tolist() == [5, 10]  # to p1, then to p2, from the join on
    assert run.transfers.arrival.tolist()[1] == 20
    assert run.transfers.arrival.tolist()[0] == 15
    (evaluation,) = run.evaluations
    assert (evaluation.projected, evaluation.makespan, evaluation.taken) == (55, 40, True)
    assert comes_to(run)["p2"] == [("t1", 20, 40)]
    # a join that comes with the item all but there does not pay
    case = case_of(workflow, plain(1, 1, 1, joins={2: 14.0}))
    (evaluation,) = case.run("aheft").evaluations
    assert (evaluation.projected, evaluation.makespan, evaluation.taken) == (55, 44, True)
    slow = made({"p0": [5, 60], "p1": [50, 40], "p2": [50, 35]}, [(0, 1, 10)])
    (evaluation,) = case_of(slow, plain(1, 1, 1, joins={2: 14.0})).run("aheft").evaluations
    assert (evaluation.projected, evaluation.makespan, evaluation.taken) == (55, 55, False)


def test_a_running_task_stays() -> None:
    """p1 would do t0 in a tenth of the time that is left of it."""
    workflow = made({"p0": [100, 5], "p1": [1, 9]}, [(0, 1, 0)])
    run = case_of(workflow, plain(1, 1, joins={1: 5.0})).run("aheft")
    assert comes_to(run) == {"p0": [("t0", 0, 100), ("t1", 100, 105)]}
    (evaluation,) = run.evaluations
    assert (evaluation.makespan, evaluation.projected, evaluation.taken) == (105, 105, False)


def test_a_join_at_the_moment_of_a_finish() -> None:
    """The finish is heard after the join: the task is expected to end now, and is not moved."""
    case = case_of(made([10, 10, 10], [(0, 1, 0), (0, 2, 0)]), plain(1, 1, joins={1: 10.0}))
    run, _ = checked_run(case)
    assert run.makespan == 20
    assert comes_to(run) == {
        "p0": [("t0", 0, 10), ("t1", 10, 20)],
        "p1": [("t2", 10, 20)],
    }


def test_a_join_after_the_end_or_before_anything() -> None:
    after = case_of(made([10, 10]), plain(1, 1, joins={1: 20.0}))
    run = after.run("aheft")
    assert run.makespan == 20
    late = case_of(made([10, 10]), plain(1, 1, joins={1: 20.5}))
    assert late.run("aheft").evaluations == ()
    early = case_of(made([10, 10]), plain(1, 1, joins={1: 1e-6}))
    assert early.run("aheft").makespan == pytest.approx(10 + 1e-6)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_simultaneous_joins_are_one_event(k: int) -> None:
    joins = dict.fromkeys(range(1, k + 1), 4.0)
    case = case_of(made([4.0] * 20), plain(*[1.0] * (k + 1), joins=joins))
    run, by_events = case.run("aheft"), case.run("aheft", by_events=True)
    same_record(run, by_events)
    (evaluation,) = run.evaluations
    assert (evaluation.time, evaluation.taken) == (4, True)
    assert (evaluation.makespan, evaluation.projected) == (4 + 4 * -(-19 // (k + 1)), 80)
    assert by_events.events is not None
    values = [what(e) for e in by_events.events if type(e) is JOINED]
    assert values == [1.0] * (k - 1) + [0.0]
    assert len(comes_to(run)) == k + 1
    assert all(row[0][1] == 4 for name, row in comes_to(run).items() if name != "p0")


@pytest.mark.parametrize("strategy", ["fifo", "min-min"])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_just_in_time_uses_all_that_join_together(strategy: str, k: int) -> None:
    """All but the first task are ready only later, or wait in its queue while p0 is busy."""
    edges = [(0, i, 0.0) for i in range(1, 13)] if strategy == "min-min" else []
    joins = dict.fromkeys(range(1, k + 1), 4.0)
    case = case_of(made([6.0] * 13, edges), plain(*[1.0] * (k + 1), joins=joins))
    run = case.run(strategy)
    same_record(run, case.run(strategy, by_events=True))
    rows = comes_to(run)
    assert len(rows) == k + 1
    begin = 4.0 if strategy == "fifo" else 6.0
    assert all(rows[f"p{i}"][0][1] == begin for i in joins)
    assert run.evaluations == ()


def test_two_joins_one_of_which_dies_then() -> None:
    """At one time p1 and p2 join and p0 dies: whatever the order, all is done."""
    platform = plain(1, 1, 1, joins={1: 4.0, 2: 4.0})
    case = case_of(made([4.0] * 9), platform, [GONE.of(0, 4.0)])
    run, _ = checked_run(case)
    assert run.makespan == 20  # t0 has just been done
    for strategy in ("fifo", "min-min"):
        same_record(case.run(strategy), case.run(strategy, by_events=True))


@pytest.mark.parametrize("threshold", ["-0.1", "nan", "-inf", "much", ""])
def test_thresholds_that_make_no_sense(threshold: str) -> None:
    with pytest.raises(InputError):
        registry.strategy(f"aheft[threshold={threshold}]")


@pytest.mark.parametrize("spec", ["aheft[learn=maybe]", "aheft[planner=none]", "aheft[limit=2]"])
def test_options_that_make_no_sense(spec: str) -> None:
    with pytest.raises(InputError):
        registry.strategy(spec)


def test_its_spec() -> None:
    policy, planner = registry.strategy("aheft[planner=dls,threshold=0.5,learn=no]")
    assert policy == Aheft("dls", 0.5, False)
    assert planner is not None
    assert planner.name == "dls"
    assert registry.strategy("aheft")[0] == Aheft("heft", 0.2, True)


def test_no_rounding_is_an_improvement() -> None:
    """Two equal machines: the other one is not better by a bit of rounding."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        costs = rng.uniform(0.1, 3, 5)
        edges = [(i, i + 1, float(rng.uniform(0, 1))) for i in range(4)]
        workflow = made(costs.tolist(), edges)
        when = float(rng.uniform(0, costs[:-1].sum()))
        run = case_of(workflow, plain(1, 1, joins={1: when})).run("aheft")
        assert run.replans == 0
        assert run.evaluations[0].makespan == pytest.approx(run.evaluations[0].projected)


@pytest.mark.parametrize(("shorter", "taken"), [
    (0.0, False), (1e-15, False), (1e-10, False), (1e-8, True), (0.5, True), (-1e-8, False),
])  # fmt: skip
def test_how_much_is_an_improvement(shorter: float, taken: bool) -> None:
    case = case_of(made([10.0, 20.0]), plain(1))
    plan = first_plan(case)
    situation = Situation.at_start(case.workflow, case.platform)
    candidate = replace(plan, finish=plan.finish * (1 - shorter))
    assert Aheft().accept(candidate, plan, situation) == Verdict(taken, projected=30.0)
    # what counts is what is expected now, not what the plan once said
    stale = replace(plan, finish=plan.finish * 0.1)
    assert Aheft().accept(candidate, stale, situation) == Verdict(taken, projected=30.0)
