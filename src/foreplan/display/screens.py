"""Where a run is shown without a terminal: plain lines, for logs and pipes, or nothing at first."""

from __future__ import annotations

import math
from time import monotonic
from typing import IO, TYPE_CHECKING, TextIO

from foreplan.display.view import View, amounts, clock, look
from foreplan.files import clean
from foreplan.model.events import REUSED
from foreplan.quantities import duration, with_needs

if TYPE_CHECKING:
    from foreplan.model.events import TaskFinished
    from foreplan.runs import Session

PAUSE = 1.0  # seconds between two lines about progress, at first
RARER = 100  # after so many pauses they become rarer: a long run does not fill the log
FEW = 4  # tasks that get a line of their own
SILENCE = 10.0  # seconds without a line, after which it is told what running tasks report


class Screen:
    """Where a run is shown: this one tells messages and failures, but no progress.

    But for `begin`, only the display's own thread calls it.
    """

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def begin(self, session: Session) -> None:
        """A run is going to be shown; called by the thread that drives it."""

    def say(self, message: str, style: str = "") -> None:
        """One line, at once."""
        print(message, file=self.stream, flush=True)

    def update(self, session: Session, finished: list[TaskFinished]) -> None:
        """Show the run as it is now; these attempts have finished since."""

    def close(self) -> None:
        """Leave the terminal as it was."""


def live_or(plain: Screen, stream: TextIO) -> Screen:
    """A live picture where a terminal can show one, else the plain screen."""
    if stream.isatty():
        from rich.console import Console

        from foreplan.display.live import LiveScreen

        console = Console(file=stream, highlight=False)
        if console.is_terminal and not console.is_dumb_terminal:
            return LiveScreen(console)
    return plain


class PlainScreen(Screen):
    """Lines, not more than a few in a second."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._finished: list[TaskFinished] = []
        self._shown = -PAUSE  # when the last line about progress was written
        self._begun = monotonic()
        self._counted: float = math.inf  # tasks that were done when the last line was written
        self._idle = True  # nothing was said of any task yet
        self._reported = ""  # what was last said of running tasks
        self._session: Session | None = None

    def begin(self, session: Session) -> None:
        """Do not count what was done before."""
        self._counted = session.coordinator.n_done

    def update(self, session: Session, finished: list[TaskFinished]) -> None:
        """Lines about what has finished, if it is time for some."""
        self._session = session
        self._finished += finished
        now = monotonic() - self._begun
        if self._idle and not self._finished:
            self._show_started(look(session))
        if now - self._shown >= max(PAUSE, now / RARER):
            self._show(session, now)
        if now - self._shown >= max(SILENCE, now / RARER):
            self._show_reported(look(session), now)

    def close(self) -> None:
        """The rest."""
        self.show_rest()

    def show_rest(self) -> None:
        """Tell what has not been told yet."""
        if self._session is not None:
            self._show(self._session, monotonic() - self._begun)

    def _show_started(self, view: View) -> None:
        """Say at once what begins: the first of it may take long."""
        work = [w for w in view.work if w.task is not None and w.cores]
        if not work:
            return
        lines = [f"{w.task} started on {with_needs(w.processor, w.cores, 0.0)}" for w in work]
        for text in lines if len(work) <= FEW else [f"{len(work)} tasks started"]:
            self.say(clean(f"[{clock(min(w.since for w in work))}] {text}"))
        self._idle = False

    def _show_reported(self, view: View, now: float) -> None:
        """Say how much running tasks say is done, if that is news."""
        shares = [(w.task, w.progress) for w in view.work if w.progress is not None and w.cores]
        more = f", {len(shares) - FEW} more" if len(shares) > FEW else ""
        text = ", ".join(f"{task} {share:.0%}" for task, share in shares[:FEW]) + more
        if text and text != self._reported:
            self.say(clean(f"[{clock(view.now)}] running: {text}"))
            self._reported, self._shown = text, now

    def _show(self, session: Session, now: float) -> None:
        if not self._finished:
            return
        view = look(session)
        # the run is ahead of what was heard of it here, or behind it where results were lost
        done = int(min(self._counted, view.done - len(self._finished)))
        self._counted = done + len(self._finished)
        if len(self._finished) <= FEW:
            lines = [
                (event.time, f"{done + i}/{view.total} {_finished(session, event)}")
                for i, event in enumerate(self._finished, 1)
            ]
        else:
            end = view.projected
            expected = "" if end is None else f"; the end is expected at {clock(end)}"
            if math.isfinite(view.deadline):
                expected += f", the deadline is {clock(view.deadline)}"
            lines = [(view.now, view.counts() + expected)]
        if view.money is not None:
            lines.append((view.now, amounts(view.money, view.budget)))
        for time, text in lines:
            self.say(clean(f"[{clock(time)}] {text}"))
        self._finished, self._shown, self._idle = [], now, False


class LateScreen(Screen):
    """Another screen that shows nothing of what is soon over, unless it is to be stopped."""

    def __init__(self, screen: Screen, seconds: float) -> None:
        super().__init__(screen.stream)
        self._screen, self._from, self._shown = screen, monotonic() + seconds, False
        self._said: list[tuple[str, str]] = []
        self._finished: list[TaskFinished] = []

    def begin(self, session: Session) -> None:
        """The other one counts from now on, too."""
        self._screen.begin(session)

    def say(self, message: str, style: str = "") -> None:
        """One line, now or once it takes long."""
        if self._shown:
            self._screen.say(message, style)
        else:
            self._said.append((message, style))

    def update(self, session: Session, finished: list[TaskFinished]) -> None:
        """Show the run, with all that was kept back."""
        self._finished += finished
        if monotonic() < self._from and not session.stopping:
            return
        self._shown = True
        for message, style in self._said:
            self._screen.say(message, style)
        self._screen.update(session, self._finished)
        self._said, self._finished = [], []

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._shown:
            self._screen.close()


class LogScreen(PlainScreen):
    """Lines in a file of its own."""

    def close(self) -> None:
        """The rest, and no more."""
        try:
            super().close()
        finally:
            self.stream.close()


def _finished(session: Session, event: TaskFinished) -> str:
    """A finished attempt in words."""
    coordinator = session.coordinator
    attempt = coordinator.state.attempt(event.attempt)
    task = coordinator.workflow.task_names[attempt.task]
    cores = len(coordinator.state.cores_of(attempt.number))
    processor = with_needs(coordinator.platform.processor_names[attempt.processor], cores, 0.0)
    detail = event.detail or {}
    if REUSED in detail:
        return f"{task} is up to date: what it reads is as it was"
    seconds = detail.get("seconds", event.time - attempt.start)
    return f"{task} done on {processor} in {duration(float(seconds))}"
