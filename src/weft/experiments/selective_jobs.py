"""Many independent jobs on several cores: the same results whatever their number."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_all(
    work: Callable[[Job], Result],
    jobs: Sequence[Job],
    workers: int,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Result]:
    """The results in the order of the jobs; an interrupt ends the workers with their job."""
    results: list[Result] = []
    if workers == 1:
        for job in jobs:
            results.append(work(job))
            progress(len(results) / len(jobs))
        return results
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if "fork" in methods else None)
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_interrupts)
    try:
        for result in pool.map(work, jobs):
            results.append(result)
            progress(len(results) / len(jobs))
    finally:
        pool.shutdown(cancel_futures=True)
    return results


def _leave_interrupts() -> None:
    """Ctrl-C reaches every process of a terminal; only the parent is to act on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
