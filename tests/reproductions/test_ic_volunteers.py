"""The simulated volunteer platform: what is drawn, and what is run on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foreplan.checks.runs import check_run
from foreplan.model import Estimates
from foreplan_reproductions.ic.volunteers import (
    GENERATED,
    HORIZON,
    SLOWEST,
    STATIC,
    UNKNOWN,
    Stage,
    Volunteers,
    available,
    measured,
    real_names,
    stage_of,
)

CASE = Volunteers("w", 60, processors=12)
CHAIN = "tasks:\n  a: {cost: 3, outputs: [x]}\n  b: {cost: 5, inputs: [x]}\n"


def actual(stage: Stage) -> np.ndarray:
    factors = [stage.world.durations[name] for name in stage.workflow.task_names]
    return np.asarray(stage.workflow.base_cost * np.array(factors))


def test_estimates_are_wrong_but_the_world_stays() -> None:
    usual = stage_of(CASE)
    exact, unknown = (stage_of(replace(CASE, error=error)) for error in (1.0, UNKNOWN))
    for other in (exact, unknown):
        assert actual(other) == pytest.approx(actual(usual))
        assert other.span == usual.span
        assert other.world.failures == usual.world.failures
        assert np.array_equal(np.asarray(other.shares), np.asarray(usual.shares))
    assert set(exact.world.durations.values()) == {1.0}
    assert len(set(unknown.workflow.base_cost.tolist())) == 1
    factors = np.array(list(usual.world.durations.values()))
    assert 0.1 <= factors.min() < 0.5 < 2 < factors.max() <= 10


def test_volunteers_come_go_and_vary() -> None:
    stage = stage_of(replace(CASE, processors=200, seen=True))
    speeds = [v for trace in stage.world.availability.values() for _, v in trace]
    assert SLOWEST <= min(speeds) < 0.2
    assert 0.9 < max(speeds) <= 1
    assert 20 < np.count_nonzero(stage.platform.joins) < 80  # a quarter come later
    for name, times in stage.world.failures.items():
        joins = stage.platform.joins[stage.platform.processor_names.index(name)]
        assert joins < times[0]
        assert (np.diff(times) > 0).all()
        assert len(times) % 2 == 0  # it is back in the end
        assert times[-1] >= HORIZON * stage.span
    goes = [t for times in stage.world.failures.values() for t in times[::2] if t < stage.span]
    assert 20 < len(goes) < 60  # 0.2 times each, less those that come late


def test_calm_volunteers_are_there_all_the_time() -> None:
    stage = stage_of(replace(CASE, churn=0.0))
    assert stage.world.failures == {}
    assert not stage.platform.joins.any()


def test_unseen_speeds_are_in_the_durations_alone() -> None:
    stage = stage_of(CASE)
    assert not stage.world.availability
    truth = stage.truth()
    slower = truth.work / actual(stage)[:, None]
    assert 1 <= slower.min() < 1.2
    assert 5 < slower.max() <= 1 / SLOWEST + 1e-9
    believed = Estimates.declared(stage.workflow, stage.platform).cost
    assert (believed == believed[:, :1]).all()
    assert stage_of(replace(CASE, seen=True)).shares is None


@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.parametrize("workflow", GENERATED)
def test_every_strategy_ends_and_no_sooner_than_it_can(workflow: str, seen: bool) -> None:
    case = replace(CASE, workflow=workflow, seen=seen)
    found = measured(case)
    assert {"fifo", "min-min", STATIC} <= set(available())
    # at full speed all the time; never less than the longest path, nor than all the work
    least = (1 + SLOWEST) / 2
    for name in available():
        assert found[f"{name}|makespan"][0] >= least * (1 - 1e-9)
        assert found[f"{name}|lost"][0] >= 0


def test_runs_are_valid() -> None:
    stage = stage_of(replace(CASE, churn=2.0))
    estimates = Estimates.declared(stage.workflow, stage.platform)
    lost, truth = 0, stage.truth()
    for name in available():
        run = stage.run(name, truth)
        check_run(run, estimates)
        lost += len(run.attempts.task) - stage.workflow.n_tasks
        if name != STATIC:
            assert run.rewound == 0  # what is done is on the server
    assert lost > 0


def test_only_what_is_asked_for() -> None:
    found = measured(CASE, names=("fifo",))
    assert set(found) == {"n", "span", "fifo|makespan", "fifo|lost"}
    assert found == measured(CASE, names=("fifo",))


def test_real_workflows_have_their_own_durations(tmp_path: Path) -> None:
    for name, text in (("small.yaml", CHAIN), ("large.yaml", CHAIN + "  c: {cost: 1}\n")):
        (tmp_path / name).write_text(text)
    assert real_names(str(tmp_path)) == ["large.yaml", "small.yaml"]
    stage = stage_of(replace(CASE, workflow="small.yaml", size=0), str(tmp_path))
    assert actual(stage) == pytest.approx(np.array([3.0, 5.0]))
    assert stage.span == pytest.approx(8 * 2 / (1 + SLOWEST))
