"""Planners and strategies from outside the package: checked when they are given, and when used.

`foreplan.registry` wraps each of them. The rest of foreplan sees a planner, a policy or an order
that keeps its contract, or one error that names the extension.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np

from foreplan.checks.schedules import check_schedule
from foreplan.contracts import Dispatch, Notice, Priority, Verdict, Watch
from foreplan.errors import ForeplanError, InputError, InvalidScheduleError
from foreplan.model import Freedom, Reuse, Schedule, Situation, Workflow
from foreplan.spec import spec_of

PLAN = {"plan": ("situation", "freedom")}
POLICY = {
    "watch": ("plan", "situation"),
    "decide": ("notice", "situation", "plan"),
    "accept": ("candidate", "current", "situation"),
}
ORDER = {"priority": ("workflow",)}
_POLICY_FIELDS = {"learn": bool, "freedom": Freedom, "reuse": Reuse, "stays": bool}
_MARKS = "[],=:"  # of spec strings


def describe_error(error: BaseException, file: str | None = None) -> str:
    """Return the last line of a traceback and where it happened: in that file, if it passed it."""
    last = traceback.format_exception_only(error)[-1].strip()
    if isinstance(error, SyntaxError):
        return f"{last} ({error.filename}, line {error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    inner = [frame for frame in frames if frame.filename == file] or frames
    if not inner:
        return last
    return f"{last} ({inner[-1].filename}, line {inner[-1].lineno}, in {inner[-1].name})"


def wrap_planner(given: Any) -> OwnPlanner:
    """Return a planner whose schedules are checked; refuse what is not a planner."""
    _check_methods("planner", given, PLAN)
    _check_name("planner", given)
    return OwnPlanner(given)


def wrap_strategy(given: Any) -> OwnPolicy | OwnOrder:
    """Return a strategy whose answers are checked; refuse what is not a strategy."""
    if hasattr(given, "priority"):
        _check_methods("strategy", given, ORDER)
        _check_fields(given, {"dispatch": Dispatch})
        _check_name("strategy", given)
        if given.dispatch == Dispatch.PLANNED:
            raise InputError(f"{_called(given)}: `dispatch` must not be PLANNED: it makes no plan")
        return OwnOrder(given)
    _check_methods("strategy", given, POLICY, " (or `priority`, if it makes no plan)")
    _check_fields(given, _POLICY_FIELDS)
    _check_name("strategy", given)
    if not hasattr(given, "planner"):
        raise InputError(f'{_called(given)} has no `planner`, such as `planner: str = "heft"`')
    return OwnPolicy(given)


def _called(given: Any) -> str:
    kind = given if isinstance(given, type) else type(given)
    return f"{kind.__module__}.{kind.__qualname__}"


def _check_methods(
    kind: str, given: Any, methods: Mapping[str, Sequence[str]], instead: str = ""
) -> None:
    """Refuse an object that lacks a method, or has one with other parameters."""
    if isinstance(given, type):
        raise InputError(f"{_called(given)} is a class: give an object, {given.__name__}()")
    missing = [f"`{name}`" for name in methods if not callable(getattr(given, name, None))]
    if missing:
        lacks = " and ".join(filter(None, (", ".join(missing[:-1]), missing[-1])))
        raise InputError(f"{_called(given)} is not a {kind}: it has no method {lacks}{instead}")
    for name, parameters in methods.items():
        try:
            inspect.signature(getattr(given, name)).bind(*parameters)
        except TypeError:
            raise InputError(
                f"{_called(given)} is not a {kind}: `{name}` must take "
                f"({', '.join(('self', *parameters))})"
            ) from None
        except ValueError:  # a method written in C may not tell
            continue


def _check_fields(given: Any, kinds: dict[str, type]) -> None:
    for name, kind in kinds.items():
        value = getattr(given, name, None)
        if not isinstance(value, kind):
            found = "is missing" if value is None else f"is {value!r}"
            raise InputError(
                f"{_called(given)} is not a strategy: `{name}` must be a {kind.__name__}, and "
                f"{found}; a subclass of foreplan.engine.policies.planned.Static has it"
            )


def _check_name(kind: str, given: Any) -> None:
    name = getattr(given, "name", None)
    if not isinstance(name, str) or not name.strip() or any(mark in name for mark in _MARKS):
        raise InputError(
            f"{_called(given)} is not a {kind}: `name` must be a text without any of {_MARKS}, "
            f"not {name!r}"
        )


@contextmanager
def _blaming(kind: str, name: str, own: Any) -> Iterator[None]:
    """Turn what an extension raises into one message that says which one it was, and where."""
    try:
        yield
    except ForeplanError:
        raise
    except Exception as error:
        file = getattr(sys.modules.get(type(own).__module__), "__file__", None)
        raise ForeplanError(f"{kind} {name} failed: {describe_error(error, file)}") from error


def _wrong(kind: str, name: str, method: str, needed: str, given: Any) -> ForeplanError:
    return ForeplanError(f"{kind} {name}: `{method}` must return {needed}, not {given}")


class OwnPlanner:
    """A planner from outside: every schedule goes through the validator."""

    name: str

    def __init__(self, own: Any) -> None:
        self.own = own
        self.name = spec_of(own)

    def knows(self, limit: str) -> bool:
        """Return whether a limit, `budget` or `deadline`, is one of its options."""
        return is_dataclass(self.own) and any(f.name == limit for f in fields(self.own))

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """Return its schedule, if that is valid."""
        with _blaming("planner", self.name, self.own):
            schedule: Any = self.own.plan(situation, freedom)
        if not isinstance(schedule, Schedule):
            raise _wrong("planner", self.name, "plan", "a Schedule", type(schedule).__name__)
        if schedule.workflow is not situation.workflow:
            needed = "a schedule of situation.workflow"
            raise _wrong("planner", self.name, "plan", needed, "of another workflow")
        arrays = schedule.processor, schedule.start, schedule.finish
        if any(array.ndim != 1 for array in arrays):
            raise _wrong("planner", self.name, "plan", "an entry for every task", "a matrix")
        # where it is only the start of a search, others keep the budget
        limited = situation if self.knows("budget") else replace(situation, budget=np.inf)
        try:
            check_schedule(schedule, limited, freedom)
        except InvalidScheduleError as error:
            raise InvalidScheduleError(error.violations, f"planner {self.name}") from None
        return schedule


class OwnPolicy:
    """A strategy from outside that follows a plan."""

    name: str

    def __init__(self, own: Any) -> None:
        self.own = own
        self.name = spec_of(own)
        self.planner = own.planner
        self.learn: bool = own.learn
        self.freedom: Freedom = own.freedom
        self.reuse: Reuse = own.reuse
        self.stays: bool = own.stays
        self.second = bool(getattr(own, "second", False))

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        """Return what to be woken for."""
        with _blaming("strategy", self.name, self.own):
            watch: Any = self.own.watch(plan, situation)
        if not isinstance(watch, Watch):
            raise _wrong("strategy", self.name, "watch", "a Watch", type(watch).__name__)
        n = plan.workflow.n_tasks
        latest = _as_array(watch.latest_start, np.float64, n)
        if latest is None or not watch.period > 0:
            needed = f"a Watch with {n} latest starts and a period above 0"
            raise _wrong("strategy", self.name, "watch", needed, watch)
        return replace(watch, latest_start=latest)

    def decide(self, notice: Notice, situation: Situation, plan: Schedule) -> bool:
        """Return whether to ask for a new plan."""
        with _blaming("strategy", self.name, self.own):
            return bool(self.own.decide(notice, situation, plan))

    def accept(self, candidate: Schedule, current: Schedule, situation: Situation) -> Verdict:
        """Return whether to take the new plan."""
        with _blaming("strategy", self.name, self.own):
            verdict: Any = self.own.accept(candidate, current, situation)
        if not isinstance(verdict, Verdict):
            raise _wrong("strategy", self.name, "accept", "a Verdict", type(verdict).__name__)
        return verdict


class OwnOrder:
    """A strategy from outside that makes no plan."""

    name: ClassVar[str]
    dispatch: ClassVar[Dispatch]

    def __init__(self, own: Any) -> None:
        self.own = own
        vars(self).update(name=spec_of(own), dispatch=own.dispatch)

    def priority(self, workflow: Workflow) -> Priority:
        """Return which of the ready tasks go first."""
        with _blaming("strategy", self.name, self.own):
            found: Any = self.own.priority(workflow)
        if not isinstance(found, Priority):
            raise _wrong("strategy", self.name, "priority", "a Priority", type(found).__name__)
        rank = _as_array(found.rank, np.int32, workflow.n_tasks)
        tie = _as_array(found.tie, np.int32, workflow.n_tasks)
        if rank is None or tie is None:
            needed = f"{workflow.n_tasks} whole numbers as `rank`, and as `tie`"
            raise _wrong("strategy", self.name, "priority", needed, "other arrays")
        return replace(found, rank=rank, tie=tie)


def _as_array(values: Any, kind: type, length: int) -> Any:
    """Return the values as the kernels need them; None if they are others."""
    try:
        array = np.asarray(values)
        if array.shape != (length,) or not np.can_cast(array.dtype, kind, "same_kind"):
            return None
        made: Any = np.ascontiguousarray(array, dtype=kind)
    except (TypeError, ValueError):
        return None
    # a number that does not fit is another one afterwards
    return made if np.array_equal(made, array, equal_nan=kind is np.float64) else None
