"""How late tasks may be: slack, spare time and the critical tasks, of a plan and of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, FrozenArrays, IntArray
from foreplan.errors import InputError
from foreplan.model import Schedule
from foreplan.model.resources import held
from foreplan.quantities import many
from foreplan.scheduling.critical import Arrivals, Spans, Step, arrivals_of, chain, spans_of_plan
from foreplan.scheduling.slack import ROUNDING, slack_and_spare

if TYPE_CHECKING:
    from foreplan.model import Run

LISTED = 8  # tasks of a critical path that are named in a line


@dataclass(frozen=True, eq=False)
class Margins(FrozenArrays):
    """Of every task: how much later it may end (Zhao, Sakellariou, section 2).

    `slack`: and all ends when it does now. `spare`: and no other task starts later. `critical`: it
    may not be late at all. `path` is the chain of tasks that decides the end, and what each waited
    for.
    """

    slack: FloatArray
    spare: FloatArray
    critical: BoolArray
    path: tuple[Step, ...]

    def in_words(self, names: tuple[str, ...]) -> str:
        """The critical path, and how many tasks have no slack."""
        path = [names[step.task] for step in self.path]
        if len(path) > LISTED:
            path[LISTED // 2 : -LISTED // 2] = [f"... {len(path) - LISTED:,} more ..."]
        without = f"{int(self.critical.sum()):,} of {many(len(names), 'task')}"
        return f"{' -> '.join(path)}; no slack: {without}"


def margins(shown: Schedule | Run) -> Margins:
    """Slack, spare time and critical tasks of a plan, or of a run in which every task is done.

    Of a run they tell how much later tasks could have ended, in the order in which all happened.
    """
    if isinstance(shown, Schedule):
        slack, spare = slack_and_spare(shown)
        return _margins(slack, spare, spans_of_plan(shown), arrivals_of(shown))
    last = shown.final_attempts()
    if missing := int(np.count_nonzero(last < 0)):
        raise InputError(
            f"{many(missing, 'task')} of {len(last):,} not done: "
            "slack is of plans, and of runs that did everything"
        )
    all_of = margins_of_attempts(shown)
    task = shown.attempts.task
    path = tuple(Step(int(task[step.task]), step.bound, step.item) for step in all_of.path)
    return Margins(all_of.slack[last], all_of.spare[last], all_of.critical[last], path)


def plan_to_dict(schedule: Schedule) -> dict[str, Any]:
    """What `foreplan plan --json` prints: the schedule, and how late its tasks may be."""
    names, late, content = schedule.workflow.task_names, margins(schedule), schedule.to_dict()
    tasks = content.pop("tasks")
    figures = zip(
        names, late.slack.tolist(), late.spare.tolist(), late.critical.tolist(), strict=True
    )
    for name, slack, spare, critical in figures:
        tasks[name] |= {"slack": slack, "spare": spare, "critical": critical}
    return {**content, "critical_path": [names[step.task] for step in late.path], "tasks": tasks}


def margins_of_attempts(run: Run, reads: Any = None) -> Margins:
    """The same by attempt: one that failed may be as late as the next attempt at its task."""
    from foreplan.scheduling.attempts import made_within, reads_of, spans_of_run

    spans = spans_of_run(run)
    arrivals = made_within(reads_of(run) if reads is None else reads)
    slack, spare = _between(spans, arrivals, _tried_again(run.attempts.task))
    return _margins(slack, spare, spans, arrivals)


def _margins(slack: FloatArray, spare: FloatArray, spans: Spans, arrivals: Arrivals) -> Margins:
    """Who is on the critical path has no slack, even if it was memory that the next waited for."""
    path = tuple(chain(spans, arrivals))
    slop = ROUNDING * max(1.0, float(spans.finish.max(initial=0.0)))
    slack = np.where(slack <= slop, 0.0, slack)
    slack[[step.task for step in path]] = 0.0
    spare = np.minimum(np.where(spare <= slop, 0.0, spare), slack)
    return Margins(slack, spare, slack == 0, path)


def _tried_again(task: IntArray) -> tuple[IntArray, IntArray]:
    """Each attempt before the next one at the same task."""
    order = np.argsort(task, kind="stable").astype(np.int32)
    same = task[order[:-1]] == task[order[1:]]
    return order[:-1][same], order[1:][same]


def _between(
    spans: Spans, arrivals: Arrivals, more: tuple[IntArray, IntArray]
) -> tuple[FloatArray, FloatArray]:
    """Slack and spare time by who ran after whom, and by who read what when it was there."""
    rows, processors = held(spans.processor, spans.cores)
    order = np.lexsort((spans.position[rows], spans.finish[rows], spans.start[rows], processors))
    rows, processors = rows[order], processors[order]
    next_here = processors[:-1] == processors[1:]
    before = np.concatenate([rows[:-1][next_here], more[0], arrivals.producer])
    after = np.concatenate([rows[1:][next_here], more[1], arrivals.consumer])
    takes = np.zeros(len(before))
    if len(arrivals.producer):
        takes[-len(arrivals.producer) :] = arrivals.arrival - arrivals.sent
    room = spans.start[after] - spans.finish[before] - takes
    in_time = np.lexsort((spans.position, spans.finish, spans.start))
    place = np.empty(len(in_time), dtype=np.int64)
    place[in_time] = np.arange(len(in_time))
    spare = spans.finish.max(initial=0.0) - spans.finish
    slack = spare.copy()
    for e in np.argsort(-place[before], kind="stable").tolist():
        first, second = int(before[e]), int(after[e])
        spare[first] = min(spare[first], room[e])
        slack[first] = min(slack[first], slack[second] + room[e])
    return slack, spare
