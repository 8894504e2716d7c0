"""What a run expects of its tasks, what it measures, and what it teaches the history."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray, sealed
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.online_estimates import differ_much
from foreplan.errors import ForeplanError, InputError
from foreplan.executors.base import DEFAULT, find_scheme
from foreplan.executors.cpu_share import INTERVAL, differs
from foreplan.executors.trees import bytes_in
from foreplan.executors.usage import AT_MOST, CPU, MEMORY, READ, WRITTEN, plain
from foreplan.history.memory import MemoryNeeds, Need
from foreplan.history.predictor import SAID, Prediction, Source, predict, predict_links
from foreplan.history.records import (
    FailureRecord,
    History,
    Origin,
    TaskRecord,
    TransferRecord,
    categories_of,
    commands_of,
)
from foreplan.model import Estimates, Expectation, Platform, Workflow
from foreplan.model.call import Calls
from foreplan.model.causes import CAUSE, USED
from foreplan.model.events import Event, LinkChanged, SpeedChanged
from foreplan.model.filenames import is_pattern, is_tree, matching_files
from foreplan.model.resources import (
    Needs,
    asks_by_inputs,
    declared_needs,
    grown_needs,
    input_sizes,
    unsized,
    without_sizes,
)
from foreplan.quantities import duration, first_few, many
from foreplan.runs.money import price_rules, priced
from foreplan.runs.options import Options

if TYPE_CHECKING:
    from foreplan.contracts import Machines
    from foreplan.history.repository import Repository


FLUSH = 5.0  # seconds between two additions to the history
FORGETS = 0.1  # the weight of the newest task in the pace
LEAST_NEW = 4  # measured tasks before estimates are looked at again
REST = 50.0  # times what that took, before it is done again


class Learner:
    """Adds what was measured to the history, now and then; a run goes on without one."""

    def __init__(self, repository: Repository | None, warn: Callable[[str], None]) -> None:
        self.repository, self.warn = repository, warn
        self.tasks: list[TaskRecord] = []
        self.transfers: list[TransferRecord] = []
        self.failures: list[FailureRecord] = []
        self.flushed = time.monotonic()

    def flush(self, now: bool = False) -> None:
        """Write what there is, if it is time."""
        if not now and time.monotonic() - self.flushed < FLUSH:
            return
        self.flushed = time.monotonic()
        tasks, transfers, failures = self.tasks, self.transfers, self.failures
        self.tasks, self.transfers, self.failures = [], [], []
        if self.repository is None or not (tasks or transfers or failures):
            return
        try:
            self.repository.add(tasks, transfers, failures)
        except ForeplanError as error:
            self.warn(f"the history is not written: {error}")
            self.repository = None

    def close(self) -> None:
        """Write the rest."""
        self.flush(now=True)
        if self.repository is not None:
            with suppress(ForeplanError):
                self.repository.close()


def _history_of(
    workflow: Workflow, repository: Repository, commands: Sequence[str], origin: Origin
) -> History:
    """Return the records that tell of a workflow's categories."""
    return repository.history(categories_of(workflow), commands, origin)


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
        self.run, self.origin = run, origin
        self.history, self.learner = history, learner
        self.pace = 1.0  # measured seconds per expected second, of late
        self.bytes: dict[int, float] = {}  # by item, where measured
        self.taken: dict[int, float] = {}  # by task, of results of others, see Rest
        self._sizes: FloatArray = np.empty(0)  # of inputs, as last asked for
        self._resized: set[int] = set()  # items that are measured since
        self._estimates: Estimates | None = None
        self._measured: BoolArray | None = None  # the tasks that have a history
        self.fresh = False  # whether nobody has asked what is known since that was looked up
        self._observed = self._predicted_at = 0
        self._needs: MemoryNeeds | None = None  # as known after so many observations
        self._needs_at = 0
        self._rested = 0.0
        self._free: list[int] = []  # tasks that are up to date: they take no time
        self._new_free = False
        self._take_tasks(workflow, commands)

    def _take_tasks(self, workflow: Workflow, commands: Sequence[str]) -> None:
        """Know what the tasks are like."""
        self.workflow, self.commands = workflow, commands
        self.categories, self._in_ptr = categories_of(workflow), workflow.in_ptr.tolist()
        more = np.full(workflow.n_tasks - len(self._sizes), math.nan)
        self._sizes = np.concatenate([self._sizes, more])
        self._by_inputs = asks_by_inputs(workflow)

    def grow(
        self,
        workflow: Workflow,
        calls: Calls | None,
        directory: Path,
        known: Estimates,
        platform: Platform,
        machines: Machines,
    ) -> Estimates:
        """What is known, and what is expected of tasks that were added at the end.

        The history is asked for what they are like; what this run has measured is in it by then.
        """
        self._take_tasks(workflow, commands_of(workflow, calls))
        self._needs = None
        self.learner.flush(now=True)
        if (repository := self.learner.repository) is not None:
            with suppress(ForeplanError):  # what was read before is known
                self.history = repository.history(self.categories, self.commands, self.origin)
        if calls is None or self._by_inputs:
            self.look_at_files(directory)
        self._resized |= set(self.bytes)
        found = self.with_memory(self.predict(platform, machines), platform).estimates
        first = len(known.cost)
        self._estimates = Estimates(
            np.concatenate([known.cost, found.cost[first:]]),
            grown_needs(workflow, known.needs, found.needs),
        )
        return self._estimates

    @staticmethod
    def open(
        workflow: Workflow,
        options: Options,
        run: str,
        calls: Calls | None,
        warn: Callable[[str], None],
    ) -> Estimating:
        """Look into the history; a run goes on without one."""
        origin, commands = Origin.of(workflow, options.directory), commands_of(workflow, calls)
        repository, history = None, History()
        if options.use_history:
            from foreplan.history.repository import Repository

            repository = Repository.or_none(warn)
            try:
                if repository is not None:
                    history = _history_of(workflow, repository, commands, origin)
            except ForeplanError as error:
                warn(f"the history cannot be read: {error}")
        estimating = Estimating(workflow, run, origin, commands, history, Learner(repository, warn))
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
            from foreplan.history.database import FILE, HistoryError, home
            from foreplan.history.repository import Repository

            try:
                if (home() / FILE).exists():
                    with Repository() as repository:
                        history = _history_of(workflow, repository, commands, origin)
            except HistoryError as error:
                warn(f"going on without the performance history: {error}")
        estimating = Estimating(workflow, "", origin, commands, history, Learner(None, warn))
        estimating.look_at_files(directory)
        return estimating

    def predict(self, platform: Platform, machines: Machines) -> Prediction:
        """What is expected of every task on every processor."""
        names = [machines.machine(p) for p in range(platform.n_processors)]
        prediction = self.expected(platform, names)
        self._measured, self.fresh = prediction.measured(), True
        if self._free:
            cost = prediction.estimates.cost.copy()
            cost[self._free] = 0.0
            self._measured[self._free] = True
            estimates = replace(prediction.estimates, cost=sealed(cost))
            prediction = replace(prediction, estimates=estimates)
        self._estimates = prediction.estimates
        return prediction

    def note_free(self, tasks: Sequence[int]) -> None:
        """These tasks have turned out to be up to date: that is told as soon as may be."""
        self._free += tasks
        self._new_free |= bool(tasks)

    def expected(self, platform: Platform, names: Sequence[str]) -> Prediction:
        """The same of processors of machines with these names."""
        sizes = None
        if self.bytes:
            sizes = self.sizes().copy()
        prediction = predict(
            self.workflow, platform, names, self.categories, self.history, sizes, self.commands
        )
        if not self._by_inputs:
            return prediction
        needs = declared_needs(self.workflow, sizes=self._read())
        return replace(prediction, estimates=replace(prediction.estimates, needs=needs))

    def _read(self) -> FloatArray | None:
        """The bytes that each task reads, by what is there; None: what is declared will do."""
        if not self._by_inputs:
            return None
        sizes = input_sizes(self.workflow, self.bytes)
        sizes[list(self.taken)] += list(self.taken.values())
        return sizes

    def reads(self, needs: Needs | None, first: int = 0) -> dict[int, float]:
        """Return, for tasks that ask by the size of inputs, the bytes of inputs no task makes."""
        wf, found, sizes = self.workflow, dict[int, float](), self._read()
        if needs is None or sizes is None:
            return found
        for task in self._by_inputs:
            if task < first:
                continue
            outside = [item for item in self._inputs(task) if wf.item_producer[item] < 0]
            known = (self.bytes.get(item, float(wf.item_size[item])) for item in outside)
            found[task] = math.fsum([self.taken.get(task, 0.0), *known])
        return found

    def without_sizes(self) -> list[str]:
        """What is said of tasks that ask by the size of inputs, where that is not known yet."""
        wf, later, gone = self.workflow, list[str](), dict[int, list[int]]()
        for task, items in unsized(wf, self.bytes).items():
            if outside := [item for item in items if wf.item_producer[item] < 0]:
                gone[task] = outside
            if len(outside) < len(items):
                later.append(wf.task_names[task])
        lines = without_sizes(wf, gone)
        if later:
            lines.append(
                "resources requested by the size of inputs are known once the inputs are made: "
                f"{first_few(later)}"
            )
        return lines

    def _inputs(self, task: int) -> list[int]:
        first, end = self._in_ptr[task], self._in_ptr[task + 1]
        items: list[int] = self.workflow.in_item[first:end].tolist()
        return items

    def knows(self, tasks: IntArray) -> bool:
        """Whether all of these tasks have a history, as far as was looked."""
        return self._measured is not None and bool(self._measured[tasks].all())

    def take_fresh(self) -> bool:
        """Whether more is known than when this was asked last."""
        fresh, self.fresh = self.fresh, False
        return fresh

    def revise(self, platform: Platform, machines: Machines) -> Estimates | None:
        """Other estimates, if this run has taught enough to change them by much."""
        new, now = self._observed - self._predicted_at, time.monotonic()
        if now < self._rested or not (
            self._new_free or (new >= LEAST_NEW and new >= platform.n_processors)
        ):
            return None
        old, self._predicted_at = self._estimates, self._observed
        free, self._new_free = self._new_free, False
        estimates = self.predict(platform, machines).estimates
        self._rested = time.monotonic() + REST * (time.monotonic() - now)
        if old is None or free or differ_much(old, estimates):
            return estimates
        self._estimates = old  # what the coordinator knows
        return None

    def observe(
        self,
        task: int,
        processor: int,
        detail: Mapping[str, Any],
        machines: Machines,
        share: float = 1.0,
    ) -> float | None:
        """A task has finished; the seconds that it took, if they were measured.

        On its cores it took this share of its cost, which is known with the fewest that it may
        take: the history has the times of all widths as if they were of that one.
        """
        self._note_sizes(task, detail)
        seconds = detail.get("seconds")
        if not isinstance(seconds, int | float) or not math.isfinite(seconds):
            return None
        self._observed += 1
        cost = float(seconds) / share
        machine, size = machines.machine(processor), self._input_bytes(task)
        used: dict[str, Any] = dict.fromkeys((MEMORY, CPU, READ, WRITTEN), math.nan)
        told = plain(detail.get(USED))
        used |= {key: told[key] for key in (*used, AT_MOST) if key in told}
        self.history.observe(
            self.categories[task], machine, cost, size,
            used=(used[MEMORY], AT_MOST in used, used[CPU]),
        )  # fmt: skip
        record = TaskRecord(
            at=time.time(),
            run=self.run,
            workflow=self.origin.workflow,
            category=self.categories[task],
            machine=machine,
            seconds=cost,
            size=size,
            directory=self.origin.directory,
            command=self.commands[task],
            asked=self._asked(task),
            **used,
        )
        self.learner.tasks.append(record)
        if self._estimates is not None and processor < self._estimates.cost.shape[1]:
            expected = float(self._estimates.cost[task, processor])
            ratio = max(cost, 1e-6) / max(expected, 1e-6)
            self.pace = max(1e-4, (1 - FORGETS) * self.pace + FORGETS * min(ratio, 10.0))
        return float(seconds)

    def observe_failure(
        self, task: int, processor: int, detail: Mapping[str, Any], machines: Machines
    ) -> None:
        """A task has failed through its own fault; the history remembers why, and what it had."""
        used, seconds = plain(detail.get(USED)), detail.get("seconds")
        self.learner.failures.append(
            FailureRecord(
                at=time.time(),
                run=self.run,
                workflow=self.origin.workflow,
                category=self.categories[task],
                machine=machines.machine(processor),
                cause=str(detail.get(CAUSE, "")),
                seconds=math.nan if seconds is None else float(seconds),
                size=self._input_bytes(task),
                directory=self.origin.directory,
                command=self.commands[task],
                memory=math.nan if AT_MOST in used else used.get(MEMORY, math.nan),
                cpu=used.get(CPU, math.nan),
                asked=self._asked(task),
            )
        )

    def _asked(self, task: int) -> float:
        """The memory that a task asks for; NaN if it does not say, or that is not known yet."""
        request, size = self.workflow.spec(task).request, self._input_bytes(task)
        if request is None or request.memory is None:
            return math.nan
        if math.isnan(size) and not request.memory.is_fixed:
            return math.nan
        return request.memory.value(0.0 if math.isnan(size) else size)

    def memory(self, task: int) -> Need | None:
        """What a task is expected to need of memory, and from how many records that is known."""
        if self._needs is None or self._needs_at != self._observed:
            self._needs = MemoryNeeds(self.history)
            self._needs_at = self._observed
        size = self._input_bytes(task)
        return self._needs.need(self.categories[task], self.commands[task], size)

    def with_memory(self, prediction: Prediction, platform: Platform) -> Prediction:
        """The same with what tasks that ask for no memory are known to need, where it may matter.

        A run begins with it and keeps it: only what runs out of memory is given more.
        """
        has = platform.host_amounts(MEMORY)
        if np.isinf(has).all():
            return prediction
        memory = np.minimum(
            [self._learnt(task) for task in range(self.workflow.n_tasks)], has.max()
        )
        cores = np.bincount(platform.host, minlength=len(has))
        most = np.concatenate([[0.0], np.cumsum(np.sort(np.nan_to_num(memory))[::-1])])
        enough = most[np.minimum(cores, len(memory))] <= has  # whatever runs side by side
        if np.isnan(memory).all() or (prediction.estimates.needs is None and enough.all()):
            return prediction
        needs = declared_needs(self.workflow, memory, self._read())
        return replace(prediction, estimates=replace(prediction.estimates, needs=needs))

    def _learnt(self, task: int) -> float:
        """What a task is known to need; of one that asks for memory, if that was not enough."""
        asked, known = self._asked(task), self.memory(task)
        need = math.nan if known is None else known.memory
        mark = self.categories[task], self.commands[task]
        short = self.history.ran_short.get(mark, math.nan)
        if math.isnan(short):
            return need if math.isnan(asked) else math.nan
        if asked > short:
            return math.nan  # it asks for more by now
        return need if need > short else 2 * short

    def recall(
        self,
        task: int,
        machine: str | None,
        detail: Mapping[str, Any],
        run: str,
        share: float = 1.0,
    ) -> None:
        """A task of a former run has finished; its time counts only if the machine is named.

        It took this share of its cost, see `observe`.
        """
        self._note_sizes(task, detail)
        seconds = detail.get("seconds")
        if machine is not None and isinstance(seconds, int | float):
            size = self._input_bytes(task)
            # older than all: what the history knows of later runs counts more
            cost = seconds / share
            self.history.observe(self.categories[task], machine, cost, size, 0.0, run)

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
                    self._note_bytes(item, _bytes_of(directory, name))

    def _note_sizes(self, task: int, detail: Mapping[str, Any]) -> None:
        for item, size in self.workflow.sizes_made(task, detail.get("sizes")).items():
            self._note_bytes(item, size)

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
        items = self._inputs(task)
        if not items:
            return math.nan
        return math.fsum(self.bytes.get(item, math.nan) for item in items)


