"""The part of the conformance suite for real machines: posts, closing, recovery and losses."""

from __future__ import annotations

import math
import threading

import pytest

from executors.bench import ARRIVED, FAILED, FINISHED, Bench, dead, until
from executors.conformance import ALSO_WAITS, WAITS, A, B, Entry, Open, check_results, conformance
from executors.sites import Site, wait_queued
from executors.works import Work
from foreplan.errors import InputError
from foreplan.executors.results import SMALL, SmallResults, small_places
from foreplan.model.events import (
    NO_FAULT,
    OWN_FAULT,
    Beat,
    ItemLost,
    LimitsDue,
    Paused,
    ProcessorGone,
    ProcessorJoined,
    ProcessorLeaving,
    StartTask,
    Woken,
)
from model.told import what, whom

CHECKS: list[Entry] = []


@conformance("real", to=CHECKS)
def posted_events_come_out(site: Site, open: Open) -> None:
    """From another thread too, while something runs, each with the time at which it is read."""
    with open([WAITS]) as bench:
        attempt = bench.start(0, 0)
        assert bench.watched.next_event(wait=False) is None
        bench.begun()
        posted = [Paused(-1.0, True, {"number": k}) for k in range(3)]
        thread = threading.Thread(target=lambda: list(map(bench.watched.post, posted)))
        thread.start()
        for k in range(3):
            [event] = bench.expect(Paused, 0)
            assert 0 < event.time <= bench.clock()
            assert event.detail == {"number": k}
        thread.join()
        bench.open_gate()
        bench.expect(FINISHED, attempt)
        bench.silent()


def threads() -> set[threading.Thread]:
    """Those that foreplan or a client of Dask would have left."""
    names = ("foreplan-", "IO loop", "Timer")
    return {t for t in threading.enumerate() if t.name.startswith(names)}


@conformance("real", to=CHECKS)
def closed_in_any_state(site: Site, open: Open) -> None:
    """Idle, used, running, prepared, or with ends that nobody has taken; and twice."""
    for state in ("idle", "used", "running", "prepared", "untaken"):
        with open([WAITS, A, B]) as bench:
            before = threads()  # those of the executor are among them if it has made them already
            processes: dict[str, list[int]] = {}
            if state != "idle":
                bench.expect(FINISHED, bench.start(1, 0))
            if state == "running":
                bench.start(0, 0)
            elif state == "prepared":
                bench.prepare(0, 0, 2)
            elif state == "untaken":
                bench.start(2, 1)
            assert bench.watched.next_event(wait=False) is None or state == "untaken"
            if state == "running" or (state == "prepared" and "ahead" in site.has):
                processes = bench.begun()
            if state == "untaken":
                wait_queued(site, bench)
            if "stops" not in site.has:
                bench.open_gate()
            bench.watched.close()
            bench.watched.close()
            if "stops" in site.has:
                assert all(dead(pid) for pids in processes.values() for pid in pids)
                assert not bench.is_published(0)
            until(lambda: not (threads() - before), "no thread is left")  # noqa: B023


@conformance("real", to=CHECKS)
def recovered(site: Site, open: Open) -> None:
    """Attempts get an end, missing items are lost, and the run goes on."""
    works = [A, Work("B", (0,)), WAITS, Work("E", (0, 1)), Work("P")]
    with open(works) as bench:
        for task in (0, 1, 4):
            bench.expect(FINISHED, bench.start(task, 0))
        attempt = bench.start(2, 1)
        assert bench.watched.next_event(wait=False) is None
        bench.begun()
        begun = bench.attempts
        if "stops" not in site.has:
            bench.open_gate(1)
    with open(works, again=True) as bench:
        bench.attempts = begun
        events = bench.watched.recover([StartTask(attempt, 2, 1, 0.0)], [(0, 0), (1, 0), (4, 0)])
        ends = [e for e in events if type(e) in (FINISHED, FAILED)]
        assert [(type(e), what(e)) for e in ends] == [(FAILED, NO_FAULT)]
        n = bench.workflow.n_items
        lost = sorted(e.place % n for e in events if isinstance(e, ItemLost))
        # what is on disk is there, what was only in the memory of workers is not
        assert lost == ([] if "keeps" in site.has else [0, 1])
        for task in lost:
            bench.expect(FINISHED, bench.start(task, 0))
        again = bench.start(2, 1)
        assert bench.watched.next_event(wait=False) is None
        bench.begun()
        bench.open_gate()
        bench.expect(FINISHED, again)
        bench.expect(FINISHED, bench.start(3, 0))
        bench.silent()
        check_results(site, bench, 2, 3, 4)


