"""What other tools have measured, as records of the history.

Nextflow's trace.txt, Snakemake's benchmark files and `.snakemake/metadata`, and WfFormat traces.
The run of a record is a mark of where it comes from, so that the same thing twice is seen to be so.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from foreplan.errors import InputError
from foreplan.files import in_file, printable, read_text
from foreplan.formats import workflow_from_wfformat
from foreplan.formats.fields import number, sequence, shown, wrong_line
from foreplan.formats.texts import parse_json
from foreplan.history.records import Origin, TaskRecord, categories_of, commands_of

ELSEWHERE = "elsewhere"  # the machine of a trace that does not say which
COARSE = 0.05  # seconds
METADATA = "metadata"  # below `.snakemake`
KINDS = (
    "a trace.txt of Nextflow, a benchmark file or the directory .snakemake of Snakemake, or a "
    "WfFormat trace (.json)"
)
_MIB = float(1 << 20)
_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {unit: 1024.0**k for k, unit in enumerate(("B", "KB", "MB", "GB", "TB", "PB"))}
_PART = r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)"
_PARTS = re.compile(rf"(?:{_PART}\s*)+")
_NONE = ("", "-", "NA", "nan")  # nothing was measured


@dataclass(frozen=True)
class ImportOptions:
    """What is said of measurements beside their file; None: as the file says."""

    origin: Origin
    machine: str | None = None
    category: str | None = None


@dataclass(frozen=True)
class ImportedTimes:
    """The records of a file, and how many lines of it tell of no finished task, by why."""

    records: list[TaskRecord]
    left_out: dict[str, int]


def origin_of(path: Path, directory: Path | None, workflow: str | None) -> Origin:
    """Whom measurements are for: a workflow in the data directory, beside `.snakemake` its own."""
    data = directory or Path()
    if directory is None and path.is_dir():
        data = path.resolve().parents[path.resolve().name == METADATA]
    return Origin(str(data.resolve()), workflow or data.resolve().name)


def read_times(path: Path, asked: ImportOptions) -> ImportedTimes:
    """The records of a file or directory, whichever tool has written it."""
    if path.is_dir():
        return read_metadata(path, asked)
    with in_file(path):
        text = read_text(path)
        if path.suffix.lower() == ".json":
            return _read_wfformat(text, path, asked)
        header = text.partition("\n")[0].split("\t")
        if "realtime" in header:
            return _read_nextflow(text, path, asked)
        if header[:2] == ["s", "h:m:s"]:
            return _read_benchmark(text, path, asked)
        raise InputError(f"this is not {KINDS}")


def _mark(kind: str, text: str) -> str:
    """A name for where records come from, the same whenever it is read."""
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
    return f"{kind}-{digest[:12]}"


def _rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines of a table with tabs, by its header, with their numbers."""
    lines = text.splitlines()
    header = lines[0].split("\t")
    for line, text_of_line in enumerate(lines[1:], 2):
        cells = text_of_line.split("\t")
        if not text_of_line.strip():
            continue
        if len(cells) != len(header):
            raise wrong_line(f"expected {len(header)} columns, not {len(cells)}", line)
        yield line, dict(zip(header, (cell.strip() for cell in cells), strict=True))


def _read_nextflow(text: str, path: Path, asked: ImportOptions) -> ImportedTimes:
    """The tasks that were completed, and neither cached nor failed."""
    header = text.partition("\n")[0].split("\t")
    name = next((column for column in ("process", "name") if column in header), None)
    if name is None or "status" not in header:
        missing = "process or name" if name is None else "status"
        raise wrong_line(f"the trace has no column {missing}", 1)
    records, left_out = [], dict[str, int]()
    run = _mark("nextflow", "\n".join(text.splitlines()[:2]))  # a trace that grows keeps these
    for line, row in _rows(text):
        seconds = _measured(row, "realtime", _nextflow_seconds, line)
        status = row["status"].upper()
        if status != "COMPLETED" or math.isnan(seconds):
            why = status.lower() if status != "COMPLETED" else "without a time"
            left_out[why] = left_out.get(why, 0) + 1
            continue
        share = _measured(row, "%cpu", _percent, line)
        records.append(
            TaskRecord(
                _completed(row, seconds, line) or path.stat().st_mtime,
                run,
                asked.origin.workflow,
                asked.category or re.sub(r"\s*\(.*\)$", "", row[name]),
                asked.machine or _said(row, "hostname") or ELSEWHERE,
                seconds,
                directory=asked.origin.directory,
                memory=_measured(row, "peak_rss", _nextflow_bytes, line),
                cpu=seconds * share,
                read=_measured(row, "rchar", _nextflow_bytes, line),
                written=_measured(row, "wchar", _nextflow_bytes, line),
            )
        )
    return ImportedTimes(records, left_out)


