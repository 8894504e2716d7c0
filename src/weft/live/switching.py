"""What `auto` means, and when a run that began blind knows enough to follow plans."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import numpy as np

from weft import registry
from weft.coordinator import Coordinator
from weft.coordinator.boards import waiting
from weft.kernels import board as b
from weft.live.header import Header
from weft.live.options import Options

if TYPE_CHECKING:
    from weft.live.estimating import Estimating

AUTO = "auto"
BLIND, PLANNED = "ico", "adaptive"  # nothing is known of the tasks' times, or something is
WORTH_IT = 2  # tasks left per processor; with fewer there is little to plan
KNOWN = "every task that is left has a history now"


def chosen_strategy(options: Options, blind: bool) -> str:
    """The strategy that is asked for; `auto` depends on what is known, and on limits to keep."""
    if options.strategy != AUTO:
        return options.strategy
    return BLIND if blind and not options.limited else PLANNED


@contextmanager
def meanwhile_imported(options: Options) -> Iterator[None]:
    """While machines are waited for, import what the run needs next."""
    rooms = ["weft.history.repository"] if options.use_history else []
    rooms += ["weft.ic"] if options.strategy == AUTO else []  # for its order, if it is blind

    def work() -> None:
        with suppress(Exception):  # who needs it says so
            for room in (*rooms, "numpy.ma"):  # which medians need
                importlib.import_module(room)
            if options.strategy == AUTO:
                registry.strategy(PLANNED)

    thread = threading.Thread(target=work, name="weft-imports", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def why(header: Header) -> str:
    """Why a run has set out with its strategy."""
    if header.options.strategy != AUTO:
        return "asked for"
    if header.options.budget is not None:
        return "there was a budget to keep"
    if header.options.deadline is not None:
        return "there was a deadline to keep"
    if header.blind:
        return "nothing was known of the times of its tasks"
    return "something was known of the times of its tasks"


def knows_enough(header: Header, coordinator: Coordinator, estimating: Estimating) -> bool:
    """Whether it is time to plan: all that is left is of a kind that was measured."""
    if coordinator.policy is not None or not estimating.fresh:
        return False
    if header.options.strategy != AUTO:
        return False
    estimating.fresh = False
    board = coordinator.board
    usable = board.present & (board.leaves > coordinator.now)
    left = waiting(board)
    if board.counts[b.HELD_BACK] or not usable.any():
        return False
    if np.count_nonzero(left) < WORTH_IT * np.count_nonzero(usable):
        return False
    return estimating.knows(left)
