"""Whether a run that has lost machines has repeated what it had to, and nothing else.

Worked out from the record alone: its events are gone through in their order, the state of the run
is put together from them, and at every loss `foreplan.rewind_set` says what is needed again.
"""

from __future__ import annotations

import math
from collections import Counter

import foreplan
from foreplan.model import Run
from foreplan.model.events import (
    OWN_FAULT,
    Event,
    ItemArrived,
    ItemLost,
    ProcessorGone,
    ProcessorJoined,
    TaskFailed,
    TaskFinished,
)
from foreplan.model.record import ENDS
from model.told import what, whom

NOWHERE = -2  # where a result is that no memory holds
LOSSES = (ProcessorGone, ItemLost, TaskFailed)
CANCELLED = ENDS.index("cancelled")


class Walk:
    """The state of a run on processors that each have a host of their own, event by event."""

    def __init__(self, run: Run, reuse_copies: bool) -> None:
        assert run.events is not None
        assert sorted(run.platform.host.tolist()) == list(range(run.platform.n_hosts))
        self.run, self.reuse_copies = run, reuse_copies
        self.host = run.platform.host.tolist()
        workflow = run.workflow
        self.item_of = {int(p): i for i, p in enumerate(workflow.item_producer.tolist())}
        assert len(self.item_of) == workflow.n_items  # functions: one result each
        self.producer = dict(enumerate(workflow.item_producer.tolist()))
        self.edges = [
            (self.producer[i], task)
            for task in range(workflow.n_tasks)
            for i in workflow.in_item[workflow.in_ptr[task] : workflow.in_ptr[task + 1]].tolist()
        ]
        self.held: set[tuple[int, int]] = set()  # items on hosts
        self.done: dict[int, int] = {}  # the attempt by task
        self.running: dict[int, int] = {}  # likewise
        self.place: dict[int, int] = {}  # the processor of tasks that wait
        self.dead = {NOWHERE}
        self.expected: list[int] = []  # attempts whose results are needed again
        self._plans = self._started = 0

    def walk(self) -> list[int]:
        """The attempts that had to be rewound, in the order in which they began."""
        for event in self.run.events or ():
            self._catch_up(event.time, just_now=False)
            self._hear(event)
            self._catch_up(event.time, just_now=True)
        return sorted(self.expected)

    def _catch_up(self, now: float, just_now: bool) -> None:
        """Plans that were taken, and attempts that were begun, before this time or just then."""

        def has_come(time: float) -> bool:
            return time <= now if just_now else time < now

        run, log = self.run, self.run.attempts
        while True:
            plan = run.plan_times[self._plans] if self._plans < len(run.plans) else math.inf
            start = log.start[self._started] if self._started < len(log.task) else math.inf
            if has_come(plan) and plan <= start:
                self._take_plan(self._plans)
                self._plans += 1
            elif has_come(start):
                task = int(log.task[self._started])
                self.place.pop(task, None)
                self.running[task] = self._started
                self._started += 1
            else:
                return

    def _take_plan(self, which: int) -> None:
        run, log, now = self.run, self.run.attempts, self.run.plan_times[which]
        moved = [
            task
            for task, k in self.running.items()
            if log.end[k] == CANCELLED and log.finish[k] == now
        ]
        for task in moved:
            del self.running[task]
        waiting = set(range(run.workflow.n_tasks)) - self.done.keys() - self.running.keys()
        if moved:  # what is rewound now has no place in this plan
            self._rewind()
        self.place = {task: int(run.plans[which].processor[task]) for task in waiting}
        sent = run.transfers
        left = (sent.forgotten == now).nonzero()[0]
        self.held -= {(int(sent.item[k]), int(sent.target[k])) for k in left}

    def _hear(self, event: Event) -> None:
        log, which, is_loss = self.run.attempts, whom(event), type(event) in LOSSES
        match event:
            case TaskFinished():
                task = int(log.task[which])
                assert self.running.pop(task) == which
                self.done[task] = which
                if task in self.item_of:
                    self.held.add((self.item_of[task], self.host[log.processor[which]]))
            case TaskFailed():
                assert self.running.pop(int(log.task[which])) == which
            case ItemArrived():
                sent = self.run.transfers
                self.held.add((int(sent.item[which]), int(sent.target[which])))
            case ItemLost():
                host, item = divmod(which, self.run.workflow.n_items)
                is_loss = (item, host) in self.held  # else it is known
                self.held.discard((item, host))
            case ProcessorJoined():
                self.dead.discard(which)
            case ProcessorGone():
                self._gone(which)
        if is_loss:
            self._rewind()

    def _gone(self, processor: int) -> None:
        log, there = self.run.attempts, self.host[processor]
        self.dead.add(processor)
        self.held = {(item, host) for item, host in self.held if host != there}
        self.place = {task: p for task, p in self.place.items() if p != processor}
        for task in [t for t, k in self.running.items() if log.processor[k] == processor]:
            del self.running[task]

    def _rewind(self) -> None:
        """What is needed again now."""
        place: dict[int, int | None] = dict.fromkeys(range(self.run.workflow.n_tasks))
        place.update(self.place)
        processor = self.run.attempts.processor
        place.update({task: int(processor[k]) for task, k in self.running.items()})
        for task, k in self.done.items():
            item, p = self.item_of.get(task), int(processor[k])
            is_there = item is None or (item, self.host[p]) in self.held
            place[task] = p if is_there else NOWHERE  # it was lost there, or let go of
        whole: dict[int, set[int]] = {}
        for item, host in self.held:
            whole.setdefault(self.producer[item], set()).add(self.host.index(host))
        copies = {(i, j): whole.get(i, set()) for i, j in self.edges}
        arrived = [(i, j) for i, j in self.edges if j in self.running or place[j] in copies[i, j]]
        again = foreplan.rewind_set(
            self.edges, place, self.done, arrived, copies, self.dead, self.reuse_copies
        )
        for task in again:
            if task in self.done:
                self.expected.append(self.done.pop(task))


