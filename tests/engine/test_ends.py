"""When does what runs end? Whoever asks, and of whatever: the answer is one, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from engine.test_replay import _follow as follow
from foreplan import registry
from foreplan.ends import LEFT_THERE, STANDS_STILL, expected_end
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.kernels.posing import expected_arrival, expected_finish
from foreplan.model import Estimates
from repeated import repetitions
from simulation.worlds import random_case, specs


@pytest.mark.parametrize(
    ("done", "since", "rate", "now", "end"),
    [
        (0.0, 5.0, 1.0, 5.0, 15.0),
        (4.0, 5.0, 0.5, 6.0, 17.0),
        (4.0, 5.0, 0.5, 20.0, 20.0),  # overdue: it is expected to end now
        (4.0, 5.0, 0.0, 6.0, 606.0),  # it stands still, and goes on at the floor from now
        (4.0, 5.0, 0.004, 255.0, 755.0),  # what was done meanwhile counts
        (10.0, 5.0, 0.0, 20.0, 120.0),  # overdue where all stands still: a tenth is left
        (4.0, 5.0, 0.0, 0.0, 605.0),  # asked for a moment before it was known
    ],
)
def test_by_hand(done: float, since: float, rate: float, now: float, end: float) -> None:
    assert (STANDS_STILL, LEFT_THERE) == (0.01, 0.1)
    assert expected_end(10.0, done, since, rate, now, LEFT_THERE) == pytest.approx(end, rel=1e-15)


@pytest.mark.parametrize("spec", specs(["heft"]))
def test_state_situation_and_kernels_agree(spec: str) -> None:
    for seed in repetitions(3, 0.5):
        case = random_case(seed)
        strategy, planner = registry.strategy(spec)
        known = Estimates(case.reality.work) if spec.startswith("ideal") else case.estimates
        coordinator = Coordinator(case.workflow, case.platform, known, strategy)
        follow(coordinator, planner, coordinator.begin())
        for event in case.run(spec, by_events=True).events or ():
            follow(coordinator, planner, coordinator.handle(event))
            _agree(coordinator)


def _agree(coordinator: Coordinator) -> None:
    state, situation = coordinator.state, coordinator.situation()
    busy, ends = state.expected_ends(coordinator.now)
    runs = np.isnan(situation.attempts.finish)
    on, known = situation.attempts.processor[runs], situation.expected_finish()[runs]
    assert dict(zip(on.tolist(), known.tolist(), strict=True)) == dict(
        zip(busy.tolist(), ends.tolist(), strict=True)
    )
    arrays = state.arrays
    assert [expected_finish(arrays, arrays.running[p]) for p in busy] == ends.tolist()
    moving = [expected_arrival(arrays, transfer.number) for transfer in state.under_way()]
    assert moving == situation.transfers.arrival.tolist()