_MOST_MENDED = 2.0
_LEAST_BYTES = 1e6  # a transfer of less tells more of the startup than of the bandwidth
_OFF = 1.25  # a link's speed counts as another if it is off by this factor


def as_measured(event: SpeedChanged, coordinator: Coordinator) -> SpeedChanged | None:
    """What is to be told of a processor's availability; None if that would be no news."""
    state, p, detail = coordinator.state, event.processor, event.detail or {}
    if "by" not in detail:
        return event
    attempt = detail.get("attempt")
    known = coordinator.platform.n_processors
    if p >= known or (attempt is not None and not state.attempt(attempt).is_open):
        return None  # it was measured of an attempt that is over
    value = event.availability
    if "rate" in detail and value > 0:
        value = _by_progress(coordinator, event)
    if not differs(value, float(state.availability()[p])):
        return None
    return SpeedChanged(p, event.time, value, event.detail)


def _by_progress(coordinator: Coordinator, event: SpeedChanged) -> float:
    """The availability by which the rest of an attempt takes as long as its progress says.

    With a share f done of an estimate E, and a rate of r per second, the rest takes (1 - f) / r.
    The coordinator has reckoned with what it knew, so it takes w for done, which cannot be changed;
    it expects the rest to take (E - w) / availability. Both are the same at r (E - w) / (1 - f),
    which is r E, the speed of the machine measured by the estimate, where w is right. But what
    comes next on the processor is reckoned with the same number, so it is that speed within a
    factor of two. That a task is faster than expected cannot be said: availability ends at 1.
    """
    state, p, detail = coordinator.state, event.processor, event.detail or {}
    attempt, done, rate = int(detail["attempt"]), detail["progress"], detail["rate"]
    expected = float(coordinator.estimates.cost[state.attempt(attempt).task, p])
    expected *= state.share_of(attempt)
    now = float(state.availability()[p])
    if done >= 1 or expected <= 0:
        return now
    believed = state.worked(attempt, event.time)
    mend = (expected - believed) / ((1 - done) * expected)
    mend = min(_MOST_MENDED, max(1 / _MOST_MENDED, mend))
    return float(min(1.0, max(0.0, rate * expected * mend)))


