"""The display of a run under way: live on a terminal or in a notebook, plain lines elsewhere.

The thread that drives the run only leaves word here; another one writes. So showing a run costs it
next to nothing, and a signal handler may speak at any moment.
"""

from __future__ import annotations

import errno
import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Self, TextIO

from foreplan.display.notebook import NotebookScreen, in_notebook
from foreplan.display.screens import LateScreen, LogScreen, PlainScreen, Screen, live_or
from foreplan.display.terminal import Terminal
from foreplan.display.view import clock
from foreplan.durable import open_file
from foreplan.errors import InputError
from foreplan.executors.base import find_scheme
from foreplan.files import clean, near
from foreplan.quantities import duration, first_few, many
from foreplan.runs.home import RunHome

if TYPE_CHECKING:
    from foreplan.model.events import Event, TaskFailed
    from foreplan.runs import Listener, Outcome, Session
    from foreplan.runs.entries import Header

TICK = 0.25  # seconds between two looks
SOON = 2.0  # seconds; of what takes no longer Python is shown nothing, unless it asks
PATIENCE = 5.0  # seconds that the end of a run waits for its log: a terminal may be held (Ctrl-S)


class _HungUp:
    """Said when the terminal is gone."""


class _Summary(str):
    """The last words, for the log alone."""

    __slots__ = ()


