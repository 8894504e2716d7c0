"""A second, slow reading of how planned tasks that take cores and amounts begin, on plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

Amounts = dict[str, float]  # by "host:kind", or by pool


@dataclass
class Job:
    """A task without inputs, as planned: its cores, and who comes before it in line."""

    name: int
    place: int
    cores: Sequence[int]
    amounts: Amounts
    expected: float
    really: float
    start: float = -1.0
    end: float = field(default=-1.0)


def run(jobs: Sequence[Job], capacity: Amounts) -> dict[int, float]:
    """When each job starts: nothing is lost, and no speed changes."""
    by_place, now = sorted(jobs, key=lambda job: job.place), 0.0
    while any(job.start < 0 for job in jobs):
        for job in by_place:
            if _could(job, jobs, now) and _may(job, by_place, capacity, now):
                job.start, job.end = now, now + job.really
        now = min(job.end for job in jobs if job.start >= 0 and job.end > now)
    return {job.name: job.start for job in jobs}


def _runs(job: Job, now: float) -> bool:
    return job.start >= 0 and job.end > now


def _could(job: Job, jobs: Sequence[Job], now: float) -> bool:
    """Whether it has not begun, and nobody before it uses one of its cores, or will."""
    if job.start >= 0:
        return False
    shared = [other for other in jobs if other is not job and set(other.cores) & set(job.cores)]
    waits = any(other.start < 0 and other.place < job.place for other in shared)
    return not waits and not any(_runs(other, now) for other in shared)


def _may(job: Job, by_place: Sequence[Job], capacity: Amounts, now: float) -> bool:
    """Whether its amounts are free, and the first before it that wants the same is not delayed."""
    if not _enough(job, [other for other in by_place if _runs(other, now)], capacity):
        return False
    for other in by_place:
        if other.place >= job.place:
            return True
        if _could(other, by_place, now) and _shares(other, job):
            begins = _earliest(other, by_place, capacity, now)
            leaves = _enough(other, [*_still(by_place, now, begins), job], capacity)
            return now + job.expected <= begins or leaves
    return True


def _shares(one: Job, other: Job) -> bool:
    both = one.amounts.keys() & other.amounts.keys()
    return any(min(one.amounts[kind], other.amounts[kind]) > 0 for kind in both)


def _still(jobs: Sequence[Job], now: float, time: float) -> list[Job]:
    """What is expected to run still at a time; what is overdue is expected to end now."""
    return [job for job in jobs if _runs(job, now) and max(now, job.start + job.expected) > time]


def _earliest(job: Job, jobs: Sequence[Job], capacity: Amounts, now: float) -> float:
    """When it could begin, as what runs is expected to end."""
    ends = sorted({now, *(max(now, j.start + j.expected) for j in jobs if _runs(j, now))})
    return next(time for time in ends if _enough(job, _still(jobs, now, time), capacity))


def _enough(job: Job, holding: Sequence[Job], capacity: Amounts) -> bool:
    """Whether these leave it what it takes."""
    return all(
        sum(other.amounts.get(kind, 0.0) for other in holding) + wanted
        <= capacity[kind] * (1 + 1e-10)
        for kind, wanted in job.amounts.items()
        if wanted > 0
    )
