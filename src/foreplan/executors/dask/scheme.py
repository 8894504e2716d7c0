"""`--on dask://host:port`, or `tls://host:port`: the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreplan.errors import InputError
from foreplan.executors.base import Scheme, Workload, no_place
from foreplan.version import install_command

if TYPE_CHECKING:
    from foreplan.contracts import Machines
    from foreplan.model import Platform

_PLAIN = "dask://"
_TLS = "tls://"  # with the certificates of Dask's own configuration
_PATIENCE = 5.0  # seconds for a scheduler to answer that may not be there any more
_NOT_HERE = f"Dask is not installed here: {install_command('dask')}"


class Dask(Scheme):
    """The address of a scheduler, or a client of it."""

    name = "dask"
    examples = "`dask://host:port`, `tls://host:port`"
    prefixes = ("tls",)
    package = "distributed"

    def check(self, on: Any) -> None:
        """Refuse what is no address."""
        if isinstance(on, str) and (
            not on.startswith((_PLAIN, _TLS)) or not on.partition("://")[2]
        ):
            raise no_place(on)

    def check_work(self, work: Workload) -> None:
        """Where only inputs travel to the workers, patterns would match nothing there."""
        from foreplan.model.filenames import is_many
        from foreplan.model.growth import passed_by
        from foreplan.shell import listed_files_of, matching, text_of

        if work.shared:
            return
        if work.calls is not None:
            if work.workflow.item_names is not None or None in work.calls:
                raise InputError(
                    "a flow with commands or files needs a directory that Dask's workers see, too: "
                    "say shared=True (and dir=, if that is another than this)"
                )
            return
        for name in work.workflow.item_names or ():
            if name is not None and is_many(name):
                raise InputError(
                    f"directories and patterns do not travel to Dask's workers: {name}: let the "
                    "workers see the directory (--shared)"
                )
        listed = listed_files_of(work.workflow)
        for task, spec in work.workflow.specs.items():
            text = text_of(spec.run or "", spec.shell, spec.around)
            for pattern, names in matching(text, str(work.directory), passed_by(spec)):
                lost = sorted(set(names).difference(listed(task)))
                if lost:
                    name = work.workflow.task_names[task]
                    raise work.workflow.task_error(
                        task,
                        f"{name} names {pattern}, and so {lost[0]}, which does not travel to "
                        "Dask's workers: list it under inputs (or under ignores, if it is not "
                        "meant), or let the workers see the directory (--shared)",
                        "run",
                    )

    def limits(self, work: Workload) -> list[str]:
        """What a thread of a worker cannot do."""
        if work.calls is None:
            return []
        told = list[str]()
        if work.times_functions:
            told += ["time-outs of functions are not kept on Dask: a thread cannot be stopped"]
        if work.limit:
            told += ["functions on Dask are held to nothing: they share their worker's process"]
        return told

    def ways(self, work: Workload) -> list[str]:
        """How commands are held to what they ask for."""
        if not work.limit or len(work.functions) == work.workflow.n_tasks:
            return []
        return [
            "commands are held to what they ask for by control groups where workers can make them; "
            "elsewhere the memory of each process is held by RLIMIT_DATA, and cores are not"
        ]

    def place(self, on: Any) -> str:
        """The address that a client has."""
        if isinstance(on, str):
            return on
        kind, _, address = str(on.scheduler.address).partition("://")
        return (_TLS if kind == "tls" else _PLAIN) + address

    def look(self, on: Any) -> tuple[Platform, tuple[str, ...]]:
        """The threads of the workers that are there."""
        try:
            from foreplan.executors.dask.cluster import look_at_cluster
        except ImportError:
            raise InputError(_NOT_HERE) from None
        return look_at_cluster(self._client(on))

    def connect(self, on: Any, patience: float) -> Any:
        """A client of the scheduler."""
        try:
            from foreplan.executors.dask.cluster import connect
        except ImportError:
            raise InputError(_NOT_HERE) from None
        return connect(self._client(on), patience)

    def end_left_behind(self, on: str, home: str) -> int | None:
        """Kill the commands of a killed run on all workers."""
        from foreplan.executors.processes import kill_left_behind

        try:
            with self.connect(on, _PATIENCE) as client:
                return sum(map(len, client.run(kill_left_behind, home).values()))
        except (OSError, TimeoutError):  # it has just gone
            return None

    def open(
        self,
        on: Any,
        work: Workload,
        home: Path,
        clock: Callable[[], float],
        known: Platform | None = None,
    ) -> Machines:
        """A client that has foreplan's tasks run there."""
        try:
            from foreplan.executors.dask.executor import DaskExecutor
        except ImportError:
            raise InputError(_NOT_HERE) from None
        return DaskExecutor(work, self._client(on), home, clock, known)

    def _client(self, on: Any) -> Any:
        """The address of a scheduler, or a client of it."""
        self.check(on)
        if isinstance(on, str) and on.startswith(_PLAIN):
            return f"tcp://{on.removeprefix(_PLAIN)}"
        return on


SCHEME = Dask()
