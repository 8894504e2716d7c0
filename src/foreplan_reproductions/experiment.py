"""A paper's experiment: units of work that are done once and kept, tables, verdicts, files.

A unit is known by its number. Its figures depend on nothing but the settings and that number: not
on who does it, nor when.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from platform import machine, python_version
from typing import IO, Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from foreplan import workers
from foreplan.errors import InputError
from foreplan.files import printable
from foreplan_reproductions import cluster
from foreplan_reproductions.reports import Verdict


class Sized(Protocol):
    """What the figures of an experiment depend on."""

    @property
    def full(self) -> bool:
        """As much as in the paper."""

    def described(self) -> dict[str, Any]:
        """As the head of a checkpoint says it."""


Settings = TypeVar("Settings", bound=Sized)
Unit = TypeVar("Unit")
Tables = TypeVar("Tables")
Progress = Callable[[float], None]


class Summary(NamedTuple):
    """What the terminal shows of an experiment before its verdicts."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1  # columns that stand left


@dataclass
class Experiment(Generic[Settings, Unit, Tables]):
    """A paper's experiment: what is run of it, and what is made of that."""

    paper: str  # as the command has it
    sample: Settings
    full: Settings
    units: Callable[[Settings], Sequence[Unit]]  # by number
    measured: Callable[[Settings, Unit], Any]  # the figures of a unit
    tables: Callable[[Settings, Mapping[int, Any]], Tables]  # of what all units came to
    verdicts: Callable[[Tables], list[Verdict]]  # on the paper's claims
    simulators: Mapping[str, str]  # what verdicts are of, in words
    summary: Callable[[Tables], Summary]
    files: Callable[[Tables, Circumstances[Settings]], dict[str, str | bytes]]  # by name
    doing: str = "simulating"
    kept: bool = True  # what is done is on disk at once, and a later call goes on from there
    timed: bool = False  # a unit is done before all: what a first call imports is in no one's time
    at_a_time: int = 1  # units that a process hands over together
    folder: str = ""  # the option, and the setting, of a folder of files

    def settings(self, full: bool, seed: int, given: str | None = None) -> Settings:
        """The paper's size or a sample's, with what an option of this paper gives."""
        chosen: Any = self.full if full else self.sample
        more = {self.folder: given or ""} if self.folder else {}
        changed: Settings = replace(chosen, seed=seed, **more)
        return changed

    def perform(self, settings: Settings, number: int) -> tuple[Any, float]:
        """The figures of one unit, and the processor time they took."""
        begun = time.process_time()
        found = self.measured(settings, self.units(settings)[number])
        return found, time.process_time() - begun

    def complete(
        self,
        settings: Settings,
        checkpoint: Checkpoint,
        processes: int,
        progress: Progress = lambda share: None,
        on: str | None = None,
    ) -> None:
        """Do all units that are not done yet; each is in the checkpoint as soon as it is."""
        todo = left_to_do(len(self.units(settings)), checkpoint)
        if not todo:
            return
        begun = time.perf_counter()
        try:
            if on is not None:
                processes = 0
                cluster.perform(self, settings, todo, checkpoint, on, progress)
                return
            if self.timed:
                self.measured(settings, self.units(settings)[0])
            workers.in_order(
                lambda k: self.perform(settings, todo[k]),
                len(todo),
                processes,
                progress,
                heard=lambda k, result: checkpoint.add(todo[k], *result),
                largest=self.at_a_time,
            )
        finally:
            checkpoint.rise(time.perf_counter() - begun, processes)


def left_to_do(count: int, checkpoint: Checkpoint) -> list[int]:
    """The units that are not done yet: mixed, so that the time left can be told from the done."""
    mixed: list[int] = np.random.default_rng(count).permutation(count).tolist()
    return [number for number in mixed if number not in checkpoint.done]


@dataclass(frozen=True)
class Circumstances(Generic[Settings]):
    """How the figures came about."""

    command: str
    settings: Settings
    where: str  # "2 processes", or the cluster
    seconds: float  # by the clock, in all sessions
    processor_seconds: float
    sessions: int

    def told(self, in_full: str = "in full", sampled: str = "a sample") -> str:
        """The command, how long it took, and on what."""
        what = in_full if self.settings.full else sampled
        return f"`{self.command}` ({what}) took {self} (Python {python_version()}, {machine()})"

    def __str__(self) -> str:
        several = f" in {self.sessions} sessions that ended in order" if self.sessions > 1 else ""
        return (
            f"{self.seconds:.0f} s by the clock with {self.where}{several}, "
            f"{self.processor_seconds:.0f} s of processors"
        )


