"""Runs in processes of their own, to be killed; and what must hold of them afterwards."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from foreplan.checks.runs import check_run
from foreplan.model.events import TaskFinished
from foreplan.runs.home import RunHome, runs
from foreplan.runs.journal import read
from foreplan.runs.replay import Replayed, replay
from model.told import whom

LIMIT = 120.0  # seconds for anything that is waited for: a hang fails, a slow machine does not
MODULUS = 1_000_003
MARK = "FOREPLAN_CHAOS_RECORDS"
CLI = "import sys; from foreplan.cli import main; sys.argv[0] = 'foreplan'; sys.exit(main())"


def until(holds: Callable[[], Any], what: str, limit: float = LIMIT) -> Any:
    """Poll for something that only a file or the system can tell; its value."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if value := holds():
            return value
        time.sleep(0.001)
    pytest.fail(f"{what}: not after {limit:g} seconds")


@contextmanager
def limited(seconds: float = LIMIT) -> Iterator[None]:
    """What is called here, in the main thread, fails if it does not end in time."""

    def too_long(number: int, frame: FrameType | None) -> None:
        pytest.fail(f"it hangs: not over after {seconds:g} seconds")  # which nobody catches

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Place:
    """A data directory, and beside it the records of what was executed in it."""

    data: Path
    records: Path
    history: Path
    environment: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def make(base: Path) -> Place:
        place = Place(base / "data", base / "records", base / "history")
        place.data.mkdir()
        place.records.mkdir()
        return place

    @property
    def variables(self) -> dict[str, str]:
        """The environment of processes in the data directory."""
        marks = {MARK: str(self.records), "FOREPLAN_HOME": str(self.history), "NO_COLOR": "1"}
        return {**os.environ, **marks, **self.environment}

    def begin(self, *command: str) -> subprocess.Popen[str]:
        """A process in the data directory."""
        return subprocess.Popen(
            command,
            cwd=self.data,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def foreplan(self, *arguments: str) -> subprocess.Popen[str]:
        """The command line, in the data directory."""
        return self.begin(sys.executable, "-c", CLI, *arguments)

    def home(self) -> RunHome | None:
        """The newest run, once it has a journal."""
        found = runs(self.data)
        return found[0] if found else None

    def the_home(self) -> RunHome:
        home = self.home()
        assert home is not None
        return home

    def journal_length(self) -> int:
        """How many lines the journal has."""
        home = self.home()
        return 0 if home is None else home.journal.read_bytes().count(b"\n")

    def executions(self) -> Counter[str]:
        """How often each task has begun to run, by the records of the attempts themselves."""
        found: Counter[str] = Counter()
        for path in self.records.iterdir():
            found[path.name.rpartition("@")[0]] += len(path.read_text().splitlines())
        return found

    def finished(self) -> Counter[str]:
        """How often each task has finished, by the journal."""
        home = self.home()
        if home is None or not home.journal.read_bytes().count(b"\n"):
            return Counter()
        replayed = replay(read(home.journal), home.data)
        coordinator, events = replayed.driver.coordinator, replayed.driver.events or []
        names, task_of = coordinator.workflow.task_names, coordinator.state.arrays.attempt_task
        ends = (event for event in events if isinstance(event, TaskFinished))
        return Counter(names[task_of[whom(event)]] for event in ends)

    def failures(self) -> list[dict[str, Any]]:
        """The events of attempts that have failed."""
        events = read(self.the_home().journal).entries
        return [e for e in events if e["t"] == "event" and e["kind"] == "task_failed"]

    def processes(self) -> list[int]:
        """Processes of this place that live."""
        mark, found = f"{MARK}={self.records}".encode(), []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                if mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found.append(int(name))
            except OSError:  # gone, or another user's
                continue
        return found


@dataclass(frozen=True)
class Sums:
    """A workflow of sums: what its files must hold is known."""

    content: dict[str, Any]
    sources: list[list[int]]
    expected: list[int]

    def check(self, place: Place) -> None:
        """All files are right, and nothing else was published."""
        found = {path.name: path.read_text() for path in place.data.glob("x*.txt")}
        assert found == {f"x{i}.txt": f"{value}\n" for i, value in enumerate(self.expected)}


def sources_of(n: int, seed: int) -> list[list[int]]:
    """What each task reads: nothing, one, or some of those before it; the last reads many."""
    rng = random.Random(seed)
    sources = [
        sorted(rng.sample(range(max(0, i - 40), i), k=min(i, rng.choice((0, 1, 1, 2, 3)))))
        for i in range(n - 1)
    ]
    used = {source for row in sources for source in row}
    return [*sources, [i for i in range(n - 1) if i not in used]]


def sums(n: int = 200, seed: int = 0, extra: str = "", **fields: Any) -> Sums:
    """A workflow of n commands with fan-out and fan-in; `extra` is run by each of them."""
    sources = sources_of(n, seed)
    expected: list[int] = []
    tasks: dict[str, Any] = {}
    for i, row in enumerate(sources):
        expected.append((i + sum(expected[k] for k in row)) % MODULUS)
        reads = "".join(f"read v < x{k}.txt; s=$((s+v)); " for k in row)
        record = f'echo run >> "${MARK}/$FOREPLAN_TASK@$FOREPLAN_ATTEMPT"; '
        run = f"{record}s={i}; {reads}{extra}echo $((s % {MODULUS})) > x{i}.txt"
        tasks[f"t{i}"] = {
            "run": run,
            "inputs": [f"x{k}.txt" for k in row],
            "outputs": [f"x{i}.txt"],
            "cost": 0.01,
            **fields,
        }
    return Sums({"name": "sums", "tasks": tasks}, sources, expected)


def write(place: Place, work: Sums) -> str:
    """The file of the workflow."""
    path = place.data / "sums.json"
    path.write_text(json.dumps(work.content))
    return path.name


def ended(process: subprocess.Popen[str], limit: float = LIMIT) -> tuple[int, str]:
    """Wait for the end of a process; its code and what it has printed."""
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        pytest.fail(f"it hangs; so far:\n{output[-2000:]}")
    return process.returncode, output


def killed(process: subprocess.Popen[str]) -> None:
    """Kill a process and nothing else; what it has started may go on."""
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


Moment = Callable[[Place, subprocess.Popen[str]], None]


def after_entries(more: int) -> Moment:
    """When the journal has grown by so many lines."""

    def wait(place: Place, process: subprocess.Popen[str]) -> None:
        goal = place.journal_length() + more
        until(
            lambda: process.poll() is not None or place.journal_length() >= goal,
            f"a journal of {goal} lines",
        )

    return wait


def after_executions(more: int) -> Moment:
    """When so many more attempts have begun, by their own records: for runs one after another."""

    def wait(place: Place, process: subprocess.Popen[str]) -> None:
        goal = len(list(place.records.iterdir())) + more
        until(
            lambda: process.poll() is not None or len(list(place.records.iterdir())) >= goal,
            f"{goal} attempts",
        )

    return wait


def after_seconds(seconds: float) -> Moment:
    """At any time, perhaps before anything has begun."""

    def wait(place: Place, process: subprocess.Popen[str]) -> None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)

    return wait


