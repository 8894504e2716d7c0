"""How a run on real machines ended."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from foreplan.errors import ForeplanError
from foreplan.executors.results import NoResultError, load_error
from foreplan.files import clean
from foreplan.lazy import drawn_by
from foreplan.model import Money, Platform, Processor, Run, Workflow
from foreplan.model.call import part_of, path_of
from foreplan.model.record import AttemptLog, TransferLog
from foreplan.quantities import duration, many
from foreplan.runs.options import Options
from foreplan.runs.rest import Rest
from foreplan.runs.undeclared import NotKept
from foreplan.runs.unmade import origin_of, report_orphans

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
    scratch: str | None = None  # its directory, kept in the run's home
    cause: str | None = None  # in a word, see foreplan.model.causes


@dataclass(frozen=True, eq=False)
class Outcome:
    """A run that is over, or was stopped: its record, and the results of its functions."""

    id: str  # empty if nothing was to do: then there is no run
    home: Path
    status: str  # finished, failed or stopped
    run: Run
    failures: tuple[Failure, ...] = ()
    not_done: tuple[str, ...] = ()
    reused: tuple[str, ...] = ()  # tasks whose results were there already
    warnings: tuple[str, ...] = ()
    undeclared: tuple[NotKept, ...] = ()  # files that tasks made beside their outputs
    measured: dict[int, float] = field(default_factory=dict)  # seconds by attempt, on the machine
    rest: Rest | None = None  # what of the whole it had to do, and where the other results are
    money: Money | None = None  # where anything has a price
    needed: float | None = None  # what all of it would cost, if it was stopped for the budget
    estimated: float | None = None  # seconds, by the first plan; None: nothing was known
    flow: Any = None  # that was run, if it is one

    def __str__(self) -> str:
        if not self.id:
            return f"nothing to do: {many(len(self.up_to_date), 'task')} up to date"
        return self.headline(self.makespan)

    def __repr__(self) -> str:
        return f"<Outcome: {self}>"

    _repr_html_ = drawn_by("foreplan.charts.html", "of_outcome")

    @property
    def data(self) -> Path:
        """The directory of its files."""
        return self.home.parents[2] if self.id else self.home.parents[1]

    @property
    def ok(self) -> bool:
        """Whether every task is done."""
        return self.status == FINISHED

    @property
    def makespan(self) -> float:
        """Seconds from the start of the run to the end of its last attempt."""
        return self.run.makespan

    @property
    def up_to_date(self) -> tuple[str, ...]:
        """The tasks that were not run, as their results were there."""
        return () if self.rest is None else self.rest.up_to_date

    def headline(self, seconds: float) -> str:
        """Return how many tasks were done, up to date, failed and not run, and in what time."""
        reused = len(self.reused)
        failed = {failure.task for failure in self.failures}
        left = [task for task in self.not_done if task not in failed]
        tried = {self.run.workflow.task_names[task] for task in self.run.attempts.task.tolist()}
        begun = len(tried.intersection(left))
        counts = {
            "up to date": reused + len(self.up_to_date),
            "failed": len(failed),
            "not finished": begun,
            "not run": len(left) - begun,
        }
        parts = [f"{many(self.run.n_done - reused, 'task')} done"]
        parts += [f"{count:,} {what}" for what, count in counts.items() if count]
        text = ", ".join(parts) + ("," if len(parts) > 1 else "")
        expected = ""
        if self.ok and self.estimated is not None:
            expected = f", estimated {duration(self.estimated)}"
        return clean(f"run {self.id} {self.status}: {text} in {duration(seconds)}{expected}")

    def result(self, task: Any) -> Any:
        """What the function of this task gave back; of a task that failed, its error is raised.

        Of a command, the paths of its outputs. If the task was up to date, another run has made it.
        """
        if hasattr(task, "path"):  # a part of a result
            return part_of(self.result(task.task), task.path, task.task.name)
        if self.rest is None or not hasattr(task, "flow"):
            raise LookupError(f"results are of the tasks of a flow, not of {task!r}")
        if not hasattr(task, "index"):  # a file
            return self._path(task.name, task.name)
        index, name = self._index(self.rest.complete, task), task.name
        grows = self.rest.complete.spec(index).expand

        def is_it(other: str) -> bool:  # or one of those that it has added
            return other == name or (grows and other.startswith(f"{name}/"))

        for failure in self.failures:
            if is_it(failure.task):
                number = self.run.workflow.task_names.index(failure.task)
                raise _error_of(self.home, number, failure)
        if hasattr(task, "outputs"):
            return tuple(self._path(name, file.name) for file in task.outputs)
        try:
            return self.rest.load(self.home, index, name)
        except NoResultError:
            if name not in self.run.workflow.task_names:
                raise
        if any(map(is_it, self.not_done)):
            failed = ", ".join(repr(failure.task) for failure in self.failures)
            why = f"it was not done, as {failed} failed" if failed else "it has not finished"
            raise NoResultError(f"task {name!r} has no result: {why}")
        raise ForeplanError(
            f"the result of task {name!r} was not kept, as other tasks read it: keep=True of the "
            "task keeps it, foreplan.run(..., keep_results=True) all"
        )

    def _index(self, whole: Workflow, task: Any) -> int:
        """The number of a task of the flow as it was run."""
        if task.flow is not self.flow:
            raise LookupError(f"the task {task.name!r} is of another flow than was run")
        index: int = self.flow.index(task)
        if whole.task_names[index : index + 1] != (task.name,):
            raise LookupError(f"the task {task.name!r} was added to the flow after it was run")
        return index

    def _path(self, name: str, file: str) -> Path | list[Path]:
        """An output of a command, which must be there; of a pattern, all that match it."""
        if name in self.not_done:
            raise NoResultError(f"task {name!r} has no outputs: it has not finished")
        path = path_of(str(self.data), file)
        if path == [] or (isinstance(path, Path) and not path.exists()):
            raise NoResultError(
                f"{self.data / file} is not there any more, and nothing that was asked for needs "
                f"it: foreplan.run(..., targets=[{name!r}]) makes it again"
            )
        return path

    def to_dict(self) -> dict[str, Any]:
        """What `foreplan run --json` prints."""
        return {
            "run": self.id or None,
            "status": self.status,
            **self.run.to_dict(),
            "estimated": self.estimated,
            **self._money(),
            "up_to_date": list(self.up_to_date),
            "not_done": list(self.not_done),
            "reused": list(self.reused),
            "failures": [
                {
                    "task": f.task,
                    "reason": f.reason,
                    "cause": f.cause,
                    "command": f.command,
                    "unlisted": list(f.unlisted),
                    "log": f.log,
                    "scratch": f.scratch,
                    "tail": f.tail,
                }
                for f in self.failures
            ],
            "undeclared": [asdict(files) for files in self.undeclared],
            "warnings": list(self.warnings),
        }

    def paid(self) -> dict[str, float]:
        """What it cost and was expected to: for whoever only looks at the end of the journal."""
        if self.money is None:
            return {}
        amounts = {"cost": self.money.spent, "projected": self.money.projected}
        amounts["budget"] = self.run.budget
        return {name: amount for name, amount in amounts.items() if math.isfinite(amount)}

    def _money(self) -> dict[str, Any]:
        """What was spent and what is expected; a number that nobody knows is None."""
        if self.money is None:
            return {}
        amounts = self.money.to_dict() | {"needed": self.needed}
        known = {k: v if v is not None and math.isfinite(v) else None for k, v in amounts.items()}
        return {"money": known}


def nothing_to_do(rest: Rest, options: Options, source: str | None = None) -> Outcome:
    """How it ends if all is up to date: finished at once, and without a run.

    The store keeps what was found out.
    """
    rest.remember(origin_of(source, options))
    none, number = np.zeros(0), np.zeros(0, dtype=np.int32)
    run = Run(
        strategy="",
        workflow=rest.workflow,
        platform=Platform.build([Processor("none")]),
        attempts=AttemptLog(number, number, none, none, number, none),
        transfers=TransferLog(number, number, number, none, none, none),
        plans=(),
        plan_times=(),
        evaluations=(),
        real=True,
    )
    home = options.directory.absolute() / ".foreplan" / "runs"
    warnings = list(rest.warnings)
    if rest.survey is not None and not (rest.complete.grows and rest.left_out):
        warnings += report_orphans(rest.survey.store, source, options, rest.complete)
    return Outcome("", home, FINISHED, run, warnings=tuple(warnings), rest=rest)


def _error_of(home: Path, task: int, failure: Failure) -> Exception:
    """The task's own error where it can be had; where it was raised there is told by its cause."""
    words = f"task {failure.task!r} failed: {failure.reason}"
    told = f"{words}\n{failure.tail}" if failure.tail else words
    error = load_error(home / "results", task)
    if error is None or type(error).__name__ not in failure.reason:  # of an earlier attempt
        return ForeplanError(told)
    error.__cause__ = ForeplanError(told)
    return error


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C has stopped a run cleanly; `outcome` is how far it came."""

    def __init__(self, outcome: Outcome, can_resume: bool = True) -> None:
        self.outcome = outcome
        advice = f"; foreplan.run(..., resume={outcome.id!r}) resumes it"
        super().__init__(f"{outcome}{advice if can_resume and not outcome.ok else ''}")


class RunFailedError(ForeplanError):
    """A run whose results were asked for has none."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        told = [
            "\n".join(filter(None, (f"{f.task}: {f.reason}", f.tail))) for f in outcome.failures
        ]
        said = "\n".join(told) or f"{len(outcome.not_done)} tasks are not done"
        super().__init__(f"run {outcome.id} {outcome.status}: {said}")
