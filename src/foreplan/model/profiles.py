"""How much of a host's memory, GPUs or other amounts is held over time, by a plan or in a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from foreplan.arrays import FloatArray, FrozenArrays, IntArray
from foreplan.model.resources import kinds_and_pools
from foreplan.model.schedule import Schedule

if TYPE_CHECKING:  # who shows a plan need not import what a run is
    from foreplan.model.record import AttemptLog, Run


@dataclass(frozen=True, eq=False)
class HeldProfile(FrozenArrays):
    """What is held, as steps: so much from each time on; the last is none, where there is any."""

    time: FloatArray
    held: FloatArray

    @property
    def most(self) -> float:
        """The most that is held at any time."""
        return float(self.held.max(initial=0.0))


def profile(start: FloatArray, finish: FloatArray, amount: FloatArray) -> HeldProfile:
    """The sum of what is held from each start to its finish; what ends goes before what begins."""
    counts = (amount > 0) & (finish > start)
    start, finish, amount = start[counts], finish[counts], amount[counts]
    time, at = np.unique(np.concatenate([start, finish]), return_inverse=True)
    change = np.bincount(at, weights=np.concatenate([amount, -amount]), minlength=len(time))
    held: FloatArray = np.cumsum(change, dtype=np.float64)
    held[np.abs(held) <= 1e-9 * amount.max(initial=0.0)] = 0.0  # what rounding leaves
    return HeldProfile(time, held)


def kinds_held(shown: Schedule | Run) -> tuple[str, ...]:
    """The kinds of which some task holds an amount; none where all take one core only."""
    held = _table(shown)
    if held is None:
        return ()
    kinds, amount = held
    return tuple(kind for k, kind in enumerate(kinds) if amount[:, k].any())


def amounts_held(shown: Schedule | Run, kind: str) -> FloatArray:
    """What every task of a plan, or attempt of a run, holds of a kind."""
    held = _table(shown)
    if held is None or kind not in held[0]:
        return np.zeros(len(rows_of(shown).start))
    return held[1][:, held[0].index(kind)]


def rows_of(shown: Schedule | Run) -> Schedule | AttemptLog:
    """What has processor, cores, start and finish of every task, or attempt."""
    return shown if isinstance(shown, Schedule) else shown.attempts


def _table(shown: Schedule | Run) -> tuple[Sequence[str], FloatArray] | None:
    if isinstance(shown, Schedule):
        return None if shown.needs is None else (shown.needs.kinds, shown.needs.amount)
    amount = shown.attempts.amount
    return None if amount is None else (kinds_and_pools(shown.workflow)[0], amount)


def host_profiles(shown: Schedule | Run, amount: FloatArray) -> list[HeldProfile]:
    """The profile of every host, if tasks or attempts hold this much each."""
    rows = rows_of(shown)
    host: IntArray = shown.platform.host[rows.processor]
    return [
        profile(rows.start[host == h], rows.finish[host == h], amount[host == h])
        for h in range(shown.platform.n_hosts)
    ]