def circumstances(
    command: str, settings: Settings, where: str, checkpoint: Checkpoint
) -> Circumstances[Settings]:
    """How the units of a checkpoint came about."""
    return Circumstances(
        command=command,
        settings=settings,
        where=where,
        seconds=sum(seconds for seconds, _ in checkpoint.sessions),
        processor_seconds=checkpoint.seconds,
        sessions=len(checkpoint.sessions),
    )


FORMAT = 1


@dataclass
class Checkpoint:
    """The units done so far, in a file if it is opened; its first line says with which settings.

    A line is a checksum and JSON. One that is torn or damaged is ignored, and its unit done again.
    """

    path: Path
    done: dict[int, Any] = field(default_factory=dict)
    seconds: float = 0.0  # of the processors, in all units
    sessions: list[tuple[float, int]] = field(default_factory=list)  # wall seconds, processes
    _file: IO[bytes] | None = None

    @staticmethod
    def open(path: Path, settings: Mapping[str, Any], fresh: bool = False) -> Checkpoint:
        """Go on with this file, or begin it; of other settings it is refused."""
        checkpoint = Checkpoint(path)
        head = {"format": FORMAT, **json.loads(json.dumps(settings))}
        try:
            raw = path.read_bytes() if path.exists() and not fresh else b""
            found = [_parsed(line) for line in raw.split(b"\n")]
            entries = [entry for entry in found if entry is not None]
            if raw and (not entries or entries[0] != {"settings": head}):
                raise _other_settings(path, head, entries[0] if entries else {})
            checkpoint._load(entries[1:])
            checkpoint._file = path.open("ab" if raw else "wb")
        except OSError as error:
            raise InputError(f"cannot use it: {error.strerror}", source=printable(path)) from None
        if not raw:
            checkpoint._write({"settings": head})
        elif not raw.endswith(b"\n"):
            checkpoint._file.write(b"\n")
        return checkpoint

    def _load(self, entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            if "unit" in entry:
                self.done[entry["unit"]] = entry["columns"]
                self.seconds += entry["seconds"]
            elif "sitting" in entry:
                self.sessions.append((entry["sitting"], entry["processes"]))

    def add(self, unit: int, columns: Any, seconds: float) -> None:
        """A unit is done; it is on disk when this returns, as far as the system tells."""
        self.done[unit] = columns
        self.seconds += seconds
        self._write({"unit": unit, "seconds": round(seconds, 4), "columns": columns})

    def rise(self, seconds: float, processes: int) -> None:
        """A session ends: finished, or interrupted."""
        self.sessions.append((seconds, processes))
        self._write({"sitting": round(seconds, 3), "processes": processes})

    def close(self) -> None:
        """Nothing more is added."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, entry: dict[str, Any]) -> None:
        if self._file is None:
            return
        text = json.dumps(entry, separators=(",", ":")).encode()
        try:
            self._file.write(b"%08x %s\n" % (zlib.crc32(text), text))
            self._file.flush()
        except OSError as error:
            source = printable(self.path)
            raise InputError(f"cannot write: {error.strerror}", source=source) from None


def _parsed(line: bytes) -> dict[str, Any] | None:
    """The entry of a line, if it is whole."""
    checksum, _, text = line.partition(b" ")
    if not text or b"%08x" % zlib.crc32(text) != checksum:
        return None
    entry: dict[str, Any] = json.loads(text)
    return entry


def _other_settings(path: Path, head: dict[str, Any], entry: dict[str, Any]) -> InputError:
    found = entry.get("settings", {})
    differ = [name for name in head if found.get(name) != head[name]]
    what = ", ".join(f"{name} {found.get(name)!r}, not {head[name]!r}" for name in differ)
    problem = f"it was begun with other settings ({what})" if found else "its first line is damaged"
    advice = "begin anew with --fresh, or give another folder with --out"
    return InputError(f"{problem}; {advice}", source=printable(path))
