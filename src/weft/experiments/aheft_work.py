"""The units of the AHEFT experiment by processes of this machine, or by a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from weft.errors import InputError, WeftError
from weft.experiments import aheft
from weft.experiments import units as work
from weft.experiments.aheft import Settings
from weft.experiments.aheft_runs import Columns
from weft.experiments.checkpoint import Checkpoint

Done = tuple[int, Columns, float]  # the number of a unit, its figures, processor seconds

AT_A_TIME = 2  # units that a process of this machine hands over together
PARTS = 10  # chunks per thread of a cluster, so that they end together
LONGEST = 8  # units in such a chunk
_CONNECTS_IN = 10.0


def complete(
    settings: Settings,
    checkpoint: Checkpoint,
    processes: int,
    on: str | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> None:
    """Do all units that are not done yet; each is in the checkpoint as soon as it is."""
    count = len(aheft.units(settings))
    if on is None:
        do = partial(aheft.perform, settings)
        work.complete(count, do, checkpoint, processes, progress, AT_A_TIME)
    elif todo := work.left_to_do(count, checkpoint):
        begun = time.perf_counter()
        try:
            _on_cluster(settings, todo, checkpoint, on, progress)
        finally:
            checkpoint.rise(time.perf_counter() - begun, 0)


def _on_cluster(
    settings: Settings,
    todo: Sequence[int],
    checkpoint: Checkpoint,
    on: str,
    progress: Callable[[float], None],
) -> None:
    import distributed

    ready: Any = distributed.as_completed
    count = 0
    with _client(on) as client, client.as_current():  # as_completed() asks for it
        threads = max(1, sum(client.nthreads().values()))
        size = min(LONGEST, max(1, len(todo) // (threads * PARTS)))
        chunks = [list(todo[at : at + size]) for at in range(0, len(todo), size)]
        futures = client.map(perform_some, [settings] * len(chunks), chunks, pure=False)
        try:
            for future in ready(futures):
                for number, columns, seconds in _answer(future):
                    checkpoint.add(number, columns, seconds)
                    count += 1
                future.release()
                progress(count / len(todo))
        finally:
            client.cancel(futures)


def _answer(future: Any) -> list[Done]:
    """What a chunk came to; what went wrong there is told here."""
    try:
        done: list[Done] = future.result()
        return done
    except WeftError:
        raise
    except Exception as error:
        raise WeftError(f"the cluster could not do its part: {error}") from error


def perform_some(settings: Settings, numbers: Sequence[int]) -> list[Done]:
    """On a worker: some units by their numbers."""
    return [(number, *aheft.perform(settings, number)) for number in numbers]


def check_place(on: str | None) -> None:
    """Refuse what is no address, before anything is begun."""
    if on is not None and (not on.startswith("dask://") or on == "dask://"):
        raise InputError(f"must be dask://host:port, not {on!r}", place="--on")


@contextmanager
def _client(on: str) -> Iterator[Any]:
    """A client of the cluster at dask://host:port, with weft on its workers."""
    check_place(on)
    try:
        from weft.executors.dask_cluster import connect
    except ImportError:
        raise InputError("Dask is not installed here: pip install 'weft[dask]'") from None
    client = connect(f"tcp://{on.removeprefix('dask://')}", _CONNECTS_IN)
    try:
        if not client.nthreads():
            raise InputError(f"the cluster at {on} has no workers", place="--on")
        yield client
    finally:
        client.close()
