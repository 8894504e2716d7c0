"""Small workflows, platforms and records for the tests of the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from foreplan.arrays import FloatArray
from foreplan.history.predictor import Prediction, predict
from foreplan.history.records import History, TaskRecord, TransferRecord, categories_of
from foreplan.model import Platform, Processor, TaskSpec, Workflow


def bag(
    categories: Sequence[str | None],
    costs: Sequence[float] | None = None,
    processor_cost: Mapping[str, Sequence[float]] | None = None,
) -> Workflow:
    """Independent tasks t0, t1, ... of these categories."""
    none = np.zeros(0, dtype=np.int32)
    return Workflow.from_edges(
        "bag",
        [f"t{i}" for i in range(len(categories))],
        none,
        none,
        np.zeros(0),
        base_cost=None if costs is None else np.array(costs, dtype=np.float64),
        processor_cost={
            name: np.array(column, dtype=np.float64)
            for name, column in (processor_cost or {}).items()
        },
        specs={i: TaskSpec(category=name) for i, name in enumerate(categories)},
    )


def processors(n: int, speeds: Sequence[float] | None = None) -> Platform:
    """Processors p0, p1, ... of these speeds."""
    return Platform.build(
        [Processor(f"p{i}", speed=1.0 if speeds is None else speeds[i]) for i in range(n)]
    )


def asked(
    workflow: Workflow,
    machines: Sequence[str],
    records: History,
    sizes: FloatArray | None = None,
    speeds: Sequence[float] | None = None,
) -> Prediction:
    """The prediction with one processor on each machine."""
    platform = processors(len(machines), speeds)
    return predict(workflow, platform, machines, categories_of(workflow), records, sizes)


def task(
    category: str = "align",
    machine: str = "m0",
    seconds: float = 1.0,
    at: float = 1e9,
    size: float = float("nan"),
) -> TaskRecord:
    """A record of a task."""
    return TaskRecord(at, "run-1", "wf", category, machine, seconds, size)


def move(
    source: str = "m0", target: str = "m1", size: float = 1e6, seconds: float = 1.0, at: float = 1e9
) -> TransferRecord:
    """A record of a transfer."""
    return TransferRecord(at, "run-1", source, target, size, seconds)
