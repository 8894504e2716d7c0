from __future__ import annotations

import numpy as np
import pytest

from foreplan.charts.build import chart_of
from foreplan.charts.chart import NO_CATEGORY, OTHER, PALETTE, categories_of, unit_for
from foreplan.model import Item, Platform, Processor, Workflow

from .schedules import even, placed, random_schedule, workflow


def categories(names: list[str], given: list[str | None] | None = None) -> tuple[str, ...]:
    wf = workflow([1] * len(names), names=names, categories=given)
    found, of_task = categories_of(wf, wf.base_cost)
    assert len(of_task) == len(names)
    assert of_task.max(initial=0) < len(found) <= len(PALETTE)
    return found


def test_categories_as_given() -> None:
    assert categories(["a", "b", "c"], ["x", None, "y"]) == ("x", NO_CATEGORY, "y")


def test_categories_from_names() -> None:
    assert categories(["map_1", "map_2", "reduce.1", "reduce.2"]) == ("map", "reduce")
    assert len(categories(["n1", "n2", "n3"])) == 1
    assert len(categories(["ann", "bob", "cid", "dan"])) == 1
    assert len(categories(["1", "2", "a1", "a2"])) == 1


def test_more_categories_than_colours() -> None:
    names = [f"t{i}" for i in range(40)]
    found = categories(names, [f"kind{i % 20}" for i in range(40)])
    assert len(found) == len(PALETTE)
    assert found[-1] == OTHER


def test_rows_of_a_host_stand_together() -> None:
    pf = Platform.build(
        [Processor("p", host="a"), Processor("q", host="b"), Processor("r", host="a")]
    )
    chart = chart_of(placed(workflow([1, 2, 3]), pf, on=[0, 1, 2], start=[0, 0, 0]))
    assert [row.name for row in chart.rows] == ["p", "r", "q"]
    assert chart.bars.row.tolist() == [0, 2, 1]
    assert chart.grouped
    assert chart.groups() == [("a", 0, 2), ("b", 2, 3)]
    assert not chart_of(placed(workflow([1]), even(2), on=[0], start=[0])).grouped


def test_presence_and_utilisation() -> None:
    pf = Platform.build(
        [Processor("p", price=2), Processor("q", joins=4), Processor("r", leaves=2)]
    )
    chart_schedule = placed(workflow([8, 2]), pf, on=[0, 1], start=[0, 6])
    chart = chart_of(chart_schedule)
    assert [(row.begin, row.end) for row in chart.rows] == [(0, 8), (4, 8), (0, 2)]
    assert [row.busy for row in chart.rows] == [1, 0.5, 0]
    assert chart_schedule.utilisation == pytest.approx(10 / 14)
    assert chart.title == "example, planned by by hand"
    assert chart.facts == (
        "makespan 8 s",
        "cost 16",
        "mean utilisation 71%",
        "2 tasks on 3 processors",
    )


def test_an_item_moves_once_per_host() -> None:
    pf = Platform.build([Processor("p"), Processor("q", host="h"), Processor("r", host="h")])
    items = [Item(1.0, 0, [1, 2, 3]), Item(5.0, None, [0])]
    wf = Workflow.from_items("files", ["a", "b", "c", "d"], [1, 2, 2, 1], items)
    inputs = chart_of(placed(wf, pf, on=[0, 1, 2, 0], start=[0, 3, 2, 1])).inputs
    assert inputs.source.tolist() == [0, 0, 0, -1]
    assert inputs.target.tolist() == [1, 2, 3, 0]
    assert inputs.arrival.tolist() == [2, 2, 1, 0]
    assert inputs.shown.tolist() == [False, True, False, False]


def test_the_shown_transfers_are_those_between_hosts() -> None:
    schedule = random_schedule(200, 6, per_host=2)
    chart = chart_of(schedule)
    host = schedule.platform.host[schedule.processor]
    _, producers, consumers = schedule.workflow.dependencies()
    np.testing.assert_array_equal(chart.inputs.shown, host[producers] != host[consumers])
    assert (chart.inputs.arrival <= schedule.start[consumers] + 1e-6).all()


@pytest.mark.parametrize(
    ("span", "unit"),
    [(0, "s"), (0.01, "ms"), (1, "s"), (200, "s"), (900, "min"), (20_000, "h"), (1e6, "days")],
)
def test_units(span: float, unit: str) -> None:
    assert unit_for(span).name == unit
