"""Tasks that take cores, amounts and tokens, in random worlds, by every strategy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from foreplan import registry
from foreplan.contracts import Order
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.model import Estimates, Run, Workflow
from foreplan.model.events import Event, ProcessorJoined
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulate import simulate_run
from foreplan.simulation.simulated import SimulatedExecutor
from repeated import repetitions
from simulation.fitting import FitCase, Obvious, fit_case
from simulation.worlds import same_record
from twins.fit_run import Job
from twins.fit_run import run as fit_run

pytestmark = pytest.mark.usefixtures("light_searches")

SPECS = registry.strategy_names()


def same_held(one: Run, other: Run) -> None:
    """All that attempts held is the same, too."""
    a, b = one.attempts, other.attempts
    assert (a.cores is None) == (b.cores is None)
    if a.cores is not None and b.cores is not None:
        assert a.cores.ptr.tolist() == b.cores.ptr.tolist()
        assert a.cores.processor.tolist() == b.cores.processor.tolist()


@pytest.mark.parametrize("spec", SPECS)
def test_both_gears_agree_and_every_task_gets_done(spec: str) -> None:
    """No run gets stuck, no capacity is exceeded: the validator looks at both."""
    for seed in repetitions(4, 0.5):
        case = fit_case(seed)
        natively, by_events = case.run(spec), case.run(spec, by_events=True)
        cores, others = natively.attempts.cores, by_events.attempts.cores
        same_held(natively, by_events)
        same_record(
            replace(natively, attempts=replace(natively.attempts, cores=None)),
            replace(by_events, attempts=replace(by_events.attempts, cores=None)),
        )
        assert (cores is None) == (others is None)


@pytest.mark.parametrize("spec", SPECS)
def test_the_state_is_sound_after_every_event(spec: str) -> None:
    for seed in repetitions(2, 0.2):
        case = fit_case(1000 + seed)
        policy, _ = registry.strategy(spec)
        if policy.name == "ideal":
            return
        coordinator = Coordinator(case.workflow, case.platform, case.estimates, policy)
        planner = None if isinstance(policy, Order) else Obvious()
        driver, executor = (
            Driver(coordinator, planner),
            SimulatedExecutor(case.workflow, case.platform, case.reality),
        )
        coordinator.retries.policy = replace(coordinator.retries.policy, losses=10**9)
        commands = driver.begin()
        event: Event | None = None
        while True:
            for command in commands:
                executor.perform(command)
            if not (isinstance(event, ProcessorJoined) and event.more):  # the last speaks for all
                coordinator.check_state()
            event = None if coordinator.done else executor.next_event()
            if event is None:
                break
            commands = driver.hear(event)
        assert coordinator.done


@pytest.mark.parametrize("spec", SPECS)
def test_needs_of_one_core_and_nothing_else_are_none(spec: str) -> None:
    """What every task would do without needs, it does with needs that say nothing."""
    policy, planner = registry.strategy(spec)
    for seed in repetitions(3):
        case = fit_case(seed, plain=True)
        bare = Estimates(case.estimates.cost)
        reality = replace(case.reality, needs=None)
        simply = simulate_run(case.workflow, case.platform, bare, policy, planner, reality)
        run = case.run(spec)
        names = ("start", "task", "processor", "finish", "end")  # at once they begin in any order
        # so a plan that is made before a late one begins may find others under way, or not
        late = [e.time for r in (simply, run) for e in r.evaluations if e.reason.startswith("late")]
        one, other = (
            sorted(
                begun
                for begun in zip(*(getattr(r.attempts, n).tolist() for n in names), strict=True)
                if begun[0] < min(late, default=math.inf)
            )
            for r in (simply, run)
        )
        assert one == other, seed


@pytest.mark.parametrize("spec", SPECS)
def test_machines_that_stand_still(spec: str) -> None:
    for seed in repetitions(2, 0.2):
        case = fit_case(2000 + seed, stops=True)
        same_held(case.run(spec), case.run(spec, by_events=True))


def independent(case: FitCase) -> FitCase:
    """The same tasks without inputs, as estimated or not, on machines that stay as they are."""
    names, n = case.workflow.task_names, case.workflow.n_tasks
    rng = np.random.default_rng(n)
    cost = rng.uniform(0.5, 9, n)
    workflow = Workflow.from_items("w", names, cost.tolist(), [], specs=case.workflow.specs)
    estimates = Estimates.declared(workflow, case.platform)
    factors = rng.choice([0.5, 0.9, 1.0, 1.0, 1.7], (n, 1)) * rng.uniform(0.99, 1.01, (n, 1))
    reality = Reality(estimates.cost * factors, [], estimates.needs)
    return FitCase(workflow, case.platform, reality, estimates)


def test_planned_tasks_begin_as_by_another_hand() -> None:
    """The start rule: cores in their order, amounts by the line, and who passes."""
    passed = 0
    for seed in repetitions(40):
        case = independent(fit_case(3000 + seed, n=18))
        run, needs = case.run("static", planner=Obvious()), case.estimates.needs
        plan = run.plans[0]
        assert plan.cores is not None
        assert needs is not None
        share = needs.factor_of(np.arange(18, dtype=np.int32), plan.cores.width)
        place = np.argsort(plan.in_time)
        jobs = []
        for task in range(18):
            p, host = int(plan.processor[task]), int(case.platform.host[plan.processor[task]])
            kinds = zip(needs.kinds, needs.amount[task], strict=False)
            amounts = {f"{host}:{kind}": float(value) for kind, value in kinds}
            amounts |= zip(
                needs.pools, needs.amount[task, len(needs.kinds) :].tolist(), strict=True
            )
            expected = float(case.estimates.cost[task, p] * share[task])
            really = float(case.reality.work[task, p] * share[task])
            cores = plan.cores.of(task).tolist()
            jobs.append(Job(task, int(place[task]), cores, amounts, expected, really))
        capacity = {
            f"{host}:{kind}": float(case.platform.host_amounts(kind)[host])
            for kind in needs.kinds
            for host in range(case.platform.n_hosts)
        }
        starts = fit_run(jobs, {**capacity, **case.platform.pools})
        last = run.final_attempts()
        for task in range(18):
            assert run.attempts.start[last[task]] == pytest.approx(starts[task]), (seed, task)
        begun = sorted(starts, key=lambda task: (starts[task], place[task]))
        passed += begun != sorted(starts, key=lambda task: place[task])
    assert passed > 10
