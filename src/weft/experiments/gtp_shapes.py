"""Graph shapes from `.stg` files: of their tasks and edges, without their costs."""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path

import numpy as np

from weft.errors import InputError
from weft.files import printable
from weft.formats import load
from weft.generators.graph import Graph
from weft.model import Workflow

Shapes = dict[int, list[tuple[str, Graph]]]  # by number of tasks, dummies not counted


@cache
def shapes(folder: str) -> Shapes:
    """The shapes of all files in a folder and below it, in the order of their paths."""
    found: Shapes = {}
    for path in stg_files(folder):
        workflow = load(path)
        shape = _shape(workflow)
        if len(shape.producers):
            found.setdefault(workflow.n_tasks - 2 * shape.dummies, []).append((path.stem, shape))
    if not found:
        raise InputError("there is no .stg file with edges", source=printable(folder))
    return dict(sorted(found.items()))


def stg_files(folder: str) -> list[Path]:
    """All `.stg` files in a folder and below it."""
    if not Path(folder).is_dir():
        raise InputError("no such folder", source=printable(folder))
    return sorted(path for path in Path(folder).rglob("*.stg") if path.is_file())


def digest(folder: str) -> str:
    """What tells the files of a folder from others."""
    checksum = 0
    for path in stg_files(folder):
        checksum = zlib.crc32(path.read_bytes(), zlib.crc32(path.name.encode(), checksum))
    return f"{checksum:08x}"


def _shape(workflow: Workflow) -> Graph:
    """Tasks in a topological order; the dummies of the set stay without costs."""
    n = workflow.n_tasks
    _, producers, consumers = workflow.dependencies()
    producers, consumers = workflow.position[producers], workflow.position[consumers]
    order = np.lexsort((consumers, producers))
    cost = workflow.base_cost[workflow.order]
    alone = (
        (np.bincount(consumers, minlength=n) == 0).sum(),
        (np.bincount(producers, minlength=n) == 0).sum(),
    )
    dummies = n > 2 and alone == (1, 1) and cost[0] == 0 and cost[-1] == 0
    names = [workflow.task_names[task] for task in workflow.order.tolist()]
    return Graph(names, producers[order], consumers[order], dummies=bool(dummies))
