"""What a run has taught so far: by how much its tasks take longer than was expected of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from weft.kernels import board as b
from weft.kernels.board import Board

CERTAINTY = 2.0  # standard deviations: what is expected to be enough in more than 9 of 10 cases
RESIDUAL = 0.5  # of the time that an overdue task has run: so much more is expected of it
UNSEEN = 0.3  # the relative deviation of tasks of which none has ended yet
DOUBT = 2.0  # so many tasks count as that
TINY = 1e-9


@dataclass(frozen=True)
class Experience:
    """The ratio of actual to expected time in this run, its deviation, and of how many tasks."""

    ratio: float = 1.0
    spread: float = UNSEEN
    tasks: float = 0.0

    def prudent(self, left: float) -> float:
        """A ratio that is enough for the sum of so many tasks more, as good as surely.

        The ratio of those to come is as unsure as that of those seen, and varies around it.
        """
        if self.tasks == 0 or left <= 0:
            return 1.0
        unsure = self.spread * math.sqrt(1 / left + 1 / self.tasks)
        return max(1.0, self.ratio + CERTAINTY * unsure)


def experience_of(board: Board) -> Experience:
    """All finished attempts count, and those that are or were overdue, by what they may yet take.

    The ratio is to what is expected by now: where estimates have learned, it has come down to 1.
    """
    ratios, weights = _ratios(board)
    if not len(ratios):
        return Experience()
    ratio = float(np.average(ratios, weights=weights))
    n = float(weights.sum() ** 2 / np.square(weights).sum())  # as many equal ones
    variance = float(np.average(np.square(ratios - ratio), weights=weights))
    unseen = (UNSEEN * ratio) ** 2
    return Experience(ratio, math.sqrt((n * variance + DOUBT * unseen) / (n + DOUBT - 1)), n)


def _ratios(board: Board) -> tuple[np.ndarray, np.ndarray]:
    """Actual to expected time of attempts, and how much each was expected to take."""
    k = np.arange(int(board.counts[b.N_ATTEMPTS]))
    expected = board.estimate[board.attempt_task[k] * board.n_processors + board.attempt_on[k]]
    end, p = board.attempt_end[k], board.attempt_on[k]
    runs = end == b.OPEN
    worked = board.worked[k] + np.where(
        runs, (board.clock[0] - board.since[k]) * board.availability[p], 0.0
    )
    ratio = worked / np.maximum(expected, TINY)
    overdue = (runs | (end == b.CANCELLED)) & (ratio > 1)
    ratio = np.where(overdue, ratio * (1 + RESIDUAL), ratio)
    counts = ((end == b.FINISHED) | overdue) & (expected > TINY)
    return ratio[counts], expected[counts]


def still_expected(board: Board) -> np.ndarray:
    """By task, the time that a cancelled attempt shows it may need, of overdue ones; else 0."""
    k = np.arange(int(board.counts[b.N_ATTEMPTS]))
    cut = (board.attempt_end[k] == b.CANCELLED) & (board.status[board.attempt_task[k]] == b.WAITING)
    floor = np.zeros(board.n_tasks)
    np.maximum.at(floor, board.attempt_task[k][cut], board.worked[k][cut] * (1 + RESIDUAL))
    return floor
