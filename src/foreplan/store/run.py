"""The store as a run uses it: what attempts are made from, what is there, what they have made."""

from __future__ import annotations

import errno
import os
import queue
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple, Protocol

from foreplan.model.filenames import is_pattern, is_tree
from foreplan.store.content import Entry
from foreplan.store.making import Making, call_line, command_line
from foreplan.store.parts import append, close_part, encode
from foreplan.store.store import KeptResult, Result, ResultOrigin, Store
from foreplan.store.survey import State, Survey


class KeptSource(Protocol):
    """Where results of functions are, of all runs."""

    def folder(self, run: str) -> str:
        """Where the results of a run are."""

    def bring(self, kept: KeptResult, results: str, task: int) -> Entry:
        """Have a result among those of another run, too; an OSError if it cannot be had."""


class _Made(NamedTuple):
    """The outputs of a task, or the content of its result."""

    task: int
    contents: Mapping[str, Entry]
    content: str


class RunStore:
    """The survey of a run's tasks while they run; its own number of each is in `numbers`."""

    def __init__(
        self,
        survey: Survey,
        run: str,
        numbers: Sequence[int],
        kept: KeptSource | None = None,
        taken: Iterable[int] = (),
        first: int | None = None,
    ) -> None:
        self.folder, self.run, self.kept = str(survey.store.folder), run, kept
        self._made: queue.SimpleQueue[_Made] = queue.SimpleQueue()
        self._recent: dict[int, _Made] = {}  # taken by the survey of a run that grows, by task
        self.survey_again(survey, numbers, taken, first)

    def survey_again(
        self,
        survey: Survey,
        numbers: Sequence[int],
        taken: Iterable[int] = (),
        first: int | None = None,
    ) -> None:
        """Go by this survey from now on: of a run that begins, or has more tasks.

        What is taken of others is numbered from `first` on, or else behind its own tasks.
        """
        if hasattr(self, "_survey"):
            self._keep_news()
        self._survey, self._numbers = survey, numbers
        self._own = {number: task for task, number in enumerate(numbers)}
        known = survey.tasks(State.UP_TO_DATE)  # of a run that is resumed; else they are no part
        names, done = survey.workflow.task_names, survey.asked.done
        known = [n for n in known if n in self._own and survey.can_be_taken(n)]
        self._found = [self._own[n] for n in known if names[n] not in done]
        own = dict(enumerate(numbers))
        self._with_taken = own | dict(enumerate(taken, len(numbers) if first is None else first))
        self.__dict__.pop("_as_it_is", None)
        # the coordinator may not know yet that these are done, and so this survey does not
        recent, self._recent = self._recent, {}
        for made in recent.values():
            if names[numbers[made.task]] not in done:
                self._made.put(made)

    def begin(self, task: int) -> tuple[Making, Result | None]:
        """What an attempt would be made from, and what came out of that before, if it is there.

        Only the thread that drives the run may ask.
        """
        self._take_made()
        self._recent.pop(task, None)
        number = self._numbers[task]
        making = self._survey.making(number)
        return making, self._survey.found(number, making, self.run)

    def former(self, making: Making | None) -> list[KeptResult]:
        """What came out of the same before, though it is to be made again."""
        if making is None or making.recipe is None:
            return []
        found = self._survey.store.results(making.recipe.key)
        return [result.call for result in found if result.call is not None]

    def ended(self, task: int, attempt: int) -> Result | None:
        """What an attempt of this run has made, if it ended well and all of that is there."""
        survey, number = self._survey, self._numbers[task]
        name = survey.workflow.task_names[number]
        for result in survey.made_by(number, self._as_it_is):
            if (result.run, result.task, result.attempt) == (self.run, name, attempt):
                if not survey.is_there(result):
                    return None
                self.note(task, result.outputs)
                return result
        return None

    @cached_property
    def _as_it_is(self) -> Store:
        """The store as it was first asked for in this session: who runs elsewhere writes to it."""
        return Store.read(self._survey.memory.data)

    def name(self, number: int) -> str:
        """The name of a task; behind all of them, of another whose result they take."""
        return self._survey.workflow.task_names[self._with_taken[number]]

    def content(self, number: int) -> str:
        """What the result of a function is, as far as is known."""
        self._take_made()
        return self._survey.content_of(self._with_taken[number])

    def has_own_result(self, task: int) -> bool:
        """Return whether this run, which is resumed, has kept the result of a function."""
        return self._survey.own_result(self._numbers[task], self.run, task) is not None

    def may_be_there(self, task: int) -> bool:
        """Whether the result of a task may turn out to be there when it is about to start."""
        self._take_made()
        return self._survey.states[self._numbers[task]] in (State.UNSURE, State.UP_TO_DATE)

    def note(self, task: int, contents: Mapping[str, Entry], content: str = "") -> None:
        """A task has made these outputs, or a result of this content; from any thread."""
        self._made.put(_Made(task, contents, content))

    def add_files(self, making: Making, task: str, contents: Mapping[str, Entry]) -> None:
        """Have it known what a command has made elsewhere, before any of it is published."""
        line = command_line(making, task=task, run=self.run, contents=contents)
        append(self.folder, self.run, line)

    def add_call(self, making: Making, task: str, kept: KeptResult, seconds: float = 0.0) -> None:
        """Have it known what a function gave back, before that is in its place."""
        append(self.folder, self.run, call_line(making, task=task, kept=kept, seconds=seconds))

    def add_origin(self, origin: ResultOrigin) -> None:
        """Have it known which workflow file the results of this run are of."""
        append(self.folder, self.run, encode(origin.line([self.run])))

    def take_up_to_date(self) -> list[int]:
        """The tasks that have turned out to be up to date since this was asked last.

        Only the thread that drives the run may ask.
        """
        self._take_made()
        found, self._found = self._found, []
        return found

    def _take_made(self) -> None:
        while not self._made.empty():
            made = self._made.get()
            if self._survey.workflow.grows:
                self._recent[made.task] = made
            number = self._numbers[made.task]
            decided = self._survey.finish(number, made.contents, made.content)
            found = filter(self._survey.can_be_taken, decided.up_to_date)
            self._found += [self._own[number] for number in found]

    def remove_spent(self, task: int) -> None:
        """Remove the temporary outputs that a finished task was the last to read.

        Only once the journal has its end: else a resume after a kill would need them again.
        """
        self._take_made()
        self._remove(self._survey.spent(self._numbers[task], self._own))

    def shielded(self, task: int) -> str:
        """A protected output that a task would replace; nothing if there is none."""
        return self._survey.shielded(self._numbers[task], self.run)

    def files_of(self, name: str) -> list[str]:
        """The files that a finished task has given under a pattern, or a directory; sorted."""
        return self._survey.files_of(name)

    def _remove(self, names: Iterable[str]) -> None:
        data = self._survey.memory.data
        for name in names:
            files = self._survey.files_of(name) if is_pattern(name) else [name]
            with suppress(OSError):  # then it stays
                for file in files:
                    path = os.path.join(data, file)
                    self._remove_tree(path.rstrip("/")) if is_tree(name) else os.unlink(path)

    def _remove_tree(self, path: str) -> None:
        """Out of sight first: what is left of it by a kill would look like an edit."""
        place = os.path.join(os.path.dirname(self.folder), "runs", self.run, "attempts")
        aside = os.path.join(place, f"gone-{secrets.token_hex(4)}")
        try:
            os.rename(path, aside)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            aside = os.path.join(os.path.dirname(path), f".{secrets.token_hex(6)}.tmp")
            os.rename(path, aside)
        shutil.rmtree(aside, ignore_errors=True)

    def close(self) -> None:
        """Remove what nobody will read, also of a run that was killed; remember what was read."""
        self._take_made()
        self._remove(self._survey.spent(None, self._own))
        self._keep_news()
        close_part(self.folder, self.run)

    def _keep_news(self) -> None:
        if news := self._survey.take_news():
            with suppress(OSError):  # then it is found out again
                append(self.folder, self.run, news)
