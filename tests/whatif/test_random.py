"""What-if before the start: what must hold of every answer, and against simulated runs."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan import registry
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver, record
from foreplan.model import Expectation, Platform, Schedule
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulated import SimulatedExecutor
from foreplan.whatif import answer, before_start
from foreplan.whatif.changes import question
from foreplan.whatif.stage import twin
from simulation.worlds import random_case
from twins.situations import random_instance

pytestmark = pytest.mark.usefixtures("checked")

GOLDENS = Path(__file__).parents[1] / "goldens"
SHARED = Path(__file__).parents[3] / "shared" / "goldens"


@pytest.mark.parametrize("template", ["r1", "r2", "r3"])
@pytest.mark.parametrize("at", [5.0, 15.0, 29.0, 44.5])
@pytest.mark.parametrize("folder", [GOLDENS, SHARED], ids=["own", "shared"])
def test_as_aheft_does_it(template: str, at: float, folder: Path) -> None:
    """Told beforehand what a simulated run with `aheft` comes to when processors join."""
    if not (folder / "topcuoglu.workflow.yaml").exists():
        pytest.skip("the shared examples are not here")
    wf = foreplan.load(folder / "topcuoglu.workflow.yaml")
    pf = foreplan.load_platform(folder / "topcuoglu.platform.yaml")
    told = foreplan.what_if(wf, pf, f"{template}:1..2", at=at)
    for count, row in zip((1, 2), told.alternatives, strict=True):
        known = [p for p in ("r1", "r2", "r3") if p in pf.processor_names]
        costs = {
            name: {p: float(wf.processor_cost[p][t]) for p in known}
            | {f"new{k}": float(wf.processor_cost[template][t]) for k in range(count)}
            for t, name in enumerate(wf.task_names)
        }
        items, producers, consumers = wf.dependencies()
        content: dict[str, Any] = {
            "tasks": {name: {"cost": cost} for name, cost in costs.items()},
            "edges": [
                [wf.task_names[p], wf.task_names[c], float(wf.item_size[i])]
                for i, p, c in zip(items, producers, consumers, strict=True)
            ],
        }
        processors: dict[str, Any] = {p: {} for p in known}
        processors |= {f"new{k}": {"joins": at} for k in range(count)}
        run = foreplan.simulate(
            foreplan.load(content), foreplan.load_platform({"processors": processors}), "aheft"
        )
        if count == 1 or row.makespan != told.alternatives[0].makespan:
            assert row.makespan == pytest.approx(run.makespan)
            assert row.taken == (run.replans > 0)
        else:  # the second is left idle if that is better
            assert row.makespan <= run.makespan + 1e-9


def with_money(pf: Platform, rng: np.random.Generator) -> Platform:
    """Prices per second or by billing unit, and prices of links."""
    links = rng.uniform(0, 200, (pf.n_hosts, pf.n_hosts)) * (rng.random() < 0.6)
    links = np.triu(links, 1)
    return replace(
        pf,
        price=rng.uniform(0, 3, pf.n_processors),
        billing=rng.choice([0.0, 100.0, 500.0], pf.n_processors) * (rng.random() < 0.6),
        link_price=links + links.T,
    )


def moments(plan: Schedule, rng: np.random.Generator) -> list[float]:
    """From the start, at an event, and somewhere between two."""
    return [0.0, float(rng.choice(plan.finish)), float(rng.uniform(0, plan.makespan))]


@pytest.mark.parametrize("seed", range(25))
def test_adding_never_worsens(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wf, pf = random_instance(rng, changes=seed % 3 == 0)
    pf = with_money(pf, rng)
    plan = foreplan.plan(wf, pf)
    name = pf.processor_names[int(rng.integers(pf.n_processors))]
    for at in moments(plan, rng):
        told = foreplan.what_if(wf, pf, [f"{name}:1..3"], at=at)
        slop = 1e-9 * max(1.0, told.present.makespan)
        if seed % 3:
            assert told.present.makespan == pytest.approx(plan.makespan)
            assert told.present.cost == pytest.approx(plan.cost)
        rows = [told.present.makespan, *(row.makespan for row in told.alternatives)]
        assert all(later <= sooner + slop for sooner, later in itertools.pairwise(rows))
        for row in told.alternatives:
            assert row.saves == told.present.makespan - row.makespan
            assert row.taken or row.makespan == pytest.approx(told.present.makespan)
        assert told.replanned.makespan <= told.present.makespan + slop


@pytest.mark.parametrize("seed", range(25))
def test_removing_any(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wf, pf = random_instance(rng, n_processors=3, changes=False)
    plan = foreplan.plan(wf, pf)
    used = set(plan.processor.tolist())
    for at in [*moments(plan, rng), 2 * plan.makespan]:
        told = foreplan.what_if(wf, pf, remove="each", at=at)
        for p, row in enumerate(told.alternatives):
            assert row.makespan >= at or at >= plan.makespan or row.makespan <= plan.makespan
            if p not in used and not row.taken:
                assert row.makespan == pytest.approx(plan.makespan)
                assert row.cost == pytest.approx(plan.cost)
            if p not in used:
                assert row.makespan <= plan.makespan * (1 + 1e-9)
            if at > plan.makespan:
                assert row.makespan == pytest.approx(plan.makespan)
                assert row.taken is False


@pytest.mark.parametrize("seed", range(20))
def test_the_projection_is_what_happens(seed: int) -> None:
    """From any moment on: the projection, the world continued, and the whole run agree."""
    rng = np.random.default_rng(seed)
    wf, pf = random_instance(rng, changes=False)
    pf = with_money(pf, rng)
    straight = foreplan.simulate(wf, pf, "static")
    for at in moments(straight.plans[0], rng)[1:]:
        stage = before_start(wf, Expectation.declared(wf, pf), "heft")
        stage.advance(at)
        judge = answer.Judge(stage, at)
        simulated = judge._to_the_end(twin(stage.coordinator))
        assert simulated.makespan == pytest.approx(straight.makespan)
        assert simulated.cost == pytest.approx(straight.cost)
        assert judge.present().makespan == pytest.approx(straight.makespan)
        assert judge.present().cost == pytest.approx(straight.cost)


@pytest.mark.parametrize("seed", range(40))
def test_a_loss_as_aheft_takes_it(seed: int) -> None:
    """Told beforehand what a simulated run with `aheft` comes to, and costs, after a loss."""
    rng = np.random.default_rng(seed)
    wf, pf = random_instance(rng, n_processors=int(rng.integers(2, 6)), changes=False)
    pf = with_money(pf, rng)
    name = pf.processor_names[int(rng.integers(pf.n_processors))]
    for at in moments(foreplan.plan(wf, pf), rng)[1:]:
        if at > 0:
            spec = "aheft[learn=false,second=false]"
            run = foreplan.simulate(wf, pf, spec, {"failures": {name: at}})
            (row,) = foreplan.what_if(wf, pf, remove=name, at=at).alternatives
            plans = [e.makespan for e in run.evaluations if e.taken]
            assert row.makespan == pytest.approx(plans[0] if plans else run.makespan)
            # copies of what must be made again are there, but no plan counts on them
            assert row.makespan == pytest.approx(run.makespan) or run.rewound
            assert row.makespan >= run.makespan * (1 - 1e-9)
            assert row.taken == bool(plans)
            assert row.cost == pytest.approx(run.cost) or run.rewound  # likewise
            assert row.cost >= run.cost * (1 - 1e-9)


@pytest.mark.parametrize("strategy", ["static", "fifo"])
@pytest.mark.parametrize("seed", range(15))
def test_a_world_gone_on_with(seed: int, strategy: str) -> None:
    """Cut at any event and taken up from the arrays alone, a run in a restless world ends alike."""
    case = random_case(seed, losses=False)
    straight = case.run(strategy, by_events=True)
    assert straight.events is not None
    rng = np.random.default_rng(seed)
    policy, planner = registry.strategy(strategy)
    for cut in rng.integers(0, len(straight.events), 3).tolist():
        coordinator = Coordinator(case.workflow, case.platform, case.estimates, policy)
        driver = Driver(coordinator, planner)
        driver.begin()
        heard = straight.events[: cut + 1]
        for past in heard:
            driver.hear(past)
        known = sum(event in heard for event in case.reality.changes)
        rest = Reality(case.reality.work, case.reality.changes[known:])
        executor = SimulatedExecutor.going_on(case.workflow, case.platform, rest, coordinator.state)
        driver.executor = executor
        driver.drive([])
        run = record(driver, strategy, [])
        assert run.makespan == pytest.approx(straight.makespan)
        np.testing.assert_array_equal(run.attempts.task, straight.attempts.task)


@pytest.mark.parametrize("seed", range(10))
def test_new_machines_are_only_there(seed: int) -> None:
    """The situation with new ones is the one that a coordinator has that heard of them."""
    rng = np.random.default_rng(seed)
    wf, pf = random_instance(rng, changes=seed % 2 == 0)
    at = float(rng.uniform(0, foreplan.plan(wf, pf).makespan))
    stage = before_start(wf, Expectation.declared(wf, pf), "heft")
    stage.advance(at)
    if stage.coordinator.done:
        return
    judge = answer.Judge(stage, at)
    (change,) = question([f"{pf.processor_names[0]}:2"], [], pf.processor_names).changes
    known = judge._situation(change)
    heard = judge._changed(change).situation()
    assert known is not None
    assert known.now == heard.now
    for part in ("attempts", "copies", "transfers", "platform", "estimates"):
        for field, value in vars(getattr(known, part)).items():
            other = getattr(getattr(heard, part), field)
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(value, other, err_msg=field)
    np.testing.assert_array_equal(known.usable(), heard.usable())
    np.testing.assert_array_equal(known.cost, heard.cost)
    for field, value in vars(known.used).items():
        np.testing.assert_array_equal(value, getattr(heard.used, field), err_msg=field)