class Display:
    """A listener and a context manager: whatever happens, the terminal is left in order.

    All that is told goes to a log in the run's home as well, and if the terminal is closed only
    there. `detached` is called with the run's id once it has begun, if it is to leave the terminal.
    In a program of others the terminal is not `ours`.
    """

    def __init__(
        self,
        screen: Screen,
        detached: Callable[[str], None] | None = None,
        ours: bool = True,
    ) -> None:
        self.done_before = 0  # tasks, when this session began
        self.attempts_before = 0
        self.id: str | None = None
        self.header: Header | None = None  # of the run, once it has begun
        self.ended = 0.0  # the run's time
        self.summary: Callable[[Outcome], str] | None = None  # for the log
        self._summed_up = threading.Event()
        self._screens = [screen]
        self._log: Path | None = None
        self._log_screen: LogScreen | None = None
        self._early: list[str] = []  # told before there was a log
        self._terminal, self._detached, self._dark = Terminal(ours), detached, False
        self._session: Session | None = None
        # None: the end
        self._words: SimpleQueue[str | Session | _HungUp | None] = SimpleQueue()
        self._events: deque[list[Event]] = deque()
        self._after_failures: deque[str] = deque()  # what follows each failed attempt among these
        # in the context of whoever began it: a notebook knows by that which cell is meant
        write = partial(copy_context().run, self._write)
        self._writer = threading.Thread(target=write, name="foreplan display", daemon=True)

    def __enter__(self) -> Self:
        self._writer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._words.put(None)
        try:
            self._writer.join()
        except KeyboardInterrupt:  # even an impatient user gets the cursor back
            self._writer.join()
            raise

    def began(self, session: Session) -> None:
        """Begin to look at the run."""
        self.id, self.header = session.header.id, session.header
        self.done_before = session.coordinator.n_done
        self.attempts_before = session.attempts_before
        self.said(self._opening(session))
        self._open_log(session)
        for screen in self._screens:
            screen.begin(session)
        self._words.put(session)  # after what was said: the writer keeps the order

    def _open_log(self, session: Session) -> None:
        self._log = RunHome(session.recorder.journal.path.parent).log
        with suppress(OSError):  # a run goes on without one
            self._log_screen = LogScreen(_opened(self._log))
            self._log_screen.begin(session)

    def _opening(self, session: Session) -> str:
        header, n = session.header, session.coordinator.workflow.n_tasks
        if self.done_before == n:
            return f"run {header.id}: all tasks are done; their outputs are looked for"
        if self.attempts_before:
            return f"run {header.id} is resumed: {self.done_before} of {many(n, 'task')} done"
        processors = many(session.coordinator.platform.n_processors, "processor")
        where = header.options.place
        by = "" if header.options.is_auto else f", strategy {header.strategy}"
        return f"run {header.id}: {many(n, 'task')} on {processors} ({where}){by}"

    def happened(self, session: Session, events: list[Event]) -> None:
        """Leave word for the writer."""
        from foreplan.model.events import TaskFailed

        for event in events:
            if isinstance(event, TaskFailed):  # when the writer looks, more may have happened
                self._after_failures.append(_what_follows(session, event))
        if events:
            self._events.append(events)

    def said(self, message: str) -> None:
        """Leave word for the writer, who is woken; signal handlers may do this."""
        self._words.put(message)

    def hang_up(self) -> None:
        """The terminal is gone; a signal handler says so."""
        self._terminal.leave()
        self._words.put(_HungUp())

    def over(self, session: Session, outcome: Outcome) -> None:
        """Keep the time, and have the summary in the log before anybody else may drive the run."""
        self.ended = session.clock()
        if self.summary is not None:
            self._words.put(_Summary(self.summary(outcome)))
            self._summed_up.wait(PATIENCE)

    def conclude(self, text: str) -> None:
        """Print the last words, after the display is closed."""
        try:
            print(text, flush=True)
        except OSError:  # the terminal is gone, and nobody said so
            self._terminal.leave()

    def _write(self) -> None:
        """The writer's thread."""
        try:
            while self._hear():
                self._look()
            self._look()
        finally:
            self._on_screens(lambda screen: screen.close())

    def _on_screens(self, show: Callable[[Screen], None]) -> None:
        """Show something; a screen that cannot be written to is left out, and the run goes on."""
        for screen in list(self._screens):
            try:
                show(screen)
            except OSError as error:
                if error.errno == errno.EIO and screen is not self._log_screen:
                    self._terminal.leave()
                self._leave_out(screen)

    def _leave_out(self, screen: Screen) -> None:
        self._screens.remove(screen)
        with suppress(OSError):
            screen.close()

    def _hear(self) -> bool:
        """Say what there is to say; after a while it is time to look. False: that was all."""
        with suppress(Empty):
            word = self._words.get(timeout=TICK)
            while True:
                if word is None:
                    return False
                if isinstance(word, _Summary):
                    self._sum_up(word)
                elif isinstance(word, str):
                    self._say(clean(word))
                elif isinstance(word, _HungUp):
                    self._go_dark()
                else:
                    self._begin(word)
                word = self._words.get_nowait()
        return True

    def _say(self, message: str, style: str = "") -> None:
        if self._session is None:
            self._early.append(message)
        self._on_screens(lambda screen: screen.say(message, style))

    def _sum_up(self, summary: str) -> None:
        self._look()
        log = self._log_screen
        if log is not None and log in self._screens:
            with suppress(OSError):
                log.show_rest()
                log.say(summary)
        self._summed_up.set()

    def _begin(self, session: Session) -> None:
        """From now on there is a log; who wanted to leave the terminal does it now."""
        self._session = session
        log = self._log_screen
        if log is not None:
            seen, self._screens = self._screens, [log]
            for message in self._early:
                self._say(message)
            self._screens += seen
        if self._detached is not None:
            self._terminal.leave(everything=True)
            self._go_dark()
            with suppress(OSError):  # who waited for it is gone
                self._detached(session.header.id)
        elif self._dark:
            self._go_dark()

    def _go_dark(self) -> None:
        """Show the run in its log alone."""
        self._dark = True
        for screen in [s for s in self._screens if s is not self._log_screen]:
            self._leave_out(screen)
        if self._session is not None and self._log is not None:
            with suppress(OSError):
                self._terminal.send_errors_to(self._log)

    def _look(self) -> None:
        session = self._session
        if session is None:
            return
        from foreplan.model.events import ProcessorGone, ProcessorJoined, TaskFailed, TaskFinished

        finished = list[TaskFinished]()
        changes: dict[str, list[str]] = {ProcessorGone.name: [], ProcessorJoined.name: []}
        while self._events:
            for event in self._events.popleft():
                if isinstance(event, TaskFinished):
                    finished.append(event)
                elif isinstance(event, TaskFailed):
                    self._say(_failure(session, event, self._after_failures.popleft()), "red")
                elif isinstance(event, ProcessorGone | ProcessorJoined):
                    names = session.coordinator.platform.processor_names
                    changes[event.name].append(names[event.processor])
        self._say_changes(session, changes)
        self._on_screens(lambda screen: screen.update(session, finished))

    def _say_changes(self, session: Session, changes: dict[str, list[str]]) -> None:
        """Say which processors of a cluster came and went; here they only do as they are asked."""
        if find_scheme(session.header.options.on).here:
            return
        for what, processors in changes.items():
            if processors:
                self._say(clean(f"{what}: {first_few(processors)}"))