def with_links(
    platform: Platform,
    machine: Callable[[int], str],
    records: History,
    known: Platform | None = None,
) -> Platform:
    """The platform with links as earlier runs have measured them; what is known keeps what it has.

    Both ways are alike: the one that was measured more often tells.
    """
    startup, per_unit = platform.startup.copy(), platform.time_per_unit.copy()
    first = 0
    if known is not None:
        first = known.n_hosts
        startup[:first, :first], per_unit[:first, :first] = known.startup, known.time_per_unit
    hosts = range(platform.n_hosts)
    places = {machine(int(np.argmax(platform.host == host))): host for host in hosts}
    for ends in sorted(records.links()):
        a, b = (places.get(end, -1) for end in ends)
        if min(a, b) < 0 or max(a, b) < first or per_unit[a, b] <= 0:  # 0: both see the files
            continue
        there, back = (len(records.between(*pair)) for pair in (ends, ends[::-1]))
        found = predict_links(*(ends if there >= back else ends[::-1]), records)
        if found is not None and found.link.time_per_unit > 0:
            startup[a, b] = startup[b, a] = found.link.startup
            per_unit[a, b] = per_unit[b, a] = found.link.time_per_unit
    if (per_unit == platform.time_per_unit).all() and (startup == platform.startup).all():
        return platform
    return replace(platform, startup=startup, time_per_unit=per_unit)


