"""What can be known before anything runs: the machines, and what the history lets expect there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import InputError
from weft.history.predictor import SAID, Prediction, Source
from weft.live.estimating import Estimating
from weft.live.machines import look_at
from weft.live.prices import price_rules, priced
from weft.model import Estimates, Expectation, Platform, Workflow
from weft.quantities import duration

NAMED = 5  # categories or tasks that are named one by one
ALIKE = "no task has a cost, so all count alike: a second at speed 1"


def expect(
    workflow: Workflow,
    platform: Platform | None = None,
    on: Any = None,
    directory: str | PathLike[str] = ".",
    use_history: bool = True,
    price: Any = None,
    warn: Callable[[str], None] = lambda text: None,
) -> Expectation:
    """What to plan with. On a platform declared costs hold, and the history tells of the others.

    Without one: the machines of `on`, and the estimates with which `weft run` would begin there.
    """
    if platform is None:
        return _here(workflow, "local" if on is None else on, directory, use_history, price, warn)
    if on is not None or price is not None:
        raise InputError("a platform says which machines there are, and their prices: leave it "
                         "out, or leave out `on` and `price`")  # fmt: skip
    if not workflow.silent.any():
        return Expectation.declared(workflow, platform)
    if use_history:
        estimating = Estimating.look_back(workflow, Path(directory), True, warn)
        machines = [platform.host_names[host] for host in platform.host.tolist()]
        prediction = estimating.expected(platform, machines)
        if not prediction.blind:
            return _completed(estimating, platform, prediction)
    declared = Estimates.declared(workflow, platform)  # which refuses if others have a cost
    return Expectation(platform, declared, ALIKE, blind=True)


def _here(
    workflow: Workflow,
    on: Any,
    directory: str | PathLike[str],
    use_history: bool,
    price: Any,
    warn: Callable[[str], None],
) -> Expectation:
    platform, machines = look_at(on)
    platform = priced(platform, lambda p: machines[p], price_rules(price))
    estimating = Estimating.look_back(workflow, Path(directory), use_history, warn)
    prediction = estimating.expected(platform, machines)
    return Expectation(
        platform,
        prediction.estimates,
        in_words(estimating, prediction),
        prediction.blind,
        on if isinstance(on, str) else "dask://",
    )


def _completed(estimating: Estimating, platform: Platform, prediction: Prediction) -> Expectation:
    """Declared costs where there are some, the history elsewhere; what nobody knows is typical."""
    wf = estimating.workflow
    cost = Estimates.declared(wf, platform, prediction.estimates.cost).cost.copy()
    source = np.where(wf.silent[:, None], prediction.source, np.uint8(Source.DECLARED))
    unknown = (source == Source.DEFAULT).all(axis=1)
    cost[unknown] = np.median(cost[~unknown], axis=0)
    rows = tuple(r if s else None for r, s in zip(prediction.rows, wf.silent, strict=True))
    found = Prediction(Estimates(cost), prediction.spread, source, blind=False, rows=rows)
    return Expectation(platform, found.estimates, in_words(estimating, found))


def in_words(estimating: Estimating, prediction: Prediction) -> str:
    """One line: how many tasks are known from where, from how many runs, and which are unknown."""
    if prediction.blind:
        return prediction.message()
    best = [Source(source) for source in prediction.source.min(axis=1).tolist()]
    parts = []
    for source, count in sorted(Counter(best).items()):
        tasks = [task for task, found in enumerate(best) if found == source]
        rows = {row for task in tasks if (row := prediction.rows[task]) is not None}
        text = f"{count} {SAID[source]}"
        if source == Source.DEFAULT:
            typical = float(np.median(prediction.estimates.cost[tasks]))
            names = (estimating.workflow.task_names[task] for task in tasks)
            text += f" ({_listed(names)}: {duration(typical)})"
        elif source != Source.DECLARED and rows:
            runs = estimating.history.n_runs(rows)
            names = (row.category for row in sorted(rows))
            text += f" ({_listed(names)}: {runs} run{'' if runs == 1 else 's'})"
        parts.append(text)
    return f"estimates of {len(best)} tasks: {', '.join(parts)}"


def _listed(names: Iterable[str]) -> str:
    every = list(dict.fromkeys(names))
    return ", ".join(every[:NAMED]) + (", ..." if every[NAMED:] else "")
