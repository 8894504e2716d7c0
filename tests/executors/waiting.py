"""Waiting for what happens, with a limit, and for the end of processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from foreplan.contracts import Machines
from foreplan.executors.processes import wait_readable
from foreplan.model.events import Event, Paused, SpeedChanged
from model.told import whom

LIMIT = 60.0  # seconds; nothing takes long unless it hangs


def next_event(executor: Machines, skipped: Container[type[Event]] = (SpeedChanged,)) -> Event:
    """The next event; a watchdog ends a wait that would last for ever.

    That a machine is slow may be measured at any time, so who waits for that must say so.
    """
    watchdog = threading.Timer(LIMIT, executor.post, [Paused(0.0, False)])
    watchdog.start()
    try:
        event = executor.next_event()
        while event is not None and type(event) in skipped:
            event = executor.next_event()
    finally:
        watchdog.cancel()
        watchdog.join()
    assert event is not None, "nothing will happen"
    assert whom(event) >= 0, "nothing has happened"
    return event


@contextmanager
def pipe_of_life(data: Path) -> Iterator[int]:
    """The reading end of a pipe called `life`: at its end when no process holds it open."""
    os.mkfifo(data / "life")
    fd = os.open(data / "life", os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield fd
    finally:
        os.close(fd)


def ended(fd: int) -> bool:
    """Wait for the end of a pipe that was open."""
    while wait_readable((fd,), LIMIT):
        if not os.read(fd, 100):
            return True
    return False


def children() -> set[str]:
    """The processes that this one has begun, ended ones included."""
    found = set[str]()
    for listed in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError):  # a thread that has just ended
            found.update(listed.read_text().split())
    return found