class Links:
    """How fast links are, by what has arrived over them."""

    def __init__(self) -> None:
        self._told: dict[int, float] = {}  # by link, when

    def note_arrival(
        self, transfer: int, detail: Mapping[str, Any], coordinator: Coordinator, now: float
    ) -> Event | None:
        """What an arrival tells of a link's bandwidth, if that is news."""
        state, platform = coordinator.state, coordinator.platform
        sent = state.transfer(transfer)
        source, target = sent.source, sent.target
        link, seconds = source * platform.n_hosts + target, detail.get("seconds")
        declared = float(detail.get("size") or 0.0) * float(platform.time_per_unit[source, target])
        if not isinstance(seconds, int | float) or detail["size"] < _LEAST_BYTES or declared <= 0:
            return None
        if now < self._told.get(link, -INTERVAL) + INTERVAL:
            return None
        # by the data alone, if they took longer than it takes to begin
        taken = float(seconds) - float(platform.startup[source, target])
        taken = taken if taken > 0 else float(seconds)
        factor, known = declared / max(taken, 1e-9), float(state.bandwidth()[source, target])
        if known > 0 and 1 / _OFF <= factor / known <= _OFF:
            return None
        self._told[link] = now
        return LinkChanged(link, now, factor, detail={"by": "transfer"})


