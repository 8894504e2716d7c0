"""When does what runs end? One answer, for tasks and transfers, with one floor of speed."""

from __future__ import annotations

from foreplan.arrays import FloatArray
from foreplan.native import compiled

# What stands still is expected to go on at this share of its speed: far off, but not for ever.
STANDS_STILL = 0.01
# Of a task that is overdue where all stands still, this share is expected to be left: it may have
# stood still before that was noticed.
LEFT_THERE = 0.1


def expected_end(
    cost: float, done: float, since: float, rate: float, now: float, left_there: float
) -> float:
    """When what takes `cost` in all ends, with so much done by `since`, at this share of its speed.

    What is overdue is expected to end now; where it stands still, this share of it is left.
    """
    left = cost - done
    if rate < STANDS_STILL:
        if now > since:
            left -= (now - since) * rate
            since = now
        if not left > 0.0:
            left = left_there * cost
    return max(now, since + max(0.0, left) / max(rate, STANDS_STILL))


@compiled
def expected_ends(
    cost: FloatArray, done: FloatArray, since: FloatArray, rate: FloatArray, now: float,
    ends: FloatArray,
) -> None:  # fmt: skip
    """The same of many tasks."""
    for k in range(len(cost)):
        ends[k] = expected_end(cost[k], done[k], since[k], rate[k], now, LEFT_THERE)
