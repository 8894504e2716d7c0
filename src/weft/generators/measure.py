"""What a workflow's CCR and heterogeneity are, whoever made it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weft.arrays import FloatArray
from weft.model import Workflow


def measured_ccr(workflow: Workflow) -> float:
    """CCR: the mean transfer time of an edge over the mean computation cost.

    An edge's transfer time is its volume, as on the unit network (bandwidth 1, startup 0); the
    computation cost is averaged over tasks and processors (Topcuoglu, Hariri, Wu, section 5.2).
    A file that several tasks read counts once per reader. Without edges the CCR is 0.
    """
    items, _, _ = workflow.dependencies()
    if len(items) == 0:
        return 0.0
    computation = mean_computation(workflow.base_cost, workflow.processor_cost)
    communication = float(workflow.item_size[items].mean())
    return communication / computation if computation > 0 else float("inf")


def measured_beta(workflow: Workflow) -> float:
    """Beta: the width of the uniform distribution of w_ij / w_i over the processors j.

    With w_ij uniform in w_i (1 - beta/2) .. w_i (1 + beta/2), the variance over j is
    w_i^2 beta^2 / 12. Neither w_i nor the variance is known, but per task, over P processors,
    the sample variance s^2 (divisor P - 1) estimates the variance without bias, and
    m^2 - s^2 / P, with m the sample mean, estimates w_i^2 without bias. Summing both over the
    tasks before dividing keeps the estimate right for P = 2 already, where dividing task by
    task would not. NaN where it cannot be told: fewer than two processors' costs.
    """
    if len(workflow.processor_cost) < 2:
        return float("nan")
    columns = list(workflow.processor_cost.values())
    p = len(columns)
    mean = np.zeros(workflow.n_tasks)
    for column in columns:
        mean += column / p
    variance = np.zeros(workflow.n_tasks)
    for column in columns:
        variance += (column - mean) ** 2 / (p - 1)
    known = ~np.isnan(mean)  # tasks that give a cost on every processor
    squares = float((mean**2 - variance / p)[known].sum())
    return float(np.sqrt(12 * variance[known].sum() / squares)) if squares > 0 else float("nan")


def mean_computation(base_cost: FloatArray, processor_cost: Mapping[str, FloatArray]) -> float:
    """The mean over tasks of a task's mean cost: over the processors it names, else at speed 1."""
    total = np.zeros(len(base_cost))
    named = np.zeros(len(base_cost), dtype=np.int64)
    for column in processor_cost.values():
        known = ~np.isnan(column)
        total += np.where(known, column, 0.0)
        named += known
    cost = np.where(named > 0, total / np.maximum(named, 1), base_cost)
    return float(np.nanmean(cost)) if not np.isnan(cost).all() else 0.0
