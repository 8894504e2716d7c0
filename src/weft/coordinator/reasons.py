"""Why a new plan is asked for, in words."""

from __future__ import annotations

from weft.contracts import Notice
from weft.kernels.board import Board
from weft.model import Platform, Workflow
from weft.model.events import EventKind, NewEstimates


def reason_of(notice: Notice, board: Board, workflow: Workflow, platform: Platform) -> str:
    """What the policy was woken by."""
    if notice.late_task is not None:
        return f"late start of {workflow.task_names[notice.late_task]}"
    event = notice.event
    if isinstance(event, NewEstimates):
        return f"{event.because}; new estimates" if event.because else "new estimates"
    assert event is not None
    match event.kind:
        case EventKind.BUDGET:
            return "more money"
        case EventKind.WAKE:
            return "rescheduling point"
        case EventKind.TASK_FINISHED:
            return f"{workflow.task_names[board.attempt_task[event.which]]} was off its estimate"
        case EventKind.TASK_FAILED:
            return f"{workflow.task_names[board.attempt_task[event.which]]} failed"
        case EventKind.AVAILABILITY:
            return f"{platform.processor_names[event.which]} changed its speed"
        case EventKind.JOINED | EventKind.GONE | EventKind.LEAVING:
            return f"{platform.processor_names[event.which]} {event.kind.name.lower()}"
    return event.kind.name.lower().replace("_", " ")
