"""What planned runs cost beside runs without a plan, task by task, and how that grows with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from foreplan import api
from foreplan.model import Workflow
from foreplan_benchmarks.dask_speed import own_history

PLAIN, PLANNED = "fifo", ("slack", "adaptive")
GOAL = 1.1  # times the CPU of a run without a plan
Progress = Callable[[float], None]


@dataclass(frozen=True)
class Cost:
    """The CPU time of runs with one strategy: the median of all turns."""

    tasks: int
    strategy: str
    own: float  # milliseconds of foreplan's own process, per task
    commands: float  # of its children, likewise
    ratio: float  # own, over that of runs without a plan
    ratio_in_all: float  # the same with the commands
    considered: int  # new plans, the most in a turn
    report: float  # seconds until the journal is told

    @property
    def verdict(self) -> str:
        """Whether it is where it should be."""
        return "as it should be" if self.ratio <= GOAL else f"missed: goal {GOAL}"


@dataclass(frozen=True)
class Turn:
    """One run."""

    own: float
    commands: float
    considered: int
    report: float


def short_commands(tasks: int) -> Workflow:
    """Commands that do nothing but make a file each."""
    made = {f"t{k}": {"run": f"true > o{k}", "outputs": [f"o{k}"]} for k in range(tasks)}
    entries = {name: {**task, "category": "short"} for name, task in made.items()}
    return api.load({"name": "short", "tasks": entries})


def compare(
    sizes: Sequence[int],
    turns: int,
    report: Callable[[Path], object],
    progress: Progress = lambda share: None,
) -> list[Cost]:
    """Runs of so many tasks each, in turns, all but the first with a history; reports told."""
    found = list[Cost]()
    for number, tasks in enumerate(sizes):
        workflow, strategies = short_commands(tasks), (PLAIN, *PLANNED)
        seen: dict[str, list[Turn]] = {strategy: [] for strategy in strategies}
        with own_history() as folder:
            _run(workflow, PLAIN, folder, report)
            for turn in range(turns):
                for strategy in strategies:
                    seen[strategy].append(_run(workflow, strategy, folder, report))
                progress((number + (turn + 1) / turns) / len(sizes))
        found += [_cost(tasks, strategy, seen) for strategy in strategies]
    return found


def _run(workflow: Workflow, strategy: str, folder: str, report: Callable[[Path], object]) -> Turn:
    """One run from the start, and its report."""
    for file in Path(folder).glob("o*"):
        file.unlink()
    own, commands = time.process_time(), _children()
    outcome = api.run(workflow, "local:2", strategy, dir=folder, force=True, progress=False)
    own, commands = time.process_time() - own, _children() - commands
    assert outcome.ok, outcome.failures
    begun = time.process_time()
    report(outcome.home)
    return Turn(own, commands, outcome.run.considered, time.process_time() - begun)


def _children() -> float:
    import resource  # which only POSIX has

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cost(tasks: int, strategy: str, seen: dict[str, list[Turn]]) -> Cost:
    turns, plain = seen[strategy], seen[PLAIN]
    pairs = list(zip(turns, plain, strict=True))
    return Cost(
        tasks=tasks,
        strategy=strategy,
        own=1000 * median(t.own for t in turns) / tasks,
        commands=1000 * median(t.commands for t in turns) / tasks,
        ratio=median(t.own / p.own for t, p in pairs),
        ratio_in_all=median((t.own + t.commands) / (p.own + p.commands) for t, p in pairs),
        considered=max(t.considered for t in turns),
        report=median(t.report for t in turns),
    )
