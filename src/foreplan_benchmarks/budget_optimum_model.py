"""The shortest schedule under a budget, by constraint programming (CP-SAT of OR-tools).

It is the problem that the planners solve: every task on one processor without interruption, no two
at once on a processor, inputs there before the start, transfers without contention, and the sum of
price x duration within the budget. All times and prices must be whole numbers: nothing is rounded.
"""

from __future__ import annotations

import importlib.util
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from foreplan.errors import InputError, PlanningError
from foreplan.model import Schedule, Situation
from foreplan.version import install_command

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

Whole = npt.NDArray[np.int64]

PLANNER = "cp-sat"
LARGEST = 1 << 40  # sums of such numbers stay exact


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best schedule found, and a bound that no schedule can beat."""

    schedule: Schedule
    bound: int
    proven: bool
    effort: float  # CP-SAT's deterministic time: about seconds, but the same on every machine

    @property
    def makespan(self) -> int:
        """Of the best schedule found."""
        return round(self.schedule.makespan)


def installed() -> bool:
    """Whether OR-tools can be imported."""
    return importlib.util.find_spec("ortools") is not None


def require() -> None:
    """Tell the user what to install, before the work."""
    if not installed():
        raise InputError(f"the optimum needs OR-tools: {install_command('optimum')}")


def optimum(
    situation: Situation, budget: float, limit: float = 10.0, hint: Schedule | None = None
) -> Optimum:
    """The fastest schedule at the start that costs at most the budget.

    The search ends after `limit` units of deterministic time: of the same instance, the same
    schedule is found on every machine. It begins at the hint, if there is one.
    """
    require()
    numbers = _Numbers.of(situation)
    cheapest = int(numbers.money.min(axis=1).sum())
    if cheapest > budget:
        raise PlanningError(f"the cheapest schedule costs {cheapest}, the budget is {budget:g}")
    most = min(budget, float(numbers.money.max(axis=1).sum()))
    model = _Model(numbers, math.floor(most * (1 + 1e-12)))
    if hint is not None:
        model.begin_at(hint)
    return model.solve(situation, limit, hint)


@dataclass(frozen=True, eq=False)
class _Numbers:
    """The instance in whole numbers: durations, money, and edges with their transfer times."""

    cost: Whole  # tasks x processors
    money: Whole  # tasks x processors
    edges: dict[tuple[int, int], Whole]  # (producer, consumer) -> processors x processors

    @staticmethod
    def of(situation: Situation) -> _Numbers:
        """From a situation in which nothing has happened yet."""
        platform, workflow = situation.platform, situation.workflow
        if len(situation.attempts.task) or situation.now or (platform.joins > 0).any():
            raise InputError("the optimum is found at the start only, with all processors there")
        if not platform.adds_up or np.isfinite(platform.leaves).any():
            raise InputError("the optimum knows no billing units, link prices or leaving times")
        cost, price = (
            whole_numbers(situation.cost, "costs"),
            whole_numbers(platform.price, "prices"),
        )
        from_to = np.ix_(platform.host, platform.host)
        startup, per_unit = platform.startup[from_to], platform.time_per_unit[from_to]
        edges: dict[tuple[int, int], Whole] = {}
        for item, producer, consumer in zip(*workflow.dependencies(), strict=True):
            takes = whole_numbers(startup + workflow.item_size[item] * per_unit, "transfer times")
            ends = int(producer), int(consumer)
            edges[ends] = np.maximum(takes, edges.get(ends, takes))
        return _Numbers(cost, cost * price, edges)

    def longest_path(self, order: Sequence[int]) -> int:
        """What no schedule can beat: every task where it is fastest, and no transfers."""
        least = self.cost.min(axis=1)
        finish = dict.fromkeys(order, 0)  # until a task's turn: when its inputs are made
        for task in order:
            finish[task] += int(least[task])
            for producer, consumer in self.edges:
                if producer == task:
                    finish[consumer] = max(finish[consumer], finish[task])
        return max(finish.values(), default=0)


def whole_numbers(values: npt.NDArray[np.float64], what: str) -> Whole:
    """The same as whole numbers; refused if they are none, or too large to add up."""
    rounded = np.rint(values)
    if (rounded != values).any() or (np.abs(values) > LARGEST).any():
        raise InputError(f"the {what} must be whole numbers for CP-SAT")
    return rounded.astype(np.int64)


class _Model:
    """The constraints, with the variables that the schedule is read from."""

    def __init__(self, numbers: _Numbers, budget: int) -> None:
        from ortools.sat.python import cp_model

        self.model, self.numbers = cp_model.CpModel(), numbers
        self.tasks = range(len(numbers.cost))
        self.processors = range(numbers.cost.shape[1])
        # everything one after the other, each where it is slowest, with every transfer between
        horizon = int(numbers.cost.max(axis=1).sum())
        horizon += sum(int(takes.max()) for takes in numbers.edges.values())
        new = self.model
        self.on = [[new.new_bool_var(f"t{t} on p{p}") for p in self.processors] for t in self.tasks]
        self.start = [new.new_int_var(0, horizon, f"start of t{t}") for t in self.tasks]
        self.takes = [sum(self._chosen(t, numbers.cost)) for t in self.tasks]
        self.makespan = new.new_int_var(0, horizon, "makespan")
        for t in self.tasks:
            new.add_exactly_one(self.on[t])
            new.add(self.makespan >= self.start[t] + self.takes[t])
        new.add(sum(m for t in self.tasks for m in self._chosen(t, numbers.money)) <= budget)
        self._one_at_a_time()
        self._inputs_before_start()
        new.minimize(self.makespan)

    def _chosen(self, task: int, table: Whole) -> list[cp_model.LinearExpr]:
        return [int(table[task, p]) * self.on[task][p] for p in self.processors]

    def _one_at_a_time(self) -> None:
        for p in self.processors:
            self.model.add_no_overlap(
                self.model.new_optional_fixed_size_interval_var(
                    self.start[t], int(self.numbers.cost[t, p]), self.on[t][p], f"t{t} at p{p}"
                )
                for t in self.tasks
            )
            # implied, and it speeds up the proof
            load = sum(int(self.numbers.cost[t, p]) * self.on[t][p] for t in self.tasks)
            self.model.add(self.makespan >= load)

    def _inputs_before_start(self) -> None:
        for (i, j), takes in self.numbers.edges.items():
            made = self.start[i] + self.takes[i]
            self.model.add(self.start[j] >= made)
            for p in self.processors:
                for q in self.processors:
                    if takes[p, q]:
                        both = [self.on[i][p], self.on[j][q]]
                        delay = int(takes[p, q])
                        self.model.add(self.start[j] >= made + delay).only_enforce_if(both)

    def begin_at(self, hint: Schedule) -> None:
        """Let the search begin with a schedule that is known."""
        for t in self.tasks:
            self.model.add_hint(self.start[t], round(float(hint.start[t])))
            for p in self.processors:
                self.model.add_hint(self.on[t][p], int(hint.processor[t]) == p)
        self.model.add_hint(self.makespan, round(hint.makespan))

    def solve(self, situation: Situation, limit: float, hint: Schedule | None) -> Optimum:
        """The best schedule that the search finds within the limit, or else the hint."""
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 1
        solver.parameters.max_deterministic_time = limit
        solver.parameters.catch_sigint_signal = False  # Ctrl-C is for whoever called
        status = interruptible(solver, self.model)
        bound = self.numbers.longest_path(situation.workflow.order.tolist())
        if status == cp_model.UNKNOWN and hint is not None:
            return Optimum(hint, bound, proven=False, effort=limit)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            name = solver.status_name(status)
            raise PlanningError(f"CP-SAT found no schedule within its time limit: {name}")
        bound = max(bound, math.ceil(solver.best_objective_bound - 1e-6))
        schedule, proven = self._schedule(situation, solver), status == cp_model.OPTIMAL
        effort = round(float(solver.deterministic_time), 4)  # its last digits differ by run
        return Optimum(schedule, bound, proven, effort)

    def _schedule(self, situation: Situation, solver: cp_model.CpSolver) -> Schedule:
        start = np.array([solver.value(s) for s in self.start], dtype=np.float64)
        rows = [[solver.boolean_value(x) for x in row] for row in self.on]
        processor = np.argmax(np.array(rows), axis=1).astype(np.int32)
        finish = start + situation.cost[np.arange(len(start)), processor]
        workflow, platform = situation.workflow, situation.platform
        return Schedule(PLANNER, workflow, platform, processor, start, finish)


def interruptible(solver: cp_model.CpSolver, model: cp_model.CpModel) -> Any:
    """Solve in a thread: Ctrl-C would not be heard here before the search ends."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(solver.solve(model)), daemon=True)
    try:
        thread.start()
        thread.join()
    except BaseException:
        solver.stop_search()
        if thread.is_alive():
            thread.join()
        raise
    return found[0]
