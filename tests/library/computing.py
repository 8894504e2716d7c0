"""What Dask's objects come to as a flow, computed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from foreplan.delayed import flow_of
from foreplan.executors.calls import load_call, pack_call
from foreplan.flow import Flow, Task
from foreplan.model.call import Call, replaced


def make_call(call: Call | None, results: Mapping[int, Any]) -> Any:
    """Make a call here, after the journey that takes it to a worker."""
    assert call is not None
    names = dict.fromkeys(results, "")
    function, args, kwargs = load_call(pack_call(call)[0], results.__getitem__, names, "")
    return function(*args, **kwargs)


def results_of(flow: Flow) -> Callable[[Task], Any]:
    """Make the calls in order, here."""
    results: dict[int, Any] = {}
    for i, call in enumerate(flow.build()[1] if len(flow) else ()):
        results[i] = make_call(call, results)
    return lambda task: results[flow.index(task)]


def computed(*values: Any, optimize: bool = True) -> tuple[Any, ...]:
    flow, outputs = flow_of(list(values), optimize=optimize)
    return tuple(replaced(outputs, Task, results_of(flow)))
