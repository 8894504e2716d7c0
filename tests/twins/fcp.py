"""FCP, fast critical path (Radulescu, van Gemund), read for unequal processors."""

from __future__ import annotations

from math import inf

from foreplan.model import Situation

from .partial_schedule import PartialSchedule, Placement
from .ranks import by_rank, mean_comm, rank_u


def fcp(situation: Situation) -> dict[int, Placement]:
    """Ready tasks by rank, each on the processor free first or on its enabling processor."""
    partial = PartialSchedule(situation)
    order = by_rank(partial, rank_u(situation))
    while ready := set(partial.ready()):
        task = next(t for t in order if t in ready)
        first = min(partial.free(p) for p in partial.usable)
        candidates = {p for p in partial.usable if partial.free(p) == first} | enabling(
            partial, task
        )
        if all(partial.finish(task, p, insertion=False) == inf for p in candidates):
            candidates = set(partial.usable)
        partial.place_earliest(task, sorted(candidates), insertion=False)
    return partial.placed


def enabling(partial: PartialSchedule, task: int) -> set[int]:
    """The processor whose data would come last to any other host, if there is one."""
    best, chosen = -inf, set[int]()
    for item, producer in sorted(partial.inputs[task], key=lambda ip: partial.position[ip[1]]):
        made_on, _, finish = partial.placed[producer]
        arrival = max(finish, partial.now) + mean_comm(partial, item)
        if made_on in partial.usable and arrival > best:
            best, chosen = arrival, {made_on}
    return chosen
