"""What the tasks of the conformance suite do: the same as shell commands and as functions.

A task's result is its name around what it reads, so the last result tells of all before it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

BIG = 1_200_000  # bytes: what Dask does not send along with a reader
GIVEN = "given"  # what a task reads that reads no other's result
BEGUN, GATE = "begun", "gate"  # named pipes


@dataclass(frozen=True)
class Work:
    """A task of the suite."""

    name: str
    reads: tuple[int, ...] = ()
    waits: bool = False  # it says that it has begun, then waits at the gate
    fails: int = 0  # so many attempts fail before one succeeds
    big: bool = False  # its result is

    @property
    def file(self) -> str:
        return f"{self.name}.out"


def expected(works: Sequence[Work], task: int) -> str:
    """The result of a task."""
    inner = [expected(works, t) for t in works[task].reads] or [GIVEN]
    return f"{works[task].name}({','.join(inner)})"


def call(place: str, work: Work, inputs: list[str]) -> str:
    """The task as a function."""
    if work.waits:
        begun = os.open(os.path.join(place, BEGUN), os.O_WRONLY)
        os.write(begun, f"{work.name} {os.getpid()}\n".encode())
        os.close(begun)
        with open(os.path.join(place, GATE), "rb", buffering=0) as gate:
            gate.read(1)
    for k in range(work.fails):
        try:
            os.mkdir(os.path.join(place, f"{work.name}.{k}"))
        except FileExistsError:
            continue
        raise ValueError(f"{work.name} fails on purpose")
    value = f"{work.name}({','.join(text.rstrip() for text in inputs) or GIVEN})"
    return value.ljust(BIG) if work.big else value


def command(place: str, work: Work, reads: Sequence[str]) -> str:
    """The task as a shell command; one that waits has a process of its own beside it."""
    lines = []
    if work.waits:
        lines += [
            "sleep 600 &",
            f"echo {work.name} $$ $! > {place}/{BEGUN}",
            f"read line < {place}/{GATE}",
        ]
    for k in range(work.fails):
        complaint = f"echo {work.name} fails on purpose >&2; exit 3"
        lines.append(f"if mkdir {place}/{work.name}.{k} 2> /dev/null; then {complaint}; fi")
    inner = "; printf ,; ".join(f"tr -d ' ' < {name}" for name in reads)
    lines.append(f"{{ printf '%s(' {work.name}; {inner}; printf ')'; }} > {work.file}")
    if work.big:
        lines.append(f"head -c {BIG} /dev/zero | tr '\\0' ' ' >> {work.file}")
    return "\n".join(lines)


def half_done(gate: str) -> int:
    """A function that says how much of it is done, and waits."""
    import foreplan

    foreplan.progress(0.25)
    foreplan.progress(0.25)
    with open(gate, "rb", buffering=0) as file:
        file.read(1)
    return 7