def moments(seed: int, count: int, entries: int) -> list[Moment]:
    """Random moments of a run whose journal gets about so many lines; the first comes soon."""
    rng = random.Random(seed)
    most = max(2, 2 * entries // (count + 1))
    return [after_entries(rng.randint(1, 20))] + [
        after_seconds(rng.uniform(0.0, 1.5)) if rng.random() < 0.3
        else after_entries(rng.randint(1, most))
        for _ in range(count - 1)
    ]  # fmt: skip


def rows(work: Sums) -> str:
    """The sources of all tasks, as the script of functions takes them."""
    return ";".join(",".join(map(str, row)) for row in work.sources)


def rebuilt(place: Place, partly: bool = False) -> Replayed:
    """The run as its journal tells it, found right by the validators."""
    home = place.the_home()
    contents = read(home.journal)
    assert contents.damage is None
    replayed = replay(contents, home.data)
    replayed.driver.coordinator.check_state()
    if not partly:
        check_run(replayed.run())
    return replayed


def drive_and_kill(
    place: Place, sit: Callable[[], subprocess.Popen[str]], kills: list[Moment], ends: int = 0
) -> list[dict[str, int]]:
    """Go on with a run until it ends with this exit code, and kill it at these moments.

    For each kill: how often what was finished by then, says the journal, had been executed.
    """
    snapshots = []
    for moment in kills:
        process = sit()
        moment(place, process)
        if process.poll() is not None:
            code, output = ended(process)
            assert code == ends, output
            break
        killed(process)
        done, executed = place.finished(), place.executions()
        snapshots.append({task: executed[task] for task in done})
    code, output = ended(sit())
    assert code == ends, output
    return snapshots


def check_nothing_repeated(
    place: Place, snapshots: list[dict[str, int]], renumbered: bool = False
) -> None:
    """By the journal no task has finished twice; by the records none has run after its end."""
    finished, executed = place.finished(), place.executions()
    assert set(finished.values()) == {1}
    for snapshot in snapshots:
        assert snapshot == {task: executed[task] for task in snapshot}
    records = [path.read_text() for path in place.records.iterdir()]
    # who is killed early enough leaves an empty record
    assert renumbered or set(records) <= {"run\n", ""}, "an attempt was executed twice"
