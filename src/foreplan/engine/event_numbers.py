"""The door to the kernels for events: there their kinds are numbers."""

from __future__ import annotations

from foreplan.engine.kernels import arrays as b
from foreplan.model import events

NUMBERS: dict[type[events.Event], int] = {
    events.TaskFinished: b.TASK_FINISHED,
    events.ItemArrived: b.ITEM_ARRIVED,
    events.ProcessorJoined: b.JOINED,
    events.ProcessorGone: b.GONE,
    events.SpeedChanged: b.AVAILABILITY,
    events.LinkChanged: b.BANDWIDTH,
    events.TaskFailed: b.TASK_FAILED,
    events.ItemLost: b.ITEM_LOST,
    events.Paused: b.PAUSED,
    events.ProcessorLeaving: b.LEAVING,
    events.Woken: b.WAKE,
    events.BudgetChanged: b.BUDGET,
    events.LimitsDue: b.LIMITS,
    events.TasksOverdue: b.OVERDUE,
    events.RetryDue: b.RETRY,
}
_KINDS = {number: kind for kind, number in NUMBERS.items()}


def event_of(number: int, which: int, time: float, value: float = 0.0) -> events.Event:
    """The event that a kernel tells of."""
    return _KINDS[int(number)].of(int(which), float(time), float(value))
