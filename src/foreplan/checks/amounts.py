"""What attempts held of hosts and pools: never more than there is, and what their tasks take.

By a sweep over the record, which knows nothing of how it was decided.
"""

from __future__ import annotations

import numpy as np

from foreplan.arrays import FloatArray
from foreplan.checks.run_facts import TOLERANCE, RunFacts
from foreplan.model.estimates import Estimates
from foreplan.model.events import TaskFailed
from foreplan.model.resources import (
    GPUS,
    MEMORY,
    Demand,
    Needs,
    asks_by_inputs,
    declared_needs,
    pools_of,
)


def amounts_held(f: RunFacts, estimates: Estimates | None) -> list[str]:
    """No capacity is exceeded at any instant; widths and hosts are those that tasks may have."""
    log, needs = f.run.attempts, estimates.needs if estimates is not None else None
    if log.amount is None:
        wanted = needs is not None and len(log.task) > 0
        return ["tasks have needs, but no attempt says what it held"] if wanted else []
    needs = needs or declared_needs(f.wf)
    kinds, pools = (needs.kinds, needs.pools) if needs is not None else ((MEMORY, GPUS), ())
    violations = []
    for k, kind in enumerate(kinds):
        has = f.pf.host_amounts(kind)
        for host in range(f.pf.n_hosts):
            here = f.pf.host[log.processor] == host
            most = _most_at_once(log.start[here], log.finish[here], log.amount[here, k])
            if most > has[host] * (1 + TOLERANCE):
                name = f.pf.host_names[host]
                violations.append(
                    f"{most:g} of {kind} are held on {name!r}, which has {has[host]:g}"
                )
    sizes = pools_of(f.wf, f.pf)
    for k, pool in enumerate(pools):
        size = sizes.get(pool, 0.0)
        most = _most_at_once(log.start, log.finish, log.amount[:, len(kinds) + k])
        if most > size * (1 + TOLERANCE):
            violations.append(f"{most:g} of the pool {pool!r} are held, which has {size:g}")
    return violations + ([] if needs is None else _as_needed(f, needs))


def _most_at_once(start: FloatArray, finish: FloatArray, amount: FloatArray) -> float:
    """The largest sum at any instant; what ends just then makes room for what begins."""
    lasting = finish > start
    times = np.concatenate([finish[lasting], start[lasting]])
    change = np.concatenate([-amount[lasting], amount[lasting]])
    order = np.argsort(times, kind="stable")  # ends stand before starts
    return float(np.cumsum(change[order]).max(initial=0.0))


def _as_needed(f: RunFacts, needs: Needs) -> list[str]:
    """Widths that tasks may take, hosts that admit them, and the amounts that they need."""
    log, violations = f.run.attempts, list[str]()
    assert log.cores is not None
    assert log.amount is not None
    demand, host = Demand.of(f.wf, f.pf, needs), f.pf.host[log.processor]
    width = np.isnan(needs.factor_of(log.task, log.cores.width))
    violations += [
        f"task {f.task(k)} has {log.cores.width[k]} cores" for k in np.flatnonzero(width)
    ]
    astray = ~demand.allowed[log.task, host]
    failed = any(isinstance(e, TaskFailed) for e in f.run.events or ())
    if f.run.new_estimates or failed:  # needs have changed, or may have
        return violations
    violations += [
        f"task {f.task(k)} runs on {f.processor(k)}, whose host does not suit it"
        for k in np.flatnonzero(astray)
    ]
    other = (log.amount != needs.amount[log.task]).any(axis=1)
    if f.run.real:  # by what was there when they began
        other &= ~np.isin(log.task, asks_by_inputs(f.wf))
    return violations + [
        f"task {f.task(k)} holds {log.amount[k].tolist()}, and needs {needs.amount[t].tolist()}"
        for k, t in zip(np.flatnonzero(other), log.task[other], strict=True)
    ]
