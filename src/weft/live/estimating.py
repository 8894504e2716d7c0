"""What a run expects of its tasks, and what it teaches the history."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.arrays import BoolArray, FloatArray
from weft.errors import WeftError
from weft.history.lessons import differ_much
from weft.history.origins import Origin, categories_of, commands_of
from weft.history.predictor import Prediction, predict
from weft.history.records import History, TaskRecord, TransferRecord
from weft.live.options import Options
from weft.live.recorder import Learner
from weft.model import Call, Estimates, Platform, Workflow

if TYPE_CHECKING:
    from weft.contracts import Machines

FORGETS = 0.1  # the weight of the newest task in the pace
LEAST_NEW = 4  # measured tasks before estimates are looked at again
REST = 50.0  # times what that took, before it is done again


class Estimating:
    """Predictions from the history of all runs, and observations for it."""

    def __init__(
        self,
        workflow: Workflow,
        run: str,
        origin: Origin,
        commands: Sequence[str],
        history: History,
        learner: Learner,
    ) -> None:
        self.workflow, self.run, self.origin = workflow, run, origin
        self.categories, self.commands = categories_of(workflow), commands
        self.history, self.learner = history, learner
        self.pace = 1.0  # measured seconds per expected second, of late
        self.bytes: dict[int, float] = {}  # by item, where measured
        self._sizes = np.full(workflow.n_tasks, math.nan)  # of inputs, as last asked for
        self._resized: set[int] = set()  # items that are measured since
        self._estimates: Estimates | None = None
        self._measured: BoolArray | None = None  # the tasks that have a history
        self.fresh = False  # whether nobody has asked what is known since that was looked up
        self._observed = self._predicted_at = 0
        self._rested = 0.0
        self._in_ptr = workflow.in_ptr.tolist()

    @staticmethod
    def open(
        workflow: Workflow,
        options: Options,
        run: str,
        calls: Sequence[Call] | None,
        warn: Callable[[str], None],
    ) -> Estimating:
        """Look into the history; a run goes on without one."""
        origin, commands = Origin.of(workflow, options.directory), commands_of(workflow, calls)
        repository, history = None, History()
        if options.use_history:
            from weft.history.repository import Repository

            repository = Repository.or_none(warn)
            try:
                if repository is not None:
                    history = repository.history(categories_of(workflow), commands, origin)
            except WeftError as error:
                warn(f"the history cannot be read: {error}")
        estimating = Estimating(workflow, run, origin, commands, history, Learner(repository, warn))
        if calls is None:
            estimating.look_at_files(options.directory)
        return estimating

    @staticmethod
    def look_back(
        workflow: Workflow, directory: Path, use_history: bool, warn: Callable[[str], None]
    ) -> Estimating:
        """The same before there is a run: nothing is written, and no history made."""
        origin, commands = Origin.of(workflow, directory), commands_of(workflow)
        history = History()
        if use_history:
            from weft.history.database import FILE, HistoryError, home
            from weft.history.repository import Repository

            try:
                if (home() / FILE).exists():
                    with Repository() as repository:
                        history = repository.history(categories_of(workflow), commands, origin)
            except HistoryError as error:
                warn(f"going on without the performance history: {error}")
        estimating = Estimating(workflow, "", origin, commands, history, Learner(None, warn))
        estimating.look_at_files(directory)
        return estimating

    def predict(self, platform: Platform, machines: Machines) -> Prediction:
        """What is expected of every task on every processor."""
        names = [machines.machine(p) for p in range(platform.n_processors)]
        prediction = self.expected(platform, names)
        self._estimates = prediction.estimates
        self._measured, self.fresh = prediction.measured(), True
        return prediction

    def expected(self, platform: Platform, names: Sequence[str]) -> Prediction:
        """The same of processors of machines with these names."""
        sizes = None
        if self.bytes:
            sizes = self.sizes().copy()
        return predict(
            self.workflow, platform, names, self.categories, self.history, sizes, self.commands
        )

    def knows(self, tasks: BoolArray) -> bool:
        """Whether all of these tasks have a history, as far as was looked."""
        return self._measured is not None and bool(self._measured[tasks].all())

    def estimates(self, platform: Platform, machines: Machines) -> Estimates:
        """The same, of a platform that has grown."""
        return self.predict(platform, machines).estimates

    def revised(self, platform: Platform, machines: Machines) -> Estimates | None:
        """Other estimates, if this run has taught enough to change them by much."""
        new, now = self._observed - self._predicted_at, time.monotonic()
        if new < max(LEAST_NEW, platform.n_processors) or now < self._rested:
            return None
        old, self._predicted_at = self._estimates, self._observed
        estimates = self.predict(platform, machines).estimates
        self._rested = time.monotonic() + REST * (time.monotonic() - now)
        if old is None or differ_much(old, estimates):
            return estimates
        self._estimates = old  # what the coordinator knows
        return None

    def observe(
        self, task: int, processor: int, detail: Mapping[str, Any], machines: Machines
    ) -> float | None:
        """A task has finished; the seconds that it took, if they were measured."""
        self._note_sizes(task, detail)
        seconds = detail.get("seconds")
        if not isinstance(seconds, int | float) or not math.isfinite(seconds):
            return None
        self._observed += 1
        machine, size = machines.machine(processor), self._input_bytes(task)
        self.history.observe(self.categories[task], machine, float(seconds), size)
        record = TaskRecord(
            at=time.time(),
            run=self.run,
            workflow=self.workflow.name,
            category=self.categories[task],
            machine=machine,
            seconds=float(seconds),
            size=size,
            directory=self.origin.directory,
            command=self.commands[task],
        )
        self.learner.tasks.append(record)
        if self._estimates is not None and processor < self._estimates.cost.shape[1]:
            expected = float(self._estimates.cost[task, processor])
            ratio = max(float(seconds), 1e-6) / max(expected, 1e-6)
            self.pace = max(1e-4, (1 - FORGETS) * self.pace + FORGETS * min(ratio, 10.0))
        return float(seconds)

    def recall(self, task: int, machine: str | None, detail: Mapping[str, Any], run: str) -> None:
        """A task of a former run has finished; its time counts only if the machine is named."""
        self._note_sizes(task, detail)
        seconds = detail.get("seconds")
        if machine is not None and isinstance(seconds, int | float):
            size = self._input_bytes(task)
            # older than all: what the history knows of later runs counts more
            self.history.observe(self.categories[task], machine, seconds, size, 0.0, run)

    def observe_transfer(
        self, source: int, target: int, detail: Mapping[str, Any], machines: Machines
    ) -> None:
        """An item has arrived at a host; it counts if it was measured."""
        seconds, size = detail.get("seconds"), detail.get("size")
        if not isinstance(seconds, int | float) or not isinstance(size, int | float):
            return
        host = machines.platform.host
        ends = [machines.machine(int(np.argmax(host == h))) for h in (source, target)]
        self.history.observe_transfer(ends[0], ends[1], float(size), float(seconds))
        record = TransferRecord(time.time(), self.run, ends[0], ends[1], size, seconds)
        self.learner.transfers.append(record)

    def look_at_files(self, directory: Path) -> None:
        """Note the sizes of files that are there before the run."""
        wf = self.workflow
        for item in np.flatnonzero(wf.item_producer < 0).tolist():
            name = None if wf.item_names is None else wf.item_names[item]
            with suppress(OSError, ValueError):
                if name is not None:
                    self._note_bytes(item, float((directory / name).stat().st_size))

    def _note_sizes(self, task: int, detail: Mapping[str, Any]) -> None:
        wf, sizes = self.workflow, detail.get("sizes")
        if not sizes:
            return
        for item in wf.out_item[wf.out_ptr[task] : wf.out_ptr[task + 1]].tolist():
            name = wf.item_names[item] if wf.item_names is not None else None
            size = sizes.get(name, sizes.get(str(item), sizes.get(item)))
            if isinstance(size, int | float):
                self._note_bytes(item, float(size))

    def _note_bytes(self, item: int, size: float) -> None:
        self.bytes[item] = size
        self._resized.add(item)

    def sizes(self) -> FloatArray:
        """The bytes that every task reads; of those whose inputs were measured since, anew."""
        wf, readers = self.workflow, set[int]()
        for item in self._resized:
            readers.update(wf.use_task[wf.use_ptr[item] : wf.use_ptr[item + 1]].tolist())
        for task in readers:
            self._sizes[task] = self._input_bytes(task)
        self._resized.clear()
        return self._sizes

    def _input_bytes(self, task: int) -> float:
        """The bytes that a task reads, if all are known."""
        first, end = self._in_ptr[task], self._in_ptr[task + 1]
        if first == end:
            return math.nan
        items = self.workflow.in_item[first:end].tolist()
        return math.fsum(self.bytes.get(item, math.nan) for item in items)
