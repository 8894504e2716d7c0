"""What the figures depend on: readings of the paper other than ours, each on the same DAGs.

A column is named "shape|reading"; that of HEFT without insertion is what the readings without
insertion are compared with.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.experiments import aheft_runs as runs
from weft.experiments.aheft_cases import (
    NO_LEVELS,
    RANDOM,
    SHAPES,
    Dag,
    Instance,
    Model,
    machines,
    waves,
)
from weft.experiments.aheft_loop import FREE, FREE_TO_NEW, LETTER, Reading, run_loop

LOOPS = {
    "letter": Reading(LETTER),
    "append": Reading(LETTER, insertion=False),
    "append, none join": Reading(LETTER, insertion=False, newcomers=False),
    "free to new": Reading(FREE_TO_NEW),
    "free": Reading(FREE),
}
BASE = {"append": "heft append", "append, none join": "heft append", "aheft append": "heft append"}


def compare(dag: Dag, some: tuple[Model, ...]) -> runs.Columns:
    """All readings of one DAG on some resource models."""
    found: runs.Columns = {}
    for shape in SHAPES if dag.kind == RANDOM else (NO_LEVELS,):
        instance = Instance(dag, shape)
        for model in some:
            for name, makespan in _read(instance, model):
                found.setdefault(f"{shape}|{name}", []).append(makespan)
    return found


def _read(instance: Instance, model: Model) -> Iterator[tuple[str, float]]:
    alone = Model(model.pool, 1.0, 0.0)
    heft = float(runs.simulate(instance, alone, runs.HEFT, 0.0).makespan)
    yield "heft", heft
    yield "aheft", float(runs.simulate(instance, model, runs.AHEFT, heft).makespan)
    if instance.dag.kind == RANDOM:
        yield "minmin", float(runs.simulate(instance, model, runs.MIN_MIN, heft).makespan)
    for name, reading in LOOPS.items():
        first, last = _loop(instance, model, reading, heft)
        if name == "append":
            yield "heft append", first
        yield name, last


def _loop(instance: Instance, model: Model, reading: Reading, until: float) -> tuple[float, float]:
    """First and last makespan; machines join as long as the last plan lasts."""
    while True:
        times = waves(model.interval, until)
        platform, _ = machines(model, times)
        estimates = instance.estimates(platform.n_processors)
        first, last, _ = run_loop(instance.workflow, platform, estimates, reading)
        if last <= model.interval * (times + 1):
            return first, last
        until = 2 * model.interval * (times + 1)
