"""A run in plain lines, for logs and pipes: each task where they are few, counts where many."""

from __future__ import annotations

import math
from time import monotonic
from typing import TYPE_CHECKING, TextIO

from weft.cli.display_view import View, look
from weft.cli.money import amounts
from weft.cli.wording import clean, clock, took

if TYPE_CHECKING:
    from weft.live import Session
    from weft.model.events import Event

PAUSE = 1.0  # seconds between two lines about progress, at first
RARER = 100  # after so many pauses they become rarer: a long run does not fill the log
FEW = 4  # tasks that get a line of their own
SILENCE = 10.0  # seconds without a line, after which it is told what running tasks report


class PlainScreen:
    """Lines, not more than a few in a second."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._finished: list[Event] = []
        self._shown = -PAUSE  # when the last line about progress was written
        self._begun = monotonic()
        self._replans = 0
        self._counted: float = math.inf  # tasks that were done when the last line was written
        self._idle = True  # nothing was said of any task yet
        self._reported = ""  # what was last said of running tasks
        self._session: Session | None = None

    def begin(self, session: Session) -> None:
        """New plans of former sittings are no news."""
        self._replans = _taken(session)
        self._counted = session.coordinator.n_done

    def say(self, message: str, style: str = "") -> None:
        """One line, at once."""
        print(message, file=self.stream, flush=True)

    def update(self, session: Session, finished: list[Event]) -> None:
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
        self.rest()

    def rest(self) -> None:
        """What has not been told yet."""
        if self._session is not None:
            self._show(self._session, monotonic() - self._begun)

    def _show_started(self, view: View) -> None:
        """Say at once what begins: the first of it may take long."""
        work = [w for w in view.work if w.task is not None]
        if not work:
            return
        lines = [f"{w.task} started on {w.processor}" for w in work]
        for text in lines if len(work) <= FEW else [f"{len(work)} tasks started"]:
            self.say(clean(f"[{clock(min(w.since for w in work))}] {text}"))
        self._idle = False

    def _show_reported(self, view: View, now: float) -> None:
        """Say how much running tasks say is done, if that is news."""
        shares = [(w.task, w.progress) for w in view.work if w.progress is not None]
        more = f", {len(shares) - FEW} more" if len(shares) > FEW else ""
        text = ", ".join(f"{task} {share:.0%}" for task, share in shares[:FEW]) + more
        if text and text != self._reported:
            self.say(clean(f"[{clock(view.now)}] running: {text}"))
            self._reported, self._shown = text, now

    def _show(self, session: Session, now: float) -> None:
        plans = session.coordinator.evaluations[1:]
        new = [e for e in plans if e.taken][self._replans :]
        if not self._finished and not new:
            return
        view = look(session)
        lines = [(e.time, f"new plan: {e.reason}") for e in new]
        if len(new) > FEW:
            lines = [(new[-1].time, f"{len(new)} new plans, the last: {new[-1].reason}")]
        # the run is ahead of what was heard of it here, or behind it where results were lost
        done = int(min(self._counted, view.done - len(self._finished)))
        self._counted = done + len(self._finished)
        if len(self._finished) <= FEW:
            lines += [
                (event.time, f"{done + i}/{view.total} {_finished(session, event)}")
                for i, event in enumerate(self._finished, 1)
            ]
        else:
            end = view.projected
            expected = "" if end is None else f"; the end is expected at {clock(end)}"
            if math.isfinite(view.deadline):
                expected += f", the deadline is {clock(view.deadline)}"
            lines.append((view.now, view.counts() + expected))
        lines.sort(key=lambda line: line[0])
        if view.money is not None:
            lines.append((view.now, amounts(view.money, view.budget)))
        for time, text in lines:
            self.say(clean(f"[{clock(time)}] {text}"))
        self._finished, self._shown, self._idle = [], now, False
        self._replans += len(new)


class LogScreen(PlainScreen):
    """Lines in a file of its own."""

    def close(self) -> None:
        """The rest, and no more."""
        try:
            super().close()
        finally:
            self.stream.close()


def _taken(session: Session) -> int:
    return sum(e.taken for e in session.coordinator.evaluations[1:])


def _finished(session: Session, event: Event) -> str:
    """A finished attempt in words."""
    coordinator, k = session.coordinator, event.which
    board = coordinator.board
    task = coordinator.workflow.task_names[board.attempt_task[k]]
    processor = coordinator.platform.processor_names[board.attempt_on[k]]
    seconds = (event.detail or {}).get("seconds", event.time - float(board.attempt_start[k]))
    return f"{task} done on {processor} in {took(float(seconds))}"
