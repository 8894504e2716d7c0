"""What Dask's objects come to as a flow, computed here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cloudpickle

from foreplan.delayed import flow_of
from foreplan.flow import Flow, Task
from foreplan.model.call import filled, replaced


def results_of(flow: Flow) -> Callable[[Task], Any]:
    """Make the calls in order, here, after the journey that takes them to a worker."""
    results: dict[int, Any] = {}
    calls = cloudpickle.loads(cloudpickle.dumps(flow.build()[1] if len(flow) else ()))
    for i, call in enumerate(calls):
        results[i] = call.function(*filled(call.args, results), **filled(call.kwargs, results))
    return lambda task: results[flow.index(task)]


def computed(*values: Any, optimize: bool = True) -> tuple[Any, ...]:
    flow, outputs = flow_of(list(values), optimize=optimize)
    return tuple(replaced(outputs, Task, results_of(flow)))
