"""From what a user says (`--on`) to an executor of real machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weft.errors import InputError
from weft.journal.places import RunHome
from weft.live.options import Options
from weft.model import Call, Platform, Workflow

if TYPE_CHECKING:
    from weft.contracts import Machines

EXAMPLES = "say `local`, `local:4` (processors), or `dask://host:port`"
NO_DASK = "Dask is not installed here: pip install 'weft[dask]'"


def check_on(on: Any) -> None:
    """Refuse what cannot be meant, before anything is made."""
    if isinstance(on, str) and not on.startswith("dask://"):
        _processors(on)


def look_at(on: Any) -> tuple[Platform, tuple[str, ...]]:
    """The processors that a run there would have, and their machines; nothing is begun there."""
    if isinstance(on, str) and not on.startswith("dask://"):
        from weft.executors.this_machine import this_machine

        return this_machine(_processors(on))
    try:
        from weft.executors.dask_cluster import look_at_cluster
    except ImportError:
        raise InputError(NO_DASK) from None
    return look_at_cluster(_client(on))


def open_machines(
    workflow: Workflow,
    calls: Sequence[Call] | None,
    options: Options,
    home: RunHome,
    clock: Callable[[], float],
    platform: Platform | None = None,
) -> Machines:
    """The executor for `--on`; on resume, with the platform that the run knew."""
    on, data = options.on, options.directory.absolute()
    if isinstance(on, str) and not on.startswith("dask://"):
        from weft.executors.local import LocalExecutor

        return LocalExecutor(
            workflow,
            _processors(on),
            data,
            home.path,
            clock,
            calls,
            options.timeout,
            anywhere=options.absolute,
            known=platform,
        )
    try:
        from weft.executors.dask import DaskExecutor
    except ImportError:
        raise InputError(NO_DASK) from None
    return DaskExecutor(
        workflow,
        _client(on),
        data if options.shared else None,
        home.path,
        clock,
        calls,
        platform=platform,
        timeout=options.timeout,
        keep_results=options.keep_results,
        anywhere=options.absolute,
    )


def _client(on: Any) -> Any:
    """The address of a scheduler, or a client of it."""
    return f"tcp://{on.removeprefix('dask://')}" if isinstance(on, str) else on


def _processors(on: str) -> int | None:
    name, _, count = on.partition(":")
    if name != "local":
        raise InputError(f"{on!r} is no place to run: {EXAMPLES}")
    if not count:
        return None
    if not count.isdecimal() or not 1 <= int(count) <= 4096:
        raise InputError(f"{count!r} is no number of processors: {EXAMPLES}")
    return int(count)
