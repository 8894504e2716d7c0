"""foreplan's HEFT beside a plain one in C++: the same arrays in, the same plan out."""

from __future__ import annotations

import ctypes
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import foreplan
from foreplan.arrays import FloatArray, IntArray
from foreplan.errors import InputError
from foreplan.generators import generate, generate_platform
from foreplan.model import Estimates, Platform, Schedule, Workflow
from foreplan_benchmarks.goals import Goal

SOURCE = Path(__file__).with_suffix(".cpp")
# As foreplan's own kernels are built: for every processor of the kind, and with exact results.
FLAGS = ("-std=c++17", "-O3", "-ffp-contract=off", "-shared", "-fPIC")
SIZES = ((1_000, 8), (1_000, 64), (10_000, 8), (10_000, 64), (100_000, 64))
SPREAD = 0.5  # of bandwidths, where links differ

Plan = tuple[IntArray, FloatArray, FloatArray]
PlainHeft = Callable[[Workflow, Platform, Estimates], Plan]


def compiler() -> str | None:
    """A C++ compiler, where there is one."""
    return next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)


@contextmanager
def built() -> Iterator[Path]:
    """The plain HEFT as a shared library, for as long as it is used."""
    command = compiler()
    if command is None:
        raise InputError("there is no C++ compiler here: c++, g++ or clang++")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "plain_heft.so"
        done = subprocess.run(
            [command, *FLAGS, "-o", str(made), str(SOURCE)], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise InputError(f"{command} cannot build {SOURCE.name}: {done.stderr.strip()[-500:]}")
        yield made


def load_plain_heft(library: Path) -> PlainHeft:
    """The plain HEFT: processor, start and finish of every task."""
    function = ctypes.CDLL(str(library)).plain_heft
    function.restype = None

    def plan(workflow: Workflow, platform: Platform, estimates: Estimates) -> Plan:
        n, link = workflow.n_tasks, platform.mean_link
        made = np.empty(n, dtype=np.int32), np.empty(n), np.empty(n)
        function(
            *map(ctypes.c_int32, (n, platform.n_processors, platform.n_hosts)),
            *map(_pointer, (workflow.order, workflow.in_ptr, workflow.in_item)),
            *map(_pointer, (workflow.item_size, workflow.item_producer, estimates.cost)),
            *map(_pointer, (platform.host, platform.startup, platform.time_per_unit)),
            *map(ctypes.c_double, (link.startup, link.time_per_unit)),
            *map(_pointer, made),
        )
        return made

    return plan


def _pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@dataclass(frozen=True)
class Pairs:
    """`foreplan.plan(workflow, platform, "heft")` and the plain HEFT in turns: medians."""

    tasks: int
    processors: int
    links: str  # alike, or differ
    edges: int
    foreplan_milliseconds: float
    plain_milliseconds: float
    ratio: float  # of the two calls of a pair
    first_ratio: float  # of the first calls in a process
    first_milliseconds: float  # foreplan's
    same: bool  # every processor, start and finish, to the bit

    @property
    def goal(self) -> Goal:
        """What the ratio should be at most, for the first calls too."""
        return Goal(1.6 if self.tasks <= 1_000 else 1.3)

    @property
    def verdict(self) -> str:
        """Whether the plans are the same and the goal is reached."""
        if not self.same:
            return "the plans differ"
        later, first = map(self.goal.verdict, (self.ratio, self.first_ratio))
        return later if later == first else f"{later}, at first {first}"


def instance(tasks: int, processors: int, links: str) -> tuple[Workflow, Platform]:
    """A random layered workflow with costs per processor, about five successors per task."""
    workflow = generate("random_layered", seed=1, tasks=tasks, out_degree=5, processors=processors)
    spread = SPREAD if links == "differ" else 0.0
    return workflow, generate_platform(processors, bandwidth_spread=spread, seed=1)


def beside_plain(tasks: int, processors: int, links: str, library: Path, firsts: int = 5) -> Pairs:
    """The whole call and the plain HEFT, in turns; and the first calls of processes of their own.

    The plain one is given the matrix of costs; foreplan finds it from what the files declare, in
    its first call, and knows it then.
    """
    workflow, platform = instance(tasks, processors, links)
    estimates, plain = Estimates.declared(workflow, platform), load_plain_heft(library)
    same = same_plans(
        foreplan.plan(workflow, platform, "heft"), plain(workflow, platform, estimates)
    )
    pairs = [
        _pair(workflow, platform, estimates, plain, turn)
        for turn in range(min(200, 10 + 400_000 // tasks))
    ]
    first = [_first_pair(tasks, processors, links, library, turn) for turn in range(firsts)]
    return Pairs(
        tasks=tasks,
        processors=processors,
        links=links,
        edges=workflow.n_edges,
        foreplan_milliseconds=1000 * statistics.median(a for a, _ in pairs),
        plain_milliseconds=1000 * statistics.median(b for _, b in pairs),
        ratio=statistics.median(a / b for a, b in pairs),
        first_ratio=statistics.median(a / b for a, b in first),
        first_milliseconds=1000 * statistics.median(a for a, _ in first),
        same=same,
    )


def same_plans(ours: Schedule, theirs: Plan) -> bool:
    """Whether every processor, start and finish is the same, to the bit."""
    mine: Plan = ours.processor, ours.start, ours.finish
    return all(mine[k].tobytes() == theirs[k].tobytes() for k in range(3))


def _pair(
    workflow: Workflow, platform: Platform, estimates: Estimates, plain: PlainHeft, turn: int
) -> tuple[float, float]:
    """Seconds of foreplan's call and of the plain one; who is first alternates."""
    took = [0.0, 0.0]
    for which in (turn % 2, 1 - turn % 2):
        begun = time.perf_counter()
        if which == 0:
            foreplan.plan(workflow, platform, "heft")
        else:
            plain(workflow, platform, estimates)
        took[which] = time.perf_counter() - begun
    return took[0], took[1]


def _first_pair(
    tasks: int, processors: int, links: str, library: Path, turn: int
) -> tuple[float, float]:
    """The same for the first calls of a process that has done no more than make the instance."""
    code = (
        "import json, sys; from foreplan_benchmarks.plain_heft import _first_pair_here;"
        "print(json.dumps(_first_pair_here(*sys.argv[1:])))"
    )
    command = [sys.executable, "-c", code, str(tasks), str(processors), links, str(library)]
    done = subprocess.run([*command, str(turn)], capture_output=True, text=True)
    if done.returncode != 0:
        raise InputError(f"planning {tasks} tasks failed: {done.stderr.strip()[-500:]}")
    ours, plain = json.loads(done.stdout)
    return ours, plain


def _first_pair_here(
    tasks: str, processors: str, links: str, library: str, turn: str
) -> tuple[float, float]:
    workflow, platform = instance(int(tasks), int(processors), links)
    _ = foreplan.load  # whoever has a workflow has loaded one
    estimates = Estimates(workflow.cost_matrix.copy())  # declared() would know its answer then
    return _pair(workflow, platform, estimates, load_plain_heft(Path(library)), int(turn))
