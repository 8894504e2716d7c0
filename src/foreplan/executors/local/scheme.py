"""`--on local`: this machine, with all of its cores and memory or with so much of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from foreplan.errors import InputError
from foreplan.executors.base import Scheme, Workload, examples
from foreplan.quantities import shortened

if TYPE_CHECKING:
    from foreplan.contracts import Machines
    from foreplan.model import Platform

MOST = 4096  # processors
_CORES, _MEMORY, _COUNTED = "cores", "memory", ("cores", "gpus")  # others are amounts
_KNOWN = (_CORES, _MEMORY, "gpus")
_MEANT = {
    **dict.fromkeys(("cpu", "cpus", "processors", "threads"), "cores"),
    **dict.fromkeys(("ram", "mem"), "memory"),
}
_NAME = re.compile(r"[A-Za-z_][\w.-]*")


class Local(Scheme):
    """Processes of this machine."""

    name = "local"
    examples = "`local`, `local:4` (cores), `local:cores=8,memory=16GB,gpus=2`"
    here = True

    def check(self, on: str) -> None:
        """Refuse what is no number of processors, and no amount."""
        read_place(on)

    def check_work(self, work: Workload) -> None:
        """The shells that tasks choose must be there."""
        from foreplan.executors.command import find_shell
        from foreplan.executors.containers import check_surroundings
        from foreplan.executors.workspace import AttemptError

        check_surroundings(work.workflow, str(work.directory))
        seen = set[str]()
        for task, spec in work.workflow.specs.items():
            if spec.shell is None or spec.shell in seen:
                continue
            if spec.around is not None and spec.around.is_wrapped:  # there, it may be
                continue
            seen.add(spec.shell)
            try:
                find_shell(spec.shell, str(work.directory))
            except AttemptError as error:
                problem = f"{shortened(work.workflow.task_names[task])} cannot be run: {error}"
                raise work.workflow.task_error(task, problem, "shell") from None

    def ways(self, work: Workload) -> list[str]:
        """How tasks are held to what they ask for."""
        if not work.limit:
            return []
        from foreplan.executors.allotments import Allotting
        from foreplan.executors.limits import groups, in_words

        if not Allotting(work.workflow, work.limit).asks:
            return ["no task asks for cores or memory, so --limit holds none to anything"]
        return [f"tasks are held to what they ask for: {in_words(groups())}"]

    def grown(self, on: str, processors: Mapping[int, str]) -> str:
        """`local:2` is more if processors were added to it."""
        declared, _ = read_place(on)
        if declared is None:
            return on
        own = [p + 1 for p, name in processors.items() if name == f"local-{p + 1}"]
        told = on.partition(":")[2]
        if "=" not in told:
            return f"local:{max([declared, *own])}"
        parts = [part for part in told.split(",") if part.partition("=")[0].strip() != _CORES]
        return f"local:{','.join([f'{_CORES}={max([declared, *own])}', *parts])}"

    def look(self, on: str) -> tuple[Platform, tuple[str, ...]]:
        """The processors of this machine."""
        from foreplan.executors.local.this_machine import this_machine

        return this_machine(*read_place(on))

    def open(
        self,
        on: str,
        work: Workload,
        home: Path,
        clock: Callable[[], float],
        known: Platform | None = None,
    ) -> Machines:
        """Threads that wait for processes."""
        from foreplan.executors.local.executor import LocalExecutor

        processors, asked = read_place(on)
        return LocalExecutor(work, processors, home, clock, known, asked)


def read_place(on: str) -> tuple[int | None, dict[str, float]]:
    """The processors that are asked for, if so, and the amounts of what else."""
    told = on.partition(":")[2]
    if not told:
        return None, {}
    if "=" not in told:
        return _processors(told), {}
    asked = dict[str, float]()
    for part in told.split(","):
        name, sign, text = (word.strip() for word in part.partition("="))
        if not sign or not text:
            raise InputError(f"{part.strip()!r} in {on!r} is no amount: say {examples()}")
        _check_name(name, on)
        if name in asked:
            raise InputError(f"{on!r} says {name} twice")
        asked[name] = _processors(text) if name == _CORES else _amount(name, text)
    cores = asked.pop(_CORES, None)
    return None if cores is None else int(cores), asked


def _check_name(name: str, on: str) -> None:
    """A name that is nearly one of those that foreplan knows is not meant for a resource."""
    if name in _KNOWN:
        return
    near = difflib.get_close_matches(name.lower(), _KNOWN, 1, 0.7)
    near = [known for known in _KNOWN if len(name) > 1 and known.startswith(name.lower())] or near
    meant = _MEANT.get(name.lower()) or (near[0] if near else "")
    if meant:
        raise InputError(f"{name!r} in {on!r} is not known: did you mean {meant!r}?")
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} in {on!r} is no name of a resource")


def _processors(count: str) -> int:
    if not count.isdecimal() or not 1 <= int(count) <= MOST:
        raise InputError(f"{count!r} is no number of processors: say {examples()}")
    return int(count)


def _amount(name: str, text: str) -> float:
    from foreplan.model.amounts import Amount

    if name in _COUNTED and not text.isdecimal():
        raise InputError(f"{text!r} is no number of {name}: 0, 1, 2, ...")
    try:
        amount = Amount(text)
    except InputError as error:
        raise InputError(f"{name} in `--on`: {error}") from None
    if not amount.is_fixed:
        raise InputError(f"{text!r}: what a machine has does not depend on tasks")
    if name == _MEMORY and amount.lacks_unit:
        raise InputError(f"{name} in `--on`: {amount.without_unit}")
    return amount.value(0.0)


SCHEME = Local()
