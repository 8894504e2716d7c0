"""What the strategies that hand out ready tasks have in common."""

from __future__ import annotations

import numpy as np

from weft.arrays import IntArray
from weft.model import Workflow


class Ties(str):
    """Who goes first among equals: as in the file, or at random by a seed."""

    EXPECTED = "`file`, or a whole number from 0 as the seed of random ones"

    def __new__(cls, text: str) -> Ties:
        """From the text of an option; ValueError if it is neither."""
        if text != "file" and not 0 <= int(text) < 2**63:
            raise ValueError(text)
        return super().__new__(cls, text)

    def places(self, workflow: Workflow) -> IntArray:
        """A place for every task."""
        if self == "file":
            return workflow.position
        return np.random.default_rng(int(self)).permutation(workflow.n_tasks).astype(np.int32)


AS_IN_THE_FILE = Ties("file")


def outdegree(workflow: Workflow) -> IntArray:
    """How many tasks wait for each, however many items they wait for."""
    n = workflow.n_tasks
    _, producers, consumers = workflow.dependencies()
    pairs = np.unique(producers.astype(np.int64) * n + consumers)
    return np.bincount(pairs // max(1, n), minlength=n).astype(np.int32)


def by_outdegree(workflow: Workflow, ties: Ties) -> IntArray:
    """A place for every task: those that more tasks wait for first."""
    order = np.lexsort((ties.places(workflow), -outdegree(workflow)))
    places = np.empty(workflow.n_tasks, dtype=np.int32)
    places[order] = np.arange(workflow.n_tasks, dtype=np.int32)
    return places


def all_alike(workflow: Workflow) -> IntArray:
    """The same rank for every task."""
    return np.zeros(workflow.n_tasks, dtype=np.int32)
