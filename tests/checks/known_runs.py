"""A run that is known to the last second, and runs with one fact changed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from foreplan.model import Item, Link, Platform, Processor, Run, Workflow
from foreplan.simulation.reality import Reality
from simulation.worlds import Case


def platform() -> Platform:
    processors = [Processor("p0", "a"), Processor("p1", "b"), Processor("p2", "c")]
    return Platform.build(processors, Link(2.0, 1.0))


@cache
def calm() -> Run:
    """x on p0, then y on p0 and z on p1 (its input is moved from 10 to 17), then w on p0."""
    cost = np.array([[10.0, 99.0, 99.0], [20.0, 99.0, 99.0], [99.0, 5.0, 99.0], [4.0, 99.0, 99.0]])
    columns = {f"p{k}": cost[:, k] for k in range(3)}
    items = [Item(3.0, 0, [1, 2], "X"), Item(1.0, 2, [3], "Z"), Item(1.0, None, [0], "in")]
    workflow = Workflow.from_items("w", list("xyzw"), [np.nan] * 4, items, columns)
    run = Case(workflow, platform(), Reality(cost)).run("static")
    assert run.attempts.start.tolist() == [0, 10, 17, 30]
    assert run.transfers.arrival.tolist() == [17, 25]
    return run


def attempts(run: Run, k: int, **changed: Any) -> Run:
    """The run with other facts of one attempt."""
    return replace(run, attempts=changed_log(run.attempts, k, changed))


def transfers(run: Run, k: int, **changed: Any) -> Run:
    """The run with other facts of one transfer."""
    return replace(run, transfers=changed_log(run.transfers, k, changed))


def changed_log(log: Any, k: int, changed: dict[str, Any]) -> Any:
    columns = {}
    for name, value in changed.items():
        columns[name] = getattr(log, name).copy()
        columns[name][k] = value
    return replace(log, **columns)


def without(run: Run, log: str, k: int) -> Run:
    """The run without one attempt or transfer."""
    old = getattr(run, log)
    columns = {name: column for name, column in vars(old).items() if column is not None}
    kept = {name: np.delete(column, k) for name, column in columns.items()}
    return replace(run, **{log: replace(old, **kept)})
