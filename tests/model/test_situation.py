"""Situation: when what runs should end, and where items are or are going."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foreplan.model import Attempts, Copies, Platform, Processor, Situation, Transfers, Workflow

NAN = float("nan")


def situation(now: float) -> Situation:
    """a has finished, b runs since 3 and takes 4 on q, c has not begun."""
    workflow = Workflow.from_items("w", ["a", "b", "c"], [2.0, 8.0, 1.0], [])
    platform = Platform.build([Processor("p"), Processor("q", speed=2.0)])
    start = Situation.at_start(workflow, platform)
    attempts = Attempts(
        task=np.array([1, 0]),
        processor=np.array([1, 0]),
        start=np.array([3.0, 0.0]),
        finish=np.array([NAN, 2.5]),
    )
    copies = Copies(item=np.array([4, 2]), host=np.array([1, 0]))
    transfers = Transfers(item=np.array([7]), host=np.array([1]), arrival=np.array([9.5]))
    return Situation(workflow, platform, start.estimates, now, attempts, copies, transfers)


def test_the_start_is_empty() -> None:
    start = situation(0.0)
    start = Situation.at_start(start.workflow, start.platform)
    assert start.now == 0.0
    assert start.estimates.cost.tolist() == [[2.0, 1.0], [8.0, 4.0], [1.0, 0.5]]
    assert len(start.attempts.task) == len(start.copies.item) == len(start.transfers.item) == 0
    assert start.expected_finish().tolist() == []
    assert [column.tolist() for column in start.known_arrivals()] == [[], [], []]


def test_a_running_task_should_end_after_its_estimate() -> None:
    assert situation(5.0).expected_finish().tolist() == [7.0, 2.5]


def test_an_overdue_task_should_end_now_and_a_fact_stays() -> None:
    assert situation(7.0).expected_finish().tolist() == [7.0, 2.5]
    assert situation(20.0).expected_finish().tolist() == [20.0, 2.5]


def test_copies_are_there_now_and_transfers_when_they_arrive() -> None:
    items, hosts, times = situation(5.0).known_arrivals()
    assert items.tolist() == [4, 2, 7]
    assert hosts.tolist() == [1, 0, 1]
    assert times.tolist() == [5.0, 5.0, 9.5]


def test_work_done_and_availability_tell_when_a_task_should_end() -> None:
    s = situation(5.0)
    part = replace(s.attempts, worked=np.array([1.0, 0.0]), since=np.array([4.0, 0.0]))
    assert replace(s, attempts=part).expected_finish().tolist() == [7.0, 2.5]
    half = replace(s, attempts=part, availability=np.array([1.0, 0.5]))
    assert half.expected_finish().tolist() == [10.0, 2.5]
    # what stands still is expected to go on at a hundredth of its speed
    assert replace(half, availability=np.zeros(2)).expected_finish().tolist() == [305.0, 2.5]
    done = replace(part, worked=np.array([4.0, 0.0]))
    stuck = replace(s, attempts=done, availability=np.zeros(2))
    assert stuck.expected_finish().tolist() == [45.0, 2.5]  # a tenth of it may be left


def test_usable_is_what_the_platform_says_unless_told_otherwise() -> None:
    s = situation(5.0)
    assert s.usable().tolist() == [True, True]
    left = replace(s, platform=replace(s.platform, leaves=np.array([5.0, 6.0])))
    assert left.usable().tolist() == [False, True]
    left = replace(left, platform=replace(s.platform, leaves=np.array([5.5, 6.0])))
    assert replace(left, present=np.array([True, False])).usable().tolist() == [True, False]
    at_once = replace(left, now=5.5, present=np.array([True, True]))
    assert at_once.usable().tolist() == [False, True]


def test_nothing_can_be_written_to() -> None:
    s = situation(5.0)
    parts = {"attempts": ("task", "processor", "start", "finish"), "copies": ("item", "host")}
    parts["transfers"] = ("item", "host", "arrival")
    for part, names in parts.items():
        for name in names:
            assert not getattr(getattr(s, part), name).flags.writeable, name


def test_nor_to_the_work_done_the_availability_and_who_is_there() -> None:
    s = situation(5.0)
    given = replace(s.attempts, worked=np.zeros(2), since=np.zeros(2))
    whole = replace(s, availability=np.ones(2), present=np.ones(2, dtype=np.bool_))
    arrays = [s.attempts.worked, given.worked, given.since, whole.availability, whole.present]
    assert [array is None or array.flags.writeable for array in arrays] == [False] * 5
