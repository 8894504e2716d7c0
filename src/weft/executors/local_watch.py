"""Attempts on this machine, watched: what they get of its processors, and what they report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from weft.executors.cpu_share import CpuTimes, cpu_share, times_of_tree, wants_all
from weft.executors.monitor import Monitor
from weft.executors.processes import Stop
from weft.executors.progress import read_progress
from weft.model.events import Event


class Opened(NamedTuple):
    """An attempt under way, and how it is ended."""

    processor: int
    stop: Stop
    begun: float


class LocalWatch:
    """Looks about once a second, when it is asked to; a first look at an attempt tells little."""

    def __init__(
        self, post: Callable[[Event], None], report_of: Callable[[int], str], cores: int
    ) -> None:
        self._monitor, self._report_of, self._cores = Monitor(post), report_of, cores
        self._seen: dict[int, CpuTimes | None] = {}  # by attempt, at the last look

    def look(self, attempts: Mapping[int, Opened]) -> None:
        """Measure what runs, if it is time."""
        if not self._monitor.is_due():
            return
        begun, before = time.monotonic(), self._seen
        self._seen = {k: _times(opened.stop) for k, opened in attempts.items()}
        pairs = {k: (old, new) for k, new in self._seen.items() if new and (old := before.get(k))}
        # what the attempts take from each other, nobody takes from the run
        greedy = sum(wants_all(*pair) for pair in pairs.values())
        fair = min(1.0, self._cores / max(greedy, 1))
        for attempt, opened in attempts.items():
            share = cpu_share(*pairs[attempt]) if attempt in pairs else 1.0
            report = read_progress(self._report_of(opened.processor))
            if attempt not in before and report is None:
                continue
            self._monitor.measured(
                opened.processor, attempt, opened.begun, min(1.0, share / fair), report
            )
        self._monitor.over(begun, attempts)


def _times(stop: Stop) -> CpuTimes | None:
    group = stop.group
    return None if group is None else times_of_tree(group)
