"""The use of a run's machines so far, kept up instead of added up at every event."""

from __future__ import annotations

import numpy as np

from foreplan.arrays import FloatArray, IntArray
from foreplan.engine.check_state import BrokenStateError
from foreplan.engine.kernels import arrays as a
from foreplan.engine.state import RunState
from foreplan.model import Platform, Usage, Workflow
from foreplan.model.resources import held

NOTHING = Usage.none(0)


def usage_by(state: RunState, workflow: Workflow, platform: Platform, at: float) -> Usage:
    """The use of the machines by then, also by attempts that came to nothing; transfers too."""
    arrays, n = state.arrays, int(state.arrays.counts[a.N_ATTEMPTS])
    until = np.where(arrays.attempt_end[:n] == a.OPEN, at, arrays.attempt_finish[:n])
    transfers = _cost_of_transfers(state, workflow, platform)
    everyone = np.arange(n, dtype=np.int32)
    return _with(Usage.none(platform.n_processors), state, platform, everyone, until, transfers)


def _with(
    usage: Usage, state: RunState, platform: Platform, attempts: IntArray, until: FloatArray,
    transfers: float = 0.0,
) -> Usage:  # fmt: skip
    """A usage and that of attempts until then, on all of their cores; and shares of hosts."""
    arrays, first = state.arrays, state.arrays.attempt_on[attempts]
    start, cores = arrays.attempt_start[attempts], state.cores(attempts)
    if cores is None:
        return usage.and_then(first, start, until, transfers)
    beyond = arrays.attempt_beyond[attempts] * platform.price[first]
    transfers += float(np.dot(beyond, until - start))
    rows, processors = held(first, cores)
    return usage.and_then(processors, start[rows], until[rows], transfers)


def _cost_of_transfers(state: RunState, workflow: Workflow, platform: Platform) -> float:
    """What all that was sent costs, where links have a price."""
    if not platform.link_price.any():
        return 0.0
    arrays, m = state.arrays, int(state.arrays.counts[a.N_TRANSFERS])
    sizes = workflow.item_size[arrays.transfer_item[:m]]
    prices = platform.link_price[arrays.transfer_from[:m], arrays.transfer_to[:m]]
    return float(np.dot(sizes, prices))


class Meter:
    """Adds up every attempt once, when it has ended; what runs counts until now.

    A processor runs one attempt at a time, so its ended ones come in the order of the log: all sums
    are those of `usage_by`, to the last bit. It belongs to one coordinator.
    """

    def __init__(self) -> None:
        self._ended = NOTHING
        self._seen = 0  # attempts of the log
        self._open: IntArray = np.empty(0, dtype=np.int32)  # of those
        self._sent, self._transfers = 0, 0.0  # of the log of transfers, and what they cost
        self._prices: FloatArray | None = None  # that they were reckoned by

    def usage(self, state: RunState, workflow: Workflow, platform: Platform) -> Usage:
        """The use of the machines by now, also by attempts that came to nothing; transfers too."""
        self._add_processors(platform.n_processors)
        self._add_attempts(state, platform)
        self._add_transfers(state, workflow, platform)
        now = np.full(len(self._open), state.arrays.clock[0])
        return _with(self._ended, state, platform, self._open, now, self._transfers)

    def check(self, state: RunState, workflow: Workflow, platform: Platform) -> None:
        """Raise BrokenStateError if it says anything else than the whole log."""
        kept, said = (
            self.usage(state, workflow, platform),
            usage_by(state, workflow, platform, state.now),
        )
        for name in ("seconds", "first", "last", "transfers"):
            # what is paid for beyond cores comes in another order than that of the log
            exact = name != "transfers" or not state.arrays.most_cores
            same = np.array_equal if exact else np.allclose
            if not same(getattr(kept, name), getattr(said, name)):
                raise BrokenStateError(f"the use of the machines is kept wrong: {name}")

    def _add_processors(self, n: int) -> None:
        """Those that were not known before have not been used."""
        used, new = self._ended, Usage.none(n - len(self._ended.seconds))
        if len(new.seconds):
            seconds = np.concatenate([used.seconds, new.seconds])
            first = np.concatenate([used.first, new.first])
            last = np.concatenate([used.last, new.last])
            self._ended = Usage(seconds, first, last, used.transfers)

    def _add_attempts(self, state: RunState, platform: Platform) -> None:
        """Add those that have ended since the last time."""
        arrays = state.arrays
        end = int(arrays.counts[a.N_ATTEMPTS])
        known = np.concatenate([self._open, np.arange(self._seen, end, dtype=np.int32)])
        runs = arrays.attempt_end[known] == a.OPEN
        self._seen, self._open, over = end, known[runs], known[~runs]
        if len(over):
            self._ended = _with(self._ended, state, platform, over, arrays.attempt_finish[over])

    def _add_transfers(self, state: RunState, workflow: Workflow, platform: Platform) -> None:
        """Reckon what they cost anew, if there are more, or links have other prices."""
        sent = int(state.arrays.counts[a.N_TRANSFERS])
        if sent != self._sent or platform.link_price is not self._prices:
            self._sent, self._prices = sent, platform.link_price
            self._transfers = _cost_of_transfers(state, workflow, platform)
