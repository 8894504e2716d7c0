"""Random situations in which tasks need several cores, memory, GPUs and pools.

With `exact` all numbers are whole multiples of one, or powers of two of them.
"""

from __future__ import annotations

from dataclasses import replace
from math import nan

import numpy as np
from hypothesis import strategies as st

from foreplan import registry
from foreplan.arrays import FloatArray
from foreplan.model import (
    Attempts,
    Copies,
    Estimates,
    Item,
    Link,
    Platform,
    Processor,
    Reuse,
    Situation,
    TaskSpec,
    Transfers,
    Workflow,
)
from foreplan.model.amounts import Amount
from foreplan.model.resources import Cores, Host, Request, declared_needs

WIDTHS = ((1,), (1,), (2,), (3,), (1, 2), (1, 2, 4), (2, 4))


def demanding_situation(
    rng: np.random.Generator, n_tasks: int | None = None, at_start: bool = False
) -> Situation:
    """A moment of a run; every task fits on the first host, which is there and stays."""
    n = int(rng.integers(1, 18)) if n_tasks is None else n_tasks
    platform = _platform(rng, changes=not at_start and rng.random() < 0.5)
    workflow = _workflow(rng, n, platform)
    estimates = Estimates(_costs(rng, n, platform), declared_needs(workflow))
    situation = Situation.at_start(workflow, platform, estimates)
    if at_start or rng.random() < 0.2:
        return situation
    return _troubled(rng, _cut(rng, situation))


@st.composite
def demanding_situations(draw: st.DrawFn) -> Situation:
    """The same for Hypothesis; the size shrinks, the rest is drawn from a seed."""
    n_tasks = draw(st.integers(1, 18), label="tasks")
    at_start = draw(st.booleans(), label="at start")
    seed = draw(st.integers(0, 2**32 - 1), label="seed")
    return demanding_situation(np.random.default_rng(seed), n_tasks, at_start)


def _platform(rng: np.random.Generator, changes: bool) -> Platform:
    processors, has = [], {}
    for h in range(int(rng.integers(1, 4))):
        cores = 4 if h == 0 else int(rng.integers(1, 5))
        price = float(rng.integers(1, 4))
        for c in range(cores):
            leaves = float(rng.integers(20, 80)) if changes and h and rng.random() < 0.3 else np.inf
            processors.append(Processor(f"h{h}-{c + 1}", f"h{h}", price=price, leaves=leaves))
        amounts = {"memory": 8.0 if h == 0 else float(rng.integers(2, 9)), "gpus": 2.0}
        if h and rng.random() < 0.3:
            amounts = {}
        labels = ("fast",) if rng.random() < 0.5 else ()
        has[f"h{h}"] = Host(f"h{h}", amounts, labels, bool(rng.random() < 0.2))
    link = Link(float(rng.integers(0, 3)), float(rng.integers(0, 3)))
    return Platform.build(processors, link, has=has, pools={"seats": 2.0, "keys": 1.0})


def _workflow(rng: np.random.Generator, n: int, platform: Platform) -> Workflow:
    names = [f"t{t}" for t in range(n)]
    items = []
    for t in range(n - 1):
        readers = np.flatnonzero(rng.random(n - t - 1) < 2 / n) + t + 1
        if len(readers):
            items.append(Item(float(rng.integers(0, 6)), t, tuple(readers.tolist())))
    specs = {t: TaskSpec(request=_request(rng, platform)) for t in range(n) if rng.random() < 0.8}
    return Workflow.from_items("w", names, [1.0] * n, items, specs=specs)


def _request(rng: np.random.Generator, platform: Platform) -> Request:
    cores = WIDTHS[int(rng.integers(len(WIDTHS)))]
    seconds = (8.0, 4.0 + rng.integers(0, 3), 2.0 + rng.integers(0, 4))[: len(cores)]
    return Request(
        cores=cores,
        seconds=tuple(float(s) for s in seconds) if rng.random() < 0.7 else (),
        memory=Amount(str(int(rng.integers(0, 9)))) if rng.random() < 0.6 else None,
        gpus=int(rng.integers(0, 3)) if rng.random() < 0.3 else 0,
        pools=(("seats", float(rng.integers(1, 3))),) if rng.random() < 0.2 else (),
        not_on=("h1",) if rng.random() < 0.1 and platform.n_hosts > 1 else (),
    )


