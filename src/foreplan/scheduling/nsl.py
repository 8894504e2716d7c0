"""The normalised schedule length (Hernandez, Cole, section 6.3)."""

from __future__ import annotations

import numpy as np

from foreplan.arrays import FloatArray
from foreplan.model import Workflow


def mean_path(workflow: Workflow, cost: FloatArray) -> float:
    """The longest path by the tasks' mean costs over the processors (equation 2), without data.

    Where a task cannot run it has no cost, and that processor does not count.
    """
    able = np.isfinite(cost)
    weight = np.where(able, cost, 0.0).sum(axis=1) / np.maximum(1, able.sum(axis=1))
    _, producers, consumers = workflow.dependencies()
    order = np.argsort(workflow.position[consumers], kind="stable")
    ends = weight.copy()
    for producer, consumer in zip(
        producers[order].tolist(), consumers[order].tolist(), strict=True
    ):
        ends[consumer] = max(ends[consumer], ends[producer] + weight[consumer])
    return float(ends.max(initial=0.0))


def nsl(makespan: float, workflow: Workflow, cost: FloatArray) -> float:
    """The makespan over that path (equation 14); NaN if no task takes any time."""
    path = mean_path(workflow, cost)
    return makespan / path if path > 0 else float("nan")
