"""The recorder of a run: its journal, and what it adds to the history."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from weft.errors import WeftError
from weft.journal.log import Journal
from weft.journal.plain import plain
from weft.live.entries import commands_to_dict, entry_to_dict
from weft.model import Evaluation
from weft.model.events import Command, Heard

if TYPE_CHECKING:
    from weft.history.records import TaskRecord, TransferRecord
    from weft.history.repository import Repository

FLUSH = 5.0  # seconds between two additions to the history


class JournalRecorder:
    """Everything heard goes to the journal, once there is one; a sync makes it durable."""

    def __init__(self, journal: Journal | None = None) -> None:
        self._journal = journal
        self.pending: list[dict[str, Any]] = []

    @property
    def journal(self) -> Journal:
        """The journal."""
        assert self._journal is not None
        return self._journal

    def begin(self, journal: Journal) -> None:
        """From now on all is kept there."""
        self._journal = journal

    def heard(self, entry: Heard) -> None:
        """Keep it for the next sync."""
        self.pending.append(entry_to_dict(entry))

    def note(self, kind: str, **content: Any) -> None:
        """Keep something that the coordinator need not know."""
        self.pending.append({"t": kind, **content})

    def judged(self, evaluation: Evaluation) -> None:
        """Keep for people what became of a plan; no one needs it to go on."""
        self.note("evaluation", **plain(asdict(evaluation)))

    def sync(self, commands: list[Command]) -> None:
        """All that was heard is on disk when this returns."""
        if commands:
            self.pending.append(commands_to_dict(commands))
        if self.pending:
            self.journal.append(self.pending)
            self.pending = []


class Learner:
    """Adds what was measured to the history, now and then; a run goes on without one."""

    def __init__(self, repository: Repository | None, warn: Callable[[str], None]) -> None:
        self.repository, self.warn = repository, warn
        self.tasks: list[TaskRecord] = []
        self.transfers: list[TransferRecord] = []
        self.flushed = time.monotonic()

    def flush(self, now: bool = False) -> None:
        """Write what there is, if it is time."""
        if not now and time.monotonic() - self.flushed < FLUSH:
            return
        self.flushed = time.monotonic()
        tasks, transfers = self.tasks, self.transfers
        self.tasks, self.transfers = [], []
        if self.repository is None or not (tasks or transfers):
            return
        try:
            self.repository.add(tasks, transfers)
        except WeftError as error:
            self.warn(f"the history is not written: {error}")
            self.repository = None

    def close(self) -> None:
        """Write the rest."""
        self.flush(now=True)
        if self.repository is not None:
            with suppress(WeftError):
                self.repository.close()
