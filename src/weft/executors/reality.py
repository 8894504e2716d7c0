"""The simulated world's truth. Only the simulated executor may look at it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from weft.arrays import FloatArray, frozen
from weft.errors import InputError
from weft.model import Estimates, Platform, Workflow
from weft.model.events import Event, EventKind


@dataclass(frozen=True, eq=False)
class Reality:
    """Actual work of every task on every processor, and what will happen to the machines."""

    work: FloatArray
    changes: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "work", frozen(self.work, np.float64))
        object.__setattr__(self, "changes", sorted(self.changes, key=lambda e: e.time))


def draw(
    workflow: Workflow,
    platform: Platform,
    estimates: Estimates,
    qoi: float = 0.0,
    seed: int = 0,
    per_processor: bool = False,
) -> Reality:
    """Durations within +-QoI of the estimate, uniform per task (or per task and processor)."""
    if not 0 <= qoi < 1:
        raise InputError(f"the QoI error must be from 0 to below 1, not {qoi:g}")
    rng = np.random.default_rng(seed)
    shape = estimates.cost.shape if per_processor else (workflow.n_tasks, 1)
    factor = rng.uniform(1 - qoi, 1 + qoi, shape) if qoi > 0 else np.ones(shape)
    return Reality(estimates.cost * factor, platform_changes(platform))


def platform_changes(platform: Platform) -> list[Event]:
    """Joins and leaves as the platform declares them."""
    joins = [Event(EventKind.JOINED, p, float(t)) for p, t in enumerate(platform.joins) if t > 0]
    leaves = [
        Event(EventKind.GONE, p, float(t)) for p, t in enumerate(platform.leaves) if np.isfinite(t)
    ]
    return joins + leaves
