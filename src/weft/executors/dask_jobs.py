"""A workflow's tasks as jobs for Dask: what travels to a worker, and what comes home."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import cloudpickle

from weft.errors import InputError
from weft.executors.command import CommandJob, unlisted
from weft.executors.dask_tasks import SMALL, run_call, run_shell
from weft.executors.results import SmallResults, error_path, is_kept, result_path
from weft.executors.scratch import read_marker
from weft.files import write_bytes
from weft.model.call import Call, refs
from weft.model.workflow import EXTERNAL, Workflow


class Jobs:
    """What each task is, reads and makes."""

    def __init__(
        self,
        workflow: Workflow,
        calls: Sequence[Call] | None,
        shared: Path | None,
        home: Path,
        timeout: float | None,
        anywhere: bool,
    ) -> None:
        self.workflow, self.calls, self.anywhere = workflow, calls, anywhere
        self._timeout = timeout
        self.carried = shared is None  # files travel as results, not by a shared directory
        self.home = home.absolute()
        # the home is DIR/.weft/runs/ID
        self.data = self.home.parents[2] if shared is None else shared.absolute()
        self._results = str(self.home / "results")
        self._functions: dict[int, tuple[Callable[..., Any], bytes]] = {}
        if calls is not None and len(calls) != workflow.n_tasks:
            raise InputError(f"{workflow.n_tasks} tasks, but {len(calls)} calls")
        if calls is None:
            for task, name in enumerate(workflow.task_names):
                if workflow.spec(task).run is None:
                    raise InputError("it has no command (run)", place=f"task {name!r}")

    @cached_property
    def inputs(self) -> list[list[int]]:
        """The tasks whose results each task reads, in the order in which they are passed to it."""
        if self.calls is not None:
            return [refs(call) for call in self.calls]
        producers = self.workflow.item_producer
        return [
            list(dict.fromkeys(int(producers[i]) for i in self.read(t) if producers[i] >= 0))
            for t in range(self.workflow.n_tasks)
        ]

    @cached_property
    def readers(self) -> list[set[int]]:
        """The tasks that read the result of each task."""
        found: list[set[int]] = [set() for _ in range(self.workflow.n_tasks)]
        for task, producers in enumerate(self.inputs):
            for producer in producers:
                found[producer].add(task)
        return found

    def read(self, task: int) -> list[int]:
        """The items that a task reads."""
        w = self.workflow
        return [int(i) for i in w.in_item[w.in_ptr[task] : w.in_ptr[task + 1]]]

    def made(self, task: int) -> list[int]:
        """The items that a task makes."""
        w = self.workflow
        return [int(i) for i in w.out_item[w.out_ptr[task] : w.out_ptr[task + 1]]]

    def is_read(self, item: int) -> bool:
        """Whether a task reads an item; what none reads is brought home."""
        uses = self.workflow.use_ptr
        return bool(uses[item] < uses[item + 1])

    def external(self, task: int) -> list[int]:
        """The files from outside that must travel to a task."""
        if self.calls is not None or not self.carried:
            return []
        outside = [i for i in self.read(task) if self.workflow.item_producer[i] == EXTERNAL]
        return [i for i in outside if self._files([i])]

    @property
    def is_shared(self) -> bool:
        """Whether all that tasks make is in a directory that every worker sees."""
        return self.calls is None and not self.carried

    def is_product(self, task: int) -> bool:
        """Whether the result of a function is for the user, not for another task."""
        return self.calls is not None and not self.readers[task]

    def product_files(self, task: int) -> list[str]:
        """The files of a command that must be brought home."""
        if self.calls is not None or not self.carried:
            return []
        return list(self._files([i for i in self.made(task) if not self.is_read(i)]))

    def sizes(self, task: int, record: dict[str, Any]) -> dict[Any, int]:
        """The bytes of each item that a finished task has made."""
        if self.calls is None:
            return dict(record.get("sizes") or {})
        names = self.workflow.item_names
        return {(names[i] if names and names[i] else i): record["bytes"] for i in self.made(task)}

    def columns(self, task: int, attempt: int) -> tuple[Callable[..., Any], list[Any]]:
        """The function to run on the worker, and its arguments before the inputs."""
        if self.calls is None:
            return run_shell, [self._command(task, attempt), self.carried]
        call = self.calls[task]
        content = (call.args, dict(call.kwargs), self.inputs[task])
        return run_call, [self._pickled(call.function), dumps(content), self.is_product(task)]

    def _pickled(self, function: Callable[..., Any]) -> bytes:
        """Functions are pickled once; they are kept, so that their ids stay their own."""
        known = self._functions.get(id(function))
        if known is None:
            known = self._functions[id(function)] = (function, dumps(function))
        return known[1]

    def _command(self, task: int, attempt: int) -> CommandJob:
        spec = self.workflow.spec(task)
        return CommandJob(
            task=self.workflow.task_names[task],
            command=spec.run or "",
            dir=str(self.data),
            scratch=self._scratch(task, attempt),
            log=str(self.home / "logs" / f"{task}-{attempt}"),
            inputs=self._files(self.read(task)),
            outputs=self._files(self.made(task)),
            attempt=attempt,
            home=str(self.home),
            timeout=self._timeout if spec.timeout is None else spec.timeout,
            anywhere=self.anywhere,
            shell=spec.shell or "",
            ignores=spec.ignores,
        )

    def unlisted(self, task: int, attempt: int) -> list[str]:
        """The files here that a command names, but that are not among its inputs."""
        return unlisted(self._command(task, attempt)) if self.calls is None else []

    def _scratch(self, task: int, attempt: int) -> str:
        return str(self.home / "attempts" / f"{task}-{attempt}")

    def _files(self, items: Sequence[int]) -> tuple[str, ...]:
        """The names of items; one without a name is no file."""
        names = self.workflow.item_names
        return () if names is None else tuple(n for i in items if (n := names[i]) is not None)

    def external_file(self, item: int) -> dict[str, bytes]:
        """An outside input as it travels to a worker."""
        (name,) = self._files([item])
        try:
            return {name: (self.data / name).read_bytes()}
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(f"cannot read the input: {reason}", source=name) from None

    def done_before(self, task: int, attempt: int) -> tuple[float, dict[str, int]] | None:
        """The seconds and the sizes of a command that ended while nobody listened."""
        if not self.is_shared:
            return None
        return read_marker(self._scratch(task, attempt) + ".done", str(self.data))

    def is_on_disk(self, item: int) -> bool:
        """Whether an item outlives the cluster and is still there."""
        producer = int(self.workflow.item_producer[item])
        if producer == EXTERNAL:
            return True
        if self.calls is not None:
            return self.is_product(producer) and is_kept(self._results, producer)
        names = self._files([item])
        if self.carried and not set(names) <= set(self.product_files(producer)):
            return False
        return all((self.data / name).exists() for name in names)

    def keep(self, task: int, content: bytes | dict[str, bytes]) -> None:
        """Bring a product home."""
        if isinstance(content, bytes):
            self._keep_result(task, content)
            return
        for name in self.product_files(task):
            target = self.data / name
            if self.anywhere or os.path.realpath(target).startswith(f"{self.data.resolve()}/"):
                target.parent.mkdir(parents=True, exist_ok=True)
                write_bytes(target, content[name])
            else:
                raise InputError("it leads out of the run's directory", source=name)

    def keep_error(self, task: int, content: bytes) -> None:
        """Bring an error home; without it there are words."""
        with (
            suppress(OSError),
            open(error_path(self._results, task), "wb", opener=_private) as file,
        ):
            file.write(content)

    @cached_property
    def _small(self) -> SmallResults:
        return SmallResults(self._results)

    def _keep_result(self, task: int, content: bytes) -> None:
        path = result_path(self._results, task)
        try:
            if len(content) <= SMALL:
                self._small.keep(task, content)
                return
            with open(path + ".tmp", "wb", buffering=0, opener=_private) as file:
                file.write(content)
            os.replace(path + ".tmp", path)
            self._small.large.add(task)
        except OSError as error:
            raise InputError(f"cannot write it: {error.strerror}", source=path) from None

    def close(self) -> None:
        """Let go of files."""
        self._small.close()


def dumps(value: Any) -> bytes:
    """Pickled, functions of scripts and closures too."""
    try:
        content: bytes = cloudpickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise InputError(f"a function or an argument cannot be pickled: {error}") from None
    return content


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
