"""Announced leaves: nothing new is begun that cannot be done in time, and what can is."""

from __future__ import annotations

import numpy as np
import pytest

from foreplan import registry
from foreplan.contracts import Planner
from foreplan.engine.check_state import IllegalEventError
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import answered
from foreplan.errors import PlanningError
from foreplan.model import ENDS, Item, Link, Platform, Processor, Run, Workflow
from foreplan.model.events import Event, NewEstimates, NewPlan, Replan
from model.told import what, whom
from repeated import repetitions
from simulation.adapting import (
    GONE,
    JOINED,
    LEAVING,
    case_of,
    comes_to,
    leaving,
    made,
    plain,
)
from simulation.worlds import Case, same_record, specs

ALL = specs(["heft"])
FAILED = ENDS.index("failed")


def both_gears(case: Case, spec: str) -> Run:
    run = case.run(spec)
    same_record(run, case.run(spec, by_events=True))
    return run


def leave(p: int, announced: float, gone: float) -> list[Event]:
    return [LEAVING.of(p, announced, gone), GONE.of(p, gone)]


def announcements(case: Case) -> list[Event]:
    return [e for e in case.reality.changes if type(e) is LEAVING]


@pytest.mark.parametrize("spec", ALL)
def test_nothing_starts_after_the_leave(spec: str) -> None:
    for seed in repetitions(4):
        case = leaving(seed, exact=seed % 2 == 0)
        log = both_gears(case, spec).attempts
        for e in announcements(case):
            there = log.processor == whom(e)
            assert (log.start[there] < max(what(e), e.time) + 1e-12).all()
            assert (log.finish[there] <= what(e) + 1e-9).all()


@pytest.mark.parametrize("spec", ["aheft", "aheft[planner=dls]", "min-min"])
def test_what_is_begun_after_the_announcement_is_done_in_time(spec: str) -> None:
    """As estimated: only what ran when the leave was announced can be lost with the machine."""
    begun_later = 0
    for seed in range(40):
        case = leaving(seed)
        run = both_gears(case, spec)
        log = run.attempts
        for e in announcements(case):
            later = (log.processor == whom(e)) & (log.start > e.time)
            begun_later += int(later.sum())
            if spec != "min-min":  # there, what waits in the queue when it is announced stays
                assert not (log.end[later] == FAILED).any()
    assert begun_later > 5


def test_a_leaver_is_used_as_long_as_that_pays() -> None:
    """p1 announces at 5 that it goes at 35: it does two tasks more, and p0 the rest."""
    case = case_of(made([10.0] * 8), plain(1, 1), leave(1, 5.0, 35.0))
    run = both_gears(case, "aheft")
    assert [row[1:] for row in comes_to(run)["p1"]] == [(0, 10), (10, 20), (20, 30)]
    assert run.makespan == 50
    (evaluation,) = run.evaluations[:1]
    assert (evaluation.reason, evaluation.projected) == ("p1 leaving", np.inf)
    assert (evaluation.makespan, evaluation.taken, evaluation.forced) == (50, True, False)
    assert not (run.attempts.end == FAILED).any()
    static = both_gears(case, "static")
    assert (static.attempts.end == FAILED).sum() == 1  # it learns by losing one


def test_a_leave_that_changes_nothing_is_not_taken() -> None:
    case = case_of(made([10.0] * 4), plain(1, 1), leave(1, 5.0, 25.0))
    run = both_gears(case, "aheft")
    (evaluation,) = run.evaluations
    assert (evaluation.projected, evaluation.makespan, evaluation.taken) == (20, 20, False)
    assert run.makespan == 20


@pytest.mark.parametrize("spec", ALL)
def test_a_drained_processor_finishes_what_it_runs(spec: str) -> None:
    """From a time that has come: nothing new, but what runs is finished and nothing is lost."""
    edges = [(i, 5 + i % 3, 1.0) for i in range(5)]
    for announced, value in ((5.0, 5.0), (5.0, 2.0)):
        drained = [LEAVING.of(1, announced, value)]
        case = case_of(made([10.0] * 8, edges), plain(1, 1, 1), drained)
        run = both_gears(case, spec)
        assert [row[1:] for row in comes_to(run)["p1"]] == [(0, 10)]
        assert (run.attempts.end == ENDS.index("finished")).all()
        assert len(run.attempts.task) == 8
        assert not np.isinf(run.transfers.arrival).any()  # its results can still be read


@pytest.mark.parametrize("spec", ALL)
def test_a_task_of_no_time_does_not_start_on_a_drained_processor(spec: str) -> None:
    """It would end in time, at once; but nothing starts there any more."""
    workflow = made([10.0, 4.0, 0.0, 0.0], [(1, 2, 0.0), (1, 3, 0.0)])
    case = case_of(workflow, plain(1, 1), [LEAVING.of(1, 4.0, 4.0)])
    run = both_gears(case, spec)
    assert [start for _, start, _ in comes_to(run)["p1"]] == [0]
    assert run.makespan == 10


