"""What tasks are known to need of memory counts when a run begins, if it may matter."""

from pathlib import Path

import numpy as np
import pytest

from foreplan.formats import load
from foreplan.history.records import History, Origin, commands_of
from foreplan.model import Item, Platform, Processor, TaskSpec, Workflow
from foreplan.model.amounts import Amount
from foreplan.model.resources import MEMORY, Host, Needs, Request
from foreplan.runs.estimates import Estimating, Learner

MB = 1e6


def machine(memory: float | None, cores: int = 2) -> Platform:
    has = {"h": Host("h", {} if memory is None else {MEMORY: memory})}
    return Platform.build([Processor(f"p{c}", "h") for c in range(cores)], has=has)


def known(memory: float | None, request: Request | None = None) -> Estimating:
    """Two tasks of a category that has had so much memory, the second with a request."""
    specs = {0: TaskSpec("alloc"), 1: TaskSpec("alloc", request=request)}
    items: list[Item] = []
    workflow = Workflow.from_items("w", ["a", "b"], [1.0, 1.0], items, specs=specs)
    return known_of(workflow, memory)


def known_of(workflow: Workflow, memory: float | None) -> Estimating:
    history = History()
    for _ in range(10):
        if memory is None:
            break
        history.observe("alloc", "h", 1.0, 0.0, used=(memory, False, 1.0))
    origin, learner = Origin.of(workflow, Path()), Learner(None, lambda line: None)
    return Estimating(workflow, "", origin, commands_of(workflow), history, learner)


def needs(estimating: Estimating, platform: Platform) -> Needs | None:
    prediction = estimating.expected(platform, ["h"] * platform.n_processors)
    return estimating.with_memory(prediction, platform).estimates.needs


def test_what_is_learnt_counts_where_two_of_them_do_not_fit() -> None:
    found = needs(known(150 * MB), machine(250 * MB))
    assert found is not None
    assert (found.of(MEMORY) > 150 * MB).all()
    assert (found.of(MEMORY) < 250 * MB).all()


@pytest.mark.parametrize("memory", [None, 1000 * MB])
def test_where_all_fit_or_nobody_counts_it_everything_is_as_without(memory: float | None) -> None:
    assert needs(known(150 * MB), machine(memory)) is None


def test_where_nothing_is_known_nothing_is_needed() -> None:
    assert needs(known(None), machine(250 * MB)) is None


def test_who_asks_gets_what_it_asks_for() -> None:
    found = needs(known(150 * MB, Request(memory=Amount("10MB"))), machine(250 * MB))
    assert found is not None
    assert found.of(MEMORY)[1] == 10 * MB
    assert found.of(MEMORY)[0] > 150 * MB


@pytest.mark.parametrize(
    "defaults", [{"memory": "10MB"}, {"memory": "1MB", "categories": {"alloc": {"memory": "10MB"}}}]
)
def test_a_default_is_a_request(defaults: dict[str, object]) -> None:
    tasks = {"a": {"category": "alloc", "cost": 1}, "b": {"category": "alloc", "memory": "20MB"}}
    workflow = load({"name": "w", "defaults": defaults, "tasks": tasks})
    found = needs(known_of(workflow, 150 * MB), machine(250 * MB))
    assert found is not None
    assert found.of(MEMORY).tolist() == [10 * MB, 20 * MB]


def test_what_ran_out_of_memory_begins_with_more_next_time() -> None:
    estimating = known(None, Request(memory=Amount("10MB")))
    estimating.history.ran_short = {("alloc", estimating.commands[1]): 20 * MB}
    found = needs(estimating, machine(250 * MB))
    assert found is not None
    assert found.of(MEMORY)[1] == 40 * MB
    asks_more = known(None, Request(memory=Amount("30MB")))
    asks_more.history.ran_short = dict(estimating.history.ran_short)
    found = needs(asks_more, machine(250 * MB))
    assert found is not None
    assert found.of(MEMORY)[1] == 30 * MB


def test_what_needs_more_than_there_is_gets_all_of_it() -> None:
    found = needs(known(150 * MB), machine(100 * MB))
    assert found is not None
    assert np.array_equal(found.of(MEMORY), [100 * MB, 100 * MB])