NAMED = 5  # categories or tasks that are named one by one
ALIKE = "no task has a cost, so all count alike: a second at speed 1"
NOTHING_KNOWN = (
    "planning blind: no task has a history or a declared cost, so all count alike; "
    "the next run will know more"
)


def expect(
    workflow: Workflow,
    platform: Platform | None = None,
    on: Any = None,
    directory: str | PathLike[str] = ".",
    use_history: bool = True,
    price: Any = None,
    warn: Callable[[str], None] = lambda text: None,
) -> Expectation:
    """What to plan with. On a platform declared costs hold, and the history tells of the others.

    Without one: the machines of `on`, and the estimates with which `foreplan run` would begin
    there.
    """
    if platform is None:
        return _here(workflow, DEFAULT if on is None else on, directory, use_history, price, warn)
    if on is not None or price is not None:
        raise InputError("a platform says which machines there are, and their prices: leave it "
                         "out, or leave out `on` and `price`")  # fmt: skip
    if not workflow.silent.any():
        return Expectation.declared(workflow, platform)
    if use_history:
        estimating = Estimating.look_back(workflow, Path(directory), True, warn)
        machines = [platform.host_names[host] for host in platform.host.tolist()]
        prediction = estimating.with_memory(estimating.expected(platform, machines), platform)
        if not prediction.blind:
            return _completed(estimating, platform, prediction)
    declared = Estimates.declared(workflow, platform)  # which refuses if others have a cost
    return Expectation(platform, declared, ALIKE, blind=True)


