"""The units of an experiment on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from foreplan.errors import ForeplanError, InputError
from foreplan.executors.base import Scheme, find_scheme

if TYPE_CHECKING:
    from foreplan_reproductions.experiment import Checkpoint, Experiment

Done = tuple[int, Any, float]  # the number of a unit, its figures, processor seconds

PARTS = 10  # chunks per thread of a cluster, so that they end together
LONGEST = 8  # units in such a chunk
_CONNECTS_IN = 10.0


def perform(
    experiment: Experiment[Any, Any, Any],
    settings: Any,
    todo: Sequence[int],
    checkpoint: Checkpoint,
    on: str,
    progress: Callable[[float], None],
) -> None:
    """Do these units there; each is in the checkpoint as soon as it is here."""
    import distributed

    ready: Any = distributed.as_completed
    count = 0
    with _client(on) as client, client.as_current():  # as_completed() asks for it
        threads = max(1, sum(client.nthreads().values()))
        size = min(LONGEST, max(1, len(todo) // (threads * PARTS)))
        chunks = [list(todo[at : at + size]) for at in range(0, len(todo), size)]
        futures = client.map(partial(_perform_some, experiment, settings), chunks, pure=False)
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
    except ForeplanError:
        raise
    except Exception as error:
        raise ForeplanError(f"the cluster could not do its part: {error}") from error


def _perform_some(
    experiment: Experiment[Any, Any, Any], settings: Any, numbers: Sequence[int]
) -> list[Done]:
    """On a worker: some units by their numbers."""
    return [(number, *experiment.perform(settings, number)) for number in numbers]


def find_cluster(on: str) -> Scheme:
    """The kind of cluster that is meant; what is none is refused, before anything is begun."""
    with suppress(InputError):
        scheme = find_scheme(on)
        scheme.check(on)
        if scheme.package:
            return scheme
    raise InputError(f"must be dask://host:port or tls://host:port, not {on!r}", place="--on")


@contextmanager
def _client(on: str) -> Iterator[Any]:
    """A client of the cluster there, with foreplan on its workers."""
    client = find_cluster(on).connect(on, _CONNECTS_IN)
    try:
        if not client.nthreads():
            raise InputError(f"the cluster at {on} has no workers", place="--on")
        yield client
    finally:
        client.close()
