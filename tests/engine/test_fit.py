"""Tasks that take cores, amounts and tokens: how they start, wait, pass and are lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from foreplan import registry
from foreplan.engine.check_state import IllegalEventError
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.retries import RetryPolicy
from foreplan.engine.state import TaskState
from foreplan.model import Estimates, Item, Platform, Processor, Schedule, TaskSpec, Workflow
from foreplan.model.amounts import Amount
from foreplan.model.causes import CAUSE, OUT_OF_MEMORY
from foreplan.model.events import (
    CancelTask,
    Command,
    NewEstimates,
    NewPlan,
    ProcessorGone,
    ProcessorJoined,
    Replan,
    SpeedChanged,
    StartTask,
    TaskFailed,
    TaskFinished,
)
from foreplan.model.resources import Cores, Host, Request, declared_needs

GB = 1e9


def platform(cores: Sequence[int] = (4,), memory: Sequence[float] = (8,)) -> Platform:
    """Hosts a, b, ... of so many cores and gigabytes; one licence for all."""
    processors, has = [], {}
    for h, (count, gigabytes) in enumerate(zip(cores, memory, strict=True)):
        name = "abc"[h]
        processors += [Processor(f"{name}-{c + 1}", name) for c in range(count)]
        has[name] = Host(name, {"memory": gigabytes * GB})
    return Platform.build(processors, has=has, pools={"licence": 1.0})


def workflow(
    requests: Mapping[str, Request], costs: Mapping[str, float], items: Sequence[Item] = ()
) -> Workflow:
    """Tasks by name with what they ask for."""
    specs = {k: TaskSpec(request=request) for k, request in enumerate(requests.values())}
    names = list(requests)
    return Workflow.from_items("w", names, [costs[n] for n in names], list(items), specs=specs)


def asks(cores: int = 1, memory: float = 0, licence: float = 0) -> Request:
    return Request(
        cores=(cores,),
        memory=Amount(f"{memory:g}GB") if memory else None,
        pools=(("licence", licence),) if licence else (),
    )


class Following:
    """A coordinator that follows a plan by hand: cores and starts by task."""

    def __init__(
        self,
        wf: Workflow,
        pf: Platform,
        rows: Sequence[Sequence[int]],
        start: Sequence[float],
        retry: RetryPolicy | None = None,
        reads: Mapping[int, float] | None = None,
    ) -> None:
        estimates = Estimates.declared(wf, pf)
        assert estimates.needs is not None
        static = registry.strategy("static")[0]
        self.c = Coordinator(wf, pf, estimates, static, retry, reads=reads)
        self.wf, self.pf, self.rows, self.start = wf, pf, rows, start
        self.c.begin()
        self.first = self.follow(rows, start, 0.0)

    def follow(
        self, rows: Sequence[Sequence[int]], start: Sequence[float], now: float
    ) -> list[Command]:
        flat = np.array([core for row in rows for core in row], dtype=np.int32)
        ptr = np.cumsum([0, *map(len, rows)]).astype(np.int32)
        first, begins = np.array([row[0] for row in rows]), np.array(start, dtype=np.float64)
        takes = self.c.estimates.cost[np.arange(len(rows)), first]
        plan = Schedule(
            "by hand", self.wf, self.pf, first, begins, begins + takes,
            cores=Cores(ptr, flat), needs=self.c.estimates.needs,
        )  # fmt: skip
        return self.c.handle(NewPlan(now, self.c.version, plan))

    def hears(self, event: TaskFinished | TaskFailed | ProcessorGone | SpeedChanged) -> list[str]:
        """The names of what starts then."""
        commands = self.c.handle(event)
        self.c.check_state()
        return self.names(commands)

    def names(self, commands: Sequence[Command]) -> list[str]:
        return [self.wf.task_names[c.task] for c in commands if isinstance(c, StartTask)]

    def attempt(self, name: str) -> int:
        return int(self.c.state.arrays.attempt[self.wf.task_names.index(name)])


def test_a_task_takes_all_of_its_cores_and_amounts_or_none() -> None:
    wf = workflow(
        {"a": asks(2, 3), "wide": asks(4, 1), "b": asks(1, 6)}, {"a": 5, "wide": 5, "b": 5}
    )
    f = Following(wf, platform(), [[0, 1], [0, 1, 2, 3], [2]], [0, 5, 0])
    started = [c for c in f.first if isinstance(c, StartTask)]
    assert [(c.task, c.processor, c.cores, c.amounts) for c in started] == [
        (0, 0, (0, 1), (3 * GB, 0.0))
    ]  # b finds 5 GB of the 6 that it needs
    assert f.c.state.cores_of(0) == (0, 1)
    assert f.c.state.free_amounts()[0].tolist() == [[5 * GB, 0.0]]
    assert f.hears(TaskFinished(0, 5.0)) == ["b"]
    assert f.hears(TaskFinished(1, 10.0)) == ["wide"]
    assert f.hears(TaskFinished(2, 15.0)) == []
    assert f.c.done
    assert f.c.state.free_amounts()[0].tolist() == [[8 * GB, 0.0]]


def test_an_attempt_is_lost_with_any_of_its_cores() -> None:
    wf = workflow({"wide": asks(3, 3)}, {"wide": 5})
    f = Following(wf, platform((4,)), [[0, 1, 2]], [0])
    f.c.handle(ProcessorGone(2, 1.0))
    f.c.check_state()
    assert f.c.state.count(TaskState.WAITING) == 1
    assert f.c.state.free_amounts()[0].tolist() == [[8 * GB, 0.0]]
    assert f.c.asked is not None  # it has no place any more
    assert f.c.asked.forced


def test_what_no_host_can_run_waits_for_one_that_can() -> None:
    """Two of three cores are left: others go on, and it is planned when the third is back."""
    wf = workflow({"wide": asks(3), "small": asks(1)}, {"wide": 5, "small": 9})
    f = Following(wf, platform((4, 2), (8, 8)), [[0, 1, 2], [4]], [0, 0])
    f.c.handle(ProcessorGone(0, 1.0))
    f.c.handle(ProcessorGone(1, 1.0))
    assert f.c.shut_out().tolist() == [True, False]
    assert not f.c.stranded()
    replan = f.c.handle(ProcessorJoined(1, 3.0))[-1]
    assert isinstance(replan, Replan)
    assert replan.forced
    assert f.names(f.follow([[1, 2, 3], [4]], [3, 0], 3.0)) == ["wide"]


def test_it_goes_at_the_pace_of_its_first_core() -> None:
    wf = workflow({"wide": asks(2)}, {"wide": 10})
    f = Following(wf, platform(), [[0, 1]], [0])
    f.hears(SpeedChanged(1, 2.0, 0.1))
    assert f.c.state.expected_ends(2.0)[1].tolist() == [10.0, 10.0]
    f.hears(SpeedChanged(0, 2.0, 0.5))
    assert f.c.state.expected_ends(2.0)[1].tolist() == [18.0, 18.0]
    assert f.c.state.worked(0, 4.0) == 3.0


def test_who_is_first_in_line_reserves_and_others_pass_if_they_do_not_delay_it() -> None:
    """8 GB: `runs` holds 5 until 10. `big` needs 6 and reserves from 10 on.

    `short` ends before, `slim` leaves enough, `long` does not.
    """
    wf = workflow(
        {"runs": asks(1, 5), "big": asks(1, 6), "long": asks(1, 3), "short": asks(1, 3)},
        {"runs": 10, "big": 5, "long": 11, "short": 9},
    )
    f = Following(wf, platform((4,)), [[0], [1], [2], [3]], [0, 1, 2, 3])
    assert f.names(f.first) == ["runs", "short"]
    assert f.hears(TaskFinished(f.attempt("short"), 9.0)) == []
    assert f.hears(TaskFinished(f.attempt("runs"), 12.0)) == ["big"]
    assert f.hears(TaskFinished(f.attempt("big"), 17.0)) == ["long"]
    wf = workflow(
        {"runs": asks(1, 5), "big": asks(1, 6), "slim": asks(1, 2)},
        {"runs": 10, "big": 5, "slim": 99},
    )
    f = Following(wf, platform((4,)), [[0], [1], [2]], [0, 1, 2])
    assert f.names(f.first) == ["runs", "slim"]


def test_a_pool_is_reserved_across_hosts() -> None:
    wf = workflow(
        {"runs": asks(1, licence=1), "first": asks(1, licence=1), "second": asks(1, licence=1)},
        {"runs": 10, "first": 5, "second": 1},
    )
    f = Following(wf, platform((1, 2), (8, 8)), [[0], [2], [1]], [0, 1, 2])
    assert f.names(f.first) == ["runs"]
    assert f.hears(TaskFinished(0, 10.0)) == ["first"]
    assert f.hears(TaskFinished(1, 15.0)) == ["second"]


def test_a_wide_task_of_the_ready_queue_is_not_starved() -> None:
    """Two small ones run for ever in turn, were it not for the wide one that reserves."""
    names = ["a", "wide", *[f"s{k}" for k in range(8)]]
    requests = {name: asks(2 if name == "wide" else 1) for name in names}
    wf = workflow(requests, {name: 10.0 if name != "a" else 6.0 for name in names})
    c = Coordinator(
        wf, platform((2,), (8,)), Estimates.declared(wf, platform((2,), (8,))),
        registry.strategy("fifo")[0],
    )  # fmt: skip
    started = [wf.task_names[x.task] for x in c.begin() if isinstance(x, StartTask)]
    now = 0.0
    while not c.done:
        now += 10.0
        for attempt in c.state.running():
            commands = c.handle(TaskFinished(attempt.number, now))
            started += [wf.task_names[x.task] for x in commands if isinstance(x, StartTask)]
            c.check_state()
    assert started.index("wide") <= 2


def test_a_ready_task_takes_the_largest_width_that_is_idle_and_not_wasted() -> None:
    wf = Workflow.from_items(
        "w", ["m", "n"], [12.0, 12.0], [],
        specs={
            0: TaskSpec(request=Request(cores=(1, 2, 4), parallel=1.0)),
            1: TaskSpec(request=Request(cores=(1, 2, 4), parallel=0.5)),
        },
    )  # fmt: skip
    c = Coordinator(
        wf, platform((6,), (8,)), Estimates.declared(wf, platform((6,), (8,))),
        registry.strategy("fifo")[0],
    )  # fmt: skip
    widths = [len(x.cores) for x in c.begin() if isinstance(x, StartTask)]
    assert widths == [4, 2]  # on four cores the other one would waste more than half of them


def test_out_of_memory_doubles_what_a_task_needs_up_to_the_largest_host() -> None:
    wf = workflow({"t": asks(1, 3)}, {"t": 5})
    f = Following(wf, platform((1, 1), (4, 10)), [[0]], [0], RetryPolicy(retries=0))
    dead = {CAUSE: OUT_OF_MEMORY}
    f.c.handle(TaskFailed(0, 1.0, detail=dead))
    assert f.c.estimates.needs is not None
    assert f.c.estimates.needs.of("memory").tolist() == [6 * GB]
    f.follow([[1]], [1], 1.0)
    assert f.c.state.amounts_of(1)[0] == 6 * GB
    f.c.handle(TaskFailed(1, 2.0, detail=dead))
    assert f.c.estimates.needs.of("memory").tolist() == [10 * GB]
    f.follow([[1]], [2], 2.0)
    # other estimates do not make it forget
    f.c.handle(NewEstimates(2.5, Estimates.declared(wf, f.pf), f.pf))
    assert f.c.estimates.needs is not None
    assert f.c.estimates.needs.of("memory").tolist() == [10 * GB]
    f.c.handle(TaskFailed(2, 3.0, detail=dead))
    assert f.c.given_up == [0]
    assert "10 GB of memory were not enough" in f.c.tries.exhausted[0]


def by_inputs() -> Workflow:
    """A task whose memory is by what two others make, and by a file."""
    items = [Item(0, 0, [2], "x"), Item(0, 1, [2], "y"), Item(0, None, [2], "in")]
    requests = {"a": asks(), "b": asks(), "t": Request(memory=Amount("1GB * attempt + inputs"))}
    return workflow(requests, {"a": 5, "b": 6, "t": 5}, items)


def made(attempt: int, time: float, **sizes: float) -> TaskFinished:
    return TaskFinished(attempt, time, detail={"sizes": sizes})


def test_memory_by_inputs_is_asked_for_when_all_of_them_are_made() -> None:
    f = Following(
        by_inputs(), platform((2,), (8,)), [[0], [1], [0]], [0, 0, 6], reads={2: 0.5 * GB}
    )
    assert f.hears(made(0, 5.0, x=2 * GB)) == []
    assert f.c.estimates.needs is not None
    assert f.c.estimates.needs.of("memory")[2] == GB  # nobody knows all of it yet
    assert f.hears(made(1, 6.0, y=3 * GB)) == ["t"]
    assert f.c.state.amounts_of(2)[0] == 6.5 * GB
    # neither other estimates nor a failure make it forget
    f.c.handle(NewEstimates(6.5, Estimates.declared(f.wf, f.pf), f.pf))
    assert f.c.estimates.needs.of("memory")[2] == 6.5 * GB
    f.c.handle(TaskFailed(2, 7.0))
    assert f.c.estimates.needs.of("memory")[2] == 7.5 * GB


def test_without_the_size_of_an_input_that_is_said() -> None:
    f = Following(by_inputs(), platform((2,), (8,)), [[0], [1], [0]], [0, 0, 6], reads={2: 0.0})
    f.hears(made(0, 5.0))
    assert f.hears(made(1, 6.0, y=3 * GB)) == ["t"]
    assert f.c.state.amounts_of(2)[0] == 4 * GB
    said = "what t asks for is computed without the size of x, which is not known"
    assert f.c.tries.unknown == [said]


def test_what_outgrows_its_host_gets_another_place() -> None:
    pf, rows, start = platform((2, 1), (4, 8)), [[0], [1], [0]], [0, 0, 6]
    f = Following(by_inputs(), pf, rows, start, reads={2: 0.0})
    f.hears(made(0, 5.0, x=2 * GB))
    commands = f.c.handle(made(1, 6.0, y=3 * GB))
    f.c.check_state()
    assert f.names(commands) == []
    asked = commands[-1]
    assert isinstance(asked, Replan)
    assert asked.forced
    assert asked.reason == "t needs more than its host has"
    one = f.c.state.copy()
    one.set_needs(f.wf, pf, f.c.estimates)  # all of them anew comes to the same
    for name in ("need", "allowed", "paid", "free"):
        assert np.array_equal(getattr(one.arrays, name), getattr(f.c.state.arrays, name))
    f.follow([[0], [1], [2]], [0, 0, 6], 6.0)
    f.c.check_state()
    assert f.c.state.places().tolist() == [0, 1, 2]
    # a run that knows no sizes, as those of former versions, goes by what is declared
    old = Following(by_inputs(), pf, rows, start)
    old.hears(made(0, 5.0, x=2 * GB))
    assert old.hears(made(1, 6.0, y=3 * GB)) == ["t"]
    assert old.c.state.amounts_of(2)[0] == GB


def test_another_failure_is_counted_and_a_formula_knows_the_try() -> None:
    request = Request(memory=Amount("2GB * attempt"))
    wf = workflow({"t": request}, {"t": 5})
    f = Following(wf, platform((1,), (8,)), [[0]], [0], RetryPolicy(retries=1))
    f.c.handle(TaskFailed(0, 1.0))
    assert f.c.estimates.needs is not None
    assert f.c.estimates.needs.of("memory").tolist() == [4 * GB]
    f.follow([[0]], [1], 1.0)
    f.c.handle(TaskFailed(1, 2.0))
    assert f.c.given_up == [0]


def test_other_needs_reach_what_has_not_begun() -> None:
    wf = workflow({"a": asks(1, 3), "b": asks(1, 6)}, {"a": 5, "b": 5})
    f = Following(wf, platform((2,)), [[0], [1]], [0, 0])
    assert f.names(f.first) == ["a"]
    needs = declared_needs(wf)
    assert needs is not None
    less = replace(needs, amount=needs.amount * 0.5)
    new = NewEstimates(1.0, replace(f.c.estimates, needs=less), f.pf)
    assert f.names(f.c.handle(new)) == ["b"]
    assert f.c.state.amounts_of(0)[0] == 3 * GB  # that it began with
    f.c.check_state()
    with pytest.raises(IllegalEventError, match="widths"):
        f.c.handle(NewEstimates(2.0, Estimates(f.c.estimates.cost), f.pf))


def test_a_plan_moves_a_running_task_to_other_cores() -> None:
    wf = workflow({"wide": asks(2)}, {"wide": 5})
    f = Following(wf, platform((4,)), [[0, 1]], [0])
    f.c.asked = Replan(f.c.version, 1.0, "by hand", forced=True)
    commands = f.follow([[0, 2]], [1], 1.0)
    assert [type(x) for x in commands] == [CancelTask, StartTask]
    assert f.c.state.cores_of(1) == (0, 2)
    f.c.check_state()
