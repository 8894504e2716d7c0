"""Many independent units of work on all cores, with the results in order.

The workers are forked, so that what the units work on is shared and never pickled.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from foreplan.errors import ForeplanError, InputError

T = TypeVar("T")

CHUNKS = 100  # per worker, so that they end together and the bar moves
LARGEST = 64  # units in a chunk

_unit: Callable[[int], Any] | None = None  # set before the fork, read in the workers


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    unit: Callable[[int], T],
    count: int,
    jobs: int | None = None,
    progress: Callable[[float], None] = lambda share: None,
    heard: Callable[[int, T], None] = lambda i, result: None,
    largest: int = LARGEST,
) -> list[T]:
    """unit(0), unit(1), ... by so many processes; one where there is no fork.

    `heard` is told each result as soon as it is here, in whatever order; a worker hands over at
    most `largest` results at a time.
    """
    jobs = cores() if jobs is None else jobs
    if jobs < 1:
        raise InputError(f"the number of jobs must be at least 1, not {jobs}")
    jobs = min(jobs, count)
    if jobs > 1 and "fork" in multiprocessing.get_all_start_methods():
        size = min(largest, max(1, count // (jobs * CHUNKS)))
        return _run_forked(unit, count, jobs, size, _Listener(count, progress, heard))
    results = []
    for i in range(count):
        results.append(unit(i))
        heard(i, results[-1])
        progress((i + 1) / count)
    return results


@dataclass
class _Listener:
    """Who is told of results, and how many there are to be."""

    count: int
    progress: Callable[[float], None]
    heard: Callable[[int, Any], None]
    done: int = 0

    def hear(self, first: int, results: list[Any]) -> None:
        """Some results in a row are here."""
        for i, result in enumerate(results, first):
            self.heard(i, result)
        self.done += len(results)
        self.progress(self.done / self.count)


def _run_forked(
    unit: Callable[[int], T], count: int, jobs: int, size: int, listener: _Listener
) -> list[T]:
    global _unit
    before, others = _unit, set(multiprocessing.active_children())
    read_end, write_end = os.pipe()  # the workers see its end when this process is no more
    _unit = unit
    pool = ProcessPoolExecutor(
        jobs, multiprocessing.get_context("fork"), _begin, (read_end, write_end)
    )
    try:
        with _defer_interrupts():
            futures = {
                pool.submit(_chunk, at, min(count, at + size)): at for at in range(0, count, size)
            }
        return _collect(futures, listener)
    except BrokenProcessPool:
        raise ForeplanError("a worker process was killed; perhaps memory ran out") from None
    except BaseException:
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        os.close(read_end)
        os.close(write_end)
        _unit = before


@contextmanager
def _defer_interrupts() -> Iterator[None]:
    """Hear Ctrl-C only afterwards: in the middle of it, the pool might never shut down."""
    heard = list[int]()
    before = signal.getsignal(signal.SIGINT)
    own = threading.current_thread() is threading.main_thread() and callable(before)
    if own:
        signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        yield
    finally:
        if own:
            signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt


def _collect(futures: dict[Future[list[Any]], int], listener: _Listener) -> list[Any]:
    """The results in order; of several errors, the one that a single process would meet."""
    parts: dict[int, list[Any]] = {}
    listener.progress(0.0)
    for future in as_completed(futures):
        at = futures[future]
        parts[at] = future.result()
        if any(isinstance(result, ForeplanError) for result in parts[at]):
            break
        listener.hear(at, parts[at])
    results = [result for at in sorted(parts) for result in parts[at]]
    for result in results:
        if isinstance(result, ForeplanError):
            raise result
    return results


def _begin(read_end: int, write_end: int) -> None:
    """In a worker: the parent alone hears Ctrl-C, and no worker outlives it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.close(write_end)

    def wait() -> None:
        os.read(read_end, 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _chunk(first: int, after: int) -> list[Any]:
    """In a worker: some units; an error that the user can mend is a result."""
    assert _unit is not None
    results: list[Any] = []
    for i in range(first, after):
        try:
            results.append(_unit(i))
        except ForeplanError as error:
            return [*results, ForeplanError(str(error))]
    return results