@pytest.mark.parametrize("spec", ALL)
def test_one_that_stays_longer_than_announced(spec: str) -> None:
    """It said 15 and is gone at 28: what it runs at 15 is finished, and nothing new begun."""
    changes = [LEAVING.of(1, 5.0, 15.0), GONE.of(1, 28.0)]
    run = both_gears(case_of(made([10.0] * 8), plain(1, 1), changes), spec)
    assert all(start < 15 for _, start, _ in comes_to(run)["p1"])
    assert (run.attempts.end == ENDS.index("finished")).all()


@pytest.mark.parametrize("spec", ALL)
def test_a_drained_processor_comes_back(spec: str) -> None:
    changes = [LEAVING.of(1, 5.0, 5.0), GONE.of(1, 12.0), JOINED.of(1, 30.0)]
    edges = [(0, i, 0.0) for i in range(4, 12)]  # so that something is ready later
    case = case_of(made([10.0] * 4 + [30.0] * 8, edges), plain(1, 1), changes)
    run = both_gears(case, spec)
    starts = [row[1] for row in comes_to(run)["p1"]]
    assert not any(5 < start < 30 for start in starts)
    if spec in ("fifo", "aheft[planner=heft]", "always[planner=heft]"):
        assert max(starts) >= 30
    if spec == "aheft[planner=heft]":
        assert run.evaluations[0].forced  # at 5: its queue had to go elsewhere
        assert [e.reason for e in run.evaluations if e.time == 30] == ["p1 joined"]


def test_a_leave_that_is_called_off_or_moved() -> None:
    """Announced for 20, then for 200, then not at all: each is evaluated."""
    changes = [
        LEAVING.of(1, 5.0, 20.0),
        LEAVING.of(1, 6.0, 200.0),
        LEAVING.of(1, 7.0, np.inf),
    ]
    case = case_of(made([10.0] * 8), plain(1, 1), changes)
    run = both_gears(case, "aheft")
    assert [(e.time, e.makespan) for e in run.evaluations] == [(5, 60), (6, 40), (7, 40)]
    assert [e.taken for e in run.evaluations] == [True, True, False]
    assert run.makespan == 40
    assert both_gears(case, "fifo").makespan == both_gears(case, "min-min").makespan == 40


def test_earlier_plans_keep_their_machines() -> None:
    """A plan is what it was: a leave that is announced later does not change it."""
    changes = [LEAVING.of(1, 5.0, 25.0), LEAVING.of(1, 6.0, 35.0)]
    run = case_of(made([10.0] * 8), plain(1, 1), changes).run("aheft")
    assert [plan.platform.leaves[1] for plan in run.plans][:2] == [np.inf, 25]


def test_min_min_prefers_what_ends_in_time() -> None:
    """p2 is five times as fast, but gone before anything would be done."""
    workflow = made([10.0, 10.0, 10.0], [(0, 1, 0.0), (0, 2, 0.0)])
    case = case_of(workflow, plain(1, 1, 5), leave(2, 1.0, 2.5))
    run = both_gears(case, "min-min")
    assert comes_to(run)["p2"] == [("t0", 0, 2)]
    assert not (run.attempts.end == FAILED).any()


# Plans that cannot be made ---------------------------------------------------------------------


def test_no_plan_fits_and_the_old_one_goes_on() -> None:
    """First p0 leaves, then p1 says so too; p0 is back long after."""
    changes = [*leave(0, 5.0, 15.0), *leave(1, 6.0, 16.0), JOINED.of(0, 100.0)]
    run = both_gears(case_of(made([10.0] * 6), plain(1, 1), changes), "aheft")
    told = [(e.time, e.forced, e.taken, e.makespan) for e in run.evaluations]
    assert told[:3] == [
        (5, False, True, 50),  # all on p1
        (6, False, False, np.inf),
        (15, False, False, np.inf),
    ]
    assert told[3:] == [(100, True, True, 140)]  # nobody was there at 16
    assert [row[1:] for row in comes_to(run)["p1"]] == [(0, 10), (10, 16)]


def following() -> tuple[Coordinator, Planner]:
    """Six tasks of 10 on two machines, the first two of which run."""
    case = case_of(made([10.0] * 6), plain(1, 1))
    policy, planner = registry.strategy("aheft")
    assert planner is not None
    coordinator = Coordinator(case.workflow, case.platform, case.estimates, policy)
    (start,) = coordinator.begin()
    assert isinstance(start, Replan)
    coordinator.handle(NewPlan(0.0, start.version, planner.plan(coordinator.situation())))
    return coordinator, planner


