"""The validator of runs: what is valid passes, and a record that breaks a rule is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from checks.known_runs import attempts, calm, changed_log, platform, transfers, without
from foreplan.checks.runs import InvalidRunError, check_run
from foreplan.model import ENDS, Estimates, Item, Run, Workflow
from foreplan.model.events import Event, LinkChanged, ProcessorGone, ProcessorJoined, SpeedChanged
from foreplan.simulation.reality import Reality
from simulation.worlds import Case, random_case

FINISHED, FAILED, REWOUND = ENDS.index("finished"), ENDS.index("failed"), ENDS.index("rewound")


@cache
def rough() -> Run:
    """Losses, a return, a rewound task, changes of speed, new plans."""
    for seed in range(200):
        run = random_case(seed, stops=False).run("always")
        ends = set(run.attempts.end.tolist())
        kinds = {type(e) for e in run.changes}
        cut = np.isinf(run.transfers.arrival).any()
        if {FAILED, REWOUND} <= ends and len(kinds) == 4 and cut and run.migrations == 0:
            return run
    raise AssertionError("no such run")


def planned(run: Run, n: int, task: int, **changed: Any) -> Run:
    """The run with another plan for one task."""
    plans = list(run.plans)
    plans[n] = changed_log(plans[n], task, changed)
    return replace(run, plans=tuple(plans))


def event(kind: type[Event], which: int, time: float, value: float = 0.0) -> tuple[Event, ...]:
    return (kind.of(which, time, value),)


BROKEN: dict[str, tuple[Callable[[Run], Run], str]] = {
    "unfinished": (lambda r: without(r, "attempts", 3), "task 'w' was finished 0 times"),
    "open": (lambda r: attempts(r, 3, end=0), "'w'.*not over"),
    "backwards": (lambda r: attempts(r, 2, finish=16.0), "'z'.*has no meaning"),
    "out of order": (lambda r: attempts(r, 2, start=9.0, finish=14.0), "'z'.*out of order"),
    "unknown end": (lambda r: attempts(r, 2, end=7), "'z'.*has no meaning"),
    "unknown task": (lambda r: attempts(r, 2, task=9), "attempt 2.*has no meaning"),
    "overlap": (lambda r: attempts(r, 1, finish=31.0, work=21.0), "'y' and 'w' overlap on 'p0'"),
    "twice": (lambda r: attempts(r, 3, task=1), "'y' was finished 2 times"),
    "failed": (lambda r: attempts(r, 3, end=FAILED), "'w' failed.*'p0' did not go"),
    "rewound": (lambda r: attempts(r, 3, end=REWOUND), "'w' was finished 0 times"),
    "more work": (lambda r: attempts(r, 3, work=5.0), "'w'.*did 4 of work.*needed 5"),
    "less work": (lambda r: attempts(r, 3, work=3.9), "'w'.*did 4 of work.*needed 3.9"),
    "speed": (
        lambda r: replace(r, changes=event(SpeedChanged, 0, 32.0, 0.5)),
        "'w'.*did 3 of work.*needed 4",
    ),
    "not yet joined": (
        lambda r: replace(r, platform=replace(r.platform, joins=np.array([0.0, 18.0, 0.0]))),
        "'z' ran from 17 to 22 on 'p1', which was not there",
    ),
    "gone": (
        lambda r: replace(r, changes=event(ProcessorGone, 1, 20.0)),
        "'z' ran from 17 to 22 on 'p1', which was not there",
    ),
    "input not there": (lambda r: transfers(r, 1, target=2), "'w' starts at 30.*input 'Z'"),
    "input too late": (lambda r: transfers(r, 0, arrival=17.5), "'z' starts.*input 'X'"),
    "never sent": (lambda r: without(r, "transfers", 0), "'z' starts at 17.*input 'X'"),
    "sent too early": (lambda r: transfers(r, 0, sent=9.0, arrival=16.0), "'X' from 'a' to 'b' is"),
    "sent from elsewhere": (lambda r: transfers(r, 0, source=2), "'X' from 'c' to 'b' is sent"),
    "sent from a lost host": (
        lambda r: replace(
            transfers(r, 1, sent=23.0, arrival=26.0),
            changes=(*event(ProcessorGone, 1, 22.5), *event(ProcessorJoined, 1, 22.8)),
        ),
        "'Z' from 'b' to 'a' is sent at 23, when it is not there",
    ),
    "sent to a lost host": (
        lambda r: replace(r, changes=event(ProcessorGone, 1, 9.0)),
        "'X' from 'a' to 'b' is sent at 10, when one of the hosts is gone",
    ),
    "too fast": (lambda r: transfers(r, 1, arrival=24.0), "'Z'.*arrives at 24: 1 of 2"),
    "too slow": (lambda r: transfers(r, 1, arrival=26.0), "'Z'.*arrives at 26: 3 of 2"),
    "startup": (lambda r: transfers(r, 1, arrival=22.5), "'Z'.*arrives at 22.5"),
    "bandwidth": (
        lambda r: replace(r, changes=event(LinkChanged, 3, 24.0, 0.5)),
        "'Z'.*arrives at 25: 1.5 of 2",
    ),
    "infinite": (lambda r: transfers(r, 1, arrival=np.inf), "'Z'.*no host was lost"),
    "overdue": (lambda r: transfers(r, 1, arrival=np.nan), "'Z'.*should have arrived"),
    "to itself": (lambda r: transfers(r, 1, target=1), "item 'Z'.*has no meaning"),
    "through a loss": (
        lambda r: replace(r, changes=event(ProcessorGone, 1, 23.0)),
        "'Z' from 'b' to 'a' goes on after a host was lost",
    ),
    "moved twice": (lambda r: _again(r, 12.0), "'X' from 'a' to 'b' is under way already"),
    "moved needlessly": (lambda r: _again(r, 18.0), "'X'.*is there since 17"),
    "absent joins": (
        lambda r: replace(r, changes=event(ProcessorJoined, 1, 23.0)),
        "ProcessorJoined.*cannot have happened",
    ),
    "other processor planned": (lambda r: planned(r, 0, 3, processor=2), "'w' starts on 'p0'"),
    "other order planned": (
        lambda r: planned(r, 0, 3, start=8.0, finish=9.0),
        "'(w|y)' starts on 'p0'",
    ),
    "planned into the past": (
        lambda r: planned(r, 0, 2, start=-5.0, finish=0.0),
        "task 'z' as it was then, or begins it too early: -5 to 0",
    ),
    "before the plan": (lambda r: replace(r, plan_times=(5.0,)), "'x' starts before the first"),
    "not taken": (lambda r: replace(r, plans=r.plans * 2, plan_times=(0.0, 9.0)), "not those"),
    "plans out of order": (
        lambda r: replace(r, plans=r.plans * 2, plan_times=(9.0, 0.0)),
        "not in the order",
    ),
}


def _again(run: Run, sent: float) -> Run:
    t = run.transfers
    more = {"item": 0, "source": 0, "target": 1, "sent": sent, "arrival": sent + 7.0}
    more["forgotten"] = np.inf
    columns = {name: np.insert(getattr(t, name), 1, value) for name, value in more.items()}
    return replace(run, transfers=replace(t, **columns))


@pytest.mark.parametrize("what", BROKEN)
def test_broken(what: str) -> None:
    change, message = BROKEN[what]
    with pytest.raises(InvalidRunError, match=message) as caught:
        check_run(change(calm()))
    assert caught.value.violations


def test_ideal_must_know() -> None:
    run = replace(planned(calm(), 0, 3, finish=calm().plans[0].finish[3] + 1), strategy="ideal")
    with pytest.raises(InvalidRunError, match="'w' was to take 5, but ideal knew 4"):
        check_run(run)


def test_nobody_estimated_that() -> None:
    cost = Estimates.declared(calm().workflow, calm().platform).cost.copy()
    check_run(calm(), Estimates(cost))
    cost[3, 0] += 1
    with pytest.raises(InvalidRunError, match="task 'w' a time that nobody estimated"):
        check_run(calm(), Estimates(cost))


def replanned() -> Run:
    """A quiet run with new plans: y runs while z is planned anew."""
    for seed in range(100):
        case = random_case(seed, quiet=True)
        run = case.run("always")
        a = run.attempts
        for n, now in enumerate(run.plan_times):
            if (
                (a.start < now) & (a.finish > now) & (run.plans[n].finish[a.task] != a.finish)
            ).any():
                return run
    raise AssertionError("no such run")


def test_a_plan_that_knows_the_future() -> None:
    """The actual finish of a task that runs is not known."""
    run = replanned()
    a, seen = run.attempts, 0
    for n, now in enumerate(run.plan_times):
        for k in np.flatnonzero((a.start < now) & (a.finish > now)):
            task = int(a.task[k])
            if run.plans[n].finish[task] != a.finish[k]:
                leaked = planned(run, n, task, finish=a.finish[k])
                leaked = replace(leaked, evaluations=_as_planned(leaked))
                name = run.workflow.task_names[task]
                with pytest.raises(InvalidRunError, match=f"does not know task '{name}'"):
                    check_run(leaked)
                seen += 1
    assert seen


def _as_planned(run: Run) -> Any:
    return tuple(
        replace(e, makespan=plan.makespan)
        for e, plan in zip(run.evaluations, run.plans[1:], strict=True)
    )


def test_a_plan_that_forgets_the_past() -> None:
    run = replanned()
    a, now = run.attempts, run.plan_times[-1]
    k = int(np.flatnonzero((a.start < now) & (a.finish < now))[0])
    task = int(a.task[k])
    for changed in ({"start": a.start[k] + 0.5}, {"finish": a.finish[k] + 0.5}):
        broken = planned(run, len(run.plans) - 1, task, **changed)
        broken = replace(broken, evaluations=_as_planned(broken))
        with pytest.raises(InvalidRunError, match=run.workflow.task_names[task]):
            check_run(broken)


def test_evaluations() -> None:
    run = replanned()
    assert run.considered
    with pytest.raises(InvalidRunError, match="evaluations are not in the order"):
        check_run(replace(run, evaluations=tuple(reversed(run.evaluations))))
    with pytest.raises(InvalidRunError, match="not those that were taken"):
        check_run(replace(run, evaluations=run.evaluations[1:]))


def test_a_rough_run_is_valid_until_it_is_changed() -> None:
    """Every small change of a fact is noticed, but where two orders are both possible."""
    run = rough()
    check_run(run)
    a, t = run.attempts, run.transfers
    for k in range(len(a.task)):
        if a.work[k] > 0:
            with pytest.raises(InvalidRunError):
                check_run(attempts(run, k, finish=a.finish[k] + 0.3))
        with pytest.raises(InvalidRunError):
            check_run(attempts(run, k, processor=(a.processor[k] + 1) % run.platform.n_processors))
        if a.end[k] == FINISHED:  # nobody misses an attempt that failed
            with pytest.raises(InvalidRunError):
                check_run(without(run, "attempts", k))
    for k in range(len(t.item)):
        if np.isfinite(t.arrival[k]):
            with pytest.raises(InvalidRunError):
                check_run(transfers(run, k, arrival=t.arrival[k] + 0.3))
            with pytest.raises(InvalidRunError):
                check_run(transfers(run, k, arrival=np.inf))
        elif np.isinf(t.arrival[k]):
            with pytest.raises(InvalidRunError):
                check_run(transfers(run, k, arrival=t.sent[k] + 1e6))
    with pytest.raises(InvalidRunError):
        check_run(replace(run, changes=()))


def test_a_large_run() -> None:
    n = 20_000
    items = [Item(1.0, i, [i + 1, i + 7]) for i in range(n - 7)]
    workflow = Workflow.from_items("w", [f"t{i}" for i in range(n)], np.ones(n), items)
    case = Case(workflow, platform(), Reality(np.ones((n, 3)) * 1.1))
    assert len(case.run("static").attempts.task) == n
