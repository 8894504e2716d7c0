"""The two gears agree to the last bit, and both give a valid run, in any world."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from foreplan import registry
from foreplan.checks.runs import check_run
from foreplan.engine.driver import StuckError
from foreplan.model import (
    Attempts,
    Freedom,
    Item,
    Link,
    Platform,
    Processor,
    Schedule,
    Situation,
    Workflow,
)
from foreplan.model.events import Event, LinkChanged, ProcessorGone, ProcessorJoined, SpeedChanged
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulate import simulate_run
from repeated import repetitions
from simulation.worlds import Case, random_case, same_record, specs

pytestmark = pytest.mark.usefixtures("light_searches")

PLANNERS = ["heft", "dls", "fcp"]
SPECS = specs(PLANNERS)
WORLDS = {
    "quiet": {"quiet": True},
    "speeds": {"losses": False, "stops": False},
    "losses": {"stops": False},
}


def both_gears(case: Case, spec: str) -> None:
    natively, by_events = case.run(spec), case.run(spec, by_events=True)
    same_record(natively, by_events)
    assert natively.events is None
    assert by_events.events is not None


@pytest.mark.parametrize("kind", WORLDS)
@pytest.mark.parametrize("spec", SPECS)
def test_any_world(spec: str, kind: str) -> None:
    for seed in repetitions(4, 0.3):
        both_gears(random_case(seed, **WORLDS[kind]), spec)


@pytest.mark.parametrize("planner", registry.planner_names())
def test_every_planner(planner: str) -> None:
    for seed in range(200, 205):
        both_gears(random_case(seed, stops=False), f"slack[planner={planner}]")


@pytest.mark.parametrize("spec", specs(["heft"]))
def test_logs_and_heap_grow(spec: str) -> None:
    """Many losses and changes of speed: more attempts, transfers and events than at first."""
    rng = np.random.default_rng(5)
    processors = [Processor(f"p{i}", f"h{i // 2}") for i in range(4)]
    platform = Platform.build(processors, Link(1.0, 0.5))
    items = [Item(3.0, i, [i + 1, i + 2, i + 3]) for i in range(22)]
    workflow = Workflow.from_items("w", [f"t{i}" for i in range(25)], [4.0] * 25, items)
    changes = list[Event]()
    for k in range(1, 60):
        changes += [(ProcessorJoined if k % 2 == 0 else ProcessorGone)(p, 3.0 * k) for p in (2, 3)]
        changes += [LinkChanged(link, 3.0 * k - 1, float(rng.uniform(0.2, 2))) for link in (1, 2)]
        changes += [SpeedChanged(p, 3.0 * k - 2, float(rng.uniform(0.2, 1))) for p in range(4)]
    work = np.full((25, 4), 4.0) * rng.uniform(0.5, 2, (25, 1))
    both_gears(Case(workflow, platform, Reality(work, changes)), spec)


@pytest.mark.parametrize("spec", specs(["heft"]))
def test_all_gone_is_stuck_until_one_returns(spec: str) -> None:
    platform = Platform.build([Processor("a"), Processor("b")])
    workflow = Workflow.from_items("w", ["x", "y"], [2.0, 2.0], [Item(1.0, 0, [1])])
    gone = [ProcessorGone(p, 1.0) for p in range(2)]
    work = np.full((2, 2), 2.0)
    for by_events in (False, True):
        with pytest.raises(StuckError, match="2 tasks"):
            Case(workflow, platform, Reality(work, gone)).run(spec, by_events)
    back = [*gone, ProcessorJoined(1, 7.0)]
    case = Case(workflow, platform, Reality(work, back))
    both_gears(case, spec)
    assert case.run(spec).makespan == 11.0


@pytest.mark.parametrize("spec", specs(["heft"]))
def test_no_tasks(spec: str) -> None:
    workflow = Workflow.from_items("none", [], [], [])
    platform = Platform.build([Processor("a")])
    both_gears(Case(workflow, platform, Reality(np.empty((0, 1)))), spec)


@dataclass
class Restless:
    """A planner that also moves what runs, as later strategies will; a few times, or for ever."""

    name: ClassVar[str] = "restless"
    times: int = 8

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        a = situation.attempts
        self.times -= 1
        over = ~np.isnan(a.finish) | (self.times < 0)
        done = Attempts(
            *(
                getattr(a, name)[over]
                for name in ("task", "processor", "start", "finish", "worked", "since")
            )
        )
        plan = registry.planner("dls").plan(replace(situation, attempts=done), freedom)
        stays = ~over
        stays[stays] = plan.processor[a.task[stays]] == a.processor[stays]
        start, finish = plan.start.copy(), plan.finish.copy()
        start[a.task[stays]] = a.start[stays]
        finish[a.task[stays]] = situation.expected_finish()[stays]
        return replace(plan, start=start, finish=finish)


def test_migration() -> None:
    """A running task that the new plan puts elsewhere is cancelled and runs there."""
    moved = 0
    for seed in range(25):
        case = random_case(seed, losses=False, stops=False)
        for name in ("always", "slack"):
            policy, _ = registry.strategy(name)
            natively, by_events = (
                simulate_run(
                    case.workflow,
                    case.platform,
                    case.estimates,
                    policy,
                    Restless(),
                    case.reality,
                    gear,
                )
                for gear in (False, True)
            )
            check_run(natively)
            same_record(natively, by_events)
            moved += natively.restarts
    assert moved > 10


# Known faults ------------------------------------------------------------------------------


def rewound_case() -> Case:
    """P's result A is lost while B, its other one, is on the host where P is made again."""
    platform = Platform.build(
        [Processor("p0", "a"), Processor("p1", "b"), Processor("p2", "a")], Link(1.0)
    )
    cost = np.array([[10.0, 1.0, 99.0], [1000.0, 1000.0, 50.0], [1.0, 1000.0, 1000.0]])
    items = [Item(20.0, 0, [2], "A"), Item(1.0, 0, [2], "B"), Item(1.0, 1, [2], "D")]
    columns = {f"p{k}": cost[:, k] for k in range(3)}
    workflow = Workflow.from_items("w", ["P", "Q", "X"], [np.nan] * 3, items, columns)
    return Case(workflow, platform, Reality(cost, [ProcessorGone(1, 5.0)]))


