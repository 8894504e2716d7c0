"""A workflow's tasks as jobs for Dask: what travels to a worker, and what comes home."""

from __future__ import annotations

import math
import os
import pickle
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from foreplan.errors import InputError
from foreplan.executors import packing
from foreplan.executors.allotments import Allotment
from foreplan.executors.base import Workload
from foreplan.executors.calls import Place, is_stateless, pack_call
from foreplan.executors.command import CommandJob, unlisted
from foreplan.executors.dask.messages import TaskMessage
from foreplan.executors.dask.tasks import Held, Packed, run_call, run_shell
from foreplan.executors.jobs import Jobs
from foreplan.executors.packing import Frames
from foreplan.executors.results import SmallResults, error_path, result_path, write_private
from foreplan.executors.shared_arguments import find_shared, large_in
from foreplan.executors.workspace import protect, read_marker
from foreplan.files import write_bytes
from foreplan.model.call import Call, Calls, files_of, parted, refs
from foreplan.model.events import REUSED, Event, StartTask, TaskFinished
from foreplan.model.growth import is_expansion_file
from foreplan.model.workflow import EXTERNAL, Workflow
from foreplan.store.content import Entry, Status, status_of
from foreplan.store.making import Making, changed_inputs

KEPT = 1_000_000  # bytes of a result that is kept unless the run says otherwise
_TOGETHER = 16_384  # bytes of a result that shares a file with others


class _Kept(NamedTuple):
    """A result that this session has brought home."""

    making: Making
    content: str
    size: int


