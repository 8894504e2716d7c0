"""How many files one finished task of a real run passes, on the thread that drives it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import foreplan
from foreplan.model.events import TaskFinished
from foreplan.runs import Outcome, Session

SOURCES = Path(foreplan.__file__).parent
MOST = 24  # files; not those of kernels, which are one extension where that is built


class PassedFiles:
    """A listener that notes, from one batch of events to the next, the files that were entered."""

    def __init__(self) -> None:
        self.finished: list[list[str]] = []  # by batch of one finished task: files, as they changed
        self._changes: list[str] = []
        self._known: dict[str, str] = {}

    def enter(self, frame: FrameType, what: str, argument: Any) -> None:
        """A function was called or returned: which file that is of, if it is one of foreplan's."""
        code = frame.f_code.co_filename
        name = self._known.get(code)
        if name is None:
            path = Path(code)
            inside = path.is_relative_to(SOURCES) and path.parent.name != "kernels"
            name = self._known[code] = str(path.relative_to(SOURCES)) if inside else ""
        if what == "call" and name and (not self._changes or self._changes[-1] != name):
            self._changes.append(name)

    def began(self, session: Session) -> None:
        """Look from now on."""
        sys.setprofile(self.enter)

    def happened(self, session: Session, events: list[Any]) -> None:
        """Keep what was entered because of one finished task."""
        if len(events) == 1 and isinstance(events[0], TaskFinished):
            self.finished.append(self._changes)
        self._changes = []

    def said(self, message: str) -> None:
        """It is not shown."""

    def over(self, session: Session, outcome: Outcome) -> None:
        """Look no more."""
        sys.setprofile(None)


def passed(directory: Path, n_tasks: int = 40) -> list[list[str]]:
    """For every finished task of a chain of commands: the files entered, in order."""
    tasks = {
        f"t{k}": {
            "run": f"echo {k} > t{k}",
            "cost": 0.01,
            "outputs": [f"t{k}"],
            **({"inputs": [f"t{k - 1}"]} if k else {}),
        }
        for k in range(n_tasks)
    }
    listener = PassedFiles()
    try:
        outcome = foreplan.run(
            {"name": "chain", "tasks": tasks},
            "local:2",
            "adaptive",
            dir=directory,
            listener=listener,
        )
    finally:
        sys.setprofile(None)
    assert outcome.ok
    return listener.finished


def test_a_finished_task_passes_few_files(tmp_path: Path) -> None:
    by_task = sorted((sorted(set(changes)) for changes in passed(tmp_path)), key=len)
    usual = by_task[len(by_task) // 2]
    assert len(usual) <= MOST, "\n".join(usual)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        every = sorted(passed(Path(place)), key=lambda changes: len(set(changes)))
    middle = every[len(every) // 2]
    print("\n".join(sorted(set(middle))))
    print(f"{len(set(middle))} files, changed {len(middle)} times")
