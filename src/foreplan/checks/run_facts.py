"""A run's record, indexed: what was where, and who was there, at any time."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from foreplan.arrays import BoolArray, FloatArray, IntArray
from foreplan.model.events import (
    ItemLost,
    LinkChanged,
    ProcessorGone,
    ProcessorJoined,
    SpeedChanged,
)
from foreplan.model.record import ENDS, Run

TOLERANCE = 1e-9  # of the times that are added up
RUNNING, FINISHED, FAILED, CANCELLED, REWOUND = range(len(ENDS))

Indices = npt.NDArray[np.int64]


class Log:
    """Entries (key, time) in the order of their happening, found by key and time."""

    def __init__(self, key: npt.NDArray[Any], time: npt.NDArray[Any]) -> None:
        self.order = np.lexsort((time, key))
        self.key, self.time = key.astype(np.int64)[self.order], time[self.order]
        self.times = np.unique(time)
        self.code = self._code(self.key, self.time, True)

    def _code(self, key: npt.NDArray[Any], time: npt.NDArray[Any], up_to: bool) -> Indices:
        rank = np.searchsorted(self.times, time, side="right" if up_to else "left")
        code: Indices = key.astype(np.int64) * (len(self.times) + 1) + rank
        return code

    def last(
        self, key: npt.NDArray[Any], time: npt.NDArray[Any], before: bool = False
    ) -> tuple[Indices, FloatArray]:
        """The last entry of each key up to (or before) a time, -1 if none; and its time."""
        at = np.searchsorted(self.code, self._code(key, time, not before), side="right") - 1
        return self._found(at, key, -np.inf)

    def first(
        self, key: npt.NDArray[Any], time: npt.NDArray[Any], after: bool = False
    ) -> tuple[Indices, FloatArray]:
        """The first entry of each key from (or after) a time on, -1 if none; and its time."""
        at = np.searchsorted(self.code, self._code(key, time, after), side="right")
        return self._found(at, key, np.inf)

    def _found(
        self, at: Indices, key: npt.NDArray[Any], otherwise: float
    ) -> tuple[Indices, FloatArray]:
        if len(self.code) == 0:
            return np.full(len(at), -1), np.full(len(at), otherwise)
        inside = np.clip(at, 0, len(self.code) - 1)
        found = (at == inside) & (self.key[inside] == key)
        return np.where(found, self.order[inside], -1), np.where(
            found, self.time[inside], otherwise
        )


class Trace:
    """A factor by key over time, 1 until it changes; how much it adds up to."""

    def __init__(self, key: IntArray, time: FloatArray, value: FloatArray) -> None:
        self.log, self.value, self.time = Log(key, time), value, time
        order, ordered = self.log.order, self.log.key
        total = np.zeros(len(key))
        for k in range(len(order)):  # changes of the machines are few
            same = k > 0 and ordered[k] == ordered[k - 1]
            i, j = order[k], order[k - 1]
            total[i] = total[j] + value[j] * (time[i] - time[j]) if same else time[i]
        self.total = total

    def until(self, key: npt.NDArray[Any], time: FloatArray) -> FloatArray:
        """The integral from 0 to the times."""
        at, since = self.log.last(key, time)
        if len(self.value) == 0:
            return time
        with np.errstate(invalid="ignore"):
            later = self.total[at] + self.value[at] * (time - since)
        return np.where(at < 0, time, later)

    def at(self, key: npt.NDArray[Any], time: FloatArray, before: bool) -> FloatArray:
        """The factor at (or just before) the times."""
        at, _ = self.log.last(key, time, before)
        return np.where(at < 0, 1.0, self.value[at]) if len(self.value) else np.ones(len(time))


class RunFacts:
    """What the rules ask of a record: who was there when, and what was held where."""

    def __init__(self, run: Run) -> None:
        self.run, self.wf, self.pf = run, run.workflow, run.platform
        self.end = run.makespan
        speeds = (e for e in run.changes if isinstance(e, SpeedChanged))
        self.availability = _trace((e.processor, e.time, e.availability) for e in speeds)
        links = (e for e in run.changes if isinstance(e, LinkChanged))
        self.bandwidth = _trace((e.link, e.time, e.bandwidth) for e in links)
        self._note_presence()

    def _note_presence(self) -> None:
        """Joins and losses of processors, and with them of hosts."""
        host, here = self.pf.host, self.pf.present(0.0).copy()
        there = np.bincount(host[here], minlength=self.pf.n_hosts)
        turns = [(p, -np.inf, bool(here[p])) for p in range(len(here))]
        host_turns = [(h, -np.inf, count > 0) for h, count in enumerate(there)]
        for e in self.run.changes:
            if isinstance(e, ProcessorJoined | ProcessorGone):
                joined = isinstance(e, ProcessorJoined)
                turns.append((e.processor, e.time, joined))
                h, was_there = int(host[e.processor]), there[host[e.processor]] > 0
                here[e.processor] = joined
                there[h] = np.count_nonzero(here[host == h])
                if (there[h] > 0) != was_there:
                    host_turns.append((h, e.time, joined))
        self.processors, self.processor_up = _turns(turns)
        self.hosts, self.host_up = _turns(host_turns)
        self.gone, _ = _turns([t for t in turns if not t[2]])
        self.losses, _ = _turns([t for t in host_turns if not t[2] and t[1] > -np.inf])
        n, hosts = self.wf.n_items, self.pf.n_hosts
        items = [
            ((e.place % n) * hosts + e.place // n, e.time)
            for e in self.run.changes
            if isinstance(e, ItemLost)
        ]
        self.item_losses, _ = _turns([(*item, False) for item in items])
        lost_at = [t[1] for t in host_turns if not t[2] and t[1] > -np.inf]
        lost_at += [time for _, time in items]
        self.any_loss = np.array(sorted(lost_at), dtype=np.float64)

    def host_there(self, host: IntArray, time: FloatArray) -> BoolArray:
        """Whether the host is there, or just comes or goes."""
        at, turned = self.hosts.last(host, time)
        there: BoolArray = self.host_up[at] | (turned == time)
        return there

    @cached_property
    def at_source(self) -> Indices:
        """Where each transfer comes from, as item x hosts + host."""
        t = self.run.transfers
        place: Indices = t.item.astype(np.int64) * self.pf.n_hosts + t.source
        return place

    @cached_property
    def gained(self) -> Log:
        """When items became complete on hosts, by item x hosts + host: made, or arrived."""
        a, t, hosts = self.run.attempts, self.run.transfers, self.pf.n_hosts
        made = np.flatnonzero((a.end == FINISHED) | (a.end == REWOUND))
        each, items = rows_of(self.wf.out_ptr, self.wf.out_item, a.task[made])
        came = np.flatnonzero(np.isfinite(t.arrival))
        key = [
            items.astype(np.int64) * hosts + self.pf.host[a.processor[made[each]]],
            t.item[came].astype(np.int64) * hosts + t.target[came],
        ]
        return Log(np.concatenate(key), np.concatenate([a.finish[made[each]], t.arrival[came]]))

    @cached_property
    def forgotten(self) -> Log:
        """When what was sent to a host was left behind, by item x hosts + host."""
        t = self.run.transfers
        k = np.flatnonzero(np.isfinite(t.forgotten))
        return Log(t.item[k].astype(np.int64) * self.pf.n_hosts + t.target[k], t.forgotten[k])

    def lost(self, where: Indices, host: IntArray, time: FloatArray, before: bool) -> FloatArray:
        """When an item was last lost or forgotten on a host, up to (or before) a time."""
        last = np.maximum(
            self.losses.last(host, time, before)[1], self.item_losses.last(where, time, before)[1]
        )
        return np.maximum(last, self.forgotten.last(where, time, before)[1])

    def held(self, item: IntArray, host: IntArray, time: FloatArray) -> BoolArray:
        """Whether the item was complete on the host and not lost since."""
        where = item.astype(np.int64) * self.pf.n_hosts + host
        at, since = self.gained.last(where, time)
        lost = self.lost(where, host, time, before=True)
        whole: BoolArray = (at >= 0) & (since >= lost)
        return whole

    def task(self, attempt: Any) -> str:
        """The task of an attempt, by name."""
        return repr(self.wf.task_names[self.run.attempts.task[attempt]])

    def processor(self, attempt: Any) -> str:
        """The processor of an attempt, by name."""
        return repr(self.pf.processor_names[self.run.attempts.processor[attempt]])

    def move(self, transfer: Any) -> str:
        """A transfer, by the names of its item and hosts."""
        t, hosts = self.run.transfers, self.pf.host_names
        name = self.wf.item_name(int(t.item[transfer]))
        return f"item {name!r} from {hosts[t.source[transfer]]!r} to {hosts[t.target[transfer]]!r}"


def _turns(rows: Iterable[tuple[int, float, bool]]) -> tuple[Log, BoolArray]:
    listed = list(rows)
    key = np.array([row[0] for row in listed], dtype=np.int64)
    time = np.array([row[1] for row in listed], dtype=np.float64)
    return Log(key, time), np.array([row[2] for row in listed], dtype=np.bool_)


def rows_of(pointers: IntArray, values: IntArray, rows: IntArray) -> tuple[Indices, IntArray]:
    """The values of some rows of a CSR structure: the place in `rows`, and the value."""
    counts = np.diff(pointers)[rows]
    each = np.repeat(np.arange(len(rows)), counts)
    first = np.repeat(pointers[:-1][rows] - (np.cumsum(counts) - counts), counts)
    return each, values[first + np.arange(len(each))]


def _trace(rows: Iterable[tuple[int, float, float]]) -> Trace:
    """Of whom, when and what."""
    columns = np.array(list(rows), dtype=np.float64).reshape(-1, 3)
    return Trace(columns[:, 0].astype(np.int32), columns[:, 1], columns[:, 2])
