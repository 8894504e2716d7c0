"""GTP and its kin in runs: the paper's example, rescheduling points, and what wakes them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from foreplan import registry
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver, StuckError
from foreplan.errors import InputError
from foreplan.model import (
    Estimates,
    Freedom,
    Item,
    Link,
    Platform,
    Processor,
    Run,
    Schedule,
    Situation,
    Workflow,
)
from foreplan.model.events import (
    DropTransfer,
    ItemArrived,
    ItemLost,
    LinkChanged,
    ProcessorGone,
    ProcessorJoined,
    SendItem,
    SpeedChanged,
    TaskFinished,
    Woken,
)
from foreplan.simulation.reality import Reality
from foreplan.spec import spec_of, split_specs
from simulation.adapting import exact_instance, figure_2
from simulation.worlds import Case, random_case, same_record

FAMILY = ["gtp", "gtp/c", "gtp/r", "gtp/c/r"]
AVAILABILITY, GONE = SpeedChanged, ProcessorGone


@pytest.fixture
def soon() -> Iterator[None]:
    """An endless loop fails instead of blocking."""

    def too_late(*_: Any) -> None:
        raise TimeoutError("it goes on for ever")

    before = signal.signal(signal.SIGALRM, too_late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# The paper's example -----------------------------------------------------------------------


def sent(run: Run, item: int) -> list[tuple[int, int, float]]:
    """From where, to where and when an item was sent; processors count from 1, as in the paper."""
    t, which = run.transfers, run.transfers.item == item
    rows = zip(t.source[which], t.target[which], t.sent[which], strict=True)
    return [(int(a) + 1, int(b) + 1, float(time)) for a, b, time in rows]


def both(case: Case, spec: str) -> Run:
    run = case.run(spec)
    same_record(run, case.run(spec, by_events=True))
    return run


def test_figure_2_without_copies() -> None:
    run = both(figure_2(), "gtp[period=20]")
    assert sent(run, 2) == [(1, 4, 21.0), (1, 2, 40.0), (1, 4, 60.0)]  # to p4 twice
    assert sent(run, 3) == [(3, 2, 45.0), (3, 4, 60.0)]
    assert run.makespan == 80.0
    assert (run.migrations, run.restarts, run.copies_used) == (2, 0, 0)
    assert [e.migrated for e in run.evaluations] == [0, 1, 1]
    forgotten = run.transfers.forgotten[run.transfers.item == 2]
    assert forgotten.tolist() == [40.0, 60.0, np.inf]


def test_figure_2_with_copies() -> None:
    run = both(figure_2(), "gtp/c[period=20]")
    assert [(a, b) for a, b, _ in sent(run, 2)] == [(1, 4), (1, 2)]  # p4 still has it
    assert sent(run, 3) == [(3, 2, 45.0), (3, 4, 60.0)]
    assert np.isinf(run.transfers.forgotten).all()
    assert run.makespan == 80.0


def test_figure_3_rewinds_v2_and_v0_without_copies() -> None:
    """p3 dies while v3 fetches from it; what p2 had been sent was left behind there."""
    run = both(figure_2(GONE.of(2, 65.0)), "gtp/r[period=20]")
    assert run.rewound == 2
    assert run.rewound_levels == 2
    names = [run.workflow.task_names[t] for t in run.attempts.task]
    assert sorted(names) == ["v0", "v0", "v1", "v2", "v2", "v3"]


def test_figure_3_rewinds_nothing_with_copies() -> None:
    run = both(figure_2(GONE.of(2, 65.0)), "gtp/c/r[period=20]")
    assert run.rewound == 0
    assert sent(run, 3) == [(3, 2, 45.0), (3, 4, 60.0), (2, 4, 65.0)]
    assert run.copies_used == 1
    assert run.makespan == 105.0


def test_the_last_copy_of_a_dead_processor_is_as_good_for_what_runs() -> None:
    """R runs on p1 and moves to p2: what made its input is dead, but p1 has that input whole."""
    cost = np.array([[100.0, 900.0, 100.0], [900.0, 50.0, 60.0]])
    columns = {f"p{k}": cost[:, k] for k in range(3)}
    items = [Item(5.0, 0, [1])]
    workflow = Workflow.from_items("w", ["x", "R"], [np.nan] * 2, items, columns)
    platform = Platform.build([Processor(name) for name in columns], Link(1.0))
    changes = [GONE.of(0, 110.0), AVAILABILITY.of(1, 115.0, 0.02)]
    run = both(Case(workflow, platform, Reality(cost, changes)), "gtp[period=10]")
    promised = [e.makespan for e in run.evaluations if e.migrated]
    assert promised == [185.0]
    assert run.makespan == 185.0
    assert run.rewound == 0


class Told:
    """A planner that is told where y goes."""

    name: ClassVar[str] = "told"
    y = 1

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        processor = np.array([0, 1, self.y])
        start = np.maximum([0.0, 0.0, 60.0], situation.now)
        workflow, platform = situation.workflow, situation.platform
        return Schedule(self.name, workflow, platform, processor, start, start + 1.0)


def test_what_was_lost_and_is_sent_again_is_dropped_when_its_reader_moves() -> None:
    """Two transfers to one host, the first of which came; only the second is under way."""
    workflow = Workflow.from_items("w", ["x", "b", "y"], [1.0, 50.0, 1.0], [Item(10.0, 0, [2])])
    platform = Platform.build([Processor(f"p{i}") for i in range(3)], Link(1.0))
    policy, planner = registry.strategy("gtp[period=5]")[0], Told()
    coordinator = Coordinator(workflow, platform, Estimates.declared(workflow, platform), policy)
    driver = Driver(coordinator, planner)
    driver.begin()
    driver.hear(TaskFinished(0, 1.0))
    driver.hear(ItemArrived(0, 4.0))
    again = driver.hear(ItemLost(1, 4.5))  # on p1
    assert SendItem(1, 0, 0, 1, 4.5) in again
    planner.y = 2
    commands = driver.hear(Woken(float(coordinator.state.arrays.wake[0])))
    coordinator.check_state()
    assert DropTransfer(1, coordinator.now) in commands
    assert SendItem(2, 0, 0, 2, coordinator.now) in commands


# Rescheduling points -----------------------------------------------------------------------


def test_points_come_every_period() -> None:
    for seed in range(10):
        run = both(random_case(seed, losses=False, stops=False), "gtp[period=150]")
        times = [e.time for e in run.evaluations]
        assert times == [150.0 * (k + 1) for k in range(len(times))]
        assert run.makespan - 150.0 <= max(times, default=0.0) <= run.makespan
        assert all(e.taken and not e.forced for e in run.evaluations)


def test_points_come_after_a_share_of_the_makespan() -> None:
    seen = 0
    for seed in range(10):
        run = both(random_case(seed, losses=False, stops=False), "gtp/c[period=20%]")
        moments = zip(run.plan_times, run.plan_times[1:], run.plans, strict=False)
        for before, after, plan in moments:
            assert after == before + 0.2 * plan.makespan
            seen += 1
    assert seen > 20


@pytest.mark.parametrize("spec", FAMILY)
def test_nothing_else_wakes_them(spec: str) -> None:
    """Neither slow machines and links nor tasks that are off their estimates."""
    for seed in range(12):
        run = random_case(seed, losses=False).run(spec)
        assert {e.reason for e in run.evaluations} <= {"rescheduling point"}


def test_machines_that_come_and_go_do_at_once() -> None:
    reasons = set()
    for seed in range(25):
        run = random_case(seed, stops=False).run("gtp/c")
        reasons |= {e.reason.split()[-1] for e in run.evaluations}
        changed = {e.time for e in run.changes if type(e) in (ProcessorJoined, GONE)}
        asked = {e.time for e in run.evaluations if e.reason.split()[-1] in ("gone", "joined")}
        assert asked <= changed
    assert {"gone", "joined", "point"} <= reasons


@pytest.mark.parametrize("spec", ["gtp[period=7%]", "gtp/r[period=100]"])
def test_as_planned_where_nothing_is_off(spec: str) -> None:
    """Every new plan is the one before: nothing moves."""
    for seed in range(25):
        run = both(exact_instance(np.random.default_rng(seed), exact=True), spec)
        assert run.makespan == run.plans[0].makespan
        assert (run.migrations, run.restarts) == (0, 0)


def test_the_alarm_ends_with_the_run(soon: None) -> None:
    for seed in range(10):
        run = random_case(seed).run("gtp[period=50]", by_events=True)
        assert run.events is not None
        if run.events:
            assert isinstance(run.events[-1], TaskFinished)


@pytest.mark.parametrize("spec", [*FAMILY, "gtp[period=200]"])
def test_when_all_stand_still_for_ever_it_is_stuck(soon: None, spec: str) -> None:
    for seed in range(8):
        case = exact_instance(np.random.default_rng(seed))
        end = case.run("static").makespan
        still = [AVAILABILITY.of(p, 0.4 * end, 0.0) for p in range(case.platform.n_processors)]
        dead = Case(case.workflow, case.platform, Reality(case.reality.work, still))
        for by_events in (False, True):
            try:
                run = dead.run(spec, by_events)
            except StuckError:
                continue
            assert run.makespan <= 0.4 * end  # it needed no more time


def test_when_all_links_stand_still_for_ever(soon: None) -> None:
    """Tasks can still be done where the data are, or made again; else it is stuck."""
    for seed in range(12):
        case = exact_instance(np.random.default_rng(seed))
        links = range(case.platform.n_hosts**2)
        still = [LinkChanged(link, 100.0, 0.0) for link in links]
        dead = Case(case.workflow, case.platform, Reality(case.reality.work, still))
        for by_events in (False, True):
            try:
                dead.run("gtp[period=200]", by_events)
            except StuckError:
                continue


# Specs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [*FAMILY, "gtp/c[period=30]", "gtp/c/r[period=2.5%]", "gtp[planner=heft,period=1e3]", "dls/sr"],
)
def test_specs_there_and_back(spec: str) -> None:
    policy, planner = registry.strategy(spec)
    assert spec_of(policy) == spec
    assert registry.strategy(spec_of(policy))[0] == policy
    assert planner is not None
    assert split_specs(f"{spec},heft[insertion=false],{spec}") == [
        spec,
        "heft[insertion=false]",
        spec,
    ]


def test_the_default_period_need_not_be_written() -> None:
    assert spec_of(registry.strategy("gtp/c[period=5%]")[0]) == "gtp/c"


@pytest.mark.parametrize(
    "period", ["0", "-5", "soon", "nan", "inf", "0%", "-3%", "%", "5%%", "inf%"]
)
def test_no_period(period: str) -> None:
    with pytest.raises(InputError, match="is not a number of seconds above 0, or a share"):
        registry.strategy(f"gtp/c[period={period}]")