def _opened(log: Path) -> TextIO:
    """A log to be added to, for its owner's eyes only."""
    descriptor = open_file(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    return open(descriptor, "w", encoding="utf-8", errors="replace")


def _what_follows(session: Session, event: TaskFailed) -> str:
    """Return whether the task of a failed attempt is tried again; empty: it is not."""
    from foreplan.engine.state import TaskState

    state = session.coordinator.state
    task = state.attempt(event.attempt).task
    now = state.state_of(task)
    if now == TaskState.RUNNING:
        return "trying again"
    if state.held_back or now in (TaskState.DONE, TaskState.GIVEN_UP):
        return ""
    until = state.rests_until(task)
    if event.time < until < math.inf:
        return f"trying again in {duration(until - event.time)}"
    return "trying again"


def _failure(session: Session, event: TaskFailed, then: str) -> str:
    """Return a line about a failed attempt and what follows."""
    state, detail = session.coordinator.state, event.detail or {}
    name = session.coordinator.workflow.task_names[state.attempt(event.attempt).task]
    ordinal = state.ordinal_of(event.attempt)
    which = f" (attempt {ordinal})" if then or ordinal > 1 else ""
    reason = detail.get("reason", "no reason is known")
    text = f"[{clock(event.time)}] {name} failed{which}: {reason}"
    text += f"; {then}" if then else ""
    if detail.get("log"):
        text += f" (log: {near(session.recorder.journal.path.parent / detail['log'])})"
    return clean(text)


def display(
    quiet: bool = False, as_json: bool = False, detached: Callable[[str], None] | None = None
) -> Display:
    """The display that suits where the command runs."""
    if quiet or detached is not None:
        return Display(Screen(sys.stderr), detached)
    stream = sys.stderr if sys.stderr.isatty() or as_json else sys.stdout
    return Display(live_or(PlainScreen(sys.stderr), stream))


class PythonDisplay(Display):
    """The display of a run that a program drives: its last line tells how it ended."""

    def __init__(self, at_once: bool) -> None:
        screen = _screen_of_python()
        super().__init__(screen if at_once else LateScreen(screen, SOON), ours=False)
        self.summary, self._last = str, ""

    def over(self, session: Session, outcome: Outcome) -> None:
        """Keep how it ended."""
        super().over(session, outcome)
        self._last = str(outcome)

    def _write(self) -> None:
        super()._write()
        if self._last and self._log_screen in self._screens:
            self._screens.remove(self._log_screen)  # it has heard it, and is closed
        if self._last:
            self._say(self._last)


def _screen_of_python() -> Screen:
    """A notebook's, if there is a kernel; else standard error: live on a terminal, or lines."""
    return NotebookScreen() if in_notebook() else live_or(PlainScreen(sys.stderr), sys.stderr)


@contextmanager
def showing(progress: bool | None, listener: Listener | None) -> Iterator[Listener | None]:
    """Whoever shows a run that Python drives: the listener that is given, a display, or nobody."""
    if progress and listener is not None:
        raise InputError("give a listener or progress=True, not both: each shows the run")
    if progress is None:
        progress = None if listener is None and _wanted() else False
    if progress is False or (sys.stderr is None and not in_notebook()):  # nowhere to show it
        yield listener
        return
    with PythonDisplay(at_once=progress is True) as shown:
        yield shown


def _wanted() -> bool:
    """Whether whoever runs the program wants to see what takes long."""
    said = os.environ.get("FOREPLAN_DISPLAY", "yes")
    if said not in ("yes", "no"):
        raise InputError(f"it is yes or no, not {said!r}", place="FOREPLAN_DISPLAY")
    return said == "yes"
