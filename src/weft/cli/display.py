"""The display of a run under way: live on a terminal, plain lines elsewhere.

The thread that drives the run only leaves word here; another one writes. So showing a run costs it
next to nothing, and a signal handler may speak at any moment.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from weft.cli.wording import clean, many, near

if TYPE_CHECKING:
    from weft.live import Outcome, Session
    from weft.model.events import Event

TICK = 0.25  # seconds between two looks


class Screen(Protocol):
    """Where a run is shown; but for `begin`, only the display's own thread calls it."""

    def begin(self, session: Session) -> None:
        """A run is going to be shown; called by the thread that drives it."""
        ...

    def say(self, message: str, style: str = "") -> None:
        """Something that people should know."""
        ...

    def update(self, session: Session, finished: list[Event]) -> None:
        """Show the run as it is now; these attempts have finished since."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


class Display:
    """A listener and a context manager: whatever happens, the terminal is left in order."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.done_before = 0  # tasks, when this sitting began
        self.attempts_before = 0
        self.id: str | None = None
        self.ended = 0.0  # the run's time
        self._session: Session | None = None
        self._words: SimpleQueue[str | Session | None] = SimpleQueue()  # None: the end
        self._events: deque[list[Event]] = deque()
        self._writer = threading.Thread(target=self._write, name="weft display", daemon=True)

    def __enter__(self) -> Self:
        self._writer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._words.put(None)
        try:
            self._writer.join()
        except KeyboardInterrupt:  # even an impatient user gets the cursor back
            self._writer.join()
            raise

    def began(self, session: Session) -> None:
        """Begin to look at the run."""
        self.id = session.header.id
        self.done_before = session.coordinator.n_done
        self.attempts_before = session.attempts_before
        self.said(self._opening(session))
        self.screen.begin(session)
        self._words.put(session)  # after what was said: the writer keeps the order

    def _opening(self, session: Session) -> str:
        header, n = session.header, session.coordinator.workflow.n_tasks
        if self.done_before == n:
            return f"run {header.id}: all tasks are done; their outputs are looked for"
        if self.attempts_before:
            return f"run {header.id} goes on: {self.done_before} of {many(n, 'task')} done"
        processors = many(session.coordinator.platform.n_processors, "processor")
        where = header.options.place
        return (
            f"run {header.id}: {many(n, 'task')} on {processors} ({where}), "
            f"strategy {header.strategy}"
        )

    def happened(self, session: Session, events: list[Event]) -> None:
        """Leave word for the writer."""
        if events:
            self._events.append(events)

    def said(self, message: str) -> None:
        """Leave word for the writer, who is woken; signal handlers may do this."""
        self._words.put(message)

    def over(self, session: Session, outcome: Outcome) -> None:
        """Keep the time; the summary is for those who know how it ended."""
        self.ended = session.clock()

    def _write(self) -> None:
        """The writer's thread."""
        try:
            while self._hear():
                self._look()
            self._look()
        except OSError:  # nobody looks any more; the run goes on
            return
        finally:
            with suppress(OSError):
                self.screen.close()

    def _hear(self) -> bool:
        """Say what there is to say; after a while it is time to look. False: that was all."""
        with suppress(Empty):
            word = self._words.get(timeout=TICK)
            while True:
                if word is None:
                    return False
                if isinstance(word, str):
                    self.screen.say(clean(word))
                else:
                    self._session = word
                word = self._words.get_nowait()
        return True

    def _look(self) -> None:
        session = self._session
        if session is None:
            return
        finished: list[Event] = []
        while self._events:
            for event in self._events.popleft():
                if event.kind.name == "TASK_FINISHED":
                    finished.append(event)
                elif event.kind.name == "TASK_FAILED":
                    self.screen.say(_failure(session, event), "red")
        self.screen.update(session, finished)


def _failure(session: Session, event: Event) -> str:
    """A failed attempt in words."""
    task = int(session.coordinator.board.attempt_task[event.which])
    name, detail = session.coordinator.workflow.task_names[task], event.detail or {}
    text = f"failed: {name}: {detail.get('reason', 'it failed')}"
    if detail.get("log"):
        text += f" (log: {near(session.recorder.journal.path.parent / detail['log'])})"
    return clean(text)


class Quiet:
    """Messages and failures, but no progress."""

    def begin(self, session: Session) -> None:
        """There is nothing to be made ready."""

    def say(self, message: str, style: str = "") -> None:
        """Print it at once."""
        print(message, file=sys.stderr, flush=True)

    def update(self, session: Session, finished: list[Event]) -> None:
        """Show nothing."""

    def close(self) -> None:
        """There is nothing to be left in order."""


def display(quiet: bool = False, as_json: bool = False) -> Display:
    """The display that suits where the command runs."""
    if quiet:
        return Display(Quiet())
    stream = sys.stderr if sys.stderr.isatty() or as_json else sys.stdout
    if stream.isatty():
        from rich.console import Console

        console = Console(file=stream, highlight=False)
        if console.is_terminal and not console.is_dumb_terminal:
            from weft.cli.display_live import LiveScreen

            return Display(LiveScreen(console))
    from weft.cli.display_plain import PlainScreen

    return Display(PlainScreen(sys.stderr))
