"""The dags of the IC experiments: familiar ones, random compositions, workflows, random dags.

Hall, Rosenberg, Venkataramani: A comparison of dag-scheduling strategies for Internet-based
computing, sections 4.1 and 5.1.1. All is drawn from a seed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from foreplan import api
from foreplan.arrays import IntArray
from foreplan.errors import InputError
from foreplan.files import printable
from foreplan.generators import generate
from foreplan.ic import Dag, ico, play, shapes
from foreplan.ic.heuristic import played_order_of
from foreplan.ic.shapes import COMPOSITIONS, compose

FFT, EVOLVING, REDUCTION = "fft", "evolving", "reduction"
GROWING, SHRINKING = "growing tree", "shrinking tree"
W, M, WNM, Q2 = COMPOSED = tuple(COMPOSITIONS)
WORKFLOW = "workflow"  # of a file; the case's number is its place in the folder

FAMILIAR: dict[str, Callable[[int], Dag]] = {
    FFT: shapes.butterfly,
    EVOLVING: shapes.evolving_mesh,
    REDUCTION: shapes.reduction_mesh,
    GROWING: shapes.expansive_tree,
    SHRINKING: shapes.reductive_tree,
}
RANDOM: dict[str, dict[str, Any]] = {  # random dags: the generator's options beside the size
    "layered, long": {"family": "random_layered", "alpha": 0.5},
    "layered": {"family": "random_layered", "alpha": 1.0},
    "layered, wide": {"family": "random_layered", "alpha": 2.0},
    "layered, jumps": {"family": "random_layered", "alpha": 1.0, "jump": 0},
    "sparse": {"family": "samepred", "predecessors": 2.0},
    "dense": {"family": "sameprob"},
    "layers of 10": {"family": "layrpred", "predecessors": 2.0},
}
NAMES = {
    FFT: "FFT",
    EVOLVING: "evolving mesh",
    REDUCTION: "reduction mesh",
    W: "W",
    M: "M",
    WNM: "W, N, M",
    Q2: "Q2",
}
SUFFIXES = (".json", ".yaml", ".yml", ".dag", ".dot", ".stg")


@dataclass(frozen=True, order=True)
class Case:
    """A dag by its parameters: `size` is rows, levels or vertices, as its family counts."""

    family: str
    size: int
    number: int = 0
    seed: int = 0

    def rng(self, purpose: int) -> np.random.Generator:
        """A stream for one purpose, whatever is drawn for others."""
        family = zlib.crc32(self.family.encode())
        return np.random.default_rng([self.seed, family, self.size, self.number, purpose])


@dataclass(frozen=True, eq=False)
class Instance:
    """A dag with the order that ICO, or for other dags `best_order`, gives."""

    name: str
    dag: Dag
    order: IntArray
    optimal: bool  # ICO has proved it


def name_of(family: str) -> str:
    """What a family is called in tables."""
    return NAMES.get(family, family)


def instance_of(case: Case, folder: str = "") -> Instance:
    """The dag of a case; a workflow is read from the folder."""
    if case.family == WORKFLOW:
        path = workflow_files(folder)[case.number]
        return scheduled(path.stem, Dag.from_workflow(api.load(path)))
    if case.family in FAMILIAR:
        return scheduled(name_of(case.family), FAMILIAR[case.family](case.size))
    if case.family in COMPOSED:
        return _composed(case)
    options = dict(RANDOM[case.family])
    seed = int(case.rng(0).integers(2**31))
    workflow = generate(str(options.pop("family")), seed=seed, tasks=case.size, **options)
    return scheduled(case.family, Dag.from_workflow(workflow))


def scheduled(name: str, dag: Dag) -> Instance:
    """A dag with the best order that we have."""
    found = ico(dag)
    return Instance(name, dag, played_order_of(dag, found), not found.failures)


def _composed(case: Case) -> Instance:
    """A composition; it is IC-optimal by its construction, and ICO must find as large an area."""
    made = compose(case.family, case.rng(0), case.size)
    order = ico(made.dag).order
    found = order is not None and play(made.dag, order).area == play(made.dag, made.order).area
    return Instance(name_of(case.family), made.dag, made.order, found)


def workflow_files(folder: str) -> list[Path]:
    """The workflows in a folder, by name."""
    if not Path(folder).is_dir():
        raise InputError("no such folder", source=printable(folder))
    found = (path for path in Path(folder).iterdir() if path.suffix.lower() in SUFFIXES)
    files = sorted(path for path in found if path.is_file())
    if not files:
        raise InputError("there is no workflow in this folder", source=printable(folder))
    return files


def digest(folder: str) -> str:
    """What tells the workflows of a folder from others."""
    checksum = 0
    for path in workflow_files(folder):
        checksum = zlib.crc32(path.read_bytes(), zlib.crc32(path.name.encode(), checksum))
    return f"{checksum:08x}"
