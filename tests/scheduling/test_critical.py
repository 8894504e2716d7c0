from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from charts.schedules import even, placed, platform, random_schedule, workflow
from foreplan.model import Item, Schedule, Workflow
from foreplan.scheduling.critical import Bound, critical_path, critical_steps


def steps(schedule: Schedule) -> list[tuple[int, str]]:
    return [(step.task, step.bound.value) for step in critical_steps(schedule)]


def test_a_single_task() -> None:
    schedule = placed(workflow([3]), even(1), on=[0], start=[0])
    assert steps(schedule) == [(0, "nothing")]


def test_no_task() -> None:
    schedule = placed(workflow([]), even(1), on=[], start=[], check=False)
    assert critical_path(schedule) == []


def test_a_transfer_binds() -> None:
    wf = workflow([2, 3], [(0, 1, 4)])
    schedule = placed(wf, even(2), on=[0, 1], start=[0, 6])
    assert critical_steps(schedule)[1].item == 0
    assert steps(schedule) == [(0, "nothing"), (1, "data")]


def test_inside_a_host_data_are_there_at_once() -> None:
    wf = workflow([2, 3], [(0, 1, 400)])
    schedule = placed(wf, platform(2, per_host=2), on=[0, 1], start=[0, 2])
    assert steps(schedule) == [(0, "nothing"), (1, "data")]


def test_the_processor_binds() -> None:
    wf = workflow([2, 5, 3], [(0, 2, 1)])
    schedule = placed(wf, even(2), on=[0, 1, 1], start=[0, 0, 5])
    assert steps(schedule) == [(1, "nothing"), (2, "processor")]


def test_data_go_before_the_processor_and_small_indices_first() -> None:
    wf = workflow([2, 2, 4, 1], [(0, 3, 2), (1, 3, 2)])
    schedule = placed(wf, even(3), on=[0, 1, 2, 2], start=[0, 0, 0, 4])
    assert steps(schedule) == [(0, "nothing"), (3, "data")]


def test_an_idle_gap_begins_the_chain() -> None:
    wf = workflow([2, 3], [(0, 1, 1)])
    schedule = placed(wf, even(1), on=[0, 0], start=[0, 7])
    assert steps(schedule) == [(1, "nothing")]


def test_tasks_of_no_duration() -> None:
    """An entry and an exit that take no time: the chain goes through both."""
    wf = workflow([0, 4, 3, 0], [(0, 1, 0), (0, 2, 0), (1, 3, 0), (2, 3, 0)])
    schedule = placed(wf, even(2), on=[0, 0, 1, 0], start=[0, 0, 0, 4])
    assert steps(schedule) == [(0, "nothing"), (1, "data"), (3, "data")]


def test_only_tasks_of_no_duration() -> None:
    wf = workflow([0, 0, 0], [(0, 1, 0), (1, 2, 0)])
    schedule = placed(wf, even(1), on=[0, 0, 0], start=[0, 0, 0])
    assert critical_path(schedule) == [0, 1, 2]


def test_ties_at_the_end_take_the_latest_start() -> None:
    schedule = placed(workflow([5, 2, 3]), even(2), on=[0, 1, 1], start=[0, 0, 2])
    assert critical_path(schedule) == [1, 2]


def test_an_item_read_by_many_and_one_from_outside() -> None:
    items = [Item(2.0, 0, [1, 2], name="shared"), Item(9.0, None, [0], name="raw")]
    wf = Workflow.from_items("files", ["a", "b", "c"], [1, 2, 2], items)
    schedule = placed(wf, even(2), on=[0, 1, 1], start=[0, 3, 5])
    assert steps(schedule) == [(0, "nothing"), (1, "data"), (2, "processor")]


@pytest.mark.parametrize("seed", range(8))
def test_every_link_accounts_for_its_start(seed: int) -> None:
    schedule = random_schedule(120, 5, per_host=1 + seed % 2, seed=seed)
    path = critical_steps(schedule)
    assert schedule.finish[path[-1].task] == schedule.makespan
    assert path[0].bound is Bound.NOTHING
    assert schedule.start[path[0].task] == 0  # the greedy scheduler never waits for nothing
    host = schedule.platform.host[schedule.processor]
    for before, step in pairwise(path):
        a, b = before.task, step.task
        takes = 0.0
        if step.bound is Bound.PROCESSOR:
            assert schedule.processor[a] == schedule.processor[b]
        else:
            assert step.item is not None
            assert schedule.workflow.item_producer[step.item] == a
            size = schedule.workflow.item_size[step.item]
            takes = size * schedule.platform.time_per_unit[host[a], host[b]]
        assert schedule.start[b] == pytest.approx(schedule.finish[a] + takes)


def test_a_long_chain() -> None:
    n = 100_000
    wf = workflow([1.0] * n, [(i, i + 1, 0.0) for i in range(n - 1)])
    schedule = placed(wf, even(1), [0] * n, np.arange(n).tolist(), check=False)
    assert critical_path(schedule) == list(range(n))
