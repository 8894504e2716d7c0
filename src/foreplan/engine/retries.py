"""How often a task may fail or be lost before it is given up, and how long it rests in between."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum

from foreplan.engine.state import RunState
from foreplan.model import TaskSpec, Workflow
from foreplan.model.causes import CAUSE, EXPECTED, LOST, PERMANENT
from foreplan.model.events import MACHINE_LOST, OWN_FAULT, Event, Paused, ProcessorGone, TaskFailed

COUNTED = (TaskFailed, ProcessorGone, Paused)
LONGEST_REST = 3600.0  # seconds; a rest that is doubled again and again stays below, or as asked
_OTHERS = ""  # all causes together that a task has no number of retries for


class Next(Enum):
    """What becomes of a task whose attempt came to nothing."""

    AT_ONCE = "it is tried again"
    LATER = "it is tried again after a rest"
    NEVER = "it is given up"


@dataclass(frozen=True)
class RetryPolicy:
    """A task that fails more often is given up, and with it all that needs its results."""

    retries: int = 0  # for tasks that do not say
    losses: int = 3  # how many processors may be lost under one task
    keep_going: bool = False  # do all that can still be done; else start nothing more

    def most(self, spec: TaskSpec, cause: str, own: bool) -> tuple[str, int]:
        """How often a task may fail for a cause, and what it is counted with."""
        if cause in PERMANENT:
            return cause, 0
        named = dict(spec.retry)
        if cause in named:
            return cause, named[cause]
        if not own:
            return LOST, self.losses
        return _OTHERS, self.retries if spec.retries is None else spec.retries

    def rest(self, spec: TaskSpec, failures: int) -> float:
        """Seconds before the next try: as asked after the first failure, then twice as long."""
        wait = spec.wait or 0.0
        return min(wait * 2.0 ** min(failures - 1, 60), max(wait, LONGEST_REST))


class Retries:
    """Counts failures and losses by task and cause, by what the run puts up with."""

    def __init__(self, policy: RetryPolicy, workflow: Workflow) -> None:
        self.policy, self.workflow = policy, workflow
        self._counts: Counter[tuple[int, str]] = Counter()  # by task and what is counted together
        self._failures: Counter[int] = Counter()  # by task, its own fault

    def count(self, event: Event, state: RunState) -> Next:
        """Count failures and losses, and say what becomes of the task.

        If it is given up, the run is held back, unless it keeps going.
        """
        arrays = state.arrays
        match event:
            case Paused():
                self._counts.clear()
                self._failures.clear()
                return Next.AT_ONCE
            case TaskFailed() if event.fault in (OWN_FAULT, MACHINE_LOST):
                attempt, own = event.attempt, event.fault == OWN_FAULT
            case ProcessorGone() if (event.detail or {}).get(EXPECTED):
                return Next.AT_ONCE
            case ProcessorGone() if arrays.running[event.processor] >= 0:
                attempt, own = int(arrays.running[event.processor]), False
            case _:
                return Next.AT_ONCE
        task = int(arrays.attempt_task[attempt])
        cause = str((event.detail or {}).get(CAUSE, "")) if own else LOST
        return self._judge(event, state, task, cause, own)

    def _judge(self, event: Event, state: RunState, task: int, cause: str, own: bool) -> Next:
        spec = self.workflow.spec(task)
        counter, most = self.policy.most(spec, cause, own)
        self._counts[task, counter] += 1
        if self._counts[task, counter] > most:
            return self.give_up(state)
        if not own or not spec.wait:  # a machine that was lost is no reason to wait
            return Next.AT_ONCE
        self._failures[task] += 1
        state.let_rest(task, event.time + self.policy.rest(spec, self._failures[task]))
        return Next.LATER

    def give_up(self, state: RunState) -> Next:
        """A task is given up: unless the run keeps going, nothing more is begun."""
        if not self.policy.keep_going:
            state.hold_back(True)
        return Next.NEVER
