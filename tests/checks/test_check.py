"""The validator: each rule, broken alone, is told with the task's name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan.errors import InvalidScheduleError
from foreplan.model import (
    Attempts,
    Copies,
    Item,
    Link,
    Platform,
    Processor,
    Schedule,
    Situation,
    Transfers,
    Workflow,
)

A, B, C, D = range(4)
P, Q, R = range(3)
NAN = float("nan")


def problem() -> tuple[Workflow, Platform]:
    """a -> b, a -> c, c -> d. Processors p, q share a host; r is 1 + 2 x size away, until 40."""
    items = [Item(3.0, A, (B,)), Item(3.0, A, (C,), "x"), Item(0.5, C, (D,)), Item(9.0, None, (D,))]
    costs = {"p": [4.0, 5.0, 9.0, 2.0], "q": [6.0, 3.0, 9.0, 9.0], "r": [9.0, 9.0, 2.0, 1.0]}
    columns = {name: np.array(column) for name, column in costs.items()}
    workflow = Workflow.from_items("w", list("abcd"), [NAN] * 4, items, columns)
    processors = [Processor("p", "h"), Processor("q", "h"), Processor("r", leaves=40.0)]
    return workflow, Platform.build(processors, Link(2.0, startup=1.0))


def valid() -> Schedule:
    """a on p 0-4; b on q from 4 (same host: free); c on r from 4 + 7; d on p from 13 + 2."""
    rows = [(P, 0.0, 4.0), (Q, 4.0, 7.0), (R, 11.0, 13.0), (P, 15.0, 17.0)]
    return scheduled(rows)


def scheduled(rows: list[tuple[int, float, float]]) -> Schedule:
    processor, start, finish = zip(*rows, strict=True)
    return Schedule(
        "by hand",
        *problem(),
        np.array(processor, dtype=np.int32),
        np.array(start),
        np.array(finish),
    )


def changed(
    schedule: Schedule,
    task: int,
    processor: int | None = None,
    start: float | None = None,
    finish: float | None = None,
) -> Schedule:
    values = {"processor": processor, "start": start, "finish": finish}
    arrays = {}
    for name, value in values.items():
        arrays[name] = getattr(schedule, name).copy()
        if value is not None:
            arrays[name][task] = value
    return replace(schedule, **arrays)


def violations(schedule: Schedule, situation: Situation | None = None) -> list[str]:
    with pytest.raises(InvalidScheduleError) as caught:
        foreplan.check_schedule(schedule, situation)
    assert all(line in str(caught.value) for line in caught.value.violations[:10])
    return caught.value.violations


def midway(**parts: Any) -> Situation:
    """At 6: a ran on p from 0 to 5 (late), b runs on q since 5."""
    start = Situation.at_start(*problem())
    begun = attempts([(B, Q, 5.0, NAN), (A, P, 0.0, 5.0)])
    known: dict[str, Any] = {"now": 6.0, "attempts": begun}
    return replace(start, **(known | parts))


def attempts(rows: list[tuple[int, int, float, float]]) -> Attempts:
    task, processor, start, finish = zip(*rows, strict=True)
    return Attempts(np.array(task), np.array(processor), np.array(start), np.array(finish))


def midway_plan() -> Schedule:
    """c gets its input from p's host, sent now: 6 + 7; d on p from 15 + 2."""
    return scheduled([(P, 0.0, 5.0), (Q, 5.0, 8.0), (R, 13.0, 15.0), (P, 17.0, 19.0)])


def test_the_valid_ones_are_valid() -> None:
    foreplan.check_schedule(valid())
    foreplan.check_schedule(valid(), Situation.at_start(*problem()))
    foreplan.check_schedule(midway_plan(), midway())


@pytest.mark.parametrize("name", ["processor", "start", "finish"])
def test_shape_of_the_arrays(name: str) -> None:
    short = replace(valid(), **{name: getattr(valid(), name)[:3]})
    assert violations(short) == [f"{name} has 3 entries for 4 tasks"]


