"""The default strategy: machines that come and go are used, and only plans that pay are taken."""

from __future__ import annotations

import numpy as np
import pytest

from foreplan import registry
from foreplan.checks.schedules import check_schedule
from foreplan.errors import InputError
from foreplan.model import Estimates, Item, Platform, Processor, Schedule, Situation, Workflow
from foreplan.model.events import Event, ProcessorGone, ProcessorJoined, ProcessorLeaving
from foreplan.scheduling.slack import staying
from foreplan.simulation.reality import Reality
from simulation.worlds import Case, random_case
from twins.situations import random_situation
from twins.staying import slow_staying


def alike(n: int, processors: list[Processor], changes: list[Event]) -> Case:
    """Independent tasks of 2 s, which take just that."""
    workflow = Workflow.from_items("w", [f"t{i}" for i in range(n)], [2.0] * n, [])
    platform = Platform.build(processors)
    return Case(workflow, platform, Reality(Estimates.declared(workflow, platform).cost, changes))


def test_processors_that_join_are_used() -> None:
    processors = [Processor("p0"), *(Processor(f"p{i}", joins=1.0) for i in (1, 2, 3))]
    case = alike(8, processors, [ProcessorJoined(i, 1.0) for i in (1, 2, 3)])
    assert case.run("slack").makespan == 16.0
    assert case.run("adaptive").makespan == 5.0


def test_a_processor_that_returns_is_used() -> None:
    changes = [ProcessorGone(1, 1.0), ProcessorJoined(1, 4.0)]
    case = alike(8, [Processor("p0"), Processor("p1")], changes)
    assert case.run("slack").makespan == 16.0
    run = case.run("adaptive")
    assert run.makespan == 10.0
    assert [(e.reason, e.forced, e.taken) for e in run.evaluations] == [
        ("p1 gone", True, True),
        ("p1 joined", False, True),
    ]


def test_what_leaves_is_left_in_time() -> None:
    """Once it is announced, nothing is planned there that could not be done."""
    case = alike(8, [Processor("p0"), Processor("p1")], [ProcessorLeaving(1, 1.0, 5.0)])
    run = case.run("adaptive", by_events=True)
    assert (run.attempts.end == 1).all()  # none was cut short
    assert run.makespan == 12.0


@pytest.mark.parametrize(("margin", "taken"), [("0", True), ("0.1", True), ("0.2", False)])
def test_a_plan_must_save_more_than_the_margin(margin: str, taken: bool) -> None:
    """At 15 b is done, 5 late, and q has 8 to do; with one task of 4 on p from 18 on it is 7."""
    cost = [10.0, 10.0, 4.0, 4.0, 4.0, 4.0]
    workflow = Workflow.from_items("w", ["a", "b", "c", "d", "e", "f"], cost, [])
    platform = Platform.build([Processor("p"), Processor("q")])
    work = Estimates.declared(workflow, platform).cost.copy()
    work[1] += 5.0
    run = Case(workflow, platform, Reality(work)).run(f"adaptive[margin={margin}]")
    [evaluation] = run.evaluations
    assert (evaluation.time, evaluation.makespan, evaluation.projected) == (15.0, 22.0, 23.0)
    assert evaluation.taken == taken
    assert run.makespan == (22.0 if taken else 23.0)


def test_a_plan_that_is_not_taken_is_not_asked_for_again() -> None:
    """On one processor nothing can be gained: the late start counts once, not for all after it."""
    n = 10
    items = [Item(0.0, i, [i + 1]) for i in range(n - 1)]
    workflow = Workflow.from_items("w", [f"t{i}" for i in range(n)], [1.0] * n, items)
    platform = Platform.build([Processor("p")])
    work = Estimates.declared(workflow, platform).cost.copy()
    work[2] += 0.5
    run = Case(workflow, platform, Reality(work)).run("adaptive")
    assert [(e.reason, e.taken) for e in run.evaluations] == [("late start of t3", False)]
    assert run.evaluations[0].projected == run.makespan == n + 0.5


@pytest.mark.parametrize(("early", "makespan"), [(8.0, 14.0), (0.015, 18.0)])
def test_what_a_task_leaves_over_is_used(early: float, makespan: float) -> None:
    """No start is late, but p is free before its time: by more than the margin, or by less."""
    cost = [10.0, 10.0, 4.0, 4.0, 4.0, 4.0]
    workflow = Workflow.from_items("w", ["a", "b", "c", "d", "e", "f"], cost, [])
    platform = Platform.build([Processor("p"), Processor("q")])
    work = Estimates.declared(workflow, platform).cost.copy()
    work[0] -= early
    run = Case(workflow, platform, Reality(work)).run("adaptive")
    assert run.makespan == makespan
    reasons = [(e.reason, e.taken) for e in run.evaluations]
    assert reasons == ([("a was off its estimate", True)] if makespan < 18 else [])


def test_plans_that_are_taken_end_earlier() -> None:
    taken = kept = 0
    for seed in range(30):
        for e in random_case(seed).run("adaptive").evaluations:
            if not e.forced and e.taken and e.projected < np.inf:
                assert e.makespan <= e.projected - 0.0019 * (e.projected - e.time)
            taken += e.taken and not e.forced
            kept += not e.taken
    assert taken > 10
    assert kept > 10


@pytest.mark.parametrize("spec", ["adaptive[margin=1]", "adaptive[margin=-0.1]"])
def test_wrong_options(spec: str) -> None:
    with pytest.raises(InputError, match="must be 0 or more"):
        registry.strategy(spec)


def equals(rng: np.random.Generator) -> Situation:
    """A moment in a run on two hosts with equal processors."""
    base = random_situation(rng, n_processors=5, changes=False)
    hosts = ["a", "a", "a", "b", "b"]
    platform = Platform.build([Processor(f"p{i}", h) for i, h in enumerate(hosts)])
    cost = np.repeat(base.estimates.cost[:, :1], 5, axis=1)
    return Situation(base.workflow, platform, Estimates(cost), base.now, base.attempts)


def test_staying_is_as_good_and_moves_less() -> None:
    """The times are the same; a plan with equal processors exchanged is the plan itself."""
    moved = stayed = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        situation = equals(rng)
        current, candidate = (registry.planner(p).plan(situation) for p in ("heft", "dls"))
        kept = staying(candidate, current, situation)
        check_schedule(kept, situation)
        assert kept.processor.tolist() == slow_staying(candidate, current, situation)
        assert (kept.start == candidate.start).all()
        host = situation.platform.host
        assert (host[kept.processor] == host[candidate.processor]).all()
        moved += int(np.count_nonzero(candidate.processor != current.processor))
        stayed += int(np.count_nonzero(kept.processor != current.processor))
        if len(situation.attempts.task) == 0:
            exchanged = Schedule(
                "x", situation.workflow, situation.platform,
                np.array([2, 0, 1, 4, 3])[current.processor], current.start, current.finish,
            )  # fmt: skip
            same = staying(exchanged, current, situation)
            assert (same.processor == current.processor).all()
    assert stayed < 0.8 * moved
