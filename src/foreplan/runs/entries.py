"""Entries of the journal as plain data: the header, and what the coordinator hears and says."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from foreplan.arrays import FloatArray
from foreplan.errors import InputError
from foreplan.formats.foreplan_platform import platform_from_dict, platform_to_dict
from foreplan.formats.foreplan_workflow import workflow_to_literals
from foreplan.formats.resources import request_fields, request_from_fields
from foreplan.formats.surroundings import surroundings_fields, surroundings_from_fields
from foreplan.model import Estimates, Evaluation, Platform, Schedule, TaskSpec, Workflow
from foreplan.model.events import (
    KINDS,
    CancelTask,
    Command,
    DropTransfer,
    Event,
    Heard,
    NewEstimates,
    NewPlan,
    NewStrategy,
    SendItem,
    StartTask,
    TasksAdded,
    WakeAt,
)
from foreplan.model.growth import grow
from foreplan.model.resources import Cores, Needs
from foreplan.quantities import first_few
from foreplan.runs.journal import RULES, Journal, plain, real
from foreplan.runs.options import Options
from foreplan.store.store import KeptResult
from foreplan.version import __version__

MAX_BYTES = 1 << 28  # 256 MiB: 10,000 tasks on 3,000 processors
_MAX_DIMENSIONS = 8
_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_TYPES = {name: np.dtype(name) for name in ("bool", *_SIGNED, *_UNSIGNED, "float32", "float64")}


def pack(array: npt.NDArray[Any]) -> dict[str, Any]:
    """An array as JSON: its type, its shape, and its little-endian bytes."""
    if array.dtype.name not in _TYPES:
        raise TypeError(f"arrays of {array.dtype.name} cannot be packed")
    if array.nbytes > MAX_BYTES or array.ndim > _MAX_DIMENSIONS:
        raise ValueError(f"an array of shape {array.shape} is too large to be packed")
    raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    # level 1: a plan is packed while the run waits
    text = base64.b64encode(zlib.compress(raw, 1)).decode("ascii")
    return {"a": array.dtype.name, "n": list(array.shape), "z": text}


def unpack(content: Any, limit: int = MAX_BYTES) -> npt.NDArray[Any]:
    """The array that was packed, read-only."""
    if not isinstance(content, dict) or set(content) != {"a", "n", "z"}:
        raise InputError("a packed array has a type (a), a shape (n) and bytes (z)")
    dtype = _TYPES.get(content["a"]) if isinstance(content["a"], str) else None
    if dtype is None:
        raise InputError(f"packed array: unknown type {content['a']!r}")
    shape = _shape(content["n"])
    size = math.prod(shape) * dtype.itemsize
    if size > limit:
        raise InputError(f"packed array: {size:,} bytes are more than the limit, {limit:,}")
    raw = _bytes(content["z"], size)
    array = np.frombuffer(raw, dtype=dtype.newbyteorder("<")).reshape(shape)
    native = array.astype(dtype, copy=False)
    native.flags.writeable = False
    return native


def _shape(content: Any) -> tuple[int, ...]:
    """A shape whose product is its own measure: no zero hides a huge number."""
    if (
        not isinstance(content, list)
        or len(content) > _MAX_DIMENSIONS
        or not all(type(n) is int and 0 <= n <= MAX_BYTES for n in content)
    ):
        raise InputError(f"packed array: {content!r} is not a shape")
    return tuple(content)


def _bytes(text: Any, size: int) -> bytes:
    """Decompress exactly so many bytes; never more, whatever the text would give."""
    inflater = zlib.decompressobj()
    try:
        if not isinstance(text, str):
            raise ValueError
        raw = inflater.decompress(base64.b64decode(text, validate=True), size + 1)
    except (ValueError, binascii.Error, zlib.error):
        raise InputError("packed array: its bytes cannot be read") from None
    if len(raw) != size or not inflater.eof or inflater.unused_data:
        raise InputError(f"packed array: its bytes are not the {size:,} of its type and shape")
    return raw


ARRAYS = ("base_cost", "item_size", "item_producer", "use_ptr", "use_task")
NEEDS = ("amount", "width_ptr", "width", "factor")


def workflow_to_entry(workflow: Workflow) -> dict[str, Any]:
    """The workflow as plain data. (A foreplan file would do for people, but may renumber items.)"""
    return {
        "name": workflow.name,
        "tasks": list(workflow.task_names),
        **{name: pack(getattr(workflow, name)) for name in ARRAYS},
        "processor_cost": {name: pack(cost) for name, cost in workflow.processor_cost.items()},
        "items": None if workflow.item_names is None else list(workflow.item_names),
        "specs": {str(task): _said_of(spec) for task, spec in sorted(workflow.specs.items())},
        **({"pools": dict(workflow.pools)} if workflow.pools else {}),
    }


def _said_of(spec: TaskSpec) -> dict[str, Any]:
    """What a task says, rather than leaves as it is for all."""
    said = {key: v for key, v in vars(spec).items() if v is not None and v is not False and v != ()}
    if spec.around is not None:
        said["around"] = surroundings_fields(spec.around)
    if spec.request is not None:
        said["request"] = request_fields(spec.request)
    return said


def _spec_from(said: dict[str, Any]) -> TaskSpec:
    retry = tuple((cause, times) for cause, times in said.get("retry", ()))
    named = ("ignores", "temp", "protected", "gathers")
    lists = {key: tuple(said.get(key, ())) for key in named}
    fields = said | lists | {"retry": retry}
    if "around" in fields:
        fields["around"] = surroundings_from_fields(fields["around"])
    if "request" in fields:
        fields["request"] = request_from_fields(fields["request"])
    return TaskSpec(**fields)


def workflow_from_entry(content: dict[str, Any]) -> Workflow:
    """The workflow that was written."""
    arrays: dict[str, Any] = {name: unpack(content[name]) for name in ARRAYS}
    return Workflow(
        name=content["name"],
        task_names=tuple(content["tasks"]),
        **arrays,
        processor_cost={name: unpack(cost) for name, cost in content["processor_cost"].items()},
        item_names=None if content["items"] is None else tuple(content["items"]),
        specs={int(task): _spec_from(spec) for task, spec in content["specs"].items()},
        pools=content.get("pools", {}),
    )


def estimates_to_entry(estimates: Estimates, cost: str) -> dict[str, Any]:
    """Estimates as plain data, the cost under this name; needs only where there are any."""
    said: dict[str, Any] = {cost: pack(estimates.cost)}
    if (needs := estimates.needs) is not None:
        arrays = {name: pack(getattr(needs, name)) for name in NEEDS}
        said["needs"] = {"kinds": list(needs.kinds), "pools": list(needs.pools), **arrays}
    return said


def estimates_from_entry(content: dict[str, Any], cost: str) -> Estimates:
    """The estimates that were written."""
    needs, said = None, content.get("needs")
    if said is not None:
        arrays: dict[str, Any] = {name: unpack(said[name]) for name in NEEDS}
        needs = Needs(tuple(said["kinds"]), tuple(said["pools"]), **arrays)
    return Estimates(unpack(content[cost]), needs)


def check_same(journalled: Workflow, given: Workflow, run: str, functions: bool = False) -> None:
    """Refuse to resume with another workflow, and say what is different.

    The categories of functions follow from where the program is, and do not matter.
    """
    if functions:
        journalled, given = without_categories(journalled), without_categories(given)
    if workflow_to_entry(journalled) == workflow_to_entry(given):
        return
    old, new = workflow_to_literals(journalled), workflow_to_literals(given)
    before, after = old["tasks"], new["tasks"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    added = [task for task in after if task not in before]
    removed = [task for task in before if task not in after]
    changed = [task for task in before if task in after and before[task] != after[task]]
    parts = [
        f"{what}: {first_few(tasks)}"
        for what, tasks in (("new", added), ("gone", removed), ("changed", changed))
        if tasks
    ]
    otherwise = (
        "undo the change, or begin a new run (without resume)"
        if functions
        else "undo the change, resume with the workflow as it was "
        f"(`foreplan resume {run} --as-started`), or begin a new run (`foreplan run`)"
    )
    differs = "; ".join(parts) or "its edges, files, order, name or options of tasks differ"
    raise InputError(f"the workflow has changed since run {run} began ({differs}): {otherwise}")


def without_categories(workflow: Workflow) -> Workflow:
    """The workflow of functions by what does not follow from where their program is."""
    bare = {task: replace(spec, category=None) for task, spec in workflow.specs.items()}
    return replace(workflow, specs=bare)


@dataclass(frozen=True)
class Header:
    """A run as it set out."""

    id: str
    workflow: Workflow
    platform: Platform
    machines: tuple[str, ...]  # the names of the processors in the history
    estimates: Estimates
    strategy: str  # the one that was chosen
    rest: float  # see the Coordinator
    options: Options
    functions: bool  # Python functions, which are not in the journal
    blind: bool
    source: str | None  # the workflow's file
    created: str
    origins: str = ""  # where the estimates come from, in words
    python: str = ""  # that the digests are of
    digests: tuple[str | None, ...] | None = None  # of the calls; None: not known
    up_to_date: tuple[str, ...] = ()  # tasks that were, and are no part of the run
    left_out: tuple[str, ...] = ()  # nor are these: what was asked for does not need them
    reasons: Mapping[str, str] = field(default_factory=dict)  # why tasks are run
    # the keys of what is no part of the run and only comes before what is, by task and name
    after: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # temporary outputs of tasks that are no part of the run, which it is the last to read
    temp: Mapping[str, str] = field(default_factory=dict)
    taken: Mapping[str, KeptResult] = field(default_factory=dict)  # results of others, by task
    expansions: Mapping[str, Workflow] = field(default_factory=dict)  # see Rest
    # where tasks may be added: the files of tasks that are no part of the run, and who makes each
    others: Mapping[str, str] = field(default_factory=dict)
    # of tasks that ask by the size of inputs: the bytes of what no task of the run makes
    reads: Mapping[int, float] = field(default_factory=dict)

    def own_part(self, workflow: Workflow) -> Workflow:
        """What of a workflow the run has to do, if it has not changed since."""
        for task, more in self.expansions.items():
            if task in workflow.task_names:
                workflow = grow(workflow, workflow.task_names.index(task), more)
        others = {*self.up_to_date, *self.left_out}
        return workflow.part(np.array([name not in others for name in workflow.task_names]))

    def to_dict(self) -> dict[str, Any]:
        """The header as the journal has it."""
        return {
            "type": "run",
            "rules": RULES,
            "foreplan": __version__,
            "id": self.id,
            "name": self.workflow.name,
            "tasks": self.workflow.n_tasks,
            "created": self.created,
            "strategy": self.strategy,
            "rest": self.rest,
            "on": self.options.place,
            "options": self.options.to_dict(),
            "functions": self.functions,
            "blind": self.blind,
            **({"origins": self.origins} if self.origins else {}),
            "source": self.source,
            "workflow": workflow_to_entry(self.workflow),
            "platform": platform_to_dict(self.platform),
            "machines": list(self.machines),
            **estimates_to_entry(self.estimates, "estimates"),
            **({} if self.digests is None else {"python": self.python, "digests": self.digests}),
            **({"up_to_date": list(self.up_to_date)} if self.up_to_date else {}),
            **({"left_out": list(self.left_out)} if self.left_out else {}),
            **({"reasons": dict(self.reasons)} if self.reasons else {}),
            **({"after": dict(self.after)} if self.after else {}),
            **({"temp": dict(self.temp)} if self.temp else {}),
            **({"taken": dict(self.taken)} if self.taken else {}),
            **({"expansions": _entries_of(self.expansions)} if self.expansions else {}),
            **({"others": dict(self.others)} if self.others else {}),
            **_reads_to_entry(self.reads),
        }

    @staticmethod
    def from_dict(content: dict[str, Any], directory: Path) -> Header:
        """Read the header back; the journal's rules were checked when it was opened."""
        try:
            return Header._read(content, directory)
        except KeyError as error:
            raise InputError(f"the journal's header lacks {error}") from None
        except TypeError as error:
            raise InputError(f"the journal's header cannot be read: {error}") from None

    @staticmethod
    def _read(content: dict[str, Any], directory: Path) -> Header:
        return Header(
            id=content["id"],
            workflow=workflow_from_entry(content["workflow"]),
            platform=platform_from_dict(content["platform"]),
            machines=tuple(content["machines"]),
            estimates=estimates_from_entry(content, "estimates"),
            strategy=content["strategy"],
            rest=content["rest"],
            options=Options.from_dict(content["options"], directory),
            functions=content["functions"],
            blind=content["blind"],
            source=content["source"],
            created=content["created"],
            origins=content.get("origins", ""),
            python=content.get("python", ""),
            digests=tuple(content["digests"]) if "digests" in content else None,
            up_to_date=tuple(content.get("up_to_date", ())),
            left_out=tuple(content.get("left_out", ())),
            reasons=content.get("reasons", {}),
            after=content.get("after", {}),
            temp=content.get("temp", {}),
            taken={name: KeptResult.read(kept) for name, kept in content.get("taken", {}).items()},
            expansions={
                task: workflow_from_entry(more)
                for task, more in content.get("expansions", {}).items()
            },
            others=content.get("others", {}),
            reads=_reads_from_entry(content),
        )


