"""One run in a simulated world, natively or with every event through the coordinator."""

from __future__ import annotations

import sys
from dataclasses import replace

from foreplan.contracts import Order, Planner, Policy
from foreplan.engine.budget import BudgetTracker
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver, record, stuck
from foreplan.engine.event_numbers import event_of
from foreplan.engine.kernels import arrays as a
from foreplan.engine.online_estimates import OnlineEstimates
from foreplan.engine.retries import RetryPolicy
from foreplan.model import Estimates, Platform, Run, Workflow
from foreplan.simulation.deciding import Deciding
from foreplan.simulation.expanding import Expanding
from foreplan.simulation.kernels.drive import drive
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulated import SimulatedExecutor
from foreplan.spec import spec_of


def run_natively(driver: Driver, executor: SimulatedExecutor) -> None:
    """The same run without leaving the kernels from one decision to the next."""
    coordinator = driver.coordinator
    kernels = Deciding.of(coordinator, driver.planner)
    replan = coordinator.set_out()
    first, late = kernels is not None and replan is not None, -1
    while True:
        while replan is not None and not first:
            new = driver.revise_estimates(replan)
            if new is not None:
                driver.note(new)
                coordinator.learn(new)
                replan = coordinator.consider(-1, new)
                continue
            answer = driver.answer(replan)
            driver.note(answer)
            late = coordinator.take(answer)
            driver.note_plan()
            replan = coordinator.consider(late, None)
        if coordinator.halted:
            return
        arrays = coordinator.make_room(plans=kernels is not None)
        most = 2 * arrays.burst + int(arrays.counts[a.N_COMMANDS])
        executor.make_room(len(arrays.attempt_task), len(arrays.transfer_item), most)
        world = executor.world
        if kernels is None:
            why, late, kind, which = drive(arrays, world)
        else:
            why, late, kind, which = kernels.drive(arrays, world, first, late)
            for evaluation, plan in kernels.take_decided():
                driver.note_decided(evaluation, plan)
            if first:
                first = False
                replan = coordinator.asked  # as before, if the kernels could not plan
                if replan is not None:
                    continue
        if why == a.NOTHING:
            if not coordinator.done and not coordinator.halted:
                raise stuck(coordinator)
            return
        if why == a.UNSETTLED:
            coordinator.leave_over()
            replan, late = coordinator.consider(late, None), -1
        elif why != a.ROOM:
            event = None
            if why == a.CHANGED:
                event = event_of(kind, which, coordinator.now)
            replan = coordinator.consider(int(late), event)
            late = -1


def simulate_run(
    workflow: Workflow,
    platform: Platform,
    estimates: Estimates,
    strategy: Policy | Order,
    planner: Planner | None,
    reality: Reality,
    by_events: bool = False,
    tracker: BudgetTracker | None = None,
) -> Run:
    """One run in a simulated world, natively or with every event through the coordinator."""
    # the one strategy that is planned post mortem, with the truth for estimates
    known = replace(estimates, cost=reality.work) if strategy.name == "ideal" else estimates
    patient = RetryPolicy(losses=sys.maxsize)  # nobody waits for a simulated machine
    if estimates.needs is not None and reality.needs is None:
        reality = replace(reality, needs=estimates.needs)
    coordinator = Coordinator(workflow, platform, known, strategy, patient, tracker=tracker)
    executor = SimulatedExecutor(workflow, platform, reality)
    driver = Driver(coordinator, planner, executor, events=[] if by_events else None)
    if coordinator.policy is not None and coordinator.policy.learn:
        driver.online = OnlineEstimates.of(workflow, platform, known)
    grows = bool(reality.expansions)
    if grows:
        driver.observer = Expanding(driver, executor, strategy.name == "ideal")
    # when the money is gone, or tasks are added, is no event of the kernels'
    if by_events or coordinator.tracker.cuts or grows:
        driver.drive()
    else:
        run_natively(driver, executor)
    return record(driver, spec_of(strategy), executor.changes(), executor.actual_work)
