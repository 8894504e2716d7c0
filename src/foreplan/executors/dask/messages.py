"""What is said of a run on Dask, by its workers and by its scheduler.

On the way it is plain data, for Dask passes on nothing else; here each message is a class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from foreplan.executors.progress import Report


class TaskMessage(NamedTuple):
    """How a task has ended on a worker; badly if there is a reason."""

    key: str
    seconds: float
    size: int | None = None  # of its result, in bytes
    content: bytes | None = None  # a small result that is to be kept
    sizes: Mapping[str, int] | None = None  # of a command's outputs
    reason: str | None = None
    tail: str = ""
    exit: int | None = None
    log: str | None = None
    error: bytes | None = None  # pickled
    contents: Mapping[str, Sequence[Any]] | None = None  # of a command's outputs, for the store
    warning: str = ""
    cause: str = ""  # of the reason, see foreplan.model.causes
    used: Mapping[str, Any] | None = None  # see foreplan.executors.usage
    value: str | None = None  # what a function's result is, for the store
    other: str = ""  # what of its program differed on the worker
    undeclared: Mapping[str, Any] | None = None  # see foreplan.executors.undeclared
    packed: int | None = None  # bytes of a result that the worker holds to be brought home
    changed: Sequence[str] = ()  # what of its program tasks have changed on the worker


class CopyMessage(NamedTuple):
    """A copy of a result is on a worker."""

    key: str
    address: str
    size: int  # in bytes
    seconds: float | None = None  # that it took, if it was fetched


class PulseMessage(NamedTuple):
    """What a running task gets of its worker, and how much of it is done."""

    key: str
    seconds: float  # since it began
    share: float
    report: Report | None


class Worker(NamedTuple):
    """A worker as the scheduler knows it; a memory of 0 is none that it is held to."""

    name: Any
    threads: int
    host: str
    memory: float = 0.0  # bytes
    resources: Mapping[str, float] = {}

    @property
    def amounts(self) -> dict[str, float]:
        """What it has beside its threads, by foreplan's names."""
        known = {"gpu": "gpus", "gpus": "gpus", "memory": "memory"}
        has = {known.get(name.lower(), name): has for name, has in self.resources.items()}
        if self.memory > 0:
            has["memory"] = min(self.memory, has.get("memory", self.memory))
        return has


class WorkersMessage(NamedTuple):
    """Who is there, by address; each with the fields of a Worker."""

    workers: Mapping[str, Sequence[Any]]


class StatusMessage(NamedTuple):
    """The status of a worker has changed."""

    address: str
    status: str


class UnreadableMessage(NamedTuple):
    """A worker could not read a result that it has fetched."""

    key: str
    address: str
    reason: str


class JoinMessage(NamedTuple):
    """A worker has come."""


class GoneMessage(NamedTuple):
    """A worker is gone, and with it what only it had."""

    address: str
    results: Sequence[str] = ()  # their keys
    files: Sequence[str] = ()
    expected: bool = False  # it was retired


Message = (
    TaskMessage
    | CopyMessage
    | PulseMessage
    | WorkersMessage
    | StatusMessage
    | UnreadableMessage
    | JoinMessage
    | GoneMessage
)
_KINDS: tuple[type[Any], ...] = get_args(Message)
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}


def pack(messages: Iterable[Message]) -> dict[str, Any]:
    """Messages as plain data."""
    return {"said": [(_NUMBERS[type(message)], *message) for message in messages]}


def unpack(data: Mapping[str, Any]) -> list[Message]:
    """The messages of plain data."""
    return [_KINDS[number](*fields) for number, *fields in data["said"]]


def read_dask_event(topic: str, data: Mapping[str, Any]) -> Message | None:
    """Return what an event of Dask's own log says of a worker; None if it says nothing."""
    match data.get("action"):
        case "worker-status-change":
            return StatusMessage(topic, data["status"])
        case "add-worker" if topic == "all":
            return JoinMessage()
        case "remove-worker" if topic == "all":
            computed = list(data.get("lost-computed-tasks", ()))
            scattered = list(data.get("lost-scattered-tasks", ()))
            return GoneMessage(data["worker"], computed, scattered, bool(data.get("expected")))
    return None
