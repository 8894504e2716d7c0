"""A family's graph before it has costs, and the registry of families."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from foreplan.arrays import FloatArray, IntArray
from foreplan.generators.limits import MAX_TASKS, check_size

Indices = npt.NDArray[np.integer[Any]]  # of any width; edge_list makes them IntArray


@dataclass(frozen=True, eq=False)
class Profile:
    """What a realistic family knows of its tasks: one output file each, in order of the tasks."""

    seconds: FloatArray  # per task, at speed 1
    size: FloatArray  # of the task's output, in MB; one file however many tasks read it
    categories: list[str]
    files: list[str]
    spread: float  # relative width of the noise around the seconds and the sizes


@dataclass(frozen=True, eq=False)
class Graph:
    """Tasks in a topological order, and edges in order of their producers."""

    tasks: list[str]
    producers: IntArray
    consumers: IntArray
    profile: Profile | None = None
    categories: list[str] | None = None  # of the tasks of a graph without a profile, if they matter
    dummies: bool = False  # the first and the last task cost nothing, and their edges carry nothing


@dataclass(frozen=True)
class Family:
    """A generator of graphs: its name, its function, and the function's options by default."""

    name: str
    build: Callable[..., Graph]

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (inspect.getdoc(self.build) or "").partition("\n")[0]

    @property
    def options(self) -> dict[str, object]:
        """The family's own options with their defaults; the generator of numbers is none."""
        _, *options = inspect.signature(self.build).parameters.values()
        return {option.name: option.default for option in options}


REGISTERED: dict[str, Family] = {}


def family(build: Callable[..., Graph]) -> Callable[..., Graph]:
    """Register a function as the family of its name: (rng, its options) -> Graph."""
    REGISTERED[build.__name__] = Family(build.__name__, build)
    return build


def edge_list(*parts: tuple[Indices, Indices]) -> tuple[IntArray, IntArray]:
    """Groups of (producers, consumers) as one list, in order of producers, then consumers."""
    producers = np.concatenate([np.asarray(p, dtype=np.int32).ravel() for p, _ in parts])
    consumers = np.concatenate([np.asarray(c, dtype=np.int32).ravel() for _, c in parts])
    order = np.lexsort((consumers, producers))
    return producers[order], consumers[order]


def numbered(prefix: str, count: int) -> list[str]:
    """The names prefix0, prefix1, ..."""
    return [f"{prefix}{i}" for i in range(count)]


def in_steps(steps: Mapping[str, int | None]) -> Graph:
    """Steps one after the other, each a category: a single job (None) or that many, numbered.

    Between two numbered steps, which must be of one size, job i feeds job i; else all feed all.
    """
    sizes = [count or 1 for count in steps.values()]
    check_size("tasks", sum(sizes), MAX_TASKS)
    starts = np.cumsum([0, *sizes])
    jobs = [np.arange(a, b, dtype=np.int32) for a, b in pairwise(starts)]
    between = [np.broadcast_arrays(a, b) for a, b in pairwise(jobs)]
    producers, consumers = edge_list(*[(a, b) for a, b in between])
    names: list[str] = []
    for kind, count in steps.items():
        names += [kind] if count is None else numbered(f"{kind}_", count)
    categories = [kind for kind, size in zip(steps, sizes, strict=True) for _ in range(size)]
    return Graph(names, producers, consumers, categories=categories)
