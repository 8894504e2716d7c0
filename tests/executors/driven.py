"""Random workflows on any executor, driven by the real coordinator in the loop of a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np
from hypothesis import strategies as st

from executors.bench import Bench
from executors.works import Work
from foreplan.checks.runs import check_run
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.engine.policies.planned import Always
from foreplan.engine.retries import RetryPolicy
from foreplan.model import (
    Estimates,
    Freedom,
    Run,
    Schedule,
    Situation,
)
from foreplan.model.events import Command, Event, Heard
from foreplan.runs.estimates import Estimating
from foreplan.runs.options import Options
from foreplan.runs.replay import live_record
from foreplan.runs.session import Session, Silent


@st.composite
def workflows(draw: st.DrawFn, fails: bool = True) -> list[Work]:
    """Chains, fans and shared items: few tasks, each reading up to three before it."""
    works: list[Work] = []
    for t in range(draw(st.integers(1, 7))):
        reads = draw(st.sets(st.integers(0, t - 1), max_size=3)) if t else set()
        failures = draw(st.sampled_from([0, 0, 0, 1, 2])) if fails else 0
        big = draw(st.sampled_from([False, False, False, True]))
        works.append(Work(f"T{t}", tuple(sorted(reads)), fails=failures, big=big))
    return works


class Moving:
    """A planner that puts tasks anywhere, and at times moves one that runs."""

    name: ClassVar[str] = "moving"

    def __init__(self, seed: int, moves: int) -> None:
        self.rng, self.moves = np.random.default_rng(seed), moves

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        workflow, a = situation.workflow, situation.attempts
        usable = np.flatnonzero(situation.usable())
        processor = self.rng.choice(usable, workflow.n_tasks)
        start = situation.now + workflow.position.astype(np.float64)
        finish = start + situation.estimates.cost[np.arange(workflow.n_tasks), processor]
        kept = np.ones(len(a.task), dtype=np.bool_)
        for k in np.flatnonzero(np.isnan(a.finish)):
            if self.moves and self.rng.random() < 0.5 and processor[a.task[k]] != a.processor[k]:
                self.moves -= 1
                kept[k] = False
        stays = a.task[kept]
        processor[stays], start[stays] = a.processor[kept], a.start[kept]
        finish[stays] = situation.expected_finish()[kept]
        return Schedule(self.name, workflow, situation.platform, processor, start, finish)


class CheckedDriver(Driver):
    """The state of the run is looked through after whatever is heard."""

    def hear(self, entry: Heard) -> list[Command]:
        commands = super().hear(entry)
        self.coordinator.check_state()
        return commands


class Unwritten(Session):
    """A session without a journal."""

    def __init__(self, bench: Bench, driver: Driver) -> None:
        no_journal = cast(Any, SimpleNamespace(pending=False))
        options = Options(use_history=False)
        estimating = Estimating.open(bench.workflow, options, "one", bench.calls, print)
        machines = cast(Any, bench.watched)
        header = cast(Any, SimpleNamespace(options=options))  # that is all it is asked for
        super().__init__(header, driver, machines, no_journal, estimating, bench.clock, Silent())

    def ask_for_beat(self) -> None:
        """None is noted."""


def drive(
    bench: Bench, seed: int, moves: int = 0, disturb: Callable[[int], None] | None = None
) -> Run:
    """Run the workflow to its end; `disturb` is told how many events have been heard."""
    platform = bench.watched.platform
    estimates = Estimates.declared(bench.workflow, platform)
    retry_policy = RetryPolicy(retries=2, losses=20)
    coordinator = Coordinator(bench.workflow, platform, estimates, Always(), retry_policy)
    driver = CheckedDriver(coordinator, Moving(seed, moves), cast(Any, bench.watched), events=[])
    session = Unwritten(bench, driver)
    if disturb is not None:
        told = disturb
        session.listener = Telling(lambda: told(len(driver.events or [])))
    session.drive_from(driver.begin())
    assert coordinator.n_done == bench.workflow.n_tasks, coordinator.given_up
    run = live_record(driver, "always", platform.n_processors)
    if bench.watched.real:
        check_run(run)
    else:
        check_run(replace(run, real=False), estimates)
    return run


class Telling(Silent):
    """Calls when something has happened."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self.tell = tell

    def happened(self, session: Session, events: list[Event]) -> None:
        self.tell()
