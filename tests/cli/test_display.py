"""The display of a run: lines, pictures, and a terminal that is left in order."""

from __future__ import annotations

import io
import math
import os
import pty
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from subprocess import Popen
from types import SimpleNamespace
from typing import cast

import pytest
import typer
from rich.console import Console

from foreplan.cli.shared.ending import drive
from foreplan.display.display import Display
from foreplan.display.live import LiveScreen, picture
from foreplan.display.screens import PlainScreen
from foreplan.display.view import View, Work, look
from foreplan.errors import ForeplanError
from foreplan.model import Money, Platform
from foreplan.model.events import Event, ProcessorGone, ProcessorJoined, TaskFailed, TaskFinished
from foreplan.model.platform import Processor
from foreplan.runs.journal import read
from foreplan.runs.replay import replay
from foreplan.runs.session import Session

from .commands import MAIN
from .journals import forks, write_run
from .live_runs import chain, write_workflow


def session_of(
    folder: Path,
    now: float,
    stop_after: int | None = 3,
    n: int = 4,
    strategy: str = "static",
    platform: Platform | None = None,
) -> Session:
    """A session that has come so far."""
    home = write_run(
        folder, forks(n), strategy=strategy, stop_after=stop_after, ended=None, platform=platform
    )
    replayed = replay(read(home.journal), home.data)
    made = SimpleNamespace(
        header=replayed.header,
        coordinator=replayed.driver.coordinator,
        driver=replayed.driver,
        clock=lambda: now,
        recorder=SimpleNamespace(journal=SimpleNamespace(path=home.journal)),
        spending=SimpleNamespace(money=None),
        reported={},
        reused=set(),
        attempts_before=len(replayed.run().attempts.task),
    )
    return cast("Session", made)


def events_of(session: Session) -> list[Event]:
    return list(session.driver.events or ())


def test_a_look_at_a_run(tmp_path: Path) -> None:
    view = look(session_of(tmp_path, now=3.5))
    assert (view.total, view.done, view.running, view.waiting, view.failed) == (6, 3, 2, 1, 0)
    assert view.counts() == "3/6 done, 2 running, 1 waiting"
    assert [work.since for work in view.work] == [3.0, 3.0]
    assert {work.task for work in view.work} == {"part-2", "part-3"}


def test_waiting_tasks_say_what_they_wait_for(tmp_path: Path) -> None:
    view = look(session_of(tmp_path, now=3.5))
    assert view.ready == 0
    assert view.next == (("join", "waits for part-2 (running), part-3 (running)"),)
    view = look(session_of(tmp_path, now=1.5, stop_after=1, n=9))
    assert view.ready == 7
    tasks, reasons = zip(*view.next, strict=True)
    assert set(tasks) <= {f"part-{k}" for k in range(9)}
    assert all(r.startswith("waits for local-") and ", which runs part-" in r for r in reasons)
    view = look(session_of(tmp_path, now=1.5, stop_after=1, n=9, strategy="fifo"))
    assert {reason for _, reason in view.next} == {"waits for a processor"}
    console = Console(file=io.StringIO(), width=80)
    console.print(picture(view, "forks"))
    assert isinstance(console.file, io.StringIO)
    drawn = console.file.getvalue()
    assert "8 waiting, 7 of them ready" in drawn
    assert drawn.count(" waits for a processor") == 3
    console.print(picture(view, "forks", height=8))
    assert console.file.getvalue().count(" waits for a processor") == 3


@pytest.mark.parametrize(("now", "end"), [(3.5, 6.0), (5.0, 6.0), (7.0, 8.0), (20.0, 21.0)])
def test_the_end_is_expected_by_the_plan_and_how_late_it_is(
    tmp_path: Path, now: float, end: float
) -> None:
    assert look(session_of(tmp_path, now)).projected == pytest.approx(end)


def test_no_end_is_expected_without_a_plan_or_without_tasks(tmp_path: Path) -> None:
    assert look(session_of(tmp_path, 3.0, strategy="fifo")).projected is None
    assert look(session_of(tmp_path, 6.0, stop_after=None)).projected is None


def plain_lines(session: Session, events: list[Event]) -> list[str]:
    stream = io.StringIO()
    with Display(PlainScreen(stream)) as shown:
        shown.said("hello")
        shown.happened(session, events)  # before the writer looks for the first time
        shown.began(session)
    return stream.getvalue().splitlines()


def test_few_tasks_get_a_line_each(tmp_path: Path) -> None:
    session = session_of(tmp_path, now=3.0)
    lines = plain_lines(session, events_of(session))
    assert lines[:2] == ["hello", f"run {session.header.id} is resumed: 3 of 6 tasks done"]
    assert lines[2] == "[1.0 s] 1/6 split done on local-0 in 900 ms"
    assert len(lines) == 5
    for p in range(2):  # both at the same moment
        told = f"/6 part-{p} done on local-{p} in 1.8 s"
        assert sum(f"[3.0 s] {n}{told}" == line for n, line in ((2, lines[3]), (3, lines[4]))) == 1