def _said(row: Mapping[str, str], column: str) -> str:
    """What stands in a column, if anything does."""
    return "" if (value := row.get(column, "")) in _NONE else value


def _measured(
    row: Mapping[str, str], column: str, read: Callable[[str], float], line: int
) -> float:
    """What was measured, NaN if nothing was."""
    if not (value := _said(row, column)):
        return math.nan
    try:
        found = read(value)
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or found < 0:
        raise wrong_line(f"{column} is not what one measures: {shown(value)}", line)
    return found


def _nextflow_seconds(text: str) -> float:
    """`1m 3s`, or as raw a number of milliseconds."""
    return float(text) / 1000 if text.isdigit() else _sum(text, _SECONDS)


def _nextflow_bytes(text: str) -> float:
    """`1.2 GB`, of 1024 each, or as raw a number of bytes."""
    return float(text) if text.isdigit() else _sum(text.upper(), _BYTES)


def _sum(text: str, units: Mapping[str, float]) -> float:
    if not _PARTS.fullmatch(text):
        raise ValueError
    parts = re.findall(_PART, text)
    if any(unit not in units for _, unit in parts):
        raise ValueError
    return sum(float(number) * units[unit] for number, unit in parts)


def _percent(text: str) -> float:
    return float(text.rstrip("%")) / 100


def _completed(row: Mapping[str, str], seconds: float, line: int) -> float | None:
    """When a task was done, in seconds since 1970, as far as its columns say."""
    if done := _said(row, "complete"):
        return _moment(done, line)
    if start := _said(row, "start"):
        return _moment(start, line) + seconds
    if submit := _said(row, "submit"):
        taken = _measured(row, "duration", _nextflow_seconds, line)
        return _moment(submit, line) + (seconds if math.isnan(taken) else taken)
    return None


def _moment(text: str, line: int) -> float:
    try:  # as raw: milliseconds
        return float(text) / 1000 if text.isdigit() else datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise wrong_line(f"{shown(text)} is no time", line) from None


def _read_benchmark(text: str, path: Path, asked: ImportOptions) -> ImportedTimes:
    """Each line is a repetition; `-` and `NA` were too short to be measured."""
    records, run = [], _mark("snakemake", text)
    for line, row in _rows(text):
        category = asked.category or _said(row, "rule_name")
        if not category:
            raise InputError("the file does not say of which rule it is: say --category")
        seconds = _measured(row, "s", float, line)
        if math.isnan(seconds):
            raise wrong_line("there are no seconds", line)
        memory = _measured(row, "max_rss", float, line) * _MIB
        records.append(
            TaskRecord(
                path.stat().st_mtime,
                run,
                asked.origin.workflow,
                category,
                asked.machine or socket.gethostname(),
                seconds,
                size=_measured(row, "input_size_mb", _total, line) * _MIB,
                directory=asked.origin.directory,
                memory=memory or math.nan,
                cpu=_measured(row, "cpu_time", float, line),
            )
        )
    return ImportedTimes(records, {})


def _total(text: str) -> float:
    """The sum of sizes by file, as a benchmark that is extended has them."""
    try:
        sizes = ast.literal_eval(text)
        return float(sum(sizes.values()))
    except (SyntaxError, AttributeError, TypeError, MemoryError, RecursionError):
        raise ValueError from None