@conformance("real", to=CHECKS)
def recovered_without_its_files(site: Site, open: Open) -> None:
    """What was deleted meanwhile is lost, what was not is not; an end that nobody took counts."""
    works = [A, B, Work("C")]
    with open(works) as bench:
        for task in (0, 1):
            bench.expect(FINISHED, bench.start(task, 0))
        attempt = bench.start(2, 0)
        if bench.watched.next_event(wait=False) is None:
            wait_queued(site, bench)
            if "keeps" in site.has:
                until(lambda: bench.is_published(2), "its outputs are published")
        _remove(bench, 0)
    with open(works, again=True) as bench:
        events = bench.watched.recover([StartTask(attempt, 2, 0, 0.0)], [(0, 0), (1, 0)])
        lost = [e.place for e in events if isinstance(e, ItemLost)]
        assert lost == [0]
        bench.attempts = 3
        [end] = [e for e in events if type(e) in (FINISHED, FAILED)]
        if "keeps" in site.has:
            assert type(end) is FINISHED, end
        if type(end) is FAILED:
            bench.expect(FINISHED, bench.start(2, 1))
        bench.expect(FINISHED, bench.start(0, 0))
        check_results(site, bench, 0, 1, 2)


def _remove(bench: Bench, task: int) -> None:
    results = bench.home / "results"
    own = results / f"{task}.pkl" if bench.functions else bench.dir / bench.works[task].file
    if own.exists() or not bench.functions:
        own.unlink()
        return
    whole, places = (results / SMALL).read_bytes(), small_places(results)
    (results / SMALL).unlink()
    rest = SmallResults(results)
    for other, (at, length) in places.items():
        if other != task:
            rest.keep(other, whole[at : at + length])
    rest.close()


@conformance("real", to=CHECKS)
def drained(site: Site, open: Open) -> None:
    """It is announced, and again when the time has come; what runs there is finished."""
    with open([WAITS, A, Work("R", (0, 1))]) as bench:
        attempt = bench.start(0, 0)
        assert bench.watched.next_event(wait=False) is None
        bench.begun()
        bench.watched.drain(0)
        [now] = bench.expect(ProcessorLeaving, 0)
        assert 0 < what(now) <= now.time
        at = bench.clock() + 0.1
        bench.watched.drain(0, at - 0.05)
        bench.watched.drain(0, at)  # which takes the place of the other
        first, second = bench.expect(ProcessorLeaving, 0, 0)
        third = bench.watched.next_event()
        assert first.time < what(second) == at
        assert third is not None
        assert (type(third), what(third)) == (ProcessorLeaving, at)
        assert third.time >= at
        bench.open_gate()
        bench.expect(FINISHED, attempt)
        bench.expect(FINISHED, bench.start(1, 1))
        bench.bring(0, 0, 1)
        bench.expect(FINISHED, bench.start(2, 1))
        bench.silent()
        check_results(site, bench, 2)
        bench.watched.drain(1, bench.clock() + 600)  # it is closed before
        bench.expect(ProcessorLeaving, 1)


