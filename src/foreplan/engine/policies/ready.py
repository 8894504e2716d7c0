"""Strategies without a plan and without estimates: ready tasks go to processors just in time.

Fifo, lifo, greedy, ico: Hall, Rosenberg, Venkataramani, section 3.2. Min-min: Yu, Shi, section 4.2.
Hops is ours: the longest path without the times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from foreplan.arrays import IntArray
from foreplan.contracts import Dispatch, Priority
from foreplan.model import Workflow


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


@dataclass(frozen=True)
class Fifo:
    """Just in time: the task that became ready first goes to the fastest idle processor.

    Of those that became ready at once, the one that most tasks wait for goes first; `ties` decides
    between equals: `file`, or the seed of a random order.
    """

    name: ClassVar[str] = "fifo"
    dispatch: ClassVar[Dispatch] = Dispatch.READY_QUEUE
    ties: Ties = AS_IN_THE_FILE

    def priority(self, workflow: Workflow) -> Priority:
        """First ready, first served."""
        return Priority(all_alike(workflow), by_outdegree(workflow, self.ties))


@dataclass(frozen=True)
class Lifo:
    """Just in time: the task that became ready last goes to the fastest idle processor.

    Of those that became ready at once, the one that most tasks wait for goes first; `ties` decides
    between equals: `file`, or the seed of a random order.
    """

    name: ClassVar[str] = "lifo"
    dispatch: ClassVar[Dispatch] = Dispatch.READY_QUEUE
    ties: Ties = AS_IN_THE_FILE

    def priority(self, workflow: Workflow) -> Priority:
        """Last ready, first served."""
        return Priority(all_alike(workflow), by_outdegree(workflow, self.ties), last_come=True)


@dataclass(frozen=True)
class Greedy:
    """Just in time: the ready task that most others wait for goes to the fastest idle processor.

    Of equals, the first to become ready goes first; `ties` decides between those that became ready
    at once: `file`, or the seed of a random order.
    """

    name: ClassVar[str] = "greedy"
    dispatch: ClassVar[Dispatch] = Dispatch.READY_QUEUE
    ties: Ties = AS_IN_THE_FILE

    def priority(self, workflow: Workflow) -> Priority:
        """By the number of children; among equals first ready, first served."""
        return Priority(-outdegree(workflow), self.ties.places(workflow))


@dataclass(frozen=True)
class Hops:
    """Just in time: the ready task with the longest path of tasks behind it goes first.

    Of equals, the one that most tasks wait for; `ties` decides between those that are alike in
    that, too: `file`, or the seed of a random order.
    """

    name: ClassVar[str] = "hops"
    dispatch: ClassVar[Dispatch] = Dispatch.READY_QUEUE
    ties: Ties = AS_IN_THE_FILE

    def priority(self, workflow: Workflow) -> Priority:
        """By the longest path, then the number of children."""
        from foreplan.ic import Dag, places

        keys = self.ties.places(workflow), -outdegree(workflow), -Dag.from_workflow(workflow).hops
        rank = places(np.lexsort(keys).astype(np.int32))
        return Priority(rank, rank)


@dataclass(frozen=True)
class IcoStrategy:
    """Just in time, in an order that makes many tasks ready early.

    The order is IC-optimal where ICO finds one: at every step as many tasks are ready as can be.
    """

    name: ClassVar[str] = "ico"
    dispatch: ClassVar[Dispatch] = Dispatch.READY_QUEUE

    def priority(self, workflow: Workflow) -> Priority:
        """By the place in the order."""
        from foreplan.ic import Dag, best_order, places

        rank = places(best_order(Dag.from_workflow(workflow)))
        return Priority(rank, rank)


@dataclass(frozen=True)
class MinMinStrategy:
    """Just in time: of the ready tasks, the one done soonest is mapped first, and so on.

    Dynamic Min-Min: a task is mapped once its producers are done (Yu, Shi, section 4.2).
    """

    name: ClassVar[str] = "min-min"
    dispatch: ClassVar[Dispatch] = Dispatch.MIN_MIN

    def priority(self, workflow: Workflow) -> Priority:
        """Among equals, first ready, first served."""
        return Priority(all_alike(workflow), workflow.position)
