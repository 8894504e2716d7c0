"""HTCondor's event log of a DAGMan run, `x.dag.nodes.log`: what each job took.

An event is a line `005 (CLUSTER.PROC.SUBPROC) DATE TIME what`, lines that tell more, and a line of
three dots. The submit event of a cluster names its DAG node. A job took what lies between its last
execute event and its end with return value 0; of a node that was run more than once the newest
run counts, and of a cluster of several jobs the longest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from foreplan.errors import InputError
from foreplan.files import in_file, printable, read_text
from foreplan.formats.dagman_dag import DagmanDag, is_there
from foreplan.formats.fields import shown

_SUBMITTED, _EXECUTING, _TERMINATED = "000", "001", "005"
_STOPPED = frozenset({"002", "004", "007", "009", "012"})  # no executable, evicted, ..., held
_HEAD = re.compile(
    r"(?P<code>[0-9]{3}) \((?P<cluster>[0-9]+)\.(?P<proc>[0-9]+)\.[0-9]+\) "
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{2}/[0-9]{2})[ T]"
    r"(?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2})(?P<part>\.[0-9]{1,9})?Z?( .*)?"
)
_NODE = re.compile(r"\s*DAG Node: (?P<name>\S+)\s*")
_GOOD = re.compile(r"\s*\(1\) Normal termination \(return value 0\)\s*")
_YEAR = timedelta(days=366)  # of the year that dates without one are taken to be in


class _LogEvent(NamedTuple):
    """One event, its time, and the lines that tell more."""

    code: str
    cluster: int
    proc: int
    dated: bool  # whether the log says the year
    at: datetime
    more: list[str]


def read_log(path: str | os.PathLike[str]) -> dict[str, float]:
    """The seconds of every DAG node that ended well, by its name."""
    text = read_text(path)
    nodes: dict[int, str] = {}
    began: dict[tuple[int, int], datetime] = {}
    taken: dict[int, float] = {}  # by cluster, the newest last
    with in_file(path):
        for event in _events(text):
            key = event.cluster, event.proc
            if event.code == _SUBMITTED:
                for named in filter(None, map(_NODE.fullmatch, event.more)):
                    nodes[event.cluster] = named["name"]
            elif event.code == _EXECUTING:
                began[key] = event.at
            elif event.code in _STOPPED:
                began.pop(key, None)
            elif event.code == _TERMINATED and key in began:
                seconds = _between(began.pop(key), event)
                if seconds >= 0 and any(_GOOD.fullmatch(line) for line in event.more):
                    longest = max(seconds, taken.pop(event.cluster, 0.0))
                    taken[event.cluster] = longest
    return {nodes[cluster]: seconds for cluster, seconds in taken.items() if cluster in nodes}


def _between(began: datetime, event: _LogEvent) -> float:
    ended = event.at
    if ended < began and not event.dated:  # over New Year's Eve
        ended += _YEAR
    return (ended - began).total_seconds()


def _events(text: str) -> Iterator[_LogEvent]:
    """The events; a last one that is not whole is being written, and left out."""
    event: _LogEvent | None = None
    for number, line in enumerate(text.split("\n"), 1):
        line = line.rstrip("\r")
        if event is not None:
            if line.startswith("..."):
                yield event
                event = None
            else:
                event.more.append(line)
        elif line.strip():
            event = _begun(line, number)


def _begun(line: str, number: int) -> _LogEvent:
    place = f"line {number}"
    head = _HEAD.fullmatch(line)
    if head is None:
        form = "'005 (12.000.000) 2026-01-31 10:00:00 Job terminated.'"
        problem = f"expected an event such as {form}, not {shown(line)}"
        raise InputError(f"{problem}; logs in XML or JSON are not read", place=place)
    dated = "-" in head["date"]
    date = head["date"] if dated else "2000-" + head["date"].replace("/", "-")
    try:
        at = datetime.fromisoformat(f"{date} {head['time']}")
    except ValueError:
        problem = f"there is no such date and time: {head['date']} {head['time']}"
        raise InputError(problem, place=place) from None
    at += timedelta(seconds=float(head["part"] or 0))
    return _LogEvent(head["code"], int(head["cluster"]), int(head["proc"]), dated, at, [])


def logged_seconds(dag: DagmanDag, logs: Iterable[str | os.PathLike[str]]) -> dict[str, float]:
    """What the jobs of a dag took, by their names in full, as these logs have it.

    The log of a sub-DAG names its jobs as its own file does. It is told by its name, and where it
    stands beside its DAG it is read even if it is not among the logs.
    """
    subdags: dict[str, list[str]] = {}  # what stands before the names in a log, by its path
    prefixes = {node.name + "+" for node in dag.nodes if node.kind == "OPENED"}
    for scope in dag.scopes:
        if scope.prefix in prefixes and scope.source.path is not None:
            log = os.path.realpath(f"{scope.source.path}.nodes.log")
            subdags.setdefault(log, []).append(scope.prefix)
    known = {node.name for node in dag.nodes}
    seconds: dict[str, float] = {}
    for given in logs:
        read = read_log(given)
        before = subdags.pop(os.path.realpath(given), [""])
        found = {p + name: t for p in before for name, t in read.items() if p + name in known}
        if not found:
            raise InputError("no job of the dag ended well in it", source=printable(given))
        seconds |= found
    for log, before in subdags.items():
        if is_there(Path(log)):
            read = read_log(log)
            seconds |= {
                p + name: t for p in before for name, t in read.items() if p + name in known
            }
    return seconds