@conformance("real", to=CHECKS)
def woken(site: Site, open: Open) -> None:
    """At the time last asked for, once and not before; nobody waits for that alone."""
    with open([WAITS]) as bench:
        attempt = bench.start(0, 0)
        assert bench.watched.next_event(wait=False) is None
        bench.begun()
        at = bench.clock() + 0.1
        bench.wake_at(at - 0.08)
        bench.wake_at(at)
        [event] = bench.expect(Woken, 0)
        assert at <= event.time <= bench.clock()
        assert bench.watched.next_event(wait=False) is None
        bench.wake_at(0.0)  # long ago
        event_now = bench.watched.next_event(wait=False)
        assert event_now is not None
        assert isinstance(event_now, Woken)
        bench.wake_at(bench.clock() + 600)  # it is closed before
        bench.wake_at(bench.clock() + 0.05, LimitsDue)  # which is another alarm
        bench.wake_at(0.0, Beat)
        bench.wake_at(math.inf, Beat)  # it is off
        bench.expect(LimitsDue, 0)
        bench.open_gate()
        bench.expect(FINISHED, attempt)
        bench.silent()
        if "local" in site.has:  # else workers may come
            assert bench.watched.next_event() is None


@conformance("local", to=CHECKS)
def more_processors(site: Site, open: Open) -> None:
    """They join all at once, and are used, and drained, as any other."""
    with open([WAITS, A, ALSO_WAITS, Work("R", (0, 1, 2))]) as bench:
        first = bench.start(0, 0)
        bench.watched.add(2)
        events = bench.expect(ProcessorJoined, 2, 3)
        assert [(whom(e), what(e)) for e in events] == [(2, 1.0), (3, 0.0)]
        assert bench.watched.platform.processor_names[2:] == ("local-3", "local-4")
        assert bench.watched.platform.n_hosts == 1
        last = bench.start(2, 3)
        assert bench.watched.next_event(wait=False) is None
        bench.begun(2)
        bench.watched.drain(3)
        bench.expect(ProcessorLeaving, 3)
        bench.expect(FINISHED, bench.start(1, 2))
        bench.open_gate()
        bench.expect(FINISHED, first, last)
        bench.expect(FINISHED, bench.start(3, 2))
        for count in (0, -1, 5000):
            with pytest.raises(InputError, match="cannot add"):
                bench.watched.add(count)
        bench.silent()
        check_results(site, bench, 3)


WIDE, ALSO_WIDE = (0, 1), (2, 3)  # cores of one host each


@conformance("wide", to=CHECKS)
def wide_tasks_run_beside_others(site: Site, open: Open) -> None:
    """A task of two cores is one attempt, of the first of them; others overlap with it."""
    works = [WAITS, ALSO_WAITS, A, Work("R", (0, 2))]
    with open(works, wide=True) as bench:
        first, second = bench.start(0, *WIDE), bench.start(1, 2)
        third = bench.start(2, 3)
        bench.expect(FINISHED, third)
        bench.begun(2)
        assert bench.watched.next_event(wait=False) is None
        bench.open_gate()
        bench.expect(FINISHED, first, second)
        bench.bring(0, 0, 2)
        bench.expect(FINISHED, bench.start(3, *ALSO_WIDE))
        bench.expect(FINISHED, bench.start(2, 1))  # the second core of a wide one is free again
        bench.silent()
        check_results(site, bench, 1, 3)


@conformance("wide", to=CHECKS)
def wide_tasks_fail_and_are_cancelled(site: Site, open: Open) -> None:
    """Their cores are free afterwards, each by itself and all together."""
    works = [Work("F", fails=1), WAITS, A, B, Work("R", (0, 2, 3))]
    with open(works, wide=True) as bench:
        [event] = bench.expect(FAILED, bench.start(0, *WIDE))
        assert what(event) == OWN_FAULT
        bench.expect(FINISHED, bench.start(0, *WIDE))
        cancelled = bench.start(1, *WIDE)
        assert bench.watched.next_event(wait=False) is None
        processes = bench.begun()
        bench.cancel(cancelled)
        if "stops" not in site.has:
            bench.open_gate()
        bench.expect(FINISHED, bench.start(2, 0), bench.start(3, 1))
        if "stops" in site.has:
            assert all(dead(pid) for pids in processes.values() for pid in pids)
            assert not bench.is_published(1)
        bench.expect(FINISHED, bench.start(4, *WIDE))
        bench.silent()
        check_results(site, bench, 4)