def _entries_of(workflows: Mapping[str, Workflow]) -> dict[str, dict[str, Any]]:
    return {name: workflow_to_entry(workflow) for name, workflow in workflows.items()}


def now_in_words() -> str:
    """This moment, as headers say it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def entry_to_dict(entry: Heard) -> dict[str, Any]:
    """What the coordinator has heard."""
    if isinstance(entry, Event):
        return {"t": "event", **entry.to_dict()}
    if isinstance(entry, NewEstimates):
        return {
            "t": "estimates",
            "time": entry.time,
            **estimates_to_entry(entry.estimates, "cost"),
            "platform": platform_to_dict(entry.platform),
            "because": entry.because,
        }
    if isinstance(entry, NewStrategy):
        return {"t": "strategy", **vars(entry)}
    if isinstance(entry, TasksAdded):
        return _added_to_entry(entry)
    plan = entry.schedule
    answer = {
        "t": "plan",
        "time": entry.time,
        "version": entry.version,
        "seconds": entry.seconds,
    }
    if plan is None:
        return answer
    return {
        **answer,
        "planner": plan.planner,
        "processor": pack(plan.processor),
        "start": pack(plan.start),
        "finish": pack(plan.finish),
        **_cores_to_entry(plan.cores),
    }


def _added_to_entry(entry: TasksAdded) -> dict[str, Any]:
    """Added tasks by themselves; of estimates what is new, and the needs of all, if there are."""
    new = replace(entry.estimates, cost=entry.estimates.cost[-entry.more.n_tasks :])
    return {
        "t": "tasks",
        "time": entry.time,
        "by": entry.by,
        "digest": entry.digest,
        "added": workflow_to_entry(entry.more),
        **estimates_to_entry(new, "cost"),
        **_reads_to_entry(entry.reads),
    }


def _reads_to_entry(reads: Mapping[int, float]) -> dict[str, Any]:
    return {"reads": {str(task): size for task, size in reads.items()}} if reads else {}


def _reads_from_entry(content: dict[str, Any]) -> dict[int, float]:
    return {int(task): real(size) for task, size in content.get("reads", {}).items()}


def _added_from_entry(
    content: dict[str, Any], time: float, workflow: Workflow, cost: FloatArray | None
) -> TasksAdded:
    by, more = int(content["by"]), workflow_from_entry(content["added"])
    new = estimates_from_entry(content, "cost")
    assert cost is not None
    estimates = replace(new, cost=np.concatenate([cost, new.cost]))
    grown, reads = grow(workflow, by, more), _reads_from_entry(content)
    return TasksAdded(time, by, more, grown, estimates, content["digest"], reads)


def _cores_to_entry(cores: Cores | None) -> dict[str, Any]:
    """The cores of a plan's tasks, where they take more than a processor each."""
    if cores is None:
        return {}
    return {"cores": {"ptr": pack(cores.ptr), "processor": pack(cores.processor)}}


