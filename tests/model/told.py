"""Events of any kind: whom they are about, and what has changed."""

from __future__ import annotations

from foreplan.model.events import Event


def whom(event: Event) -> int:
    """The attempt, transfer, processor, link or place of an item; 0 if it is about the run."""
    return event.numbers()[0]


def what(event: Event) -> float:
    """The new speed, bandwidth or budget, the time of a leave, whose fault; else 0 or 1."""
    return event.numbers()[1]
