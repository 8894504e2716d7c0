"""Progress of what may take long: who works tells it, who shows it listens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[float], None]  # told the share that is done

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def tell(share: float) -> None:
    """So much is done, of what whoever listens has asked for."""
    listener = _listener.get()
    if listener is not None:
        listener(min(1.0, share))


@contextmanager
def report_to(listener: Listener | None) -> Iterator[None]:
    """Whoever works in here is heard by this listener, or by nobody."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def part(begin: float, end: float) -> Iterator[None]:
    """What is told in here is of a part of the work."""
    outer = _listener.get()
    inner = None if outer is None else lambda share: outer(begin + (end - begin) * share)
    with report_to(inner):
        yield


class SearchClock:
    """How long a search may take; it may take any time if nothing is said."""

    def __init__(self, seconds: float) -> None:
        self.ends, self.bounded = time.monotonic() + seconds, seconds < float("inf")

    @property
    def is_up(self) -> bool:
        """Whether it has taken that long."""
        return self.bounded and time.monotonic() >= self.ends
