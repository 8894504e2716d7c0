"""Processors that join and leave in the middle of local runs, as people ask for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan.model.events import (
    Event,
    Paused,
    ProcessorJoined,
    ProcessorLeaving,
    SpeedChanged,
)
from foreplan.runs import Outcome
from model.told import what, whom
from runs.people import Somebody, checked, once_each, waiting

STRATEGIES = ["adaptive", "aheft", "static", "slack", "fifo", "min-min"]


def work(n: int) -> dict[str, Any]:
    return {"name": "waits", "tasks": {f"t{k}": waiting() for k in range(n)}}


def leaving(me: Somebody) -> list[Event]:
    return me.heard(ProcessorLeaving)


def go(data: Path, somebody: Somebody, n: int, on: str | None, strategy: str = "auto") -> Outcome:
    outcome = foreplan.run(work(n), on or "local", strategy, dir=data, listener=somebody)
    assert somebody.error is None, somebody.error
    return outcome


@pytest.mark.parametrize("strategy", ["auto", "aheft", "fifo"])
def test_joined_in_the_middle(data: Path, strategy: str) -> None:
    def act(me: Somebody) -> None:
        me.until_running({0})
        assert me.ask(add=2) == "joined: local-2, local-3"
        me.until_running({0, 1, 2})  # nothing has ended yet: they do what the first would
        (data / "go").touch()

    somebody = Somebody(act)
    outcome = go(data, somebody, 6, "local:1", strategy)
    run = checked(outcome)
    assert once_each(run)
    assert set(run.attempts.processor.tolist()) == {0, 1, 2}
    assert [e.more for e in run.changes if isinstance(e, ProcessorJoined)] == [True, False]
    assert "joined: local-2, local-3" in somebody.messages
    if strategy != "fifo":
        [taken] = [e for e in run.evaluations if e.reason == "local-3 joined"]
        assert taken.taken
        assert taken.makespan < taken.projected


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_drained(data: Path, strategy: str) -> None:
    def act(me: Somebody) -> None:
        me.until_running({0, 1, 2})
        assert me.ask(drain=("local-2",)) == "leaving once they are idle: local-2"
        (data / "go").touch()

    run = checked(go(data, Somebody(act), 9, "local:3", strategy))
    assert once_each(run)
    assert np.count_nonzero(run.attempts.processor == 1) == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_drained_later(data: Path, strategy: str) -> None:
    """What was planned there is planned elsewhere when the time has come, at the latest."""

    def act(me: Somebody) -> None:
        me.until_running({0, 1})
        assert me.ask(drain=("local-2",), after=0.3) == "leaving in 300 ms: local-2"
        me.until(lambda: len(leaving(me)) == 2)
        (data / "go").touch()

    run = checked(go(data, Somebody(act), 6, "local:2", strategy))
    assert once_each(run)
    assert np.count_nonzero(run.attempts.processor == 1) == 1
    first, second = (e for e in run.changes if isinstance(e, ProcessorLeaving))
    assert what(first) == what(second)
    assert first.time < what(first) <= second.time


def test_what_cannot_be(data: Path) -> None:
    """It is refused, and changes nothing."""
    refused = []

    def act(me: Somebody) -> None:
        me.until_running({0, 1})
        for request in (
            {"drain": ("local-3",)},
            {"drain": ("local-1", "local-2")},
            {"add": 5000},
            {"add": 1, "drain": ("local-1",)},
            {},
            {"drain": ("local-1",), "after": -1.0},
        ):
            with pytest.raises(foreplan.ForeplanError) as caught:
                me.ask(**request)
            refused.append(str(caught.value))
        assert me.ask(drain=("local-1",), after=600.0)
        with pytest.raises(foreplan.ForeplanError, match="no processor is left"):
            me.ask(drain=("local-2",))
        (data / "go").touch()

    run = checked(go(data, Somebody(act), 2, "local:2", "aheft"))
    words = ["unknown processor 'local-3'", "no processor is left", "cannot add 5000"]
    words += ["one thing at a time", "one thing at a time", "0 or more"]
    assert all(word in said for word, said in zip(words, refused, strict=True)), refused
    slow = SpeedChanged  # as may be measured at any time
    assert [type(e) for e in run.changes if type(e) is not slow] == [ProcessorLeaving]


@pytest.mark.parametrize("strategy", ["aheft", "fifo"])
def test_gone_on_with_as_it_was_left(data: Path, strategy: str) -> None:
    """A processor that was added is there again, one that was drained is not used."""

    def first(me: Somebody) -> None:
        me.until_running({0, 1})
        me.ask(add=1)
        me.until_running({0, 1, 2})
        me.ask(drain=("local-1",))
        me.ask(drain=("local-2",), after=1000.0)
        me.session.stop()
        me.until(lambda: me.heard(Paused))
        (data / "go").touch()

    stopped = go(data, Somebody(first), 12, "local:2", strategy)
    assert (stopped.status, len(stopped.run.attempts.task)) == ("stopped", 3)
    (data / "go").unlink()

    def second(me: Somebody) -> None:
        me.until_running({1, 2})
        me.ask(drain=("local-2",), after=0.1)  # another time than before
        me.until(lambda: any(whom(e) == 1 and e.time >= what(e) for e in leaving(me)))
        (data / "go").touch()

    somebody = Somebody(second)
    outcome = foreplan.run(work(12), dir=data, resume=stopped.id, listener=somebody)
    assert somebody.error is None
    run = checked(outcome)
    assert once_each(run)
    later = run.attempts.processor[3:].tolist()
    assert (later.count(0), later.count(1)) == (0, 1)
    assert run.platform.processor_names == ("local-1", "local-2", "local-3")


def test_an_announcement_outlives_the_process(data: Path) -> None:
    """Who was to go at a time goes at that time, though the run was stopped in between."""
    at = 0.0

    def first(me: Somebody) -> None:
        nonlocal at
        me.until_running({0, 1})
        me.ask(drain=("local-2",), after=2.0)
        at = what(leaving(me)[0])
        me.session.stop()
        me.until(lambda: me.heard(Paused))
        (data / "go").touch()

    stopped = go(data, Somebody(first), 6, "local:2", "static")
    assert stopped.status == "stopped"
    (data / "go").unlink()

    def second(me: Somebody) -> None:
        me.until(lambda: any(e.time >= what(e) for e in leaving(me)))
        (data / "go").touch()

    somebody = Somebody(second)
    run = checked(foreplan.run(work(6), dir=data, resume=stopped.id, listener=somebody))
    assert somebody.error is None
    assert {e.gone_at for e in run.changes if isinstance(e, ProcessorLeaving)} == {at}
    there = run.attempts.start[run.attempts.processor == 1]
    assert len(there) <= 2  # one in each session, if the second has begun in time
    assert (there < at).all()
