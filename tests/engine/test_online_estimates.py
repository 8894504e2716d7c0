"""Estimates that learn within a simulated run, from the finished tasks of a category."""

from __future__ import annotations

import numpy as np
import pytest

from foreplan.arrays import FloatArray
from foreplan.engine.online_estimates import differ_much
from foreplan.model import Estimates, Run, Workflow
from simulation.adapting import AVAILABILITY, case_of, made, plain
from simulation.worlds import Case, same_record


def bag(seed: int, sizes: dict[str, int], factor: float = 2.0, spread: float = 0.0) -> Case:
    """Independent tasks in random order on four machines; those of category `a` are off."""
    rng = np.random.default_rng(seed)
    kinds = [name for name, count in sizes.items() for _ in range(count)]
    kinds = [kinds[i] for i in rng.permutation(len(kinds))]
    workflow = made(rng.uniform(5, 15, len(kinds)).tolist(), categories=kinds)
    factors = [factor if kind == "a" else 1.0 for kind in kinds]
    noise = rng.uniform(1 - spread, 1 + spread, len(kinds))
    return case_of(workflow, plain(*rng.uniform(0.5, 2, 4)), factors=np.array(factors) * noise)


def of_category(case: Case, name: str) -> list[int]:
    return [t for t in range(case.workflow.n_tasks) if case.workflow.spec(t).category == name]


def is_nearer(learned: FloatArray, factor: float) -> bool:
    """Whether it has gone at least half of the way from 1 to the factor, and not far beyond."""
    way = np.log(learned) / np.log(factor)
    return bool((way > 0.5).all() and (way < 1.25).all())


def run_of(case: Case, spec: str = "aheft") -> Run:
    """Both gears alike, what they have learned included."""
    run, other = case.run(spec), case.run(spec, by_events=True)
    same_record(run, other)
    assert len(run.new_estimates) == len(other.new_estimates)
    for one, two in zip(run.new_estimates, other.new_estimates, strict=True):
        assert one.time == two.time
        np.testing.assert_array_equal(one.estimates.cost, two.estimates.cost)
    return run


@pytest.mark.parametrize("factor", [0.5, 2.0, 3.0])
def test_the_tasks_of_a_category_that_is_off(factor: float) -> None:
    for seed in range(4):
        case = bag(seed, {"a": 25, "b": 8}, factor)
        run = run_of(case)
        assert run.new_estimates
        learned = run.new_estimates[-1].estimates.cost / case.estimates.cost
        assert is_nearer(learned[of_category(case, "a")], factor)
        np.testing.assert_allclose(learned[of_category(case, "b")], 1.0, rtol=0.1)
        finished = run.attempts.finish.min()
        assert run.new_estimates[0].time >= finished
        assert any(e.reason.endswith("off its estimate; new estimates") for e in run.evaluations)


def test_with_noise_they_move_towards_it() -> None:
    for seed in range(4):
        case = bag(seed, {"a": 30}, 2.0, spread=0.25)
        run = run_of(case)
        learned = run.new_estimates[-1].estimates.cost / case.estimates.cost
        assert is_nearer(np.median(learned, axis=1), 2.0)


def test_learning_pays_on_average() -> None:
    """Who knows what is left plans it better; now and then luck is better still."""
    with_it, without = [], []
    for seed in range(12):
        case = bag(100 + seed, {"a": 24, "b": 12}, 3.0)
        with_it.append(run_of(case).makespan)
        without.append(case.run("aheft[learn=false]").makespan)
    assert np.mean(with_it) <= np.mean(without)
    assert with_it != without


def test_less_is_asked_once_it_is_known() -> None:
    """What takes twice as long is no surprise any more."""
    case = bag(7, {"a": 40})
    assert len(run_of(case).evaluations) < len(case.run("aheft[learn=false]").evaluations) * 0.6


def test_no_categories_no_new_estimates() -> None:
    case = case_of(made([10.0] * 12), plain(1, 1), factors=[2.0] * 12)
    run = run_of(case)
    assert run.new_estimates == ()
    assert len(run.evaluations) > 3
    alone = made([10.0] * 12, categories=[f"c{i}" for i in range(12)])
    assert run_of(case_of(alone, plain(1, 1), factors=[2.0] * 12)).new_estimates == ()


def test_as_estimated_there_is_nothing_to_learn() -> None:
    for seed in range(6):
        case = bag(seed, {"a": 12, "b": 12}, factor=1.0)
        for spec in ("aheft", "aheft[threshold=0]"):
            assert run_of(case, spec).new_estimates == ()


def test_asked_not_to_learn() -> None:
    case = bag(3, {"a": 30})
    assert run_of(case, "aheft[learn=false]").new_estimates == ()
    assert case.run("static").new_estimates == case.run("always").new_estimates == ()


def test_nobody_looks_into_the_future() -> None:
    """Nothing is learned before a task of the category has finished."""
    workflow = made([10.0] * 10, [(0, 1, 0.0)], categories=["b"] * 2 + ["a"] * 8)
    case = case_of(workflow, plain(1), factors=[1.5, 1.0] + [4.0] * 8)
    run = run_of(case)
    first = {k: run.attempts.finish[run.attempts.task == k].min() for k in range(10)}
    for new in run.new_estimates:
        learned = new.estimates.cost / case.estimates.cost
        if new.time < min(first[k] for k in range(2, 10)):
            assert learned[2:].max() < 2


def test_new_estimates_of_a_slow_machine() -> None:
    """Work counts, not time: a machine that is half as fast teaches nothing of the tasks."""
    workflow = made([10.0] * 8, categories=["a"] * 8)
    platform = plain(1, 1, joins={1: 60.0})  # so that somebody asks
    run = run_of(case_of(workflow, platform, [AVAILABILITY.of(0, 3.0, 0.5)]))
    assert (run.attempts.finish <= 60).sum() == 3
    assert [e.time for e in run.evaluations][:2] == [3, 60]
    assert run.new_estimates == ()


def test_much() -> None:
    old = Estimates(np.full((4, 2), 10.0))
    assert not differ_much(old, Estimates(old.cost * 1.05))
    assert differ_much(old, Estimates(old.cost * 1.3))
    assert differ_much(old, Estimates(old.cost / 1.3))
    assert differ_much(old, Estimates(np.full((4, 3), 10.0)))


@pytest.mark.parametrize("sizes", [{"a": 20, "b": 30}, {"a": 20, "b": 20, "c": 20}])
def test_a_category_of_less_than_half_of_the_tasks(sizes: dict[str, int]) -> None:
    case = bag(0, sizes, 2.0)
    run = run_of(case)
    assert run.new_estimates
    learned = run.new_estimates[-1].estimates.cost / case.estimates.cost
    assert is_nearer(learned[of_category(case, "a")], 2.0)
    np.testing.assert_allclose(learned[of_category(case, "b")], 1.0, rtol=0.1)


# Known faults ----------------------------------------------------------------------------------


def only_a(workflow: Workflow, at: float) -> Case:
    return case_of(workflow, plain(1), [AVAILABILITY.of(0, at, 0.5)])


def test_a_change_of_speed_after_the_finish() -> None:
    """t0 took 10 as estimated; that its machine slows down at 11 changes nothing about it."""
    run = run_of(only_a(made([10.0] * 3, categories=["a"] * 3), 11.0))
    assert run.new_estimates == ()
