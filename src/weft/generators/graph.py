"""A family's graph before it has costs, and the registry of families."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.arrays import FloatArray, IntArray

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
