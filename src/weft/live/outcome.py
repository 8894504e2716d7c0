"""How a run on real machines ended."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.errors import WeftError
from weft.executors.results import NoResultError, load_error
from weft.model import Money, Run

FINISHED, FAILED, STOPPED = "finished", "failed", "stopped"


@dataclass(frozen=True)
class Failure:
    """A task that was given up, and why it failed last."""

    task: str
    reason: str
    log: str | None = None  # a file in the run's home
    tail: str = ""
    command: str | None = None  # None: it is a function
    unlisted: tuple[str, ...] = ()  # files of the data directory that it names, but does not list


@dataclass(frozen=True, eq=False)
class Outcome:
    """A run that is over, or was stopped: its record, and the results of its functions."""

    id: str
    home: Path
    status: str  # finished, failed or stopped
    run: Run
    failures: tuple[Failure, ...] = ()
    not_done: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    measured: dict[int, float] = field(default_factory=dict)  # seconds by attempt, on the machine
    fetch: Callable[[Any], Any] | None = None
    money: Money | None = None  # where anything has a price
    needed: float | None = None  # what all of it would cost, if it was stopped for the budget

    @property
    def ok(self) -> bool:
        """Whether every task is done."""
        return self.status == FINISHED

    @property
    def makespan(self) -> float:
        """Seconds from the start of the run to the end of its last attempt."""
        return self.run.makespan

    def result(self, task: Any) -> Any:
        """What the function of this task gave back; of a task that failed, its error is raised."""
        if self.fetch is None:
            raise LookupError("a run of commands has no results but its files")
        name = getattr(task, "name", None)
        for failure in self.failures:
            if failure.task == name:
                raise _error_of(self.home, task.index, failure)
        try:
            return self.fetch(task)
        except NoResultError:
            if name in self.not_done:
                raise
        raise WeftError(
            f"the result of task {name!r} was not kept, as other tasks read it: "
            "weft.run(..., keep_results=True) keeps it"
        )

    def to_dict(self) -> dict[str, Any]:
        """What `weft run --json` prints."""
        return {
            "run": self.id,
            "status": self.status,
            **self.run.to_dict(),
            **self._money(),
            "not_done": list(self.not_done),
            "failures": [
                {
                    "task": f.task,
                    "reason": f.reason,
                    "command": f.command,
                    "unlisted": list(f.unlisted),
                    "log": f.log,
                    "tail": f.tail,
                }
                for f in self.failures
            ],
            "warnings": list(self.warnings),
        }

    def _money(self) -> dict[str, Any]:
        """What was spent and what is expected; a number that nobody knows is None."""
        if self.money is None:
            return {}
        amounts = self.money.to_dict() | {"needed": self.needed}
        known = {k: v if v is not None and math.isfinite(v) else None for k, v in amounts.items()}
        return {"money": known}


def _error_of(home: Path, task: int, failure: Failure) -> Exception:
    """The task's own error where it can be had; where it was raised there is told by its cause."""
    words = f"task {failure.task!r} failed: {failure.reason}"
    told = f"{words}\n{failure.tail}" if failure.tail else words
    error = load_error(home / "results", task)
    if error is None or type(error).__name__ not in failure.reason:  # of an earlier attempt
        return WeftError(told)
    error.__cause__ = WeftError(told)
    return error


class RunFailedError(WeftError):
    """A run whose results were asked for has none."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        told = [
            "\n".join(filter(None, (f"{f.task}: {f.reason}", f.tail))) for f in outcome.failures
        ]
        said = "\n".join(told) or f"{len(outcome.not_done)} tasks are not done"
        super().__init__(f"run {outcome.id} {outcome.status}: {said}")