def entry_from_dict(
    content: dict[str, Any],
    workflow: Workflow,
    platform: Platform,
    needs: Needs | None = None,
    cost: FloatArray | None = None,
) -> Heard:
    """The same, read back; platform, needs and costs are those known at that time."""
    time = real(content["time"])
    if content["t"] == "event":
        kind = KINDS[content["kind"]]
        return kind.of(content["which"], time, real(content["value"]), content.get("detail"))
    if content["t"] == "estimates":
        estimates = estimates_from_entry(content, "cost")
        platform = platform_from_dict(content["platform"])
        return NewEstimates(time, estimates, platform, content.get("because", ""))
    if content["t"] == "strategy":
        return NewStrategy(time, content["strategy"], content["because"])
    if content["t"] == "tasks":
        return _added_from_entry(content, time, workflow, cost)
    if content["t"] != "plan":
        raise InputError(f"the journal has an entry of an unknown kind: {content['t']!r}")
    if "planner" not in content:
        return NewPlan(time, content["version"], None, real(content["seconds"]))
    cores = content.get("cores")
    schedule = Schedule(
        planner=content["planner"],
        workflow=workflow,
        platform=platform,
        processor=unpack(content["processor"]),
        start=unpack(content["start"]),
        finish=unpack(content["finish"]),
        cores=None if cores is None else Cores(unpack(cores["ptr"]), unpack(cores["processor"])),
        needs=needs,
    )
    return NewPlan(time, content["version"], schedule, real(content["seconds"]))


