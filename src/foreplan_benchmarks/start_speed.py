"""Whole processes, from their start: what commands take on a machine that never ran foreplan."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from foreplan import formats
from foreplan.errors import InputError
from foreplan.generators import generate, generate_platform
from foreplan_benchmarks.goals import Goal

FOREPLAN = (
    sys.executable,
    "-c",
    "import sys; from foreplan.cli import main; sys.argv[0] = 'foreplan'; main()",
)
NUMPY = (sys.executable, "-c", "import numpy")
FIRST_PLAN = """
import sys, time
import foreplan
workflow, platform = foreplan.load(sys.argv[1]), foreplan.load_platform(sys.argv[2])
begun = time.perf_counter()
foreplan.plan(workflow, platform, "heft")
print(time.perf_counter() - begun)
"""
CLUSTER = {  # two fast nodes, a server with four cores, a laptop behind a slow link
    "processors": {
        **{name: {"speed": 2.0, "price": 0.9} for name in ("fast1", "fast2")},
        **{f"old{k}": {"speed": 0.8, "price": 0.2, "host": "old"} for k in range(4)},
        "laptop": {"speed": 1.2, "price": 0.1},
    },
    "network": {"bandwidth": 50, "startup": 0.05},
    "links": [["laptop", host, {"bandwidth": 8}] for host in ("fast1", "fast2", "old")],
}


@dataclass(frozen=True)
class Started:
    """What processes took: the median of several."""

    what: str
    measured: float
    unit: str
    processes: int
    goal: Goal

    @property
    def verdict(self) -> str:
        """Whether it is where it should be."""
        return self.goal.verdict(self.measured)


@dataclass(frozen=True)
class Taken:
    """One process: seconds by the clock, and of a processor, that of its children included."""

    wall: float
    cpu: float
    printed: str


def start_times(
    processes: int = 5, progress: Callable[[float], None] = lambda share: None
) -> list[Started]:
    """Each command several times, with empty caches and without a history."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_inputs(folder)
        found = []
        for number, part in enumerate(PARTS):
            progress(number / len(PARTS))
            found.append(part(folder, processes))
        return found


def _write_inputs(folder: Path) -> None:
    """A Montage of 123 tasks on a small cluster, ten tasks, and a thousand."""
    formats.save(generate("montage", seed=7, images=24), folder / "montage.yaml")
    formats.save_platform(formats.load_platform(CLUSTER), folder / "cluster.yaml")
    formats.save(generate("random_layered", seed=1, tasks=10, processors=3), folder / "ten.yaml")
    formats.save_platform(generate_platform(3, seed=1), folder / "three.yaml")
    thousand = generate("random_layered", seed=1, tasks=1_000, out_degree=5)
    formats.save(thousand, folder / "thousand.json")
    formats.save_platform(generate_platform(8, seed=1), folder / "eight.yaml")


def _compare(folder: Path, processes: int) -> Started:
    command = [*FOREPLAN, "compare", "montage.yaml", "-p", "cluster.yaml"]
    command += ["--strategies", "static,slack,always", "--runs", "50"]
    cpu = _median(lambda: _take(command, folder).cpu, processes)
    what = "foreplan compare, 3 strategies x 50, montage"
    return Started(what, cpu, "s of CPU", processes, Goal(3.0))


def _budget(folder: Path, processes: int) -> Started:
    command = [*FOREPLAN, "plan", "montage.yaml", "-p", "cluster.yaml", "--budget", "120"]
    cpu = _median(lambda: _take(command, folder).cpu, processes)
    return Started("foreplan plan --budget, 123 tasks", cpu, "s of CPU", processes, Goal(1.5))


def _pareto(folder: Path, processes: int) -> Started:
    command = [*FOREPLAN, "plan", "montage.yaml", "-p", "cluster.yaml", "--pareto", "money.svg"]
    wall = _median(lambda: _take(command, folder).wall, max(1, processes // 2))
    what = "foreplan plan --pareto, 123 tasks"
    return Started(what, wall, "s", max(1, processes // 2), Goal(8.0))


def _ten_tasks(folder: Path, processes: int) -> Started:
    """In turns with an import of numpy: the median of the pairs."""
    command = [*FOREPLAN, "plan", "ten.yaml", "-p", "three.yaml"]

    def ratio() -> float:
        bare = _take(NUMPY, folder).wall
        return _take(command, folder).wall / bare

    what = "foreplan plan, 10 tasks, over `import numpy`"
    return Started(what, _median(ratio, 3 * processes), "times", 3 * processes, Goal(2.0))


def _first_plan(folder: Path, processes: int) -> Started:
    command = [sys.executable, "-c", FIRST_PLAN, "thousand.json", "eight.yaml"]
    milliseconds = _median(lambda: 1000 * float(_take(command, folder).printed), processes)
    what = "first foreplan.plan of a process, 1,000 tasks"
    return Started(what, milliseconds, "ms", processes, Goal(5.0))


def _median(measure: Callable[[], float], times: int) -> float:
    measure()  # writes the bytecode, which an installed foreplan has
    return statistics.median(measure() for _ in range(times))


def _take(command: list[str] | tuple[str, ...], folder: Path) -> Taken:
    """Run a command where nothing is cached, and nothing is known from before."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "XDG_CACHE_HOME": home, "FOREPLAN_HOME": home}
        environment |= {"MPLCONFIGDIR": home, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        begun, used = time.perf_counter(), os.times()
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
        wall, after = time.perf_counter() - begun, os.times()
    if done.returncode != 0:
        raise InputError(f"{' '.join(command[3:])} failed: {done.stderr.strip()[-500:]}")
    cpu = after.children_user + after.children_system - used.children_user - used.children_system
    return Taken(wall, cpu, done.stdout)


PARTS = [_compare, _budget, _pareto, _ten_tasks, _first_plan]
