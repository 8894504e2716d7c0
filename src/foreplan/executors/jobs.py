"""The tasks of a run as jobs: what each reads and makes, how it is run, and how its end is told."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foreplan.executors.allotments import Allotment, Allotting
from foreplan.executors.base import Workload
from foreplan.executors.command import CommandJob, CommandOutcome, unlisted
from foreplan.executors.kept import ENDING
from foreplan.executors.paths import log_name
from foreplan.executors.results import result_path, settle_result
from foreplan.model.call import Call, Calls
from foreplan.model.causes import CAUSE, PROTECTED, UNDECLARED, USED
from foreplan.model.events import (
    OWN_FAULT,
    REUSED,
    Event,
    ItemLost,
    StartTask,
    TaskFailed,
    TaskFinished,
)
from foreplan.model.filenames import is_there
from foreplan.model.growth import expansion_file, passed_by
from foreplan.model.workflow import Workflow
from foreplan.store.bindings import WITH_OTHER_PROGRAM, ProgramBindings, changes_of_tasks
from foreplan.store.content import digest_of
from foreplan.store.making import Making, changed_inputs, changed_meanwhile, content_of_pickle
from foreplan.store.programs import VALUE
from foreplan.store.store import KeptResult, Result

_Rows = tuple[list[int], list[int]]  # where the items of each task begin, and all items


class Jobs:
    """The jobs of a run whose files are in `data`, and which keeps what is its own in `home`."""

    def __init__(self, work: Workload, data: str, home: str) -> None:
        self.anywhere = work.absolute
        self.data, self.home, self.results = data, home, os.path.join(home, "results")
        self._timeout = work.timeout
        self.store, self._limit = work.store, work.limit
        self._others = set[str]()  # what of the program differed elsewhere, as far as is known
        self.program = ProgramBindings()
        self.may_differ = work.may_differ
        self.take_tasks(work.workflow, work.calls)
        for place in ("attempts", "logs", "results"):
            os.makedirs(os.path.join(home, place), mode=0o700, exist_ok=True)

    def take_tasks(self, workflow: Workflow, calls: Calls | None) -> None:
        """Know these tasks; those that were known keep their numbers, whoever reads meanwhile."""
        self._names = workflow.item_names or (None,) * workflow.n_items
        self.workflow, self.calls = workflow, calls
        self._in: _Rows = workflow.in_ptr.tolist(), workflow.in_item.tolist()
        self._out: _Rows = workflow.out_ptr.tolist(), workflow.out_item.tolist()
        self.allotting = Allotting(workflow, self._limit)
        self._grows = workflow.grows

    def name(self, task: int) -> str:
        """The name of a task."""
        return self.workflow.task_names[task]

    def name_of_result(self, number: int) -> str:
        """The name of the task of a result that a call takes; another run may have made it."""
        if number < self.workflow.n_tasks or self.store is None:
            return self.name(number)
        return self.store.name(number)

    def former_files(self, making: Making | None) -> tuple[str, ...]:
        """The files of what came out of the same before."""
        if self.store is None or self.store.kept is None:
            return ()
        folder = self.store.kept.folder
        former = self.store.former(making)
        return tuple(result_path(folder(kept.run), kept.number) for kept in former)

    def call(self, task: int) -> Call | None:
        """The function of a task, and its arguments; None if it is a command."""
        return None if self.calls is None else self.calls[task]

    def read(self, task: int) -> list[int]:
        """The items that a task reads."""
        first, items = self._in
        return items[first[task] : first[task + 1]]

    def made(self, task: int) -> list[int]:
        """The items that a task makes."""
        first, items = self._out
        return items[first[task] : first[task + 1]]

    def files(self, items: Iterable[int]) -> tuple[str, ...]:
        """The names of items; one without a name is no file."""
        return tuple(name for item in items if (name := self._names[item]) is not None)

    def log(self, attempt: int, task: int) -> str:
        """Where what an attempt prints is kept: this path + ".out" and ".err"."""
        return os.path.join(self.home, "logs", log_name(attempt, self.name(task)))

    def has_files(self, item: int) -> bool:
        """Whether the file of an item is in the data directory; what has no file always is."""
        return all(is_there(self.data, name) for name in self.files([item]))

    def kept(self, attempt: int, task: int) -> str:
        """Where the directory of a failed attempt is kept."""
        return os.path.join(self.home, "attempts", log_name(attempt, self.name(task)) + ENDING)

    def timeout(self, task: int) -> float | None:
        """The seconds that a task may take."""
        own = self.workflow.spec(task).timeout
        return self._timeout if own is None else own

    def command(
        self,
        attempt: int,
        task: int,
        scratch: str,
        log: str,
        given: Allotment | None = None,
        **more: Any,
    ) -> CommandJob:
        """An attempt at a task that is a command."""
        given = given or Allotment()
        spec = self.workflow.spec(task)
        return CommandJob(
            task=self.name(task),
            command=spec.run or "",
            dir=self.data,
            scratch=scratch,
            log=log,
            inputs=self.files(self.read(task)),
            outputs=self.files(self.made(task)),
            attempt=attempt,
            home=self.home,
            timeout=self.timeout(task),
            anywhere=self.anywhere,
            shell=spec.shell or "",
            ignores=passed_by(spec) if spec.gathers else spec.ignores,
            keep=self.kept(attempt, task),
            store="" if self.store is None else self.store.folder,
            variables=given.variables,
            limit=given.limit,
            around=spec.around,
            protected=spec.protected,
            printed=expansion_file(self.name(task)) if spec.expand else "",
            **more,
        )

    def result_sizes(self, task: int, size: int) -> dict[str | int, int]:
        """The size of a function's result as that of each item that it makes."""
        return {self._names[item] or item: size for item in self.made(task)}

    def ended(self, job: CommandJob, outcome: CommandOutcome) -> Event:
        """How an attempt at a command has ended."""
        if outcome.problem is None:
            return self.finished(
                job.attempt,
                outcome.seconds,
                outcome.sizes,
                outcome.warning,
                outcome.used,
                outcome.undeclared,
            )
        return self.failed(
            job.attempt,
            outcome.problem,
            outcome.seconds,
            outcome.tail,
            outcome.log,
            code=outcome.exit,
            forgotten=unlisted(job),
            kept=outcome.kept,
            cause=outcome.cause,
            used=outcome.used,
        )

    def finished(
        self,
        attempt: int,
        seconds: float,
        sizes: Mapping[Any, int],
        warning: str = "",
        used: Mapping[str, Any] | None = None,
        undeclared: Mapping[str, Any] | None = None,
    ) -> Event:
        """An attempt has ended well."""
        detail: dict[str, Any] = {"seconds": seconds, "sizes": dict(sizes)}
        detail |= {"warning": warning} if warning else {}
        detail |= {USED: dict(used)} if used else {}
        detail |= {UNDECLARED: dict(undeclared)} if undeclared else {}
        return TaskFinished(attempt, 0.0, detail=detail)

    def begin(self, attempt: int, task: int) -> tuple[Making | None, Event | None]:
        """What an attempt is made from; and its end, if all of that is there already."""
        if self.store is None:
            return None, None
        making, found = self.store.begin(task)
        if found is None:
            shielded = self.store.shielded(task)
            return making, self.failed(
                attempt, protection(shielded, self.name(task)), cause=PROTECTED
            ) if shielded else None
        if found.call is not None:
            return making, self._take_kept(attempt, task, making, found)
        self.store.note(task, found.outputs)
        if found.run == self.store.run:  # the journal has lost that
            return making, self.finished(attempt, found.seconds, sizes_of(found))
        detail = {"seconds": 0.0, "sizes": sizes_of(found), REUSED: found.run}
        return making, TaskFinished(attempt, 0.0, detail=detail)

    def told_by_store(self, start: StartTask) -> Event | None:
        """The end of an attempt that nobody has heard of, if the store knows it."""
        found = None if self.store is None else self.store.ended(start.task, start.attempt)
        if found is None:
            return None
        return self.finished(start.attempt, found.seconds, sizes_of(found))

    def add_result(
        self,
        task: int,
        making: Making | None,
        content: str | None,
        source: str | bytes | None,
        other: str = "",
        seconds: float = 0.0,
    ) -> tuple[str, str]:
        """Have it known what a function gave back, before that is in its place.

        `source` is the file that will be there, or what will be among small results; None if it is
        not kept. `other` is what of its program differed where it ran. Its content, and what is
        to be said.
        """
        why = f"{WITH_OTHER_PROGRAM} {other.replace(':', '.')}" if other else ""
        if self.store is None or making is None:
            return "", f"{self.name(task)}: {why}" if self._is_new(other) else ""
        if why:
            making = Making(None, note=why)
        if making.recipe is not None and (changed := changed_inputs(making, self.data)):
            note = changed_meanwhile(changed[0])
            making, why, other = Making(None, note=note), note, f"{task} {changed[0]}"
        if isinstance(source, str):
            file = settle_result(source)
        else:
            file = (0, 0, 0, "") if source is None else (len(source), 0, 0, digest_of(source))
        if file is None:
            raise FileNotFoundError(2, "No such file or directory", source)
        if content is None or not content.startswith(VALUE):
            content = content_of_pickle(making, content or file[3], self.store.run)
        kept = KeptResult(self.store.run, task, content, file)
        self.store.add_call(making, self.name(task), kept, seconds)
        if not self._is_new(other):
            return content, ""
        return content, f"{self.name(task)}: {why}; what uses it will be run again"

    def _is_new(self, difference: str) -> bool:
        """Return whether there is a difference that no warning has named yet."""
        is_new = bool(difference) and difference not in self._others
        self._others.add(difference)
        return is_new

    def warn_of_changes(self, task: int, changed: Sequence[str]) -> str:
        """Return what to tell of parts of the program that earlier tasks changed in a worker."""
        new = [
            binding.strip(".:").replace(":", ".") for binding in changed if self._is_new(binding)
        ]
        return changes_of_tasks(self.name(task), new) if new else ""

    def _take_kept(self, attempt: int, task: int, making: Making, found: Result) -> Event | None:
        """The end of an attempt whose result a run has kept; None if it is gone by now."""
        store, kept = self.store, found.call
        assert store is not None
        assert store.kept is not None
        assert kept is not None
        is_own = kept[:2] == (store.run, task)  # the journal has lost that
        try:
            file = kept.file if is_own else store.kept.bring(kept, self.results, task)
            if not is_own:
                own = KeptResult(store.run, task, kept.content, file)
                store.add_call(making, self.name(task), own)
        except OSError:
            return None
        store.note(task, {}, kept.content)
        sizes = self.result_sizes(task, file[0])
        if is_own:
            return self.finished(attempt, found.seconds, sizes)
        detail = {"seconds": 0.0, "sizes": sizes, REUSED: kept.run}
        return TaskFinished(attempt, 0.0, detail=detail)

    def failed(
        self,
        attempt: int,
        reason: str,
        seconds: float | None = 0.0,
        tail: str = "",
        log: str | None = None,
        fault: float = OWN_FAULT,
        code: int | None = None,
        forgotten: list[str] | None = None,
        until: float | None = None,
        kept: str | None = None,
        cause: str = "",
        used: Mapping[str, Any] | None = None,
    ) -> Event:
        """An attempt has come to nothing: why, the end of what it printed, and where all of it is.

        `seconds` is None if nobody has measured it; `until` is the moment that it ran to, if known.
        """
        detail: dict[str, Any] = {
            "reason": reason,
            "exit": code,
            "log": None if log is None else os.path.relpath(log, self.home),
            "tail": tail,
            "seconds": seconds,
        }
        detail |= {"unlisted": forgotten} if forgotten else {}
        detail |= {"until": until} if until is not None else {}
        detail |= {"scratch": os.path.relpath(kept, self.home)} if kept else {}
        detail |= {CAUSE: cause} if cause else {}
        detail |= {USED: dict(used)} if used else {}
        return TaskFailed(attempt, 0.0, fault, detail=detail)

    def lost(self, item: int, host: int) -> Event:
        """An item is no longer where the run believes it to be."""
        items = self.workflow.n_items
        # there may be more items when it is heard
        detail = {"items": items} if self._grows else None
        return ItemLost(host * items + item, 0.0, detail)


def protection(file: str, task: str) -> str:
    """Why a task may not run."""
    return f"its output {file} is protected: a run with `--force {task}` makes it again"


def sizes_of(result: Result) -> dict[str, int]:
    """The bytes of a result's outputs."""
    return {name: entry[0] for name, entry in result.outputs.items()}
