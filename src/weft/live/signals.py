"""Ctrl-C: once finishes what runs and stops, twice stops now; a run can be gone on with."""

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

    def interrupt(number: int, frame: FrameType | None) -> None:
        if session.stopping:
            raise StopNow
        session.stop()
        running = int((session.coordinator.board.running >= 0).sum())
        session.listener.said(
            f"stopping: what runs ({running}) is finished first; Ctrl-C again stops now"
        )

    def terminate(number: int, frame: FrameType | None) -> None:
        raise StopNow

    before = signal.signal(signal.SIGINT, interrupt), signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])