def _here(
    workflow: Workflow,
    on: Any,
    directory: str | PathLike[str],
    use_history: bool,
    price: Any,
    warn: Callable[[str], None],
) -> Expectation:
    scheme = find_scheme(on)
    platform, machines = scheme.look(on)
    platform = priced(platform, lambda p: machines[p], price_rules(price))
    estimating = Estimating.look_back(workflow, Path(directory), use_history, warn)
    platform = with_links(platform, lambda p: machines[p], estimating.history)
    prediction = estimating.with_memory(estimating.expected(platform, machines), platform)
    return Expectation(
        platform,
        prediction.estimates,
        in_words(estimating, prediction),
        prediction.blind,
        scheme.place(on),
        scheme.here,
    )


def _completed(estimating: Estimating, platform: Platform, prediction: Prediction) -> Expectation:
    """Declared costs where there are some, the history elsewhere; what nobody knows is typical."""
    wf = estimating.workflow
    cost = Estimates.declared(wf, platform, prediction.estimates.cost).cost.copy()
    source = np.where(wf.silent[:, None], prediction.source, np.uint8(Source.DECLARED))
    unknown = (source == Source.DEFAULT).all(axis=1)
    cost[unknown] = np.median(cost[~unknown], axis=0)
    rows = tuple(r if s else None for r, s in zip(prediction.rows, wf.silent, strict=True))
    estimates = Estimates(cost, prediction.estimates.needs)
    found = Prediction(estimates, prediction.spread, source, blind=False, rows=rows)
    return Expectation(platform, found.estimates, in_words(estimating, found))


def in_words(estimating: Estimating, prediction: Prediction) -> str:
    """One line: how many tasks are known from where, from how many runs, and which are unknown."""
    if prediction.blind:
        return "\n".join([NOTHING_KNOWN, *estimating.without_sizes()])
    best = [Source(source) for source in prediction.source.min(axis=1).tolist()]
    parts = []
    for source, count in sorted(Counter(best).items()):
        tasks = [task for task, found in enumerate(best) if found == source]
        rows = {row for task in tasks if (row := prediction.rows[task]) is not None}
        text = f"{count} {SAID[source]}"
        if source == Source.DEFAULT:
            typical = float(np.median(prediction.estimates.cost[tasks]))
            names = (estimating.workflow.task_names[task] for task in tasks)
            listed = first_few(dict.fromkeys(names), NAMED)
            text += f" ({listed}: {duration(typical)} assumed)"
        elif source != Source.DECLARED and rows:
            runs = estimating.history.n_runs(rows)
            wf = estimating.workflow
            known = [task for task in tasks if prediction.rows[task] is not None]
            listed = first_few(
                sorted({wf.spec(t).category or wf.task_names[t] for t in known}), NAMED
            )
            text += f" ({listed}: {runs} run{'' if runs == 1 else 's'})"
        parts.append(text)
    lines = [
        f"estimates of {many(len(best), 'task')}: {', '.join(parts)}",
        *estimating.without_sizes(),
    ]
    return "\n".join(lines)


def _bytes_of(directory: Path, name: str) -> float:
    """The bytes of a file, a directory, or all files that match a pattern."""
    if is_tree(name):
        return float(bytes_in(str(directory / name)))
    files = matching_files(str(directory), name) if is_pattern(name) else [name]
    return float(sum((directory / file).stat().st_size for file in files))
