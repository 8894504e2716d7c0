"""What people ask of a run under way: files in its home, which the process that drives it answers.

Only the owner can write there. A request is taken by removing it, so whoever asked and removes it
first has withdrawn it.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from foreplan.durable import make_file, write_all
from foreplan.errors import ForeplanError, InputError, unknown_name
from foreplan.model.events import Event, ProcessorJoined, ProcessorLeaving
from foreplan.quantities import duration
from foreplan.runs.home import RunHome
from foreplan.runs.lock import is_driven

if TYPE_CHECKING:
    from foreplan.runs.session import Session

LOOK = 0.25  # seconds between two looks for requests
LIMIT = 30.0  # seconds that an answer is waited for: a plan may be being made
_LARGEST = 1 << 16  # bytes
_ID = re.compile(r"[0-9a-f]{16}")
_ASKED, _ANSWERED = ".json", ".answer"
AWAITED = (ProcessorJoined, ProcessorLeaving)


@dataclass(frozen=True)
class RunRequest:
    """More processors, or processors that are to go, at once or in so many seconds."""

    add: int = 0
    drain: tuple[str, ...] = ()
    after: float = 0.0

    @staticmethod
    def read(content: Any) -> RunRequest:
        """A request as it was written; an error if it is none."""
        try:
            request = RunRequest(
                int(content["add"]), tuple(map(str, content["drain"])), float(content["after"])
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InputError("this is no request that this version of foreplan knows") from None
        if not math.isfinite(request.after) or request.after < 0 or request.add < 0:
            raise InputError("processors and seconds must be 0 or more")
        if (request.add > 0) == bool(request.drain):
            raise InputError("one thing at a time: processors to add, or processors to drain")
        return request


def ask(home: RunHome, request: RunRequest, limit: float = LIMIT) -> str:
    """Have the process that drives a run do this; what it says when it is done."""
    if not is_driven(home):
        raise InputError(f"run {home.id} is not running, no process drives it: see `foreplan runs`")
    name = secrets.token_hex(8)
    asked, answered = home.requests / (name + _ASKED), home.requests / (name + _ANSWERED)
    try:
        home.requests.mkdir(mode=0o700, exist_ok=True)
        _write(asked, asdict(request))
        content = _wait(home, answered, limit)
        withdrawn = content is None and _remove(asked)
    except OSError as error:
        raise InputError(f"cannot ask: {error.strerror}", source=str(home.requests)) from None
    finally:
        _remove(asked)
        _remove(answered)
    if content is None:
        what = (
            "has not taken up the request, which is withdrawn: nothing has changed"
            if withdrawn
            else "has taken up the request, but has not done it yet: see "
            f"`foreplan machines {home.id}`"
        )
        raise InputError(f"within {duration(limit)} the run {what}")
    if "error" in content:
        raise InputError(str(content["error"]))
    return str(content["said"])


def _wait(home: RunHome, answered: Path, limit: float) -> dict[str, Any] | None:
    """The answer; None if none comes in time."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        going_on = is_driven(home)  # before the look: the last thing that it does is to answer
        if (content := _read(answered)) is not None:
            return content if isinstance(content, dict) else {"error": "a broken answer"}
        if not going_on:
            return {"error": f"run {home.id} has ended meanwhile"}
        time.sleep(0.05)
    return None