def test_the_first_tasks_are_told_of_when_they_start(tmp_path: Path) -> None:
    session = session_of(tmp_path, now=3.5)
    stream = io.StringIO()
    screen = PlainScreen(stream)
    screen.update(session, [])  # nothing has finished, and may not for hours
    assert sorted(stream.getvalue().splitlines()) == [
        "[3.0 s] part-2 started on local-0",
        "[3.0 s] part-3 started on local-1",
    ]
    screen.update(session, [])
    assert len(stream.getvalue().splitlines()) == 2


def test_reported_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(tmp_path, now=3.5)
    session.reported[int(session.coordinator.state.arrays.running[0])] = 0.42
    assert [work.progress for work in look(session).work] == [0.42, None]
    monkeypatch.setattr("foreplan.display.screens.SILENCE", 0.0)
    stream = io.StringIO()
    screen = PlainScreen(stream)
    screen.update(session, [])
    screen.update(session, [])  # which is no news
    lines = [x for x in stream.getvalue().splitlines() if "running" in x]
    assert lines == ["[3.5 s] running: part-2 42%"]


def test_many_tasks_are_counted(tmp_path: Path) -> None:
    session = session_of(tmp_path, now=101.0, stop_after=101, n=200)
    lines = plain_lines(session, events_of(session))
    assert lines[2:] == [
        "[1 min 41 s] 101/202 done, 2 running, 99 waiting; the end is expected at 3 min 22 s"
    ]


def test_failures_are_told_at_once(tmp_path: Path) -> None:
    session = session_of(tmp_path, now=3.0)
    detail = {"reason": "it exited with code 1 \x1b[2J", "log": "logs/0"}
    failure = TaskFailed(0, 3.0, detail=detail)
    (line,) = [x for x in plain_lines(session, [failure]) if " failed" in x]
    assert line.startswith("[3.0 s] split failed: it exited with code 1 ")
    assert line.endswith("/logs/0)")
    assert "\x1b" not in line


@pytest.mark.parametrize("on", ["local:2", "dask://there:8786"])
def test_processors_of_a_cluster_come_and_go_in_a_line_each(tmp_path: Path, on: str) -> None:
    session = session_of(tmp_path, now=3.0)
    session.header = replace(session.header, options=replace(session.header.options, on=on))
    joined = [ProcessorJoined(p, 2.0) for p in range(2)]
    lines = plain_lines(session, [ProcessorGone(1, 1.0), *joined])
    told = [line for line in lines[2:] if " started on " not in line]
    assert told == ([] if on == "local:2" else ["gone: local-1", "joined: local-0, local-1"])


def test_a_reader_who_has_gone_does_not_stop_the_run(tmp_path: Path) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    session = session_of(tmp_path, now=3.0)
    with Display(PlainScreen(Gone())) as shown:
        shown.began(session)
        shown.happened(session, events_of(session))


def test_showing_costs_the_run_next_to_nothing(tmp_path: Path) -> None:
    session = session_of(tmp_path, now=3.0)
    (event,) = [e for e in events_of(session) if isinstance(e, TaskFinished) and e.attempt == 0]
    with Display(PlainScreen(io.StringIO())) as shown:
        shown.began(session)
        begun = time.thread_time()  # of this thread alone
        for _ in range(10_000):
            shown.happened(session, [event])
        spent = time.thread_time() - begun
    assert spent < 10_000 * 100e-6  # a tenth of a millisecond each, on a busy machine too


VIEW = View(
    now=75.0,
    total=500,
    done=120,
    running=2,
    failed=3,
    projected=300.0,
    work=(Work("p-1", True, "align [red]", 70.0, 0.425), Work("p-2", True), Work("p-3", False)),
)


def drawn(view: View, height: int = 40) -> str:
    console = Console(file=io.StringIO(), width=90, height=height)
    console.print(picture(view, "etl", height))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(" ".join(x.split()) for x in console.file.getvalue().splitlines())


def test_the_picture() -> None:
    lines = drawn(VIEW).splitlines()
    assert lines[0].startswith("etl ")
    assert lines[0].endswith(" 24%")
    assert lines[1:] == [
        "120 done 2 running 375 waiting 3 given up",
        "1 min 15 s elapsed, expected to end at 5 min (3 min 45 s more)",
        "p-1 align [red] 5.0 s 42%",
        "p-2 -",
        "p-3 gone",
    ]


