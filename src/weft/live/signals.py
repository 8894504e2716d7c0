"""Ctrl-C or SIGTERM: once finishes what runs and stops, twice stops now; either can be resumed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.live.session import Session


class StopNow(KeyboardInterrupt):
    """Stop without waiting for what runs."""


@contextmanager
def listening(session: Session) -> Iterator[None]:
    """Handle SIGINT and SIGTERM while a run is driven; elsewhere than in the main thread, none."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        if session.stopping:
            raise StopNow
        session.stop()
        running = int((session.coordinator.board.running >= 0).sum())
        again = "Ctrl-C again" if number == signal.SIGINT else "a second SIGTERM"
        session.listener.said(
            f"stopping: what runs ({running}) is finished first; {again} stops now"
        )

    before = [(number, signal.signal(number, stop)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(
                number, signal.SIG_DFL if handler is None else handler
            )  # None: not Python's