@conformance("wide", to=CHECKS)
def wide_tasks_are_recovered(site: Site, open: Open) -> None:
    """One that was under way gets one end, and may begin again elsewhere."""
    with open([WAITS], wide=True) as bench:
        attempt = bench.start(0, *WIDE)
        assert bench.watched.next_event(wait=False) is None
        bench.begun()
        if "stops" not in site.has:
            bench.open_gate(1)
    with open([WAITS], wide=True, again=True) as bench:
        bench.attempts = 1
        bench.watched.recover([StartTask(attempt, 0, 0, 0.0, WIDE)], [])
        again = bench.start(0, *ALSO_WIDE)
        assert bench.watched.next_event(wait=False) is None
        bench.begun()
        bench.open_gate()
        bench.expect(FINISHED, again)
        bench.silent()
        check_results(site, bench, 0)


TWO_AND_A_READER = [Work("A", big=True), B, Work("R", (0, 1))]


@conformance("dask", to=CHECKS)
def drained_and_stopped(site: Site, open: Open) -> None:
    """Results that only a drained worker holds are copied elsewhere, and survive it."""
    with open(TWO_AND_A_READER) as bench:
        make_both(bench)
        bench.watched.drain(0)
        bench.expect(ProcessorLeaving, 0)
        bench.bring(0, 0, 1)
        bench.bring(1, 0, 1)
        assert bench.cluster is not None
        held, name = bench.cluster, bench.watched.platform.processor_names[0]
        while held.only_on(name):
            assert bench.watched.next_event(wait=False) is None
        kill(bench, 0)
        assert [type(e) for e in bench.expect_loss(0)] == [ProcessorGone]
        read_both(site, bench)
        with pytest.raises(InputError, match="join by themselves"):
            bench.watched.add(1)


@conformance("dask", to=CHECKS)
def retired(site: Site, open: Open) -> None:
    """A departure is told of before it; what is on its way from there arrives all the same."""
    with open(TWO_AND_A_READER) as bench:
        make_both(bench)
        assert bench.cluster is not None
        bench.cluster.retire(bench.watched.platform.processor_names[0])
        bench.expect(ProcessorLeaving, 0)
        assert bench.watched.next_event(wait=False) is None  # until what is to be sent is
        if len(bench.watched.platform.host_names) > 1:
            bench.send(0, 0, 1)
            bench.send(1, 0, 1)
        events = bench.expect_loss(0)
        assert {type(e) for e in events} <= {ProcessorGone, ARRIVED}
        assert not bench.watched.moving
        read_both(site, bench)


@conformance("dask", to=CHECKS)
def retired_with_what_it_held(site: Site, open: Open) -> None:
    """What Dask has copied elsewhere is not lost: a run that has yet to send it can."""
    with open(TWO_AND_A_READER) as bench:
        make_both(bench)
        assert bench.cluster is not None
        bench.cluster.retire(bench.watched.platform.processor_names[0])
        bench.expect(ProcessorLeaving, 0)
        if "shared" not in site.has:
            executor = bench.watched.executor
            while not executor._leaving._late:
                executor.hear(executor.inbox.get(timeout=60))
            assert bench.watched.next_event(wait=False) is None
            bench.expect(ARRIVED, bench.send(0, 0, 1))
            bench.expect(ARRIVED, bench.send(1, 0, 1))
        assert [type(e) for e in bench.expect_loss(0)] == [ProcessorGone]
        read_both(site, bench)


