"""Variance: what wakes AHEFT when durations and speeds are off, and what does not."""

from __future__ import annotations

import pytest

from foreplan import registry
from foreplan.arrays import BoolArray
from foreplan.engine.coordinator import Coordinator
from foreplan.model import Run
from foreplan.model.events import Event, NewPlan, Replan
from simulation.adapting import AVAILABILITY, FINISHED, case_of, checked_run, comes_to, made, plain


def reasons(run: Run) -> list[str]:
    return [e.reason for e in run.evaluations]


@pytest.mark.parametrize(("factor", "threshold", "woken"), [
    (1.19, 0.2, False), (1.21, 0.2, True), (0.81, 0.2, False), (0.79, 0.2, True),
    (1.6, 0.5, True), (1.4, 0.5, False), (1.01, 0.0, True), (3.0, 1e9, False),
    (3.0, float("inf"), False),
])  # fmt: skip
def test_durations_off_their_estimate(factor: float, threshold: float, woken: bool) -> None:
    workflow = made([10, 16, 16, 16], [(0, 1, 1)])
    case = case_of(workflow, plain(1, 1), factors=[factor, 1, 1, 1])
    run, _ = checked_run(case, f"aheft[threshold={threshold}]")
    assert ("t0 was off its estimate" in reasons(run)) == woken
    assert len(run.evaluations) == woken
    if woken:
        assert run.evaluations[0].time == 10 * factor


def test_a_late_task_lets_the_others_be_planned_around_it() -> None:
    """t0 takes five times as long; what would follow it on p0 goes to p1."""
    workflow = made([10, 10, 10, 10, 10, 10])
    case = case_of(workflow, plain(1, 1), factors=[3, 1, 1, 1, 1, 1])
    run, _ = checked_run(case)
    assert case.run("static").makespan == 50
    assert run.makespan == 40
    assert run.evaluations[0].taken


def test_nothing_starts_before_the_policy_is_asked() -> None:
    """t0 ends at 5, not at 10. By the old plan t1 would follow it; by a new one t2, which pays."""
    workflow = made({"p0": [10, 18, 20, 99], "p1": [99, 18, 20, 8]})
    run, _ = checked_run(case_of(workflow, plain(1, 1), factors=[0.5, 1, 1, 1]))
    (evaluation,) = run.evaluations
    assert (evaluation.projected, evaluation.makespan, evaluation.taken) == (28, 26, True)
    assert comes_to(run) == {
        "p0": [("t0", 0, 5), ("t2", 5, 25)],
        "p1": [("t3", 0, 8), ("t1", 8, 26)],
    }


def speeds(*changes: tuple[float, float], spec: str = "aheft[threshold=0.2]") -> Run:
    """Two processors, p0 with these availabilities from these times on; tasks of 100."""
    events = [AVAILABILITY.of(0, time, value) for time, value in changes]
    # durations are not off: work is, not time
    run, _ = checked_run(case_of(made([100.0] * 6), plain(1, 1), events), spec)
    return run


@pytest.mark.parametrize(("changes", "times"), [
    ([(10, 0.81)], []),
    ([(10, 0.79)], [10]),
    ([(10, 0.9), (20, 0.85), (30, 0.79)], [30]),  # small ones that add up
    ([(10, 0.79), (20, 0.7), (30, 0.62)], [10, 30]),  # each beside what was reckoned with
    ([(10, 0.5), (20, 0.55), (30, 0.61)], [10, 30]),
    ([(10, 0.5), (20, 0.5), (30, 1.0)], [10, 30]),
    ([(10, 0.0), (20, 0.001), (30, 1.0)], [10, 20, 30]),
    ([(10, 1.0)], []),
])  # fmt: skip
def test_speeds_off_what_was_reckoned_with(
    changes: list[tuple[float, float]], times: list[float]
) -> None:
    run = speeds(*changes)
    assert [e.time for e in run.evaluations] == times
    assert set(reasons(run)) <= {"p0 changed its speed"}


