"""A state of a run that knows a few things only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from foreplan.engine.kernels.arrays import RunArrays
from foreplan.engine.state import RunState


def state_of(**arrays: Any) -> RunState:
    """As far as these arrays tell of it."""
    state = object.__new__(RunState)
    state.arrays = cast(RunArrays, SimpleNamespace(**{"most_cores": 0} | arrays))
    return state
