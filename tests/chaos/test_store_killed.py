"""Real runs are killed anywhere, then resumed or begun anew: the store is right each time.

A network file system cannot be had here: what is tried is one machine with one local disk.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from chaos.runs import MARK, MODULUS, Moment, Place, after_entries, after_seconds, ended, until
from foreplan.runs.home import runs
from foreplan.store.content import digest_of
from foreplan.store.parts import read_parts
from foreplan.store.store import Store
from repeated import MANY, repetitions

ON = ("--on", "local:3")
KILLS = (
    8 if MANY else 3
)  # of each workflow; FOREPLAN_CHAOS=50: 200 of runs alone, and those of pairs


@dataclass(frozen=True)
class Work:
    """A workflow of sums, `common` tasks first and two halves behind them, and what is right."""

    content: dict[str, Any]
    right: dict[str, str]  # by file
    products: list[str]  # files that nobody reads
    halves: tuple[list[str], list[str]]  # those of each half

    @staticmethod
    def draw(seed: int, common: int, half: int) -> Work:
        rng, tasks, value = random.Random(seed), dict[str, Any](), dict[str, int]()
        below: dict[str, list[str]] = {"c": [], "a": [], "b": []}
        for kind, count in (("c", common), ("a", half), ("b", half)):
            for k in range(count):
                name, near = f"{kind}{k}", [*below["c"], *below[kind][-10:]]
                row = sorted({*rng.sample(near, min(len(near), rng.choice((0, 1, 2, 3))))})
                value[name] = (k + sum(value[other] for other in row)) % MODULUS
                below[kind].append(name)
                tasks[name] = _task(name, k, row)
        read = {name for task in tasks.values() for name in task["inputs"]}
        right = {f"{name}.txt": f"{number}\n" for name, number in value.items()}
        ends = [file for file in right if file not in read]
        halves = [[file for file in ends if file.startswith(kind)] for kind in "ab"]
        return Work({"name": "halves", "tasks": tasks}, right, ends, (halves[0], halves[1]))


def _task(name: str, number: int, row: list[str]) -> dict[str, Any]:
    reads = "".join(f"read v < {other}.txt; s=$((s+v)); " for other in row)
    record = f'echo run >> "${MARK}/$FOREPLAN_TASK@$FOREPLAN_ATTEMPT"; '
    return {
        "run": f"{record}s={number}; {reads}echo $((s % {MODULUS})) > {name}.txt",
        "inputs": [f"{other}.txt" for other in row],
        "outputs": [f"{name}.txt"],
        "cost": 0.01,
    }


def check_store(place: Place, work: Work) -> Counter[str]:
    """What the store says is so, and all that is on disk it knows; how often that was executed."""
    store = Store.read(place.data)
    assert store.warnings == []
    for part in read_parts(store.folder):
        for line in part.lines:
            for file, entry in line.get("outputs", {}).items():
                assert "key" in line, line
                assert entry[3] == digest_of(work.right[file].encode()), file
    found = {path.name: path.read_text() for path in place.data.glob("*.txt")}
    assert found == {file: work.right[file] for file in found}
    assert all(store.made(file) for file in found)
    executed = place.executions()
    made = [file.removesuffix(".txt") for file in found]
    return Counter({task: executed[task] for task in made})


def check_nothing_again(place: Place, before: Counter[str], made: Counter[str]) -> None:
    """What was published then was not executed since."""
    assert before.keys() <= made.keys()
    assert {task: made[task] for task in before} == dict(before)


def kill(place: Place, process: subprocess.Popen[str], everybody: bool) -> None:
    """Kill the coordinator, or with it all that it has started."""
    process.kill()
    if everybody:
        for pid in place.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    process.communicate()


def some_moment(rng: random.Random) -> Moment:
    """Most often while tasks run, at times before the run has begun."""
    if rng.random() < 0.3:
        return after_seconds(rng.uniform(0.0, 1.5))
    return after_entries(rng.randint(1, 50))


def check_all_done(place: Place, work: Work) -> None:
    code, output = ended(place.foreplan("run", "work.json", *ON))
    assert code == 0, output
    check_store(place, work)
    assert all((place.data / file).exists() for file in work.products)
    told = json.loads(ended(place.foreplan("run", "work.json", "--json"))[1])
    assert (told["run"], len(told["up_to_date"])) == (None, len(work.right))


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.5))
def test_resumed_or_begun_anew(place: Place, seed: int) -> None:
    rng, work = random.Random(seed), Work.draw(seed, 20, 40)
    (place.data / "work.json").write_text(json.dumps(work.content))
    before, kills, former = Counter[str](), 0, set[str]()
    while kills < KILLS:
        homes = [home for home in runs(place.data) if home.id not in former]
        if homes and rng.random() < 0.5:
            process = place.foreplan("resume", rng.choice([homes[0], *homes]).id)
        else:
            process = place.foreplan("run", "work.json", *ON)
        some_moment(rng)(place, process)
        if process.poll() is None:
            kill(place, process, rng.random() < 0.5)
            kills += 1
        else:
            code, output = ended(process)
            assert code == 0, output
        made = check_store(place, work)
        check_nothing_again(place, before, made)
        before = made
        if made.keys() >= {file.removesuffix(".txt") for file in work.products}:
            for file in (*work.products[:9], *rng.sample(sorted(work.right), 30)):
                (place.data / file).unlink(missing_ok=True)  # there is something to do again
            former = {home.id for home in runs(place.data)}  # which may need what is gone now
            before = Counter()
    check_all_done(place, work)
    until(lambda: not place.processes(), "the end of all processes of the runs")


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.25))
def test_two_at_once_on_one_store(place: Place, seed: int) -> None:
    """Two runs with other outputs read the same files; both are killed, one after the other."""
    rng, work = random.Random(seed), Work.draw(seed, 10, 40)
    (place.data / "work.json").write_text(json.dumps(work.content))
    common = [name for name in work.content["tasks"] if name.startswith("c")]
    code, output = ended(place.foreplan("run", "work.json", *common, *ON))
    assert code == 0, output
    before = check_store(place, work)
    for _ in range(KILLS // 2 + 1):
        processes = [place.foreplan("run", "work.json", *half, *ON) for half in work.halves]
        for process in rng.sample(processes, 2):
            after_seconds(rng.uniform(0.1, 1.2))(place, process)
            process.kill()
            code, output = ended(process)
            assert code in (0, -signal.SIGKILL), output
            made = check_store(place, work)
            check_nothing_again(place, before, made)
            before = made
    check_all_done(place, work)