@conformance("dask", to=CHECKS)
def not_retired_after_all(site: Site, open: Open) -> None:
    """Nobody is left to take what a worker holds: it stays, and may be used again."""
    if "shared" in site.has:  # where workers hold nothing
        return
    with open([A, Work("R", (0,))]) as bench:
        bench.expect(FINISHED, bench.start(0, 0))
        assert bench.cluster is not None
        bench.cluster.retire(*bench.watched.platform.processor_names)
        bench.expect(ProcessorLeaving, 0, 1)
        told = [bench.watched.next_event(), bench.watched.next_event()]
        found = {(type(e), whom(e), what(e)) for e in told if e is not None}
        assert (ProcessorLeaving, 0, float("inf")) in found
        # the other one may hold what was given from outside, and then stays as well
        others = {(ProcessorGone, 1, 0.0), (ProcessorLeaving, 1, float("inf"))}
        assert len(found & others) == 1
        bench.expect(FINISHED, bench.start(1, 0))
        bench.silent()
        check_results(site, bench, 1)


def make_both(bench: Bench) -> None:
    """Two results, which the worker of the first processor holds."""
    for task in (0, 1):
        bench.expect(FINISHED, bench.start(task, 0))


def read_both(site: Site, bench: Bench) -> None:
    """The reader runs on the second processor, and that is all."""
    bench.expect(FINISHED, bench.start(2, 1))
    bench.silent()
    check_results(site, bench, 2)


def kill(bench: Bench, processor: int) -> None:
    """Kill the worker of a processor."""
    assert bench.cluster is not None
    bench.cluster.kill(bench.watched.platform.processor_names[processor])


@conformance("dask", "wide", to=CHECKS)
def lost_with_all_of_its_threads(site: Site, open: Open) -> None:
    """A worker of two threads dies under a task on each, and under one that holds both."""
    works = [WAITS, ALSO_WAITS, Work("X", waits=True), A]
    with open(works, wide=True) as bench:
        stays = bench.start(2, *ALSO_WIDE)
        bench.start(0, 0)
        bench.start(1, 1)
        assert bench.watched.next_event(wait=False) is None
        bench.begun(3)
        assert bench.cluster is not None
        first, *_ = bench.watched.platform.processor_names
        bench.cluster.kill(first.partition("#")[0])
        bench.expect(ProcessorGone, 0, 1)
        bench.cluster.add(nthreads=2)
        bench.expect(ProcessorJoined, 4, 5)
        again = bench.start(0, 4, 5)
        assert bench.watched.next_event(wait=False) is None
        bench.begun()
        name = bench.watched.platform.processor_names[4].partition("#")[0]
        bench.cluster.kill(name)
        bench.expect(ProcessorGone, 4, 5)
        bench.watched.running.pop(again, None)
        bench.open_gate()
        bench.expect(FINISHED, stays)
        bench.expect(FINISHED, bench.start(0, *ALSO_WIDE))
        bench.expect(FINISHED, bench.start(3, 2), bench.start(1, 3))
        bench.silent()
        check_results(site, bench, 0, 1, 2, 3)


@conformance("dask", to=CHECKS)
def lost_while_running(site: Site, open: Open) -> None:
    """A worker dies under a task: no word of the attempt; a new worker does it instead."""
    with open([WAITS, A, ALSO_WAITS, Work("R", (1,))]) as bench:
        bench.expect(FINISHED, bench.start(1, 1))
        bench.start(0, 0)
        stays = bench.start(2, 1)
        assert bench.watched.next_event(wait=False) is None
        bench.begun(2)
        kill(bench, 0)
        bench.expect(ProcessorGone, 0)
        hosts = bench.watched.platform.n_hosts
        assert bench.cluster is not None
        name = bench.cluster.add()
        bench.expect(ProcessorJoined, 2)
        assert bench.watched.platform.processor_names[2] == name
        grown = bench.watched.platform.n_hosts - hosts
        assert grown == (0 if "shared" in site.has else 1)  # a directory that all see is one host
        bench.bring(1, 1, 2)
        bench.expect(FINISHED, bench.start(3, 2))
        again = bench.start(0, 2)
        assert bench.watched.next_event(wait=False) is None
        bench.begun()
        bench.open_gate()
        bench.expect(FINISHED, again, stays)
        bench.silent()
        check_results(site, bench, 0, 2, 3)


