"""Executors, found by what `--on` names: a folder of this room, or a package that declares one.

docs/executors.md shows how to write one. Little is imported here: every `--help` needs it.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from foreplan.errors import ForeplanError, InputError

if TYPE_CHECKING:
    from foreplan.contracts import Machines
    from foreplan.model import Platform, Workflow
    from foreplan.model.call import Calls
    from foreplan.store.run import RunStore

DEFAULT = "local"
GROUP = "foreplan.executors"  # of the entry points by which other packages declare theirs


@dataclass(frozen=True)
class Workload:
    """What a run has to do, and what was asked for."""

    workflow: Workflow
    calls: Calls | None = None  # its tasks as functions, but where None; None: all are commands
    directory: Path = Path()  # the data directory
    shared: bool = False  # other machines see that directory, too
    timeout: float | None = None  # seconds for a task that says nothing itself
    # results of functions that other tasks read: True all, False none, None those under 1 MB
    keep_results: bool | None = None
    absolute: bool = False  # whether files may lie outside the data directory
    store: RunStore | None = None  # what is known of results; None: nothing, and nothing is kept
    limit: bool = False  # tasks are held to what they ask for
    targets: tuple[str, ...] = ()  # tasks whose results are asked for
    tasks_per_worker: int | None = None  # after which a worker process is replaced; None: never
    may_differ: bool = False  # functions are called also where a worker's program differs

    @property
    def functions(self) -> frozenset[int]:
        """The tasks that are Python functions."""
        return frozenset(t for t, call in enumerate(self.calls or ()) if call is not None)

    @property
    def times_functions(self) -> bool:
        """Whether some function has a time-out."""
        own = (self.workflow.spec(task).timeout for task in self.functions)
        return self.timeout is not None or any(timeout is not None for timeout in own)


class Scheme:
    """A kind of place for runs: `--on` begins with its name, alone or before a colon.

    It is the SCHEME in scheme.py of its folder, and imports its executor when it is opened.
    """

    name: ClassVar[str]
    examples: ClassVar[str]  # what `--on` may say, for people
    here: ClassVar[bool] = False  # it is this machine, with whatever is added
    prefixes: ClassVar[tuple[str, ...]] = ()  # how addresses may begin, other than by the name
    package: ClassVar[str] = ""  # objects of this package may stand for a place, as a client does

    def check(self, on: Any) -> None:
        """Refuse what cannot be meant, before anything is made."""

    def check_work(self, work: Workload) -> None:
        """Refuse what cannot be done there, before anything is made."""

    def limits(self, work: Workload) -> list[str]:
        """What of that cannot be done there, to be told before people count on it."""
        return []

    def ways(self, work: Workload) -> list[str]:
        """How something that was asked for is done there, to be told once."""
        return []

    def place(self, on: Any) -> str:
        """A place in words that `--on` understands."""
        return str(on)

    def grown(self, on: str, processors: Mapping[int, str]) -> str:
        """The place of a run with these processors, some of which may have been added to it."""
        return on

    def look(self, on: Any) -> tuple[Platform, tuple[str, ...]]:
        """The processors that a run there would have, and their machines; nothing is begun."""
        raise NotImplementedError

    def connect(self, on: Any, patience: float) -> Any:
        """A client of the place, where `package` has one: for work that is no run."""
        raise NotImplementedError

    def end_left_behind(self, on: str, home: str) -> int | None:
        """End what a killed run has left at a place elsewhere; return how many processes.

        Processes of this machine are ended by others. None: the place cannot be asked.
        """
        return 0 if self.here else None

    def open(
        self,
        on: Any,
        work: Workload,
        home: Path,
        clock: Callable[[], float],
        known: Platform | None = None,
    ) -> Machines:
        """The executor of a run whose home this is; on resume, with the platform that it knew."""
        raise NotImplementedError


def find_scheme(on: Any) -> Scheme:
    """The kind of place that is asked for; where its name says it, only that one is imported."""
    if isinstance(on, str):
        name = on.partition(":")[0]
        if name in _own():
            return _of_folder(name)
        for own in _own():
            if name in _of_folder(own).prefixes:
                return _of_folder(own)
        if (found := _declared(name)) is not None:
            return found
    elif (pool := _as_pool(on)) is not None:
        return pool
    else:
        packages = {kind.__module__.partition(".")[0] for kind in type(on).__mro__}
        for name in _own():
            if _of_folder(name).package in packages:
                return _of_folder(name)
    raise no_place(on)


def _as_pool(on: Any) -> Scheme | None:
    """Return a pool that is given itself, or as its class."""
    module = sys.modules.get("foreplan.executors.function_pool")  # whose class it would be
    if module is None:
        return None
    made = on() if isinstance(on, type) and issubclass(on, module.FunctionPool) else on
    return made if isinstance(made, module.FunctionPool) else None


def no_place(on: Any) -> InputError:
    """What is meant by `--on` is not known."""
    return InputError(f"{on!r} is no place to run: say {examples(*_others())}")


def examples(*others: str) -> str:
    """What `--on` may say: by the schemes of this room, and by these others."""
    known = [*(_of_folder(name).examples for name in _own()), *others]
    return ", or ".join([", ".join(known[:-1]), known[-1]])


@cache
def _own() -> list[str]:
    """The folders of this room; the default comes first."""
    found = (m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)]) if m.ispkg)
    return sorted(found, key=lambda name: (name != DEFAULT, name))


@cache
def _of_folder(name: str) -> Scheme:
    found: Scheme = importlib.import_module(f"foreplan.executors.{name}.scheme").SCHEME
    return found


def _declared(name: str) -> Scheme | None:
    """The scheme that another package declares under this name."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=name):
        try:
            found = entry.load()
        except (ImportError, AttributeError) as error:
            raise ForeplanError(
                f"the executor {name!r} ({entry.value}) is broken: {error}"
            ) from error
        scheme = found() if isinstance(found, type) else found
        if not isinstance(scheme, Scheme):
            raise ForeplanError(f"the executor {name!r} ({entry.value}) is not a Scheme")
        return scheme
    return None


def _others() -> list[str]:
    """What else `--on` may say here, by packages that declare a scheme."""
    from importlib.metadata import entry_points

    found = list[str]()
    for name in sorted({entry.name for entry in entry_points(group=GROUP)} - set(_own())):
        with suppress(ForeplanError):  # a broken one is told of when it is asked for
            scheme = _declared(name)
            found += [] if scheme is None else [scheme.examples]
    return found
