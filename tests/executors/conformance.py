"""The one conformance suite of executors: what must hold for each, with the coordinator by hand.

A check takes a site and a way to open it. Rules that hold at every event (one end for each open
attempt, none for any other, times in order) are those of `Watched`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from executors.bench import ARRIVED, FAILED, FINISHED, Bench, dead
from executors.sites import Site, wait_queued
from executors.works import Work, expected
from foreplan.model.events import OWN_FAULT
from model.told import what, whom

Open = Callable[..., AbstractContextManager[Bench]]  # works, and whether where the last one was
Check = Callable[[Site, Open], None]


@dataclass(frozen=True)
class Entry:
    """A check, and what an executor must have for it to mean something."""

    check: Check
    needs: frozenset[str]


CHECKS: list[Entry] = []


def conformance(*needs: str, to: list[Entry] = CHECKS) -> Callable[[Check], Check]:
    """Make a function part of the suite."""

    def add(check: Check) -> Check:
        to.append(Entry(check, frozenset(needs)))
        return check

    return add


A, B, C, D = (Work(name) for name in "ABCD")
WAITS, ALSO_WAITS = Work("W", waits=True), Work("V", waits=True)


def check_results(site: Site, bench: Bench, *tasks: int) -> None:
    """They are what they must be, where there are any."""
    if "results" in site.has:
        for task in tasks:
            assert bench.result(task) == expected(bench.works, task)


@conformance()
def one_task_after_another(site: Site, open: Open) -> None:
    """Each gets one end, and nothing happens by itself."""
    with open([A, B, C]) as bench:
        assert bench.watched.next_event(wait=False) is None
        for task, processor in enumerate((0, 0, 1)):
            bench.expect(FINISHED, bench.start(task, processor))
            assert bench.watched.next_event(wait=False) is None
        bench.silent()
        check_results(site, bench, 0, 1, 2)


@conformance()
def tasks_overlap(site: Site, open: Open) -> None:
    """Two that wait run at once, and end once they may."""
    with open([WAITS, ALSO_WAITS]) as bench:
        first, second = bench.start(0, 0), bench.start(1, 1)
        assert bench.watched.next_event(wait=False) is None
        bench.begun(2)  # neither ends before both have begun
        assert bench.watched.next_event(wait=False) is None
        bench.open_gate()
        events = bench.expect(FINISHED, first, second)
        if not bench.watched.real:  # at once, in its own time
            assert max(e.time for e in events) < 0.02 * 1.5 + 1e-9
        bench.silent()
        check_results(site, bench, 0, 1)


@conformance()
def items_reach_their_readers(site: Site, open: Open) -> None:
    """Small and big ones, read on the other host, by several."""
    works = [Work("A", big=True), B, Work("C", (0, 1)), Work("D", (0, 1, 2)), Work("E", (0,))]
    with open(works) as bench:
        bench.expect(FINISHED, bench.start(0, 0))
        bench.expect(FINISHED, bench.start(1, 0))
        if len(bench.watched.platform.host_names) > 1:
            bench.expect(ARRIVED, bench.send(0, 0, 1), bench.send(1, 0, 1))
        else:
            bench.expect(ARRIVED, bench.send(0, 0, 0))  # to where it is
        bench.expect(FINISHED, bench.start(2, 1), bench.start(4, 0))
        bench.bring(2, 1, 0)
        bench.expect(FINISHED, bench.start(3, 0))
        bench.silent()
        check_results(site, bench, 3, 4)


@conformance()
def dropped_transfers_are_not_heard_of(site: Site, open: Open) -> None:
    """Not at once, not later, and the item can be sent again."""
    for works in ([Work("A", big=True), Work("B", (0,))], [A, Work("B", (0,))]):
        with open(works) as bench:
            bench.expect(FINISHED, bench.start(0, 0))
            bench.drop(bench.send(0, 0, 1))
            assert bench.watched.next_event(wait=False) is None
            late = bench.send(0, 0, 1)
            if bench.watched.real and "dask" not in site.has:
                wait_queued(site, bench)
            bench.drop(late)
            bench.expect(ARRIVED, bench.send(0, 0, 1))
            bench.expect(FINISHED, bench.start(1, 1))
            bench.silent()
            check_results(site, bench, 1)


@conformance("fails")
def failures_are_told_and_tried_again(site: Site, open: Open) -> None:
    """Twice it fails, with a reason; on either processor the next attempt is a new one."""
    works = [Work("A", fails=2), Work("B", (0,)), C]
    with open(works) as bench:
        for processor in (0, 1):
            other = bench.start(2, 1 - processor)
            failing = bench.start(0, processor)
            events = [bench.watched.next_event(), bench.watched.next_event()]
            told = {whom(e): e for e in events if e is not None}
            failure = told[failing]
            assert type(told[other]) is FINISHED
            assert (type(failure), what(failure)) == (FAILED, OWN_FAULT)
            assert failure.detail is not None
            assert "A fails on purpose" in failure.detail["reason"] + failure.detail["tail"]
            if "tails" in site.has:
                assert failure.detail["exit"] == 3
                assert "A fails on purpose" in failure.detail["tail"]
            assert not bench.is_published(0)
        bench.expect(FINISHED, bench.start(0, 0))
        bench.bring(0, 0, 1)
        bench.expect(FINISHED, bench.start(1, 1))
        bench.silent()
        check_results(site, bench, 1)


@conformance()
def cancelled_attempts_are_not_heard_of(site: Site, open: Open) -> None:
    """One that runs, one that was only just started; the processors can be used again."""
    with open([WAITS, A, B]) as bench:
        first = bench.start(0, 0)
        assert bench.watched.next_event(wait=False) is None
        processes = bench.begun()
        bench.cancel(first)
        bench.cancel(bench.start(1, 1))
        if "stops" in site.has:
            assert all(dead(pid) for pid in processes["W"])
            assert not bench.is_published(0)
        else:  # a thread cannot be stopped
            bench.open_gate(1)
        bench.expect(FINISHED, bench.start(2, 1), bench.start(1, 0))
        again = bench.start(0, 1)
        assert bench.watched.next_event(wait=False) is None
        bench.begun()
        bench.open_gate()
        bench.expect(FINISHED, again)
        bench.silent()
        check_results(site, bench, 0, 1, 2)


@conformance()
def cancelled_when_it_is_over(site: Site, open: Open) -> None:
    """Its end is known, but not taken; big ones may be on their way home."""
    for work in (A, Work("A", big=True), Work("A", fails=1)):
        with open([work, B, Work("R", (0,))]) as bench:
            for processor in (0, 1):
                over = bench.start(0, processor)
                if bench.watched.next_event(wait=False) is None:
                    wait_queued(site, bench)
                    bench.cancel(over)
                else:
                    bench.watched.running.pop(over, None)
                bench.expect(FINISHED, bench.start(1, processor))
            events = [bench.watched.next_event() for _ in [bench.start(0, 0)]]
            if events[0] is not None and type(events[0]) is FAILED:
                assert work.fails
                bench.expect(FINISHED, bench.start(0, 0))
            bench.bring(0, 0, 1)
            bench.expect(FINISHED, bench.start(2, 1))
            bench.silent()
            check_results(site, bench, 1, 2)


@conformance()
def moved_back_and_forth(site: Site, open: Open) -> None:
    """One task, many attempts, each cancelled at another moment; only the last is heard of."""
    with open([Work("A"), Work("B", (0,)), Work("C", (1,))]) as bench:
        bench.expect(FINISHED, bench.start(0, 0))
        bench.bring(0, 0, 1)
        for k in range(8):
            attempt = bench.start(1, k % 2)
            if k % 4 > 1:
                event = bench.watched.next_event(wait=False)
                if event is not None:
                    continue
            bench.cancel(attempt)
        bench.expect(FINISHED, bench.start(1, 0))
        bench.bring(1, 0, 1)
        bench.expect(FINISHED, bench.start(2, 1))
        bench.silent()
        check_results(site, bench, 2)


@conformance()
def prepared_and_never_started(site: Site, open: Open) -> None:
    """Not a trace of it, whether it has run or not."""
    with open([A, B, Work("C", fails=1), D]) as bench:
        bench.prepare(0, 1, 2)
        bench.prepare(1, 3)
        bench.expect(FINISHED, bench.start(0, 0))
        bench.prepare(0, 2)
        bench.prepare(0)
        bench.prepare(1)
        assert bench.watched.next_event(wait=False) is None
        bench.silent()
        if "results" in site.has:
            assert [bench.is_published(t) for t in range(4)] == [True, False, False, False]
        check_results(site, bench, 0)


@conformance()
def prepared_and_started(site: Site, open: Open) -> None:
    """As said, elsewhere, in another order, and by another list: one end each."""
    works = [A, B, Work("C", (0,)), Work("D", (0,)), Work("E", (1,)), Work("F", (1, 2))]
    with open(works) as bench:
        bench.prepare(0, 0, 1)
        bench.prepare(0, 1, 0)  # another order
        bench.expect(FINISHED, bench.start(0, 0), bench.start(1, 1))  # and 1 elsewhere
        for item, source in ((0, 0), (1, 1)):
            bench.bring(item, source, 1 - source)
        bench.prepare(0, 2, 3, 4)
        bench.prepare(1, 4)  # 4 is on both lists
        bench.prepare(0, 3)  # and the first shrinks
        assert bench.watched.next_event(wait=False) is None
        bench.expect(FINISHED, bench.start(3, 0), bench.start(4, 1))
        bench.prepare(1, 2)
        bench.prepare(1)
        bench.prepare(0, 2)
        bench.expect(FINISHED, bench.start(2, 1))
        bench.bring(2, 1, 0)
        bench.prepare(0, 5)
        bench.expect(FINISHED, bench.start(5, 0))
        bench.silent()
        check_results(site, bench, 3, 4, 5)


@conformance("ahead")
def prepared_and_over_before_it_is_started(site: Site, open: Open) -> None:
    """What was begun ahead and ended, well or not, is told of when it is asked for, once."""
    works = [WAITS, Work("F", waits=True, fails=1), A]
    with open(works) as bench:
        for task, name in ((0, "W"), (1, "F")):
            bench.prepare(0, task)
            assert bench.watched.next_event(wait=False) is None
            assert list(bench.begun()) == [name]
            bench.open_gate(1)
            wait_queued(site, bench)
            assert bench.watched.next_event(wait=False) is None
            assert not bench.is_published(task)
            end = FAILED if bench.works[task].fails else FINISHED
            bench.expect(end, bench.start(task, 0))
        bench.open_gate()
        bench.expect(FINISHED, bench.start(1, 1))
        bench.silent()
        check_results(site, bench, 0, 1)


@conformance("ahead")
def prepared_begun_and_taken_away(site: Site, open: Open) -> None:
    """It runs already, and is then wanted elsewhere, or no more, or cancelled."""
    with open([WAITS, A, B]) as bench:
        bench.prepare(0, 0)
        assert bench.watched.next_event(wait=False) is None
        bench.begun()
        elsewhere = bench.start(0, 1)
        assert bench.watched.next_event(wait=False) is None
        bench.begun()
        bench.open_gate(2)  # the one that was begun, and the one that was asked for
        bench.expect(FINISHED, elsewhere)
        bench.prepare(1, 1)
        bench.cancel(bench.start(1, 1))
        bench.expect(FINISHED, bench.start(2, 0), bench.start(1, 1))
        bench.silent()
        check_results(site, bench, 0, 1, 2)
