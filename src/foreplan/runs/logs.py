"""What attempts have printed: where it is, while they run and after."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from foreplan.durable import open_file, unframed
from foreplan.executors.paths import log_name
from foreplan.model import ENDS
from foreplan.model.events import TaskFailed
from foreplan.runs.home import RunHome
from foreplan.runs.lock import is_driven
from foreplan.runs.replay import Replayed

STREAMS = {"stdout": ".out", "stderr": ".err"}
OPEN = ENDS[0]
CUT_SHORT = "cut short"  # it ran when the process that drove the run was killed


@dataclass(frozen=True)
class Printed:
    """An attempt at a task, how it ended, and where what it printed is kept."""

    attempt: int
    task: str
    processor: str
    row: int  # of the processor
    start: float
    finish: float  # NaN while it runs
    end: str  # of ENDS, or CUT_SHORT
    kept: str  # the path of its logs, without their endings, once it has ended
    live: str  # and while it runs
    reason: str = ""  # why it failed
    tail: str = ""  # its last lines, where the logs are elsewhere
    place: str = ""  # the scratch directory that was kept

    @property
    def is_open(self) -> bool:
        """Whether it runs."""
        return self.end == OPEN

    def files(self) -> dict[str, Path]:
        """The files that hold something, by the names of their streams."""
        found: dict[str, Path] = {}
        for name, end in STREAMS.items():
            for base in (self.kept, self.live) if self.end in (OPEN, CUT_SHORT) else (self.kept,):
                with suppress(OSError):
                    if os.stat(base + end).st_size:
                        found[name] = Path(base + end)
                        break
        return found


def printed_by(replayed: Replayed, home: RunHome, task: int | None = None) -> list[Printed]:
    """The attempts at a task, or all, in their order."""
    coordinator, driven = replayed.driver.coordinator, is_driven(home)
    log, names = coordinator.state.attempt_log(None), coordinator.workflow.task_names
    told = {
        e.attempt: e.detail or {} for e in replayed.driver.events or () if isinstance(e, TaskFailed)
    }
    result = []
    for k, of in enumerate(log.task.tolist()):
        if task is not None and of != task:
            continue
        p, end, detail = int(log.processor[k]), ENDS[log.end[k]], told.get(k, {})
        kept = str(home.logs / log_name(k, names[of]))
        if detail.get("log"):
            kept = str((home.path / str(detail["log"])).with_suffix(""))
        result.append(
            Printed(
                attempt=k,
                task=names[of],
                processor=coordinator.platform.processor_names[p],
                row=p,
                start=float(log.start[k]),
                finish=float("nan") if end == OPEN else float(log.finish[k]),
                end=CUT_SHORT if end == OPEN and not driven else end,
                kept=kept,
                live=str(home.attempts / str(p + 1)),
                reason=str(detail.get("reason") or ""),
                tail=str(detail.get("tail") or ""),
                place=str(home.path / detail["scratch"]) if detail.get("scratch") else "",
            )
        )
    return result


class Followed:
    """An attempt under way: what it prints, piece by piece, and whether it has ended.

    A file of its processor is its own only while it runs: what was read is its, if it runs still.
    """

    def __init__(self, home: RunHome, printed: Printed) -> None:
        self._home, self._printed = home, printed
        self._read = dict.fromkeys(STREAMS, 0)
        self._journal = home.journal.stat().st_size

    def pieces(self) -> tuple[list[tuple[str, bytes]], bool]:
        """What is new by stream, and whether that was all."""
        live = {name: self._new(self._printed.live + end, name) for name, end in STREAMS.items()}
        over = self._has_ended()
        found = []
        for name, end in STREAMS.items():
            content = self._new(self._printed.kept + end, name)
            if content is None and not over:
                content = live[name]
            if content:
                self._read[name] += len(content)
                found.append((name, content))
        return found, over

    def _new(self, path: str, name: str) -> bytes | None:
        """What a file has beyond what was read; None if there is none."""
        try:
            with open(open_file(path), "rb") as file:
                file.seek(self._read[name])
                return file.read()
        except OSError:
            return None

    def _has_ended(self) -> bool:
        driven = is_driven(self._home)  # before the look: what it writes last counts
        with open(open_file(self._home.journal), "rb") as file:
            file.seek(self._journal)
            ended = any(self._ends(entry) for entry in self._entries(file))
        return ended or not driven

    def _entries(self, file: BinaryIO) -> Iterator[dict[str, object]]:
        for line in file:
            payload = unframed(line) if line.endswith(b"\n") else None
            if payload is None:
                return
            self._journal += len(line)
            if b'"t":"event"' in payload or b'"t":"commands"' in payload:
                yield json.loads(payload)

    def _ends(self, entry: dict[str, object]) -> bool:
        k, p = self._printed.attempt, self._printed.row
        if entry.get("t") == "commands":
            asked = entry["do"]
            return isinstance(asked, list) and ["cancel", k] in asked
        if entry.get("kind") == "gone":
            return entry.get("which") == p
        return entry.get("kind") in ("task_finished", "task_failed") and entry.get("which") == k