def test_a_planner_that_finds_nothing() -> None:
    """`answered`: none if the old plan can go on; if not, as if they stayed."""
    coordinator, planner = following()
    plan = coordinator.plan
    coordinator.handle(LEAVING.of(0, 1.0, 12.0))
    commands = coordinator.handle(LEAVING.of(1, 2.0, 13.0))
    (asked,) = commands
    assert isinstance(asked, Replan)
    with pytest.raises(PlanningError, match="before it leaves"):
        planner.plan(coordinator.situation())
    assert answered(planner, coordinator, asked) is None
    assert coordinator.handle(NewPlan(2.0, asked.version, None)) == []
    assert coordinator.plan is plan
    evaluation = coordinator.evaluations[-1]
    assert (evaluation.taken, evaluation.forced, evaluation.makespan) == (False, False, np.inf)
    coordinator.check_state()
    forced = coordinator.handle(GONE.of(0, 3.0))[-1]
    assert isinstance(forced, Replan)
    assert forced.forced
    schedule = answered(planner, coordinator, forced)
    assert schedule is not None
    assert set(schedule.processor.tolist()) == {1}  # p0 is gone, p1 is taken to stay
    assert schedule.makespan == 60
    coordinator.handle(NewPlan(3.0, forced.version, schedule))
    assert coordinator.plan is schedule
    coordinator.check_state()


def test_new_estimates_do_not_forget_who_leaves() -> None:
    """They come with the machines as they were found, which say nothing of it."""
    coordinator, planner = following()
    found = coordinator.platform
    coordinator.handle(LEAVING.of(1, 1.0, 12.0))
    (asked,) = coordinator.handle(NewEstimates(2.0, coordinator.estimates, found))
    assert isinstance(asked, Replan)
    assert asked.reason == "new estimates"
    assert coordinator.situation().platform.leaves.tolist() == [np.inf, 12]
    assert planner.plan(coordinator.situation()).processor.tolist().count(1) == 1  # which runs


def test_nothing_fits_from_the_start() -> None:
    platform = Platform.build([Processor("p0", leaves=5.0)])
    with pytest.raises(PlanningError, match="before it leaves"):
        case_of(made([10.0]), platform).run("aheft")


@pytest.mark.parametrize(("which", "value"), [(2, 5.0), (-1, 5.0), (1, np.nan)])
def test_announcements_that_cannot_be(which: int, value: float) -> None:
    coordinator, _ = following()
    with pytest.raises(IllegalEventError):
        coordinator.handle(LEAVING.of(which, 1.0, value))
    coordinator.handle(GONE.of(1, 1.0))
    with pytest.raises(IllegalEventError):
        coordinator.handle(LEAVING.of(1, 1.0, 5.0))  # it is not there


# Known faults ----------------------------------------------------------------------------------


@pytest.mark.parametrize("announced", [True, False])
def test_a_task_that_ends_when_its_processor_leaves(announced: bool) -> None:
    """A plan may end a task just then: it must not be lost."""
    workflow = made([10.0, 10.0])
    if announced:
        case = case_of(workflow, plain(1, 0.1), leave(0, 5.0, 20.0))
    else:
        case = case_of(
            workflow, Platform.build([Processor("p0", leaves=20.0), Processor("p1", speed=0.1)])
        )
    run = case.run("aheft")
    assert run.makespan == 20


@pytest.mark.xfail(strict=True, reason="plans count on results that go with their host")
def test_a_result_must_be_away_before_its_host_goes() -> None:
    """x ends on p at 10, but its result takes 5 to get to q, and p is gone at 11."""
    processors = [Processor("p", leaves=11.0), Processor("q")]
    columns = {"p": np.array([10.0, 99.0]), "q": np.array([20.0, 1.0])}
    workflow = Workflow.from_items("w", ["x", "y"], [np.nan] * 2, [Item(5.0, 0, [1])], columns)
    platform = Platform.build(processors, Link(1.0))
    run = case_of(workflow, platform).run("aheft")
    assert run.rewound == 0


@pytest.mark.xfail(strict=True, reason="what runs is expected to end though its machine leaves")
def test_a_running_task_that_cannot_end_in_time() -> None:
    """t0 needs until 100 on p0, which is gone at 20: what follows cannot begin at 100."""
    workflow = made({"p0": [100, 10], "p1": [150, 10]}, [(0, 1, 0.0)])
    run = case_of(workflow, plain(1, 1), leave(0, 10.0, 20.0)).run("aheft")
    assert run.evaluations[0].makespan >= run.makespan


@pytest.mark.parametrize("changes", [leave(1, 0.0, 0.0), [LEAVING.of(1, 5.0)]])
def test_a_leave_from_the_very_start_on(changes: list[Event]) -> None:
    """The time of a leave that is past may be any."""
    run = case_of(made([10.0] * 2), plain(1, 1), changes).run("aheft")
    assert run.makespan >= 10
