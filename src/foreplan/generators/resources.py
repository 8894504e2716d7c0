"""Drawn resources: what tasks ask for, and what hosts have; from streams of their own.

Tasks of one category ask for the same. Whatever is drawn here, the costs, volumes, speeds and links
of a seed stay as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from foreplan.arrays import FloatArray
from foreplan.errors import InputError
from foreplan.generators.limits import number, whole
from foreplan.model import Platform, TaskSpec, Workflow
from foreplan.model.amounts import Amount
from foreplan.model.resources import GPUS, MEMORY, Host, Request

_TASKS, _HOSTS = 1, 2  # the streams of a seed
_STEP = 1e6  # memory is drawn in whole MB


@dataclass(frozen=True)
class RequestOptions:
    """What tasks ask for: one of the cores each, and memory from a range.

    `cores` is like "1,2,4,8" and `memory` like "2GB" or "1GB..8GB"; empty: nothing. With a
    `parallel` share, tasks may take any of the cores instead.
    """

    cores: str = ""
    memory: str = ""
    parallel: float | None = None

    def __post_init__(self) -> None:
        widths = _widths(self.cores)
        _range("memory", self.memory)
        if self.parallel is not None:
            number("parallel", self.parallel, 0, 1)
            if list(widths) != sorted(set(widths)):
                raise InputError("with --parallel the numbers must ascend", place="cores")


def draw_requests(workflow: Workflow, requests: RequestOptions, seed: int = 0) -> Workflow:
    """The workflow with what its tasks ask for; those that cost nothing ask for nothing."""
    if requests == RequestOptions():
        return workflow
    categories = [workflow.spec(t).category for t in range(workflow.n_tasks)]
    alike = [c if c is not None else t for t, c in enumerate(categories)]
    kinds = {kind: k for k, kind in enumerate(dict.fromkeys(alike))}
    rng = _stream(seed, _TASKS)
    widths = _widths(requests.cores)
    chosen = rng.integers(len(widths), size=len(kinds)).tolist()
    memory = _drawn(rng, _range("memory", requests.memory), len(kinds))
    costs = np.where(np.isnan(workflow.base_cost), 0.0, workflow.base_cost)
    for cost in workflow.processor_cost.values():
        costs = costs + np.nan_to_num(cost)
    specs = dict(workflow.specs)
    for task, kind in enumerate(alike):
        k = kinds[kind]
        request = Request(
            cores=(widths[chosen[k]],) if requests.parallel is None else widths,
            parallel=requests.parallel,
            memory=None if memory is None else Amount(f"{memory[k] / _STEP:.0f}MB"),
        )
        if request != Request() and costs[task] > 0:
            specs[task] = replace(specs.get(task, TaskSpec()), request=request)
    return replace(workflow, specs=specs)


def with_amounts(platform: Platform, memory: str, gpus: int, seed: int = 0) -> Platform:
    """Hosts h0, h1, ... with cores h0-1, h0-2, ... and memory from a range, and so many GPUs."""
    bounds, each = _range("memory", memory), whole("gpus", gpus, 0)
    if bounds is None and not each:
        return platform
    drawn = _drawn(_stream(seed, _HOSTS), bounds, platform.n_hosts)
    hosts = [
        Host(
            f"h{h}",
            {
                **({} if drawn is None else {MEMORY: float(drawn[h])}),
                **({GPUS: float(each)} if each else {}),
            },
        )
        for h in range(platform.n_hosts)
    ]
    names, counts = list[str](), [0] * len(hosts)
    for h in platform.host.tolist():
        counts[h] += 1
        names.append(f"h{h}-{counts[h]}")
    return replace(
        platform,
        processor_names=tuple(names),
        host_names=tuple(host.name for host in hosts),
        hosts=tuple(hosts),
    )


def _stream(seed: int, which: int) -> np.random.Generator:
    entropy = np.random.SeedSequence(whole("seed", seed, 0, 2**128), spawn_key=(which,))
    return np.random.Generator(np.random.PCG64(entropy))


def _widths(text: str) -> tuple[int, ...]:
    """The numbers of cores; of an empty text, one."""
    if not text:
        return (1,)
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) <= 6 and int(word) > 0 for word in words):
        raise InputError(f"must be numbers from 1 on, like 1,2,4,8; not {text!r}", place="cores")
    return tuple(int(word) for word in words)


def _range(name: str, text: str) -> tuple[float, float] | None:
    """The least and the most of a range of amounts; None: nothing is said."""
    if not text:
        return None
    low, _, high = text.partition("..")
    try:
        bounds = [Amount(part) for part in (low, high or low)]
    except InputError as error:
        raise error.at(name) from None
    least, most = (bound.value(0.0) for bound in bounds)
    if not all(bound.is_fixed for bound in bounds) or least > most or least < _STEP:
        raise InputError(
            f"must be like 4GB or 1GB..8GB, and 1MB at least; not {text!r}", place=name
        )
    return least, most


def _drawn(
    rng: np.random.Generator, bounds: tuple[float, float] | None, count: int
) -> FloatArray | None:
    """Uniform within the bounds, in whole MB."""
    if bounds is None:
        return None
    low, high = (math.ceil(bounds[0] / _STEP), math.floor(bounds[1] / _STEP))
    return rng.integers(low, max(low, high) + 1, size=count).astype(np.float64) * _STEP
