"""What each task of a run is by now, in a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreplan.engine.state import TaskState
from foreplan.model import ENDS
from foreplan.runs.replay import found_up_to_date, reused_attempts
from foreplan.runs.undeclared import NotKept, find_not_kept

if TYPE_CHECKING:
    from foreplan.runs.replay import Replayed


def task_states(replayed: Replayed, driven: bool) -> list[str]:
    """By task: blocked is one that needs what failed; what was cut short waits to start again."""
    state = replayed.driver.coordinator.state
    attempts = state.attempt_log(None)
    tried = {*attempts.task[attempts.end == ENDS.index("failed")].tolist()}
    found = ["waiting"] * replayed.header.workflow.n_tasks
    for task in state.tasks(TaskState.DONE).tolist():
        found[task] = "done"
    for task in state.tasks(TaskState.GIVEN_UP).tolist():
        found[task] = "failed" if task in tried else "blocked"
    for attempt in state.running() if driven else ():
        found[attempt.task] = "running"
    return found


def reused_tasks(replayed: Replayed) -> list[int]:
    """The tasks that were found up to date while the run was under way."""
    driver = replayed.driver
    return found_up_to_date(driver.coordinator.state, reused_attempts(driver.events or ()))


def undeclared_in(replayed: Replayed) -> tuple[NotKept, ...]:
    """Return the files that tasks of a run made beside their outputs."""
    driver = replayed.driver
    return find_not_kept(driver.events or (), driver.coordinator.state, driver.coordinator.workflow)
