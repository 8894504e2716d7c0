"""`foreplan attach`: look at a run that another process drives."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, cast

import typer

from foreplan.cli.shared.options import RunDirectory
from foreplan.cli.shared.streams import reader_left
from foreplan.cli.shared.terminal import INTERRUPTED, command
from foreplan.durable import open_file
from foreplan.files import clean, near

if TYPE_CHECKING:
    from foreplan.runs import Session
    from foreplan.runs.home import RunHome
    from foreplan.runs.summary import Summary

TICK = 0.25  # seconds between two looks
SHARE = 10.0  # a look at the whole journal takes at most so small a share of the time
LINES = 20  # of what was told before
ENDED = ("finished", "failed", "stopped")
DIED = 2


def attach(
    run: Annotated[
        str | None,
        typer.Argument(
            help="The run: its id, the beginning of its id, or `last`.",
            show_default="the last that is under way, else the last",
        ),
    ] = None,
    directory: RunDirectory = Path(),
) -> None:
    """Show a run that another process drives, until it ends.

    It shows what `foreplan run` shows, and changes nothing: Ctrl-C ends the look, not the run. The
    exit code is the run's; 130 if you stopped looking, 2 if the process that drove the run has
    died.

    Example: `foreplan run pipeline.yaml --detach; foreplan attach`
    """
    from foreplan.runs.lock import driver, is_driven
    from foreplan.runs.summary import summarise

    home = _meant(directory, run)
    if not is_driven(home):
        print(f"run {home.id} is over")
    try:
        is_over = _follow(home)
    except KeyboardInterrupt:
        is_over = False
    if not is_over:
        found = driver(home)
        stop = f"; `kill {found.pid}` stops it" if found else ""
        again = command("attach", home.id, directory)
        print(f"run {home.id} is still running: `{again}` shows it again{stop}")
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(_tell_end(summarise(home), home, directory))


def _meant(directory: Path, wanted: str | None) -> RunHome:
    from foreplan.runs.home import LAST, RunHome, runs
    from foreplan.runs.lock import is_driven

    if wanted is not None:
        return RunHome.find(directory, wanted)
    under_way = [home.id for home in runs(directory) if is_driven(home)]
    return RunHome.find(directory, under_way[0] if under_way else LAST)


def _follow(home: RunHome) -> bool:
    """Show the run until nobody drives it; return False if the reader leaves before that."""
    from foreplan.display.screens import Screen, live_or
    from foreplan.runs.lock import is_driven

    # elsewhere than on a terminal: the lines of the run's log, and nothing else
    log, screen, next_look = _Tail(home.log), live_or(Screen(sys.stdout), sys.stdout), 0.0
    try:
        while True:
            going_on = is_driven(home)  # before the look: its last words come before its end
            for line in log.take_news():
                screen.say(clean(line))
            if not going_on:
                return True
            if reader_left():
                return False
            begun = time.monotonic()
            if begun >= next_look and (session := _session(home)) is not None:
                screen.update(session, [])
                next_look = begun + SHARE * (time.monotonic() - begun)
            time.sleep(TICK)
    finally:
        screen.close()


class _Tail:
    """The lines of a file that grows: the last few that are there, then all that come."""

    def __init__(self, path: Path) -> None:
        self._path, self._at = path, 0

    def take_news(self) -> list[str]:
        """Lines that have come since the last look, if they are whole."""
        try:
            with open(open_file(self._path), "rb") as file:
                file.seek(self._at)
                content = file.read()
        except OSError:  # driven from Python, not begun, or not a file
            return []
        whole = content[: content.rfind(b"\n") + 1]
        first, self._at = self._at == 0, self._at + len(whole)
        lines = whole.decode("utf-8", "replace").splitlines()
        if first and len(lines) > LINES:
            before = f"... {len(lines) - LINES:,} lines more in {near(self._path)}"
            return [before, *lines[-LINES:]]
        return lines


def _session(home: RunHome) -> Session | None:
    """The run as its journal tells it, as far as a picture needs it; None if it cannot be told."""
    from foreplan.errors import ForeplanError
    from foreplan.runs.journal import read
    from foreplan.runs.money import costs_money
    from foreplan.runs.replay import replay, reused_attempts

    try:
        written = home.journal.stat().st_mtime
        contents = read(home.journal)
        replayed = replay(contents, home.data)
    except (OSError, ForeplanError):
        return None
    coordinator = replayed.driver.coordinator
    last = replayed.until
    coordinator.pass_time(last)
    money = coordinator.money() if costs_money(coordinator.platform) else None
    found = SimpleNamespace(
        header=replayed.header,
        coordinator=coordinator,
        clock=lambda: last + max(0.0, time.time() - written),
        spending=SimpleNamespace(money=money),
        reused=reused_attempts(replayed.driver.events or ()),
        reported={
            int(event.detail["attempt"]): float(event.detail["progress"])
            for event in replayed.driver.events or ()
            if event.detail is not None and "progress" in event.detail
        },
    )
    return cast("Session", found)


def _tell_end(summary: Summary, home: RunHome, directory: Path) -> int:
    """How it ended, if that is not in its log; the exit code."""
    from foreplan.runs.journal import read, resume_words

    if summary.status in ENDED:
        from foreplan.cli.shared.ending import code_of
        from foreplan.runs import Outcome
        from foreplan.runs.replay import replay

        if not home.log.exists():
            print(f"run {home.id} {summary.status}: {summary.done} of {summary.total} tasks done")
            print(f"more about it: {command('report', home.id, directory)}")
        run = replay(read(home.journal), home.data).run()
        return code_of(Outcome(home.id, home.path, summary.status, run))
    read(home.journal)  # refuses a journal that cannot be resumed, and says why
    again = resume_words(home.journal, command("resume", home.id, directory))
    print(f"the process that drove run {home.id} has died: {again} resumes it", file=sys.stderr)
    return DIED
