"""The normalised schedule length: of which path, and what the commands say."""

from __future__ import annotations

import math

import numpy as np
import pytest

import foreplan
from foreplan.comparison import compare
from foreplan.model import Item, Workflow
from foreplan.scheduling.nsl import mean_path, nsl

ITEMS = [Item(1.0, a, (b,)) for a, b in ((0, 1), (0, 2), (1, 3), (2, 3))]
DIAMOND = Workflow.from_items("", ["a", "b", "c", "d"], [1.0] * 4, ITEMS)
COST = np.array([[3.0, 2.0], [9.0, 1.0], [4.0, 5.0], [1.0, 7.0]])


def test_the_longest_path_of_mean_costs() -> None:
    """By means it goes through b, by the least costs it would go through c."""
    assert mean_path(DIAMOND, COST) == 2.5 + 5 + 4
    assert nsl(23.0, DIAMOND, COST) == 2.0


def test_where_a_task_cannot_run_it_has_no_cost() -> None:
    cost = COST.copy()
    cost[1, 0] = math.inf
    assert mean_path(DIAMOND, cost) == 2.5 + 4.5 + 4
    assert math.isnan(nsl(1.0, DIAMOND, np.zeros((4, 2))))


def test_in_comparisons() -> None:
    wf = foreplan.load({"tasks": {"a": {"cost": 4}, "b": {"cost": 4}}, "edges": [["a", "b", 0]]})
    pf = foreplan.load_platform({"processors": {"p": {}, "q": {"speed": 2}}})
    found = compare(wf, pf, "static,fifo", runs=2, qoi=0.2, jobs=1)
    for figures in found.overall:
        assert figures.nsl.mean is not None
        assert figures.makespan.mean == pytest.approx(6 * figures.nsl.mean)