def commands_to_dict(commands: list[Command]) -> dict[str, Any]:
    """What is going to be done: no one needs it to go on, but it tells what was decided."""
    return {"t": "commands", "do": [_said(command) for command in commands]}


def _said(command: Command) -> list[Any]:
    match command:
        case StartTask():
            held = [list(command.cores), list(command.amounts)]
            return [
                *("start", command.attempt, command.task, command.processor),
                *(held if any(held) else ()),
            ]
        case SendItem():
            return ["send", command.transfer, command.item, command.source, command.target]
        case CancelTask():
            return ["cancel", command.attempt]
        case DropTransfer():
            return ["drop", command.transfer]
        case WakeAt():
            return ["wake", command.time]
    raise TypeError(f"{command} is no decision")


class JournalRecorder:
    """Everything heard goes to the journal, once there is one; a sync makes it durable."""

    def __init__(self, journal: Journal | None = None) -> None:
        self._journal = journal
        self.pending: list[dict[str, Any]] = []

    @property
    def journal(self) -> Journal:
        """The journal."""
        assert self._journal is not None
        return self._journal

    def begin(self, journal: Journal) -> None:
        """From now on all is kept there."""
        self._journal = journal

    def note_heard(self, entry: Heard) -> None:
        """Keep it for the next sync."""
        self.pending.append(entry_to_dict(entry))

    def note(self, kind: str, **content: Any) -> None:
        """Keep something that the coordinator need not know."""
        self.pending.append({"t": kind, **content})

    def note_judged(self, evaluation: Evaluation) -> None:
        """Keep for people what became of a plan; no one needs it to go on."""
        self.note("evaluation", **plain(asdict(evaluation)))

    def sync(self, commands: list[Command]) -> None:
        """All that was heard is on disk when this returns."""
        if commands:
            self.pending.append(commands_to_dict(commands))
        if self.pending:
            self.journal.append(self.pending)
            self.pending = []
