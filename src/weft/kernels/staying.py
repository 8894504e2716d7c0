"""Tasks that stay where they were to run, among processors that are as good as each other."""

from __future__ import annotations

from weft.arrays import FloatArray, IntArray
from weft.native import compiled


@compiled
def choose_equals(
    order: IntArray, start: FloatArray, finish: FloatArray, before: IntArray, chosen: IntArray,
    free: FloatArray, group: IntArray, first: IntArray, member: IntArray, slop: float,
) -> bool:  # fmt: skip
    """For each task in turn: its processor of before, if that is an idle equal of the chosen one.

    Equals of a processor are the members of its group, from its first on. False: nobody is idle.
    """
    for k in range(len(order)):
        task = order[k]
        p, other, found = chosen[task], -1, False
        for m in range(first[group[p]], first[group[p] + 1]):
            q = member[m]
            idle = free[q] <= start[task] + slop
            if idle and q == before[task]:  # where it was to run
                other, found = q, True
            elif idle and not found and (other < 0 or q == p):  # where it is now, or the first
                other = q
        if other < 0:
            return False
        chosen[task] = other
        free[other] = finish[task]
    return True