def read_metadata(folder: Path, asked: ImportOptions) -> ImportedTimes:
    """What `.snakemake/metadata` says of jobs: one record each, however many outputs it has."""
    metadata = folder / METADATA if folder.name != METADATA else folder
    if not metadata.is_dir():
        problem = f"there is no {METADATA} in it: name the directory .snakemake of a workflow"
        raise InputError(problem, source=printable(folder))
    jobs: dict[tuple[object, ...], TaskRecord] = {}
    left_out: dict[str, int] = {}
    for place, folders, files in os.walk(metadata):
        folders.sort()
        for file in sorted(files):
            told = _job(Path(place, file), asked)
            if isinstance(told, str):
                left_out[told] = left_out.get(told, 0) + 1
                continue
            key, record = told
            before = jobs.get(key, record)
            begun = min(before.at - before.seconds, record.at - record.seconds)
            at = max(before.at, record.at)
            jobs[key] = replace(record, at=at, seconds=at - begun)
    return ImportedTimes(list(jobs.values()), left_out)


def _job(file: Path, asked: ImportOptions) -> tuple[tuple[object, ...], TaskRecord] | str:
    """The job that made a file, and what is known of it; or why nothing is."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        start, end, rule = record["starttime"], record["endtime"], record["rule"]
    except (ValueError, KeyError, TypeError, OSError):
        return "damaged"  # Snakemake writes them without care for crashes, and passes them by
    if record.get("incomplete") or not isinstance(start, int | float) or not rule:
        return "incomplete"
    # the end is the time of the file, whose clock is coarse
    if not isinstance(end, int | float) or end < start - COARSE:
        return "with a file older than its job"
    told = TaskRecord(
        end,
        _mark("snakemake", asked.origin.directory),
        asked.origin.workflow,
        asked.category or str(rule),
        asked.machine or socket.gethostname(),
        max(0.0, end - start),
        size=_input_size(record.get("input") or [], asked.origin.directory, start),
        directory=asked.origin.directory,
    )
    return (rule, record.get("job_hash"), record.get("shellcmd")), told


def _input_size(files: list[str], directory: str, start: float) -> float:
    """The bytes of the inputs, if they are still what they were."""
    total = 0.0
    for name in files:
        try:
            found = os.stat(os.path.join(directory, name))
        except (OSError, ValueError):
            return math.nan
        if found.st_mtime > start:
            return math.nan
        total += found.st_size
    return total


def _read_wfformat(text: str, path: Path, asked: ImportOptions) -> ImportedTimes:
    """The tasks of a trace, on the first machine of each."""
    content = parse_json(text)
    if not isinstance(content, Mapping) or "workflow" not in content:
        raise InputError(f"this is not {KINDS}")
    workflow = workflow_from_wfformat(content)
    execution = content["workflow"].get("execution")
    if execution is None:
        raise InputError("the trace has no execution: nothing was measured", place="workflow")
    told = {fields["id"]: fields for fields in execution["tasks"]}
    at = _begun(execution.get("executedAt")) or path.stat().st_mtime
    run, records = _mark("wfformat", text), []
    categories, commands = categories_of(workflow), commands_of(workflow)
    for task, name in enumerate(workflow.task_names):
        fields, seconds = told[name], float(workflow.base_cost[task])
        first, last = workflow.in_ptr[task : task + 2]
        place = ("workflow", "execution", "tasks", name)
        named = fields.get("machines", [fields["machine"]] if "machine" in fields else [])
        machines = sequence(named, *place, "machines") or [ELSEWHERE]
        memory, read, written, share = (
            number(fields[key], *place, key) if fields.get(key) else math.nan
            for key in ("memoryInBytes", "readBytes", "writtenBytes", "avgCPU")
        )
        records.append(
            TaskRecord(
                at,
                run,
                asked.origin.workflow,
                asked.category or categories[task],
                asked.machine or str(machines[0]),
                seconds,
                size=float(workflow.item_size[workflow.in_item[first:last]].sum()),
                directory=asked.origin.directory,
                command=commands[task],
                memory=memory,
                cpu=seconds * share / 100,
                read=read,
                written=written,
            )
        )
    return ImportedTimes(records, {})


def _begun(text: object) -> float | None:
    """When a trace was made, if it says so in a way that is understood."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):
        return None