class DaskJobs(Jobs):
    """What each task is, reads and makes."""

    def __init__(self, work: Workload, home: Path) -> None:
        super().__init__(work, str(work.directory.absolute()), str(home.absolute()))
        self.carried = not work.shared  # files travel as results, not by a shared directory
        self._small = SmallResults(self.results)
        self._makings: dict[int, Making | None] = {}  # by attempt
        self._read: dict[str, Status] = {}  # outside inputs as they were when they travelled
        # tasks whose results are here, not in memory; of functions also others, numbered beyond
        n = self.workflow.n_tasks
        self.contents: dict[int, str] = {}  # of results, as the store knows them
        self.warnings: dict[int, str] = {}  # about them
        self._keep_results, self._targets = work.keep_results, {*work.targets}
        self._latest: dict[int, int] = {}  # by task, the attempt that was begun last
        self._kept: dict[int, _Kept] = {}
        self._keeping = threading.Lock()  # no task begins again while its result is written
        self.at_home = {t for call in self.calls or () for t in refs(call) if t >= n}
        self.has_commands = len(work.functions) < n
        self._functions: dict[int, tuple[Callable[..., Any], bytes, list[Any]]] = {}

    @property
    def advice(self) -> str:
        """Advice for the time when the cluster is back, and the work that it saves."""
        run = os.path.basename(self.home)
        if self.calls is not None and self.store is None:
            return "compute all of it again: nothing is kept"
        how = f"foreplan.run(flow, ..., resume={run!r})"
        how = f"foreplan resume {run}" if self.calls is None else how
        return f"resume the run with `{how}`: finished work that is on disk is kept"

    def take_tasks(self, workflow: Workflow, calls: Calls | None) -> None:
        """Know these tasks, and who reads of whom."""
        for name in ("inputs", "readers"):
            self.__dict__.pop(name, None)
        super().take_tasks(workflow, calls)

    @cached_property
    def inputs(self) -> list[list[int]]:
        """The tasks whose results each task reads, in the order in which they are passed to it."""
        if self.calls is not None:  # their files are in a directory that all see
            n, expands = self.workflow.n_tasks, self._expands
            taken = [[t for t in refs(call) if t < n] for call in self.calls]
            # what a function returns to add tasks is read here: others take their results
            return (
                [[t for t in tasks if not expands(t)] for tasks in taken] if self._grows else taken
            )
        producers = self.workflow.item_producer
        return [
            list(dict.fromkeys(int(producers[i]) for i in self.read(t) if producers[i] >= 0))
            for t in range(self.workflow.n_tasks)
        ]

    @cached_property
    def shared(self) -> dict[int, Any]:
        """Large arguments that several functions take, by numbers below 0."""
        found = find_shared(self.calls or ()).values()
        return {-1 - k: value for k, value in enumerate(found)}

    @cached_property
    def readers(self) -> list[set[int]]:
        """The tasks that read the result of each task."""
        found: list[set[int]] = [set() for _ in range(self.workflow.n_tasks)]
        for task, producers in enumerate(self.inputs):
            for producer in producers:
                found[producer].add(task)
        return found

    def is_read(self, item: int) -> bool:
        """Whether a task reads an item; what none reads is brought home."""
        uses = self.workflow.use_ptr
        return bool(uses[item] < uses[item + 1])

    def external(self, task: int) -> list[int]:
        """The files that must travel to a task from here."""
        if self.calls is not None or not self.carried:
            return []
        here = self.at_home | {EXTERNAL}
        outside = [i for i in self.read(task) if int(self.workflow.item_producer[i]) in here]
        return [i for i in outside if self.files([i])]

    @property
    def is_shared(self) -> bool:
        """Whether all that tasks make is in a directory that every worker sees."""
        return self.calls is None and not self.carried

    def is_in_directory(self, task: int) -> bool:
        """Whether what a task makes is in a directory that every worker sees."""
        return not self.carried and self.call(task) is None

    def may_begin_ahead(self, task: int) -> bool:
        """Whether nobody sees what a task does before it is asked for, nor can files change."""
        call = self.call(task)
        # who reads of one that adds tasks will take other results
        if call is None or (self._grows and any(map(self._expands, refs(call)))):
            return False
        if self._small.has(task):  # it may be taken from there
            return False
        return not self.files(self.read(task))

    def _expands(self, number: int) -> bool:
        return number < self.workflow.n_tasks and self.workflow.spec(number).expand

    def is_product(self, task: int) -> bool:
        """Whether the result of a function is for the user, not for another task."""
        return self.call(task) is not None and not self.readers[task]

    def must_keep(self, task: int) -> bool:
        """Return whether the result of a function counts as made only once it is at home."""
        if self._keep_results or self.workflow.spec(task).keep:
            return True
        return self.is_product(task) or self.name(task) in self._targets

    def _most_kept(self, task: int) -> float:
        """Return the bytes up to which the result of a function is kept."""
        if self.must_keep(task):
            return math.inf
        return KEPT if self._keep_results is None and self.store is not None else 0

    def product_files(self, task: int) -> list[str]:
        """The files of a command that must be brought home."""
        if self.calls is not None or not self.carried:
            return []
        # what a task has printed to add others is read here
        printed = is_expansion_file if self.workflow.spec(task).expand else None
        made = self.made(task)
        products = (
            i for i in made if not self.is_read(i) or (printed and printed(self.workflow, i))
        )
        return list(self.files(products))

    def files_for_home(self, task: int) -> list[str]:
        """The same, with what an earlier run has left there: it would be out of date."""
        if self.calls is not None or not self.carried:
            return []
        there = [name for name in self.files(self.made(task)) if (Path(self.data) / name).exists()]
        return list(dict.fromkeys((*self.product_files(task), *there)))

    def sizes(self, task: int, end: TaskMessage) -> dict[Any, int]:
        """The bytes of each item that a finished task has made."""
        if self.call(task) is None:
            return dict(end.sizes or {})
        return dict(self.result_sizes(task, end.size or 0))

    @property
    def is_one_host(self) -> bool:
        """Whether all workers are one host: nobody counts what each has for itself."""
        return self.is_shared and not self.allotting.asks

    def columns(self, task: int, command: StartTask | None) -> tuple[Callable[..., Any], list[Any]]:
        """The function to run on the worker, and its arguments before the inputs."""
        if (call := self.call(task)) is None:
            assert command is not None  # commands are never begun ahead
            job = self._command(task, command.attempt, self.allotting.allot(command))
            return run_shell, [job, self.carried, self._held(command)]
        names = {t: self.name_of_result(t) for t in parted(call)}
        context = (self.given(task), names, self.data if files_of(call) else "")
        # what is not kept is of Dask's collections, whose functions do not change their arguments
        shared = self.store is None
        alone = shared or is_stateless(call.function)
        function, met = self._pickled(call.function) if alone else (b"", [])
        content, others = self._packed_call(task, call, not alone)
        bindings = self.program.of((*met, *others), (call.args, dict(call.kwargs))).digests
        program = (bindings, self.may_differ)
        more = [self.is_product(task), self._most_kept(task), program, shared]
        return run_call, [function, content, pickle.dumps(context), *more]

    def _packed_call(self, task: int, call: Call, with_function: bool) -> tuple[bytes, list[Any]]:
        """Return a call as bytes, and the parts of programs in it."""
        place = f"task {self.name(task)!r}"
        shared = {id(self.shared[number]): number for number in self.given(task) if number < 0}

        def find_place(value: Any) -> Place | None:
            return (shared[id(value)], ()) if id(value) in shared else None

        try:
            return pack_call(call, with_function, find_place)
        except InputError as error:  # it says all itself
            raise InputError(str(error), place=place) from None
        except Exception as error:  # pickling calls code of the objects, which may raise anything
            problem = f"the function or an argument cannot be pickled: {error}"
            raise InputError(problem, place=place) from None

    def given(self, task: int) -> list[int]:
        """The results that a function takes, by task, and the arguments that it shares: below 0."""
        call = self.call(task)
        numbers = [self._number(value) for value in large_in(call).values()] if self.shared else []
        return refs(call) + [number for number in numbers if number is not None]

    def _number(self, value: Any) -> int | None:
        """The number of an argument that several functions take."""
        return next((k for k, shared in self.shared.items() if shared is value), None)

    def _pickled(self, function: Callable[..., Any]) -> tuple[bytes, list[Any]]:
        """Functions are pickled once; they are kept, so that their ids stay their own."""
        known = self._functions.get(id(function))
        if known is None:
            known = self._functions[id(function)] = (function, *dumps(function))
        return known[1:]

    def _held(self, command: StartTask) -> Held | None:
        """What a worker lets a command hold: only there is known what ended, and what GPUs are."""
        if not (command.cores or command.amounts):
            return None
        amounts = self.allotting.amounts(command)
        return command.cores or (command.processor,), amounts, self.allotting.counts_gpus

    def _command(self, task: int, attempt: int, given: Allotment | None = None) -> CommandJob:
        scratch = self._scratch(task, attempt)
        making = self._makings.get(attempt)
        return self.command(attempt, task, scratch, self.log(attempt, task), given, making=making)

    def make_ready(self, attempt: int, task: int) -> Event | None:
        """Find out what an attempt is made from; its end, if that is there already."""
        with self._keeping if task in self._latest else nullcontext():
            self._latest[task] = attempt
        self._makings[attempt], end = self.begin(attempt, task)
        if self.call(task) is not None:
            return self._make_call_ready(attempt, task, end)
        if isinstance(end, TaskFinished) and not self.is_in_directory(task):
            self.at_home.add(task)
        return end

    def _make_call_ready(self, attempt: int, task: int, end: Event | None) -> Event | None:
        """Take the result of a function that is at home; else remove it: there will be another.

        Of two results of a task, a resumed run could not tell which one others have read.
        """
        end = end or self._take_own(attempt, task)
        if isinstance(end, TaskFinished):
            if os.path.exists(result_path(self.results, task)):
                self._small.large.add(task)
            if self._small.has(task):
                self.at_home.add(task)
                return end
            end = None  # it was removed since the store was read
        if end is None:
            self._kept.pop(task, None)
            self._small.drop(task)
        return end

    def _take_own(self, attempt: int, task: int) -> Event | None:
        """The end of an attempt whose result this session has at home: its workers have lost it."""
        making, kept = self._makings.get(attempt), self._kept.get(task)
        if kept is None or making is None or self.store is None or not self._small.has(task):
            return None
        if making.recipe is None or kept.making.recipe is None:
            return None
        if making.recipe.key != kept.making.recipe.key or changed_inputs(kept.making, self.data):
            return None
        self.store.note(task, {}, kept.content)
        detail = {"seconds": 0.0, "sizes": self.result_sizes(task, kept.size)}
        return TaskFinished(attempt, 0.0, detail=detail | {REUSED: self.store.run})

    def content_at_home(self, number: int) -> dict[str, str]:
        """What a result is that is here, by the name of its task."""
        return {} if self.store is None else {self.store.name(number): self.store.content(number)}

    def check_taken(self, task: int, attempt: int, contents: Mapping[str, str]) -> str:
        """If an attempt took something else than its recipe says: then nobody knows what it made.

        `contents` are those of the results or files that it was given, as far as they are known.
        """
        making = self._makings.get(attempt)
        if making is None or making.recipe is None or self.is_in_directory(task):
            return ""
        declared = {*self.files(self.read(task))}
        results = {n: c for n, c in making.recipe.inputs.items() if n not in making.recipe.files}
        for name, content in results.items():
            if name in contents:
                is_same = contents[name] == content
            elif name in self._read:
                is_same = self._read[name] == making.statuses.get(name)
            else:  # a file that a command only names is not given to it
                is_same = self.calls is None and name not in declared
            if not is_same:
                note = f"{name}, which it takes, was changed while it ran"
                self._makings[attempt] = Making(None, note=note)
                return f"{self.name(task)}: {note}: it will be run again"
        return ""

    def contents_of(self, task: int, end: TaskMessage) -> dict[str, str]:
        """What a task has made, for whoever takes it: results by task, or files."""
        if self.call(task) is not None:
            return {self.name(task): self.contents.get(task, "")}
        return {name: str(entry[3]) for name, entry in (end.contents or {}).items()}

    def note_made(self, task: int, contents: Mapping[str, Sequence[Any]]) -> None:
        """A worker has made these files."""
        if self.store is not None:
            self.store.note(task, _entries(contents))

    def unlisted(self, task: int, attempt: int) -> list[str]:
        """The files here that a command names, but that are not among its inputs."""
        return unlisted(self._command(task, attempt)) if self.call(task) is None else []

    def _scratch(self, task: int, attempt: int) -> str:
        return os.path.join(self.home, "attempts", f"{task}-{attempt}")

    def external_file(self, item: int) -> dict[str, bytes] | Packed:
        """An outside input as it travels to a worker; of functions, a result that is here."""
        if item in self.shared:
            return pack_argument(self.shared[item])
        if self.calls is not None:
            return self._packed(item)
        (name,) = self.files([item])
        try:
            status = os.stat(Path(self.data, name))
            if not stat.S_ISREG(status.st_mode):  # a pipe or a device may never end
                raise InputError("the input is not a regular file", source=name)
            self._read[name] = status_of(status)
            return {name: Path(self.data, name).read_bytes()}
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(f"cannot read the input: {reason}", source=name) from None

    def _packed(self, number: int) -> Packed:
        try:
            return Packed(*self._small.read(number))
        except OSError as error:
            path = result_path(self.results, number)
            reason = error.strerror or str(error)
            raise InputError(f"cannot read the result: {reason}", source=path) from None

    def done_before(self, start: StartTask) -> Event | None:
        """The end of a command that ended while nobody listened."""
        if not self.is_in_directory(start.task):
            return None
        if (end := self.told_by_store(start)) is not None:
            return end
        # without a store, the attempt has left a marker
        done = read_marker(self._scratch(start.task, start.attempt) + ".done", self.data)
        return None if done is None else self.finished(start.attempt, *done)

    def take_from_home(self, item: int) -> None:
        """Have tasks read an item from here: no worker of a resumed run has it in memory."""
        producer = int(self.workflow.item_producer[item])
        if producer != EXTERNAL and self.call(producer) is not None:
            self.at_home.add(producer)

    def is_on_disk(self, item: int) -> bool:
        """Whether an item outlives the cluster and is still there."""
        producer = int(self.workflow.item_producer[item])
        if producer == EXTERNAL:
            return True
        if self.call(producer) is not None:
            has_it = self._small.has(producer)
            return has_it and (self.store is None or self.store.has_own_result(producer))
        comes_home = not self.carried or {*self.files([item])} <= {*self.product_files(producer)}
        return comes_home and self.has_files(item)

    def keep(
        self,
        task: int,
        content: Packed | dict[str, bytes],
        attempt: int | None = None,
        end: TaskMessage | None = None,
    ) -> None:
        """Bring a product home, after the store was told what it is."""
        if isinstance(content, Packed):
            self._keep_result(task, content.frames, attempt, end)
            return
        self._note_files(task, attempt, (end and end.contents) or {})
        inside = os.path.realpath(self.data) + "/"
        for name in (name for name in self.files_for_home(task) if name in content):
            target = Path(self.data, name)
            if self.anywhere or os.path.realpath(target).startswith(inside):
                target.parent.mkdir(parents=True, exist_ok=True)
                write_bytes(target, content[name])
                if name in self.workflow.spec(task).protected:
                    protect(str(target))
            else:
                raise InputError("it leads out of the run's directory", source=name)

    def _note_files(
        self, task: int, attempt: int | None, contents: Mapping[str, Sequence[Any]]
    ) -> None:
        making = None if attempt is None else self._makings.get(attempt)
        if self.store is None or making is None:
            return
        try:
            self.store.add_files(making, self.name(task), _entries(contents))
        except OSError as error:
            problem = f"cannot write it: {error.strerror}"
            raise InputError(problem, source=self.store.folder) from None

    def keep_finished(
        self, task: int, content: Packed, attempt: int | None, end: TaskMessage | None
    ) -> None:
        """Bring home the result of an attempt, unless its task has begun again meanwhile."""
        with self._keeping:
            if self._latest.get(task) == attempt:
                # an attempt whose result must be kept is not over yet, so nothing is noted of it
                is_noted = not self.must_keep(task)
                self._keep_result(task, content.frames, attempt, end, is_noted)

    def keep_error(self, task: int, content: bytes) -> None:
        """Bring an error home; without it there are words."""
        with suppress(OSError):
            write_private(error_path(self.results, task), content)

    def _keep_result(
        self,
        task: int,
        frames: Frames,
        attempt: int | None,
        end: TaskMessage | None,
        is_noted: bool = False,
    ) -> None:
        def note(source: str | bytes) -> None:
            self.note_result(task, attempt, end, source, is_noted)

        try:
            if len(frames) == 1 and len(frames[0]) <= _TOGETHER:
                note(small := bytes(frames[0]))
                self._small.keep(task, small)
            else:
                self._small.keep_apart(task, frames, note, refs(self.call(task)))
        except OSError as error:
            path = result_path(self.results, task)
            raise InputError(f"cannot write it: {error.strerror}", source=path) from None

    def note_result(
        self,
        task: int,
        attempt: int | None,
        end: TaskMessage | None,
        source: str | bytes | None,
        is_noted: bool = False,
    ) -> None:
        """Have it known what a function gave back, before that is in its place, if it is kept.

        The run may have noted the result before: then only the store learns that it is kept.
        """
        making = None if attempt is None else self._makings.get(attempt)
        if end is None:
            return
        other = end.other or ", ".join(end.changed)
        content, warning = self.add_result(task, making, end.value, source, other, end.seconds)
        if self.store is not None and making is not None and source is not None and not other:
            size = len(source) if isinstance(source, bytes) else os.path.getsize(source)
            self._kept[task] = _Kept(making, content, size)
        if is_noted:
            return
        if warning:
            self.warnings[task] = warning
        if self.store is not None and making is not None:
            self.contents[task] = content
            self.store.note(task, {}, content)

    def close(self) -> None:
        """Let go of files."""
        self._small.close()


def _entries(contents: Mapping[str, Sequence[Any]]) -> dict[str, Entry]:
    return {name: (e[0], e[1], e[2], e[3]) for name, e in contents.items()}


def pack_argument(value: Any) -> Packed:
    """Return a large argument as it is sent to workers."""
    try:
        return Packed(*packing.pack(value))
    except Exception as error:
        raise InputError(f"an argument cannot be pickled: {error}") from None


def dumps(value: Any) -> tuple[bytes, list[Any]]:
    """Pickled, functions of scripts and closures too; and the parts of programs in it."""
    try:
        return packing.dumps(value)
    except Exception as error:
        raise InputError(f"a function or an argument cannot be pickled: {error}") from None
