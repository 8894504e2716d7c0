"""AHEFT's second plan, made as if nothing had been sent: against a slow reading, and in runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from foreplan import registry
from foreplan.checks.schedules import check_schedule
from foreplan.errors import PlanningError
from foreplan.model import Schedule, Situation
from foreplan.model.situation import Copies, Transfers
from foreplan.scheduling.projection import second_opinion
from simulation.worlds import random_case, same_record
from twins.heft import heft as slow_heft
from twins.partial_schedule import PartialSchedule, Placement
from twins.situations import random_situation


def followed(placed: dict[int, Placement], situation: Situation) -> float:
    """When a plan ends from now, task by task: each where it was put, as early as it can."""
    partial, position = PartialSchedule(situation), situation.workflow.position
    for task in sorted(partial.todo, key=lambda t: (*placed[t][1:], position[t])):
        partial.place_earliest(task, [placed[task][0]], insertion=False)
    return max(end for _, _, end in partial.placed.values())


def test_the_better_of_two() -> None:
    """The one that knows what was sent, or the one that does not, by another HEFT, if better."""
    rng, others = np.random.default_rng(4), 0
    for _ in range(150):
        situation = random_situation(rng)
        if situation.astray is not None and situation.astray.any():
            continue
        heft = registry.planner("heft")
        try:
            first = heft.plan(situation)
            forgetful = replace(situation, copies=Copies(), transfers=Transfers())
            slow = slow_heft(forgetful)
        except PlanningError:
            continue
        chosen = second_opinion(heft, situation, first)
        check_schedule(chosen, situation)
        assert chosen.makespan <= first.makespan
        others += chosen is not first
        try:
            ends = followed(slow, situation)
        except PlanningError:  # it cannot be followed before somebody leaves
            continue
        assert chosen.makespan == pytest.approx(min(first.makespan, ends))
    assert others > 3


@pytest.mark.parametrize("spec", ["aheft[learn=false]", "aheft", "aheft[second=false]"])
def test_both_gears_agree(spec: str) -> None:
    for seed in range(12):
        case = random_case(seed, stops=False)
        same_record(case.run(spec), case.run(spec, by_events=True))


def test_without_it_all_is_as_before() -> None:
    """Where nothing was sent there is nothing to forget: the second plan is not even made."""
    situation = random_situation(np.random.default_rng(1))
    empty = replace(situation, copies=Copies(), transfers=Transfers(), astray=None)
    first = registry.planner("heft").plan(empty)

    class Never:
        def plan(self, *_: object) -> Schedule:
            raise AssertionError

    assert second_opinion(Never(), empty, first) is first  # type: ignore[arg-type]