def _costs(rng: np.random.Generator, n: int, platform: Platform) -> FloatArray:
    """Mostly the cores of a host are equal."""
    by_host = rng.integers(1, 9, (n, platform.n_hosts)) * 2.0
    cost = np.asarray(by_host[:, platform.host], dtype=np.float64)
    if rng.random() < 0.3:
        cost += rng.integers(0, 3, cost.shape)
    return cost


def _cut(rng: np.random.Generator, situation: Situation) -> Situation:
    """What is known at one moment, if all went by a plan until then."""
    name = str(rng.choice(["heft", "dls", "max-min", "peft"]))
    past = registry.planner(name).plan(replace(situation, platform=_steady(situation.platform)))
    assert past.cores is None or past.needs is not None
    now = float(rng.integers(0, 1 + int(past.makespan)))
    begun = np.flatnonzero(past.start <= now).astype(np.int32)
    finish = np.where(past.finish[begun] <= now, past.finish[begun], nan)
    gone = situation.platform.leaves <= now
    lost = {int(t) for t in begun if gone[_held(past.cores, past.processor, int(t))].any()}
    lost = _with_readers(situation.workflow, lost)
    kept = np.array([t not in lost for t in begun.tolist()], dtype=np.bool_)
    begun, finish = begun[kept], finish[kept]
    cores = None if past.cores is None else past.cores.take(begun)
    attempts = Attempts(begun, past.processor[begun], past.start[begun], finish, cores=cores)
    return replace(situation, now=now, attempts=attempts)


def _steady(platform: Platform) -> Platform:
    """Nobody leaves."""
    return replace(platform, leaves=np.full(platform.n_processors, np.inf))


def _held(cores: Cores | None, processor: np.ndarray, task: int) -> list[int]:
    return [int(processor[task])] if cores is None else cores.of(task).tolist()


def _with_readers(workflow: Workflow, tasks: set[int]) -> set[int]:
    """These and all that depend on them."""
    _, producers, consumers = (column.tolist() for column in workflow.dependencies())
    for t in workflow.order.tolist():
        pairs = zip(producers, consumers, strict=True)
        if any(c == t and p in tasks for p, c in pairs):
            tasks.add(t)
    return tasks


def _troubled(rng: np.random.Generator, situation: Situation) -> Situation:
    """Slow machines, work that is done, copies, transfers, tasks given up."""
    n, pf, now = situation.workflow.n_tasks, situation.platform, situation.now
    a = situation.attempts
    if rng.random() < 0.4:
        rate = rng.choice([0.5, 1.0], pf.n_hosts)[pf.host]
        if rng.random() < 0.5:
            rate = rng.choice([0.5, 1.0], pf.n_processors)
        situation = replace(situation, availability=rate)
    if rng.random() < 0.5:
        worked = np.where(np.isnan(a.finish), rng.integers(0, 4, len(a.task)) * 1.0, 0.0)
        a = replace(a, worked=worked)
        situation = replace(situation, attempts=a)
    begun = set(a.task.tolist())
    if rng.random() < 0.3:
        waiting = [t for t in range(n) if t not in begun and rng.random() < 0.2]
        given_up = np.zeros(n, dtype=np.bool_)
        given_up[list(_with_readers(situation.workflow, set(waiting)) - begun)] = True
        situation = replace(situation, given_up=given_up)
    return replace(_known(rng, situation, begun, now), reuse=Reuse(int(rng.integers(0, 3))))


def _known(
    rng: np.random.Generator, situation: Situation, begun: set[int], now: float
) -> Situation:
    """Some items have been sent about, and some are where they were made no more."""
    wf, hosts, a = situation.workflow, situation.platform.n_hosts, situation.attempts
    done = set(a.task[~np.isnan(a.finish)].tolist())
    made_at = {
        int(t): int(situation.platform.host[p]) for t, p in zip(a.task, a.processor, strict=True)
    }
    there, moving, astray = [], [], np.zeros(wf.n_items, dtype=np.bool_)
    for item in range(wf.n_items):
        producer = int(wf.item_producer[item])
        if producer not in done:
            continue
        for host in range(hosts):
            if host != made_at[producer] and rng.random() < 0.2:
                there.append((item, host))
                astray[item] |= rng.random() < 0.3
            elif host != made_at[producer] and rng.random() < 0.1:
                moving.append((item, host, now + float(rng.integers(0, 9))))
    copies = Copies(*np.array(there, dtype=np.int32).reshape(-1, 2).T)
    rows = np.array(moving, dtype=np.float64).reshape(-1, 3).T
    transfers = Transfers(rows[0].astype(np.int32), rows[1].astype(np.int32), rows[2])
    return replace(situation, copies=copies, transfers=transfers, astray=astray)
