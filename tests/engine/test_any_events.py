"""The coordinator under any legal sequence of events."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from engine.machine import Machine
from foreplan import registry
from foreplan.checks.runs import check_run
from foreplan.engine.budget import CONTINUE, CUT, STOP, BudgetTracker
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.retries import RetryPolicy
from foreplan.model import Estimates, Link, Platform, Processor, Run, Situation
from foreplan.model.causes import CAUSE, OUT_OF_MEMORY
from foreplan.model.events import BudgetChanged, NewEstimates, ProcessorJoined, TaskFailed, Woken
from foreplan.model.money import MONEY_GONE
from simulation.fitting import Obvious, fit_case
from simulation.worlds import Scattered
from twins.priced import with_prices
from twins.situations import random_instance


class Migrating(Machine):
    """Strategies that move what runs, most often without any sense."""

    specs: ClassVar[list[str]] = ["gtp", "gtp/c", "gtp/r[period=3]", "gtp/c/r[period=3]"]
    scattered: ClassVar[float] = 0.9


class Budgeted(Machine):
    """Budgets are given while it runs, too small ones too; with enough money it can be ended."""

    specs: ClassVar[list[str]] = ["static", "slack", "aheft", "adaptive", "always"]

    @initialize(seed=st.integers(0, 2**32 - 1), number=st.integers(0, 1000))
    def begin(self, seed: int, number: int) -> None:
        rng, self.spec = np.random.default_rng(seed), self.specs[number % len(self.specs)]
        n, p = int(rng.integers(1, 13)), int(rng.integers(1, 5))
        workflow, platform = random_instance(rng, n_tasks=n, n_processors=p, changes=False)
        situation = with_prices(Situation.at_start(workflow, platform), rng)
        policy, planner = registry.strategy(self.spec, budgeted=True)
        self.planner = Scattered(seed) if rng.random() < 0.4 else planner
        then = [CONTINUE, STOP, CUT][number % 3]
        tracker = BudgetTracker(over_budget=then, timeout=[None, 300.0][number % 2])
        self.coordinator = Coordinator(
            workflow, situation.platform, situation.estimates, policy, tracker=tracker
        )
        self.old, self.happened, self.gave_up = [], [], False
        self.plans, self.plan_times = [], []
        self.commands = self.coordinator.begin()
        self.answer()
        self.cost = self.coordinator.money().projected

    def was_cut(self) -> bool:
        asked = self.coordinator.asked
        return asked is not None and asked.reason == MONEY_GONE

    @rule(share=st.sampled_from([0.0, 0.3, 0.6, 1.0, 2.0, 5.0]), later=Machine.times)
    def give(self, share: float, later: float) -> None:
        self.handle(BudgetChanged(self.coordinator.now + later, share * self.cost))

    @rule(later=Machine.times)
    def wake(self, later: float) -> None:
        self.happen(Woken, 0, later)

    def learn(self, number: int, later: float, more: int) -> None:
        """Processors that are new would be free."""

    def point(self, late: float) -> None:
        """Whether the alarm is set again is looked at where there are no limits."""

    def release(self) -> bool:
        holds = self.coordinator.tracker.holds and not self.coordinator.done
        if holds:
            self.handle(BudgetChanged(self.coordinator.now + 1.0, 1e12))
        return holds

    def check_record(self, run: Run) -> None:
        """Plans that were too dear had to be taken: this is about whether it ends."""


class Fitting(Machine):
    """Tasks take cores, amounts and tokens; some run out of memory. All fits on the first host."""

    @initialize(seed=st.integers(0, 2**32 - 1), number=st.integers(0, 1000))
    def begin(self, seed: int, number: int) -> None:
        rng, self.spec = np.random.default_rng(seed), self.specs[number % len(self.specs)]
        case = fit_case(seed, losses=False, n=int(rng.integers(1, 13)))
        policy, planner = registry.strategy(self.spec)
        self.planner = planner if rng.random() < 0.5 or planner is None else Obvious()
        retry_policy = RetryPolicy(retries=int(rng.integers(3)), losses=3, keep_going=True)
        self.coordinator = Coordinator(
            case.workflow, case.platform, case.estimates, policy, retry_policy
        )
        self.old, self.happened, self.gave_up = [], [], False
        self.plans, self.plan_times = [], []
        self.commands = self.coordinator.begin()
        self.answer()

    @precondition(lambda self: self.open.any())
    @rule(number=Machine.numbers, later=Machine.times)
    def run_out_of_memory(self, number: int, later: float) -> None:
        attempt = self.pick(self.open, number)
        detail = {CAUSE: OUT_OF_MEMORY}
        self.handle(TaskFailed(attempt, self.coordinator.now + later, detail=detail))

    def learn(self, number: int, later: float, more: int) -> None:
        """Other amounts, and a core more of a host that is there, or of another."""
        coordinator, rng = self.coordinator, np.random.default_rng(number)
        old, needs = coordinator.platform, coordinator.estimates.needs
        if old.n_processors + more > 12 or needs is None:
            return
        names, hosts = list(old.processor_names), [old.host_names[h] for h in old.host]
        for k in range(len(names), len(names) + more):
            names.append(f"new-{k}")
            hosts.append(str(rng.choice([*old.host_names, f"host-{k}"])))
        joins = [*old.joins.tolist(), *[max(coordinator.now + later, 1e-3)] * more]
        platform = Platform.build(
            [Processor(n, h, joins=j) for n, h, j in zip(names, hosts, joins, strict=True)],
            Link(1.0),
            has={host.name: host for host in old.hosts},
            pools=old.pools,
        )
        cost = rng.integers(1, 300, (coordinator.workflow.n_tasks, len(names))).astype(np.float64)
        less = replace(needs, amount=needs.amount * rng.choice([0.5, 1.0]))
        new = NewEstimates(coordinator.now + later, Estimates(cost, less), platform)
        self.commands = coordinator.handle(new)

    def teardown(self) -> None:
        """With all machines there, whatever happened, it can be brought to its end."""
        if hasattr(self, "coordinator"):
            for p in np.flatnonzero(~self.coordinator.state.present()).tolist():
                self.happen(ProcessorJoined, p, 301.0)
        super().teardown()

    def check_record(self, run: Run) -> None:
        """Machines that came later, and needs that changed, are no part of the first plan."""
        check_run(replace(run, plans=(), plan_times=()))


TestFitting = Fitting.TestCase
TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestFitting.settings = TestMachine.settings
TestMigrating = Migrating.TestCase
TestMigrating.settings = settings(TestMachine.settings, stateful_step_count=60)
TestBudgeted = Budgeted.TestCase
TestBudgeted.settings = settings(TestMachine.settings, derandomize=True)
