"""Random worlds for random instances, runs in either gear, and equality of records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from foreplan import registry
from foreplan.checks.runs import check_run
from foreplan.checks.schedules import check_schedule
from foreplan.contracts import Order, Planner
from foreplan.model import Estimates, Freedom, Platform, Run, Schedule, Situation, Workflow
from foreplan.model.events import Event, LinkChanged, ProcessorGone, ProcessorJoined, SpeedChanged
from foreplan.simulation.reality import Reality, platform_changes
from foreplan.simulation.simulate import simulate_run
from twins.situations import random_instance


@dataclass(frozen=True)
class Checked:
    """A planner whose every plan is checked against the situation that it was made for."""

    planner: Planner
    name: ClassVar[str] = "checked"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        schedule = self.planner.plan(situation, freedom)
        if np.isfinite(situation.expected_finish()).all():  # else some are never expected to end
            check_schedule(schedule, situation, freedom)
        return schedule


class Scattered:
    """A planner that puts tasks anywhere, so that much is moved; only the order makes sense."""

    name: ClassVar[str] = "scattered"

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        workflow, a = situation.workflow, situation.attempts
        processor = self.rng.choice(np.flatnonzero(situation.usable()), workflow.n_tasks)
        start = situation.now + workflow.position.astype(np.float64)
        finish = start + 0.5
        kept = ~np.isnan(a.finish)
        if freedom != Freedom.RESTART:
            kept[:] = True
        kept |= self.rng.random(len(kept)) < 0.6
        kept |= processor[a.task] == a.processor  # it may go on there
        kept |= ~situation.usable()[a.processor]  # where nothing new starts, let it end
        tasks = a.task[kept]
        processor[tasks], start[tasks] = a.processor[kept], a.start[kept]
        finish[tasks] = situation.expected_finish()[kept]
        return Schedule(self.name, workflow, situation.platform, processor, start, finish)


@dataclass(frozen=True)
class Case:
    """A workflow on a platform, and what really happens there."""

    workflow: Workflow
    platform: Platform
    reality: Reality

    @property
    def estimates(self) -> Estimates:
        return Estimates.declared(self.workflow, self.platform)

    def run(self, spec: str, by_events: bool = False) -> Run:
        policy, planner = registry.strategy(spec)
        # natively the kernels plan themselves; those plans are checked event by event
        checked = Checked(planner) if by_events and planner is not None else planner
        run = simulate_run(
            self.workflow,
            self.platform,
            self.estimates,
            policy,
            checked,
            self.reality,
            by_events,
        )
        known = Estimates(self.reality.work) if policy.name == "ideal" else self.estimates
        check_run(run, known)
        return run


def random_case(
    seed: int, quiet: bool = False, losses: bool = True, stops: bool = True, n: int | None = None
) -> Case:
    """A random instance in a random world; a quiet one only has other durations."""
    rng = np.random.default_rng(seed)
    exact = bool(rng.random() < 0.5)
    workflow, platform = random_instance(rng, n_tasks=n, exact=exact, changes=losses and not quiet)
    estimates = Estimates.declared(workflow, platform)
    shape = estimates.cost.shape if rng.random() < 0.5 else (workflow.n_tasks, 1)
    factors = rng.choice([0.5, 1.0, 1.5, 2.0], shape) if exact else rng.uniform(0.3, 2.0, shape)
    changes = [] if quiet else random_changes(rng, workflow, platform, exact, losses, stops)
    return Case(workflow, platform, Reality(estimates.cost * factors, changes))


def random_changes(
    rng: np.random.Generator,
    workflow: Workflow,
    platform: Platform,
    exact: bool,
    losses: bool,
    stops: bool,
) -> list[Event]:
    """Joins, leaves, deaths and returns, changes of speed; the first processor never goes."""
    plan = registry.planner("heft").plan(Situation.at_start(workflow, platform))
    horizon = 1.5 * plan.makespan + 1.0
    moments = np.unique(np.concatenate([plan.start, plan.finish]))

    def times(n: int, low: float = 0.0, high: float = np.inf) -> list[float]:
        drawn = rng.choice(moments, n) if exact else rng.uniform(0, horizon, n)
        return sorted({float(t) for t in drawn if low < t < high})

    changes: list[Event] = [*platform_changes(platform)]
    for p in range(1, platform.n_processors):
        if losses and rng.random() < 0.5:
            low, high = float(platform.joins[p]), float(platform.leaves[p])
            turns = times(int(rng.integers(1, 5)), low, high)
            if np.isfinite(high):  # back before it leaves
                turns = turns[: len(turns) // 2 * 2]
            for k, time in enumerate(turns):
                changes.append((ProcessorJoined if k % 2 else ProcessorGone)(p, time))
    for kind, many, most in (
        (SpeedChanged, platform.n_processors, 1.0),
        (LinkChanged, platform.n_hosts**2, 2.0),
    ):
        for which in range(many):
            if rng.random() < 0.3:
                at = times(int(rng.integers(1, 4)))
                for time in at:
                    low = 0.0 if stops and rng.random() < 0.3 else 0.25
                    value = rng.choice([low, 0.5, most]) if exact else rng.uniform(low, most)
                    changes.append(kind.of(which, time, float(value)))
                changes.append(kind.of(which, horizon, float(most)))
    return changes


def same_record(a: Run, b: Run) -> None:
    """Every array of the two records is the same to the last bit."""
    for log in ("attempts", "transfers"):
        for name, values in vars(getattr(a, log)).items():
            np.testing.assert_array_equal(values, getattr(getattr(b, log), name), err_msg=name)
    assert repr(a.evaluations) == repr(b.evaluations)  # a projection may be no number
    assert a.plan_times == b.plan_times
    assert a.changes == b.changes
    assert a.strategy == b.strategy
    assert len(a.plans) == len(b.plans)
    for one, other in zip(a.plans, b.plans, strict=True):
        for name in ("processor", "start", "finish"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def specs(planners: list[str]) -> list[str]:
    """Every registered strategy, with each of the planners where it has one."""
    result = []
    for name in registry.strategy_names():
        policy: Any = registry.strategy(name)[0]
        if isinstance(policy, Order) or not hasattr(policy, "planner"):
            result.append(name)
        else:
            own = ["gtp"] if policy.planner == "gtp" else []  # the only one that moves what runs
            result += [f"{name}[planner={planner}]" for planner in own + planners]
    return result
