"""What attempts hold of a machine: each takes all of it before it begins, or waits."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from foreplan.model.resources import GPUS

_ROUNDING = 1e-9


class _Held(NamedTuple):
    cores: tuple[int, ...]
    amounts: Mapping[str, float]
    gpus: tuple[str, ...]


class Holdings:
    """The cores, amounts and GPUs that attempts hold.

    The run counts for itself, and starts nothing that does not fit. But what it has cancelled ends
    a moment later: until then the next one waits here, so that no two ever hold the same.
    """

    def __init__(
        self, capacity: Mapping[str, float], gpus: Sequence[str] = (), most: float = math.inf
    ) -> None:
        self._capacity, self._gpus = dict(capacity), tuple(gpus)
        self._limit = most
        self.most = most  # attempts at once; lowered while the system refuses more
        self._held: dict[Hashable, _Held] = {}  # by attempt
        self._last: dict[int, tuple[str, ...]] = {}  # GPUs by the first core, which keeps a worker
        self._changed = threading.Condition()

    def take(
        self,
        attempt: Hashable,
        cores: tuple[int, ...],
        amounts: Mapping[str, float],
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> tuple[str, ...] | None:
        """Take all of it once it is free, and say which GPUs; None if it was stopped before."""
        with self._changed:
            self._changed.wait_for(lambda: is_stopped() or self._fits(cores, amounts))
            if is_stopped():
                return None
            gpus = self._choose(cores[0], int(amounts.get(GPUS, 0)))
            self._held[attempt] = _Held(cores, amounts, gpus)
            return gpus

    def free(self, attempt: Hashable) -> None:
        """An attempt is over, with all of its processes."""
        with self._changed:
            if self._held.pop(attempt, None) is not None:
                self.most = min(self._limit, self.most + 1)
            self._changed.notify_all()

    def give_back(self, attempt: Hashable) -> bool:
        """Let go of everything, as the system has too little for so many attempts at once.

        The attempt may take it again when another one has ended. Return False if there is none.
        """
        with self._changed:
            if len(self._held) == 1:
                return False
            del self._held[attempt]
            self.most = len(self._held)
            self._changed.notify_all()
            return True

    def wake(self) -> None:
        """Somebody who may be waiting was stopped."""
        with self._changed:
            self._changed.notify_all()

    def _fits(self, cores: tuple[int, ...], amounts: Mapping[str, float]) -> bool:
        held = self._held.values()
        if not held:
            return True  # whoever has counted wrong, nobody waits for ever
        if len(held) >= self.most:
            return False
        if any(not set(cores).isdisjoint(other.cores) for other in held):
            return False
        return all(
            value + sum(other.amounts.get(kind, 0.0) for other in held)
            <= self._capacity.get(kind, math.inf) * (1 + _ROUNDING)
            for kind, value in amounts.items()
            if value > 0
        )

    def _choose(self, first: int, count: int) -> tuple[str, ...]:
        """Free ones, if possible those that this core had last."""
        if count == 0:
            return ()
        taken = {gpu for other in self._held.values() for gpu in other.gpus}
        had = self._last.get(first, ())
        free = [gpu for gpu in self._gpus if gpu not in taken]
        if count > len(free):
            raise ValueError(f"it needs {count} GPUs, and {len(free)} are free")
        chosen = sorted(free, key=lambda gpu: (gpu not in had, self._gpus.index(gpu)))[:count]
        self._last[first] = tuple(sorted(chosen, key=self._gpus.index))
        return self._last[first]