@conformance("dask", to=CHECKS)
def lost_with_an_end_untaken(site: Site, open: Open) -> None:
    """Whatever was heard before, after its going there is no word of an attempt."""
    with open([A, B, Work("R", (0, 1))]) as bench:
        bench.start(0, 0)
        if bench.watched.next_event(wait=False) is None:
            wait_queued(site, bench)
        kill(bench, 0)
        bench.expect_loss(0)
        assert bench.watched.next_event(wait=False) is None
        for task in (0, 1, 2):
            bench.expect(FINISHED, bench.start(task, 1))
        bench.silent()
        check_results(site, bench, 2)


@conformance("dask", to=CHECKS)
def lost_with_what_it_held(site: Site, open: Open) -> None:
    """Big and small results die with a worker, moved or not; what reads them gets an end."""
    works = [Work("A", big=True), B, Work("W", (0, 1), waits=True), Work("R", (0, 1))]
    with open(works) as bench:
        bench.expect(FINISHED, bench.start(0, 0))
        bench.expect(FINISHED, bench.start(1, 0))
        bench.expect(ARRIVED, bench.send(0, 0, 1), bench.send(1, 0, 1))
        reader = bench.start(2, 1)
        assert bench.watched.next_event(wait=False) is None
        bench.begun()
        bench.send(0, 0, 1)  # there already, so it arrives at once or never
        kill(bench, 0)
        told = bench.expect_loss(0)
        bench.open_gate()
        while reader in bench.watched.running:
            event = bench.watched.next_event()
            assert event is not None
            told.append(event)
        [end] = [e for e in told if type(e) in (FINISHED, FAILED)]
        assert whom(end) == reader
        assert type(end) is FINISHED or what(end) == NO_FAULT
        for task in (0, 1, 3) if type(end) is FINISHED else (0, 1, 2, 3):
            bench.expect(FINISHED, bench.start(task, 1))
        bench.silent()
        check_results(site, bench, 2, 3)


@conformance("dask", to=CHECKS)
def lost_in_the_middle_of_a_transfer(site: Site, open: Open) -> None:
    """From either end; it arrives before that or never, and can be made and sent again."""
    for dies in (0, 1):
        with open([Work("A", big=True), Work("R", (0,))]) as bench:
            bench.expect(FINISHED, bench.start(0, 0))
            bench.send(0, 0, 1)
            assert bench.watched.next_event(wait=False) is None or not bench.watched.moving
            kill(bench, dies)
            bench.expect_loss(dies)
            left = 1 - dies
            bench.expect(FINISHED, bench.start(0, left))
            bench.expect(FINISHED, bench.start(1, left))
            bench.silent()
            check_results(site, bench, 1)


@conformance("dask", to=CHECKS)
def nothing_is_left_on_the_cluster(site: Site, open: Open) -> None:
    """Not a task, not a plugin, whatever state it was closed in."""
    with open([A, WAITS, B, Work("R", (0,))]) as bench:
        bench.expect(FINISHED, bench.start(0, 0))
        bench.prepare(0, 2, 3)
        bench.start(1, 1)
        assert bench.watched.next_event(wait=False) is None
        bench.begun()
        bench.watched.close()
        bench.open_gate()
        cluster = bench.cluster
        assert cluster is not None
        until(lambda: not cluster.keys(), "no task is left")
        until(lambda: not cluster.plugins(), "no plugin is left")