def test_the_thresholds_of_speeds() -> None:
    assert len(speeds((10, 0.999), spec="aheft[threshold=0.0005]").evaluations) == 1
    assert speeds((10, 1.0), spec="aheft[threshold=0]").evaluations == ()
    assert speeds((10, 0.01), spec="aheft[threshold=1e9]").evaluations == ()
    assert speeds((10, 0.4), spec="aheft[threshold=0.5]").evaluations[0].time == 10


def test_an_evaluation_for_another_reason_counts_anew() -> None:
    """At 15 p1 joins and the plan is made with 0.85; 0.75 is not off that by a fifth."""
    events = [AVAILABILITY.of(0, 10.0, 0.85), AVAILABILITY.of(0, 20.0, 0.75)]
    case = case_of(made([100.0] * 6), plain(1, 1, joins={1: 15.0}), events)
    run, _ = checked_run(case)
    assert reasons(run)[0] == "p1 joined"
    assert [e.time for e in run.evaluations] == [15]


def test_a_slow_processor_is_planned_around() -> None:
    """p0 is worth a tenth from 10 on: what has not begun there goes to p1."""
    case = case_of(made([100.0] * 6), plain(1, 1), [AVAILABILITY.of(0, 10.0, 0.1)])
    assert case.run("static").makespan == 10 + 900 + 2000
    run, _ = checked_run(case)
    assert run.evaluations[0].taken
    assert comes_to(run)["p0"] == [(comes_to(run)["p0"][0][0], 0, 910)]
    assert run.makespan == 910


# Known faults ----------------------------------------------------------------------------------


def test_rounding_is_no_variance() -> None:
    costs = [0.1 * (i + 1) for i in range(12)]
    run = case_of(made(costs), plain(1, 1)).run("aheft[threshold=0]")
    assert run.evaluations == ()


@pytest.mark.parametrize("changes", [[], [AVAILABILITY.of(0, 5.0, 0.5)]])
def test_no_evaluation_when_all_has_begun(changes: list[Event]) -> None:
    factors = None if changes else [2.0]
    run = case_of(made([10.0]), plain(1), changes, factors).run("aheft")
    assert run.evaluations == ()


def test_variance_while_it_rests_is_looked_at_later() -> None:
    """Real planning takes time: here a second, so it rests until 50; p0 slows down at 10."""
    case = case_of(made([100.0] * 6), plain(1, 1))
    policy, planner = registry.strategy("aheft")
    assert planner is not None
    coordinator = Coordinator(case.workflow, case.platform, case.estimates, policy, rest=50.0)
    (start,) = coordinator.begin()
    assert isinstance(start, Replan)
    plan = planner.plan(coordinator.situation())
    coordinator.handle(NewPlan(0.0, start.version, plan, seconds=1.0))
    assert coordinator.handle(AVAILABILITY.of(0, 10.0, 0.1)) == []
    commands = coordinator.handle(FINISHED.of(1, 100.0))
    assert isinstance(commands[-1], Replan)


def test_variance_while_it_rests_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every task takes twice its time; who waits, and for whom, is found out once for a plan."""
    scans, waiting = 0, Coordinator.waiting

    def scan(coordinator: Coordinator) -> BoolArray:
        nonlocal scans
        scans += 1
        return waiting(coordinator)

    n = 200
    case = case_of(made([1.0] * n), plain(1))
    policy, planner = registry.strategy("aheft")
    coordinator = Coordinator(case.workflow, case.platform, case.estimates, policy, rest=1e6)
    (start,) = coordinator.begin()
    assert isinstance(start, Replan)
    assert planner is not None
    plan = planner.plan(coordinator.situation())
    coordinator.handle(NewPlan(0.0, start.version, plan, seconds=1.0))
    monkeypatch.setattr(Coordinator, "waiting", scan)
    for k in range(n):
        commands = coordinator.handle(FINISHED.of(k, 2.0 * (k + 1)))
        assert not any(isinstance(command, Replan) for command in commands)
    assert coordinator.done
    assert scans <= 1