def repeated(run: Run) -> Counter[str]:
    """How often an attempt was followed by another one of its task, by how the first had ended."""
    log, last = run.attempts, dict[int, int]()
    found: Counter[str] = Counter()
    for k, task in enumerate(log.task.tolist()):
        if task in last:
            found[ENDS[log.end[last[task]]]] += 1
        last[task] = k
    return found


def check_only_needed(run: Run, reuse_copies: bool) -> Counter[str]:
    """Every attempt but the first of its task had to be; how many there are, by the reason."""
    log, events = run.attempts, run.events or ()
    expected = Walk(run, reuse_copies).walk()
    rewound = (log.end == ENDS.index("rewound")).nonzero()[0].tolist()
    assert rewound == expected, "not just the needed results were computed again"
    gone = {(e.processor, e.time) for e in events if isinstance(e, ProcessorGone)}
    losses = [e.time for e in events if isinstance(e, ProcessorGone | ItemLost)]
    told = {e.attempt: e for e in events if isinstance(e, TaskFailed)}
    for k in (log.end == ENDS.index("failed")).nonzero()[0].tolist():
        start, finish = float(log.start[k]), float(log.finish[k])
        if (int(log.processor[k]), finish) in gone:
            continue
        assert what(told[k]) != OWN_FAULT, told[k]
        # an input was lost, which is told before its readers fail
        assert any(start <= time <= finish for time in losses), told[k]
    for k in (log.end == CANCELLED).nonzero()[0].tolist():
        plan = run.plans[run.plan_times.index(float(log.finish[k]))]
        assert plan.processor[log.task[k]] != log.processor[k], "cancelled, but not to migrate"
    counts = repeated(run)
    assert set(counts) <= {"failed", "cancelled", "rewound"}
    assert len(log.task) == run.workflow.n_tasks + sum(counts.values())
    return counts