class Requests:
    """Looks for requests while a session drives its run; a context manager."""

    def __init__(self, session: Session, home: RunHome) -> None:
        self._session, self._home = session, home
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self.awaited: set[tuple[type[Event], int]] = set()
        self._done = threading.Event()
        self._processors: Sequence[int] = ()
        self._message = ""
        self._thread = threading.Thread(target=self._serve, name="foreplan-requests", daemon=True)

    def __enter__(self) -> Self:
        with suppress(OSError):  # a run goes on without them
            self._home.requests.mkdir(mode=0o700, exist_ok=True)
        self._session.requests = self
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()
        self._session.requests = None
        with suppress(OSError):
            for path in self._collect():
                self._take(path)

    def note(self, events: list[Event]) -> None:
        """The run has heard these, and its journal has them: perhaps that is what is awaited."""
        with self._lock:
            if not self.awaited:
                return
            self.awaited -= {(type(e), e.processor) for e in events if isinstance(e, AWAITED)}
            if self.awaited:
                return
        names = self._session.coordinator.platform.processor_names
        self._message += f": {', '.join(names[p] for p in self._processors)}"
        self._session.listener.said(self._message)
        self._done.set()

    def _serve(self) -> None:
        while not self._closing.wait(LOOK):
            with suppress(OSError):  # a disk that is full, or a folder that is gone, passes
                for path in self._collect():
                    self._take(path)

    def _collect(self) -> Iterator[Path]:
        """Requests made since this process drives the run; what is older is removed."""
        since = self._home.lock.stat().st_mtime_ns
        with os.scandir(self._home.requests) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            name, dot, end = entry.name.partition(".")
            state = entry.stat(follow_symlinks=False)
            if not _ID.fullmatch(name) or not _is_ours(state):
                continue
            if state.st_mtime_ns < since:
                _remove(Path(entry.path))
            elif dot + end == _ASKED:
                yield Path(entry.path)

    def _take(self, path: Path) -> None:
        content = _read(path)
        if not _remove(path):
            return  # withdrawn
        answer = {}
        try:
            answer["said"] = self._do(RunRequest.read(content))
        except ForeplanError as error:
            answer["error"] = str(error)
        except Exception as error:  # a fault of foreplan, which must not end the thread
            answer["error"] = f"foreplan failed: {type(error).__name__}: {error}"
        _write(path.with_suffix(_ANSWERED), answer)

    def _do(self, request: RunRequest) -> str:
        machines = self._session.machines
        if request.add:
            n = machines.platform.n_processors
            with self._wait_for(ProcessorJoined, range(n, n + request.add), "joined"):
                machines.add(request.add)
            return self._message
        words, at, leaving = "leaving once they are idle", None, self._leaving(request.drain)
        if request.after:
            words, at = (
                f"leaving in {duration(request.after)}",
                self._session.clock() + request.after,
            )
        with self._wait_for(ProcessorLeaving, leaving, words):
            for processor in leaving:
                machines.drain(processor, at)
        return self._message

    @contextmanager
    def _wait_for(self, kind: type[Event], processors: Sequence[int], words: str) -> Iterator[None]:
        """Do something, and wait until the run has heard of it."""
        if self._closing.is_set():
            raise InputError(f"run {self._home.id} has ended")
        with self._lock:
            self._done.clear()
            self.awaited = {(kind, p) for p in processors}
            self._processors, self._message = processors, words
        try:
            yield
            while not self._done.wait(LOOK):
                if self._closing.is_set():
                    raise InputError(f"run {self._home.id} has ended before it could be done")
        finally:
            with self._lock:
                self.awaited = set()

    def _leaving(self, names: tuple[str, ...]) -> list[int]:
        """The processors that are meant: by their names, or that of a worker of several threads."""
        coordinator = self._session.coordinator
        known, present = coordinator.platform.processor_names, coordinator.state.present()
        meant = set[int]()
        for name in names:
            found = [p for p, k in enumerate(known) if k == name or k.startswith(f"{name}#")]
            if not found:
                raise InputError(unknown_name("processor", name, known))
            if not (here := [p for p in found if present[p]]):
                raise InputError(f"processor {name!r} is not there (any more)")
            meant.update(here)
        stay = present & np.isinf(coordinator.state.leaves())
        stay[list(meant)] = False
        if not stay.any():
            listed = ", ".join(names)
            raise InputError(f"without {listed} no processor is left that stays: add some first")
        return sorted(meant)


def _write(path: Path, content: dict[str, Any]) -> None:
    """A private file that appears whole."""
    temporary = path.with_suffix(".tmp")
    descriptor = make_file(temporary)
    try:
        write_all(descriptor, json.dumps(content).encode())
    finally:
        os.close(descriptor)
    temporary.replace(path)


def _read(path: Path) -> Any:
    """What a file of ours says; None if it is none, or says nothing that can be understood."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not _is_ours(os.fstat(descriptor)):
            return None
        try:
            content = file.read(_LARGEST + 1)
            return json.loads(content) if len(content) <= _LARGEST else None
        except (OSError, ValueError, RecursionError):
            return None


def _is_ours(state: os.stat_result) -> bool:
    # root is not asked: on network file systems its own files may belong to nobody
    return stat.S_ISREG(state.st_mode) and os.geteuid() in (0, state.st_uid)


def _remove(path: Path) -> bool:
    """Remove it; whether it was there."""
    try:
        path.unlink()
    except OSError:
        return False
    return True
