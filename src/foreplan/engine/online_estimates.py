"""What a simulated run teaches: the predictor learns from the finished tasks of a category."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from foreplan.arrays import FloatArray
from foreplan.engine.kernels import arrays as a
from foreplan.engine.state import RunState
from foreplan.history.predictor import predict
from foreplan.history.records import History, categories_of
from foreplan.model import Estimates, Platform, Processor, Workflow

MUCH = 0.1  # a change of estimates that is worth telling
FEW = 0.1  # the share of tasks that must be concerned
TINY = 1e-9
LEAST_NEW, ENOUGH_NEW = 4, 0.1  # tasks, and share of all seen, before it is asked again
DOUBT = 4.0  # so many finished tasks count as much as what was declared


def differ_much(old: Estimates, new: Estimates) -> bool:
    """Whether estimates have changed enough to be told: of a processor, or of a share of tasks."""
    if old.cost.shape != new.cost.shape:
        return True
    change = np.abs(np.log(np.maximum(new.cost, TINY) / np.maximum(old.cost, TINY)))
    if change.size == 0:
        return False
    of_processor = float(np.median(change, axis=0).max())
    of_tasks = float(np.quantile(np.median(change, axis=1), 1 - FEW))
    return max(of_processor, of_tasks) > MUCH


class OnlineEstimates:
    """Estimates that learn within a run: as declared, times what the predictor says of that.

    The predictor is shown by how much finished tasks were off, as if each had been declared to take
    one second, so that what is declared of the others still counts. What it says is split into how
    far off categories and processors are, and each is believed by the number of its tasks.
    """

    def __init__(self, workflow: Workflow, platform: Platform, declared: Estimates) -> None:
        self.declared = declared
        self.machines = platform.processor_names
        self.history, self.seen = History(), 0
        self._machines = Platform.build([Processor(name) for name in self.machines])
        self._open: list[int] = []
        self._new = 0  # since the last prediction
        self._of_processor = np.zeros(len(self.machines))
        self._of_category = np.zeros(0)  # finished tasks
        self._take_tasks(workflow)

    def _take_tasks(self, workflow: Workflow) -> None:
        """Know what the tasks are like; categories that were known keep their numbers."""
        self.categories = categories_of(workflow)
        self._tasks = Workflow.from_edges(
            workflow.name,
            workflow.task_names,
            np.empty(0, dtype=np.int32),
            np.empty(0, dtype=np.int32),
            np.empty(0),
            base_cost=np.ones(workflow.n_tasks),
        )
        names = {name: k for k, name in enumerate(dict.fromkeys(self.categories))}
        self._number = np.array([names[name] for name in self.categories], dtype=np.int32)
        more = np.zeros(len(names) - len(self._of_category))
        self._of_category = np.concatenate([self._of_category, more])

    def grow(self, workflow: Workflow, estimates: Estimates) -> None:
        """There are more tasks, at the end; what is estimated of them counts as declared."""
        known = len(self.declared.cost)
        cost = np.concatenate([self.declared.cost, estimates.cost[known:]])
        self.declared = replace(estimates, cost=cost)
        self._take_tasks(workflow)

    @staticmethod
    def of(workflow: Workflow, platform: Platform, declared: Estimates) -> OnlineEstimates | None:
        """None if no task is like another."""
        categories = Counter(workflow.spec(task).category for task in range(workflow.n_tasks))
        categories.pop(None, None)
        if not any(count > 1 for count in categories.values()):
            return None
        return OnlineEstimates(workflow, platform, declared)

    def revise(self, state: RunState, known: Estimates) -> Estimates | None:
        """Other estimates, if tasks have finished meanwhile that change them by much."""
        self._observe(state)
        if self._new < max(LEAST_NEW, ENOUGH_NEW * self._of_processor.sum()):
            return None
        self._new = 0
        found = predict(self._tasks, self._machines, self.machines, self.categories, self.history)
        cost = self.declared.cost * self._believed(found.estimates.cost)
        estimates = replace(known, cost=cost)
        return estimates if differ_much(known, estimates) else None

    def _believed(self, factor: FloatArray) -> FloatArray:
        """The predicted factors, as far as they rest on enough tasks."""
        one_each, of_task = np.unique(self._number, return_index=True, return_inverse=True)[1:]
        logs = np.log(np.maximum(factor[one_each], TINY))
        category = np.median(logs, axis=1)
        processor = np.median(logs - category[:, None], axis=0)
        category *= self._of_category / (self._of_category + DOUBT)
        processor *= self._of_processor / (self._of_processor + DOUBT)
        believed: FloatArray = np.exp(category[of_task][:, None] + processor[None, :])
        return believed

    def _observe(self, state: RunState) -> None:
        """Look at what has finished since."""
        arrays = state.arrays
        end = int(arrays.counts[a.N_ATTEMPTS])
        attempts, self._open = [*self._open, *range(self.seen, end)], []
        self.seen = end
        for k in attempts:
            if arrays.attempt_end[k] == a.OPEN:
                self._open.append(k)
            elif arrays.attempt_end[k] == a.FINISHED:
                task, p = int(arrays.attempt_task[k]), int(arrays.attempt_on[k])
                declared = float(self.declared.cost[task, p])
                if arrays.most_cores:
                    declared *= float(arrays.attempt_factor[k])
                if declared > TINY:
                    self.history.observe(
                        self.categories[task], self.machines[p], arrays.worked[k] / declared
                    )
                    self._of_category[self._number[task]] += 1
                    self._of_processor[p] += 1
                    self._new += 1