def test_the_picture_of_a_run_that_costs_money() -> None:
    money = {"money": Money(1.5, 0.25, 2.0), "budget": 4.0}
    lines = drawn(View(**(vars(VIEW) | money))).splitlines()
    assert lines[3] == "1.5 spent, 0.25 committed, 3.75 projected of a budget of 4"
    unplanned = {"money": Money(1.5, 0.25, math.nan)}
    assert drawn(View(**(vars(VIEW) | unplanned))).splitlines()[3] == "1.5 spent, 0.25 committed"


def test_money_is_spent_while_nothing_happens(tmp_path: Path) -> None:
    """At 3 tasks for 8 were done; two run since, and are to run for 2 s."""
    platform = Platform.build([Processor("p", "h", price=2.0), Processor("q", "h", price=1.0)])
    session = session_of(tmp_path, now=3.5, platform=platform)
    assert look(session).money is None
    session.spending.money = Money(8.0, 6.0, 1.0)
    assert look(session).money == Money(9.5, 4.5, 1.0)
    last = plain_lines(session, events_of(session))[-1]
    assert last == "[3.5 s] 9.5 spent, 4.5 committed, 15 projected"
    session.clock = lambda: 7.0  # they are overdue
    assert look(session).money == Money(20.0, 0.0, 0.0)


def test_a_task_of_several_cores_is_at_each() -> None:
    first, other = Work("p-1", True, "wide", 70.0, 0.5, 2), Work("p-2", True, "wide", 70.0, 0.5, 0)
    lines = drawn(View(**(vars(VIEW) | {"work": (first, other)}))).splitlines()
    assert "p-1 wide (2 cores) 5.0 s 50%" in lines
    assert "p-2 wide" in lines


def test_many_processors_are_only_counted() -> None:
    many = tuple(Work(f"p-{i}", i < 90, "x" if i < 2 else None) for i in range(100))
    busy = View(**(vars(VIEW) | {"work": many}))
    assert "2 of 90 processors are at work" in drawn(busy)
    assert "1 of 2 processors are at work" in drawn(VIEW, height=8)


@pytest.mark.parametrize("error", [None, ForeplanError("the disk is full"), KeyboardInterrupt()])
def test_the_terminal_is_left_in_order(tmp_path: Path, error: BaseException | None) -> None:
    session = session_of(tmp_path, now=3.0)
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80, height=25)
    shown = Display(LiveScreen(console))
    with nullcontext() if error is None else pytest.raises(type(error)), shown:
        shown.began(session)
        shown.happened(session, events_of(session))
        if error is not None:
            raise error
    text = stream.getvalue()
    assert "3 done" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    assert not any(thread.name == "foreplan display" for thread in threading.enumerate())


@pytest.mark.parametrize(
    ("error", "raised", "said"),
    [
        (
            ForeplanError("the disk is full"),
            ForeplanError,
            "the run ends here; once that is repaired, ",
        ),
        (KeyboardInterrupt(), typer.Exit, "stopped; "),
    ],
)
def test_a_run_that_ends_amiss_can_be_gone_on_with(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    raised: type[Exception],
    said: str,
) -> None:
    session = session_of(tmp_path, now=3.0)

    def opened(shown: Display) -> Session:
        shown.began(session)
        raise error

    with pytest.raises(raised) as caught:
        drive(opened, tmp_path, as_json=False, quiet=True)
    assert getattr(caught.value, "exit_code", 130) == 130
    lines = capsys.readouterr().err.splitlines()
    again = f"`foreplan resume {session.header.id} --dir {tmp_path}` resumes it"
    assert lines[-1] == said + again


def test_a_real_run_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "foreplan-home"))
    monkeypatch.setenv("TERM", "xterm")
    write_workflow(tmp_path, chain(tmp_path))
    ours, theirs = pty.openpty()
    arguments = [sys.executable, "-c", MAIN, "run", "wf.yaml", "--on", "local:2"]
    with Popen(arguments, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        text = b""
        while chunk := read_some(ours):
            text += chunk
        assert process.wait() == 0
    os.close(ours)
    assert b"3 tasks done" in text
    assert text.index(b"\x1b[?25l") < text.rindex(b"\x1b[?25h") < text.index(b"3 tasks done")


def read_some(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux's way to say that the other end is closed
        return b""


def test_what_was_up_to_date_is_counted_apart() -> None:
    view = View(3.0, 60, 45, 2, 1, None, (), reused=5)
    assert view.counts() == "40/60 done, 5 up to date, 2 running, 12 waiting, 1 given up"
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    console.print(picture(view, "name"))
    text = cast("io.StringIO", console.file).getvalue()
    assert "40 done   5 up to date   2 running   12 waiting   1 given up" in text
    assert "75%" in text
