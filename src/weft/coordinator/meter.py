"""The use of a run's machines so far, kept up with its board instead of added up at every event."""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.coordinator.check_board import BrokenStateError
from weft.kernels import board as b
from weft.kernels.board import Board
from weft.model import Platform, Usage, Workflow


class Meter:
    """Adds up every attempt once, when it has ended; what runs counts until now.

    A processor runs one attempt at a time, so its ended ones come in the order of the log: all sums
    are those of `usage_of`, to the last bit. It belongs to one coordinator, and follows its board.
    """

    def __init__(self) -> None:
        self._ended = Usage.none(0)
        self._seen = 0  # attempts of the log
        self._open: IntArray = np.empty(0, dtype=np.int32)  # of those
        self._sent, self._transfers = 0, 0.0  # of the log of transfers, and what they cost
        self._prices: FloatArray | None = None  # that they were reckoned by

    def usage(self, board: Board, workflow: Workflow, platform: Platform) -> Usage:
        """The use of the machines by now, also by attempts that came to nothing; transfers too."""
        self._add_processors(platform.n_processors)
        self._add_attempts(board)
        self._add_transfers(board, workflow, platform)
        now = np.full(len(self._open), board.clock[0])
        on, start = board.attempt_on[self._open], board.attempt_start[self._open]
        return self._ended.and_then(on, start, now, self._transfers)

    def check(self, board: Board, workflow: Workflow, platform: Platform) -> None:
        """Raise BrokenStateError if it says anything else than the whole log."""
        kept, said = self.usage(board, workflow, platform), usage_of(board, workflow, platform)
        for name in ("seconds", "first", "last", "transfers"):
            if not np.array_equal(getattr(kept, name), getattr(said, name)):
                raise BrokenStateError(f"the use of the machines is kept wrong: {name}")

    def _add_processors(self, n: int) -> None:
        """Those that were not known before have not been used."""
        used, new = self._ended, Usage.none(n - len(self._ended.seconds))
        if len(new.seconds):
            seconds = np.concatenate([used.seconds, new.seconds])
            first = np.concatenate([used.first, new.first])
            self._ended = Usage(seconds, first, np.concatenate([used.last, new.last]))

    def _add_attempts(self, board: Board) -> None:
        """Add those that have ended since the last time."""
        end = int(board.counts[b.N_ATTEMPTS])
        known = np.concatenate([self._open, np.arange(self._seen, end, dtype=np.int32)])
        runs = board.attempt_end[known] == b.OPEN
        self._seen, self._open, over = end, known[runs], known[~runs]
        if len(over):
            on, start = board.attempt_on[over], board.attempt_start[over]
            self._ended = self._ended.and_then(on, start, board.attempt_finish[over])

    def _add_transfers(self, board: Board, workflow: Workflow, platform: Platform) -> None:
        """Reckon what they cost anew, if there are more, or links have other prices."""
        sent = int(board.counts[b.N_TRANSFERS])
        if sent != self._sent or platform.link_price is not self._prices:
            self._sent, self._prices = sent, platform.link_price
            self._transfers = cost_of_transfers(board, workflow, platform)


def usage_of(board: Board, workflow: Workflow, platform: Platform) -> Usage:
    """The same as a meter says, from the whole log; for those who look now and then."""
    n = int(board.counts[b.N_ATTEMPTS])
    open_ones = board.attempt_end[:n] == b.OPEN
    until = np.where(open_ones, board.clock[0], board.attempt_finish[:n])
    transfers = cost_of_transfers(board, workflow, platform)
    nothing = Usage.none(platform.n_processors)
    return nothing.and_then(board.attempt_on[:n], board.attempt_start[:n], until, transfers)


def cost_of_transfers(board: Board, workflow: Workflow, platform: Platform) -> float:
    """What all that was sent costs, where links have a price."""
    if not platform.link_price.any():
        return 0.0
    m = int(board.counts[b.N_TRANSFERS])
    sizes = workflow.item_size[board.transfer_item[:m]]
    prices = platform.link_price[board.transfer_from[:m], board.transfer_to[:m]]
    return float(np.dot(sizes, prices))