@pytest.mark.parametrize("processor", [-1, 3])
def test_a_task_on_no_processor(processor: int) -> None:
    assert violations(changed(valid(), C, processor)) == ["task 'c' is on no processor"]


@pytest.mark.parametrize("time", [NAN, float("inf"), float("-inf")])
@pytest.mark.parametrize("end", ["start", "finish"])
def test_a_task_without_a_time(end: str, time: float) -> None:
    broken = changed(valid(), D, start=time if end == "start" else None)
    broken = broken if end == "start" else changed(valid(), D, finish=time)
    assert violations(broken) == ["task 'd' has no time"]


@pytest.mark.parametrize("finish", [16.0, 18.0, 15.0, 14.0])
def test_durations(finish: float) -> None:
    (told,) = violations(changed(valid(), D, finish=finish))
    assert told == f"task 'd' takes {finish - 15:g} on 'p', but its cost there is 2"


def test_the_duration_is_the_estimate_s_and_not_the_file_s() -> None:
    start = Situation.at_start(*problem())
    slower = replace(start, estimates=replace(start.estimates, cost=start.estimates.cost * 2))
    told = violations(valid(), slower)
    assert {line.split("'")[1] for line in told if "but its cost" in line} == set("abcd")


def test_a_processor_that_has_not_joined() -> None:
    start = joining(15.0)
    told = violations(replace(valid(), platform=start.platform), start)
    # task d starts there too, but only once it has joined
    assert told == ["task 'a' runs from 0 to 4 on 'p', which is there from 15 to inf"]


def joining(time: float) -> Situation:
    workflow, platform = problem()
    return Situation.at_start(workflow, replace(platform, joins=np.array([time, 0.0, 0.0])))


def test_a_processor_that_is_not_there_against_the_plan() -> None:
    dead = replace(Situation.at_start(*problem()), present=np.array([True, True, False]))
    assert violations(valid(), dead) == ["task 'c' is planned on 'r', which cannot be used now"]
    # what has begun there is a fact
    foreplan.check_schedule(midway_plan(), midway(present=np.array([True, False, True])))


def test_a_processor_that_has_left() -> None:
    on_r = changed(valid(), D, R, 39.0, 40.0)
    foreplan.check_schedule(on_r)
    (told,) = violations(changed(valid(), D, R, 39.5, 40.5))
    assert told == "task 'd' runs from 39.5 to 40.5 on 'r', which is there from 0 to 40"


def test_overlap() -> None:
    # b moves to p, where it takes 5: right after a it fits, together with d it does not
    foreplan.check_schedule(changed(valid(), B, P, 4.0, 9.0))
    (told,) = violations(changed(valid(), B, P, 11.0, 16.0))
    assert told == "tasks 'b' and 'd' overlap on 'p': 16 > 15"


def test_overlap_inside_a_longer_task() -> None:
    (told,) = violations(changed(valid(), B, P, 14.0, 19.0))
    assert told == "tasks 'b' and 'd' overlap on 'p': 19 > 15"


def test_precedence_across_hosts() -> None:
    (told,) = violations(changed(valid(), C, start=10.5, finish=12.5))
    assert told == "task 'c' starts at 10.5, before its input 'x' arrives at 11"
    (told,) = violations(changed(valid(), D, start=14.5, finish=16.5))
    assert told == "task 'd' starts at 14.5, before its input 'c -> d' arrives at 15"


def test_precedence_inside_a_host_needs_no_transfer() -> None:
    foreplan.check_schedule(changed(valid(), D, R, 13.0, 14.0))
    (told,) = violations(changed(valid(), B, start=3.5, finish=6.5))
    assert told == "task 'b' starts at 3.5, before its input 'a -> b' arrives at 4"


