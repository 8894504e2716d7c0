"""What is written is read back: through every format, whatever the workflow or platform."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from foreplan.errors import InputError
from foreplan.formats import (
    FORMATS,
    load,
    load_platform,
    platform_from_dict,
    platform_to_dict,
    save,
    save_platform,
    workflow_from_dict,
    workflow_to_dict,
    workflow_to_wfformat,
)
from foreplan.model import Item, Link, Platform, Processor, TaskSpec, Workflow
from foreplan.shell import check_listed
from repeated import examples

SOME = settings(
    deadline=None,
    max_examples=examples(50),
    suppress_health_check=[HealthCheck.differing_executors],
)

NAMES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
    st.sampled_from(
        ["yes", "1e3", "007", "null", "~", "0x1f", "1:30", "2001-01-01", "a: b", "- c"]
    ),
    st.sampled_from(["true", ".inf", "1_000", "<<", "=", "0o7", "#x", "x_ID0001", " lead", "é\n"]),
)
AMOUNTS = st.one_of(st.floats(1e-30, 1e25), st.integers(0, 10**6).map(float), st.just(0.0))


@st.composite
def workflows(draw: st.DrawFn, one_cost: bool = False) -> Workflow:
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    n = len(names)
    base = np.array(draw(st.lists(AMOUNTS, min_size=n, max_size=n)))
    columns = {}
    if not one_cost:
        # by task: one cost for all, a cost by processor, or none
        kind = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
        base[kind > 0] = np.nan
        for processor in draw(st.lists(NAMES, max_size=3, unique=True)):
            column = np.array(draw(st.lists(AMOUNTS, min_size=n, max_size=n)))
            columns[processor] = np.where(kind == 1, column, np.nan)
        columns = {p: c for p, c in columns.items() if not np.isnan(c).all()}
    forward = list(combinations(range(n), 2))
    chosen = draw(st.lists(st.sampled_from(forward), unique=True)) if forward else []
    items = [Item(draw(AMOUNTS), p, (c,)) for p, c in chosen]
    for file in draw(st.lists(NAMES, max_size=4, unique=True)):
        producer = draw(st.one_of(st.none(), st.integers(0, n - 1)))
        after = range(0 if producer is None else producer + 1, n)
        readers = [task for task in after if draw(st.booleans())]
        if readers or producer is not None:
            items.append(Item(draw(AMOUNTS), producer, readers, file))
    text = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
    specs = {i: TaskSpec(draw(st.one_of(st.none(), NAMES)), draw(text)) for i in range(n)}
    specs = {i: spec for i, spec in specs.items() if spec != TaskSpec()}
    workflow = Workflow.from_items(draw(NAMES), names, base, items, columns, specs)
    try:
        check_listed(workflow)
    except InputError:  # a command names what another task makes: it would not be read
        reject()
    return workflow


@st.composite
def platforms(draw: st.DrawFn) -> Platform:
    hosts = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    processors = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=5, unique=True)):
        joins = draw(st.floats(0, 100))
        leaves = draw(st.one_of(st.just(float("inf")), st.floats(101, 200)))
        speed = draw(st.floats(1e-3, 1e3))
        host = draw(st.one_of(st.none(), st.sampled_from(hosts)))
        money = {"price": draw(AMOUNTS), "billing": draw(AMOUNTS)}
        processors.append(Processor(name, host, speed, joins=joins, leaves=leaves, **money))
    used = list(dict.fromkeys(p.host or p.name for p in processors))
    links = st.builds(Link, AMOUNTS, AMOUNTS, AMOUNTS)
    pairs = {pair: draw(links) for pair in combinations(used, 2) if draw(st.booleans())}
    return Platform.build(processors, draw(links), pairs)


def assert_same_workflow(a: Workflow, b: Workflow) -> None:
    assert (a.name, a.task_names, a.item_names) == (b.name, b.task_names, b.item_names)
    assert dict(a.specs) == dict(b.specs)
    for array in ("base_cost", "item_size", "item_producer", "use_ptr", "use_task"):
        assert np.array_equal(getattr(a, array), getattr(b, array), equal_nan=array == "base_cost")
    assert a.processor_cost.keys() == b.processor_cost.keys()
    for processor, column in a.processor_cost.items():
        assert np.array_equal(column, b.processor_cost[processor], equal_nan=True)


def assert_same_platform(a: Platform, b: Platform) -> None:
    assert (a.processor_names, a.host_names, a.network) == (
        b.processor_names,
        b.host_names,
        b.network,
    )
    of_processors = ("host", "speed", "price", "billing", "joins", "leaves")
    for array in (*of_processors, "startup", "time_per_unit", "link_price"):
        assert np.array_equal(getattr(a, array), getattr(b, array))


@SOME
@given(workflows())
def test_a_workflow_through_plain_values(workflow: Workflow) -> None:
    assert_same_workflow(workflow_from_dict(workflow_to_dict(workflow)), workflow)


@pytest.mark.parametrize("format", ["yaml", "json"])
@SOME
@given(workflow=workflows())
def test_a_workflow_through_text(format: str, workflow: Workflow) -> None:
    write = FORMATS[format].write
    assert write is not None
    assert_same_workflow(FORMATS[format].read(write(workflow), ""), workflow)


@SOME
@given(platforms())
def test_a_platform_through_plain_values(platform: Platform) -> None:
    assert_same_platform(platform_from_dict(platform_to_dict(platform)), platform)


@SOME
@given(workflows(one_cost=True))
def test_what_wfformat_can_say_is_kept(workflow: Workflow) -> None:
    write = FORMATS["wfformat"].write
    assert write is not None
    again = FORMATS["wfformat"].read(write(workflow), "")
    assert (again.name, again.task_names) == (workflow.name, workflow.task_names)
    assert again.base_cost.tolist() == workflow.base_cost.tolist()
    assert dict(again.specs) == dict(workflow.specs)
    assert _named(again).items() >= _named(workflow).items()
    assert _pairs(again) == _pairs(workflow)
    # once edges with a volume are files, nothing changes any more
    assert workflow_to_wfformat(again) == workflow_to_wfformat(workflow)


def _named(workflow: Workflow) -> dict[str, tuple[float, int, tuple[int, ...]]]:
    ends = workflow.use_ptr.tolist()
    return {
        name: (
            float(workflow.item_size[i]),
            int(workflow.item_producer[i]),
            tuple(workflow.use_task[ends[i] : ends[i + 1]].tolist()),
        )
        for i, name in enumerate(workflow.item_names or ())
        if name is not None
    }


def _pairs(workflow: Workflow) -> dict[tuple[int, int], Any]:
    """The data between two tasks; all of it, whatever the items."""
    volumes: dict[tuple[int, int], float] = {}
    items, producers, consumers = workflow.dependencies()
    for item, p, c in zip(items.tolist(), producers.tolist(), consumers.tolist(), strict=True):
        volume = volumes.get((p, c), 0.0) + float(workflow.item_size[item])
        volumes[p, c] = min(volume, float(np.finfo(float).max))
    return {pair: pytest.approx(volume) for pair, volume in volumes.items()}


@SOME
@given(workflows(one_cost=True))
def test_what_stg_can_say_is_kept(workflow: Workflow) -> None:
    write = FORMATS["stg"].write
    assert write is not None
    again = FORMATS["stg"].read(write(workflow), "")
    assert again.task_names == tuple(str(i) for i in range(workflow.n_tasks))
    assert again.base_cost.tolist() == workflow.base_cost[workflow.order].tolist()
    assert _pairs(again) == _pairs(workflow)  # drawn in a topological order already
    assert write(again) == write(workflow)


@pytest.mark.parametrize("name", ["w.yaml", "w.yml", "w.json", "W.JSON"])
def test_files(tmp_path: Path, name: str) -> None:
    workflow = workflow_from_dict(
        {"tasks": {"a": {"cost": 1, "outputs": ["f"]}, "b": {"inputs": ["f"]}}, "files": {"f": 2}}
    )
    save(workflow, tmp_path / name)
    assert_same_workflow(load(tmp_path / name), workflow)
    assert_same_workflow(load(str(tmp_path / name)), workflow)
    platform = platform_from_dict({"processors": {"a": None, "b": {"joins": 3}}})
    save_platform(platform, tmp_path / name)
    assert_same_platform(load_platform(tmp_path / name), platform)