def test_a_copy_is_not_counted_twice() -> None:
    run = rewound_case().run("static")
    assert run.attempts.start[run.final_attempts()[2]] == 50.0  # when Q is done


def test_just_in_time_makes_room_for_what_was_lost() -> None:
    """X holds the only processor and waits for what P must make again."""
    platform = Platform.build([Processor("p0"), Processor("p1")], Link(1.0))
    cost = np.array([[10.0, 1.0], [1.0, 1000.0]])
    columns = {f"p{k}": cost[:, k] for k in range(2)}
    workflow = Workflow.from_items("w", ["P", "X"], [np.nan] * 2, [Item(20.0, 0, [1])], columns)
    case = Case(workflow, platform, Reality(cost, [ProcessorGone(1, 5.0)]))
    both_gears(case, "fifo")
    assert case.run("fifo").makespan == 16.0


def test_first_come_first_served_after_a_join() -> None:
    """The line keeps its order when a processor joins."""
    platform = Platform.build([Processor("p0"), Processor("p1", joins=5.0)])
    tasks = ["a", "b", "late", "early", "long"]
    items = [Item(0.0, 0, [3]), Item(0.0, 1, [2])]  # early is ready at 1, late at 2
    cost = [1.0, 1.0, 9.0, 9.0, 9.0]
    workflow = Workflow.from_items("w", tasks, cost, items)
    order = [tasks[t] for t in workflow.order]
    assert order.index("late") < order.index("early")
    changes = [ProcessorJoined(1, 5.0)]
    case = Case(workflow, platform, Reality(np.array([[c, c] for c in cost]), changes))
    started = [tasks[t] for t in case.run("fifo").attempts.task]
    assert started.index("early") < started.index("late")


def test_a_processor_that_stands_still() -> None:
    """Availability 0 for a while: the run goes on when it is back."""
    platform = Platform.build([Processor("p0")])
    workflow = Workflow.from_items("w", ["x", "y"], [2.0, 2.0], [Item(1.0, 0, [1])])
    changes = [
        SpeedChanged(0, 1.0, 0.0),
        SpeedChanged(0, 5.0, 1.0),
    ]
    case = Case(workflow, platform, Reality(np.full((2, 1), 2.0), changes))
    for spec in specs(["heft"]):
        both_gears(case, spec)
        assert case.run(spec).makespan == 8.0


def test_a_new_plan_while_the_only_processor_stands_still() -> None:
    """Nobody knows when it goes on, but it is there and will not leave."""
    platform = Platform.build([Processor("p0"), Processor("p1")])
    workflow = Workflow.from_items("w", ["x", "y"], [4.0, 4.0], [])
    changes = [
        SpeedChanged(0, 1.0, 0.0),
        ProcessorGone(1, 2.0),
        SpeedChanged(0, 5.0, 1.0),
    ]
    case = Case(workflow, platform, Reality(np.full((2, 2), 4.0), changes))
    both_gears(case, "static")
    assert case.run("static").makespan == 12.0


def test_slack_while_a_processor_stands_still() -> None:
    """The plan's makespan is infinite then, and infinity less infinity is no slack."""
    platform = Platform.build([Processor("p0"), Processor("p1")])
    cost = np.array([[4.0, 99.0], [99.0, 4.0], [99.0, 10.0]])
    columns = {f"p{k}": cost[:, k] for k in range(2)}
    workflow = Workflow.from_items("w", list("xyz"), [np.nan] * 3, [Item(0.0, 1, [2])], columns)
    changes = [
        SpeedChanged(0, 1.0, 0.0),
        SpeedChanged(0, 20.0, 1.0),
    ]
    work = cost * np.array([[1.0], [2.0], [1.0]])
    case = Case(workflow, platform, Reality(work, changes))
    both_gears(case, "slack")
    assert case.run("slack").makespan == 23.0


def test_a_new_plan_while_a_link_stands_still() -> None:
    """The kernel plans as if what is stuck on its way were sent anew; nobody will."""
    both_gears(random_case(54), "always[planner=heft]")


@pytest.mark.parametrize(
    ("seed", "spec"), [(35, "ideal"), (20, "fifo"), (42, "fifo"), (57, "fifo")]
)
def test_random_worlds_that_failed(seed: int, spec: str) -> None:
    both_gears(random_case(seed, stops=False), spec)


def test_a_change_of_speed_at_the_very_end_of_a_task() -> None:
    """Rounding must not let a task finish before the change that it was foreseen anew at."""
    platform = Platform.build([Processor("p0")])
    rng = np.random.default_rng(1)
    for _ in range(300):
        a, b = rng.uniform(0.1, 100, 2)
        rate = float(rng.uniform(0.1, 1))
        workflow = Workflow.from_items("w", ["x", "y"], [a, b], [])
        start = float(a)  # y follows x
        end = start + 0.3 + (b - 0.3) / rate
        changes = [
            SpeedChanged(0, start + 0.3, rate),
            SpeedChanged(0, end, 0.001),
            SpeedChanged(0, np.nextafter(end, 0), 0.5),
        ]
        both_gears(Case(workflow, platform, Reality(np.array([[a], [b]]), changes)), "static")