def test_an_outside_input_is_everywhere() -> None:
    # d's item of size 9 from outside would take 19: nobody waits for it
    assert valid().start[D] == 15.0
    foreplan.check_schedule(valid())


def test_what_has_finished_stays() -> None:
    told = "task 'a' has begun, but the schedule puts it elsewhere"
    assert violations(changed(midway_plan(), A, Q), midway()) == [told]
    assert violations(changed(midway_plan(), A, start=0.5), midway()) == [told]
    assert violations(changed(midway_plan(), A, finish=4.0), midway()) == [told]


def test_what_runs_stays_until_its_expected_end() -> None:
    (told,) = violations(changed(midway_plan(), B, finish=8.5), midway())
    assert told == "task 'b' has begun, but the schedule puts it elsewhere"
    # at 9 it is overdue: it is expected to end now
    later = changed(changed(midway_plan(), C, start=16.0, finish=18.0), D, start=20.0, finish=22.0)
    told_later = violations(later, midway(now=9.0))
    assert told_later == ["task 'b' has begun, but the schedule puts it elsewhere"]
    foreplan.check_schedule(changed(later, B, finish=9.0), midway(now=9.0))


def test_nothing_starts_before_now() -> None:
    # all inputs of c are on p's host since 5, but at 6 it can only start at 6
    foreplan.check_schedule(on_q(8.0), midway())
    here = midway(attempts=attempts([(A, P, 0.0, 5.0)]))
    unbegun = changed(on_q(10.0), B, start=6.0, finish=9.0)
    foreplan.check_schedule(unbegun, here)
    (told,) = violations(changed(unbegun, B, start=5.5, finish=8.5), here)
    assert told == "task 'b' starts at 5.5, before now (6)"


def on_q(start: float) -> Schedule:
    plan = changed(midway_plan(), C, Q, start, start + 9.0)
    return changed(plan, D, P, start + 9.0, start + 11.0)


def test_what_is_sent_now_leaves_now() -> None:
    (told,) = violations(changed(midway_plan(), C, start=12.5, finish=14.5), midway())
    assert told == "task 'c' starts at 12.5, before its input 'x' arrives at 13"


def test_a_copy_is_there_now() -> None:
    known = midway(copies=Copies(np.array([1]), np.array([1])))
    at_once = changed(midway_plan(), C, start=6.0, finish=8.0)
    foreplan.check_schedule(at_once, known)
    (told,) = violations(at_once, midway())
    assert told == "task 'c' starts at 6, before its input 'x' arrives at 13"
    # a copy of another item, or on another host, is of no help
    for item, host in ((0, 1), (1, 0)):
        other = midway(copies=Copies(np.array([item]), np.array([host])))
        assert violations(at_once, other) == [told]


@pytest.mark.parametrize("arrival", [9.0, 20.0])
def test_a_transfer_arrives_when_it_is_expected(arrival: float) -> None:
    moving = Transfers(np.array([1]), np.array([1]), np.array([arrival]))
    known = midway(transfers=moving)
    then = changed(midway_plan(), C, start=arrival, finish=arrival + 2)
    then = changed(then, D, start=arrival + 4, finish=arrival + 6)
    foreplan.check_schedule(then, known)
    (told,) = violations(changed(then, C, start=arrival - 1, finish=arrival + 1), known)
    assert told == (
        f"task 'c' starts at {arrival - 1:g}, before its input 'x' arrives at {arrival:g}"
    )


def test_many_violations_are_counted() -> None:
    n = 15
    workflow = Workflow.from_items("w", [f"t{i}" for i in range(n)], [1.0] * n, [])
    platform = Platform.build([Processor(f"p{i}") for i in range(n)])
    zeros = np.zeros(n)
    wrong = Schedule("x", workflow, platform, np.arange(n, dtype=np.int32), zeros, zeros)
    told = violations(wrong)
    assert len(told) == n
    assert str(InvalidScheduleError(told)).endswith("and 5 more")
