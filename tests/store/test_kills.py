"""Processes that publish and are killed anywhere: the store is never wrong, and blames nobody."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

from foreplan.store.survey import State
from store.tiny import Job, Tiny, changed, from_nothing

KILLS = 25
PUBLISHER = Path(__file__).with_name("publisher.py")


def chain_and_pairs(n: int) -> list[Job]:
    """A workflow that takes a while: every third task reads two others."""
    jobs = [Job("t0", 1, ("in0",), ("f0_0", "f0_1"))]
    for k in range(1, n):
        inputs = {f"f{k - 1}_0", f"f{k // 2}_1", f"in{k % 3}"}
        jobs.append(Job(f"t{k}", k % 3, tuple(sorted(inputs)), (f"f{k}_0", f"f{k}_1")))
    return jobs


def check_right(tiny: Tiny, jobs: list[Job]) -> int:
    """What is called up to date is what its recipe gives, and nobody has edited anything."""
    survey = tiny.survey(jobs)
    assert survey.edited == []
    right, disk = from_nothing(jobs, tiny.contents()), tiny.contents()
    idle = survey.tasks(State.UP_TO_DATE)
    for task in idle:
        for name in jobs[task].outputs:
            assert disk.get(name, right[name]) == right[name], name
    return len(idle)


def begin(tiny: Tiny, jobs: list[Job]) -> subprocess.Popen[str]:
    listed = tiny.data / ".foreplan" / f"{jobs[0].name}.json"
    listed.parent.mkdir(exist_ok=True)
    listed.write_text(json.dumps([asdict(job) for job in jobs]))
    command = [sys.executable, str(PUBLISHER), str(tiny.data), str(listed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill_within(process: subprocess.Popen[str], lines: int, delay: float) -> list[str]:
    """Kill it a moment after it has made so many tasks; all that it has said."""
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line.strip())
        if len(said) >= lines:
            time.sleep(delay)
            process.kill()
            break
    said += process.stdout.read().split("\n")
    process.stdout.close()
    assert process.wait() in (0, -signal.SIGKILL), said
    return [line for line in said if line]


def test_killed_anywhere(tmp_path: Path) -> None:
    tiny, jobs, rng = Tiny(tmp_path), chain_and_pairs(40), random.Random(1)
    for k in range(3):
        (tmp_path / f"in{k}").write_text(str(k))
    kills = before = 0
    while kills < KILLS:
        process = begin(tiny, jobs)
        said = kill_within(process, 1 + rng.randrange(8), rng.random() * 0.004)
        assert all(line.startswith("ran") for line in said)
        kills += process.returncode != 0
        idle = check_right(tiny, jobs)
        assert idle >= before  # nothing that was finished is done again
        before = idle
        if idle == len(jobs):  # all is done: something changes
            k = rng.randrange(len(jobs))
            what = rng.randrange(3)
            if what == 0:
                jobs = changed(jobs, k, salt=jobs[k].salt + 1)
            elif what == 1:
                jobs = changed(jobs, k, comment=kills)
            else:
                (tmp_path / f"in{k % 3}").write_text(str(rng.randrange(9)))
            before = 0
    process = begin(tiny, jobs)
    kill_within(process, 10**6, 0.0)
    assert check_right(tiny, jobs) == len(jobs)


def test_two_at_once_on_one_store(tmp_path: Path) -> None:
    """Two processes with other outputs, one killed; then both go on from what there is."""
    tiny, rng = Tiny(tmp_path), random.Random(2)
    for k in range(3):
        (tmp_path / f"in{k}").write_text(str(k))
    first = chain_and_pairs(30)
    second = [
        Job(f"u{k}", k % 3, ("in0", *((f"g{k - 1}",) if k else ())), (f"g{k}",)) for k in range(30)
    ]
    for _ in range(4):
        other, process = begin(tiny, second), begin(tiny, first)
        listening = threading.Thread(target=kill_within, args=(other, 10**6, 0.0))
        listening.start()
        kill_within(process, 1 + rng.randrange(10), rng.random() * 0.004)
        listening.join()
        check_right(tiny, first)
        assert check_right(tiny, second) == len(second)
    kill_within(begin(tiny, first), 10**6, 0.0)
    assert check_right(tiny, first) == len(first)
    assert tiny.run(first) == tiny.run(second) == []


def test_what_was_left_behind_is_none_of_the_store(tmp_path: Path) -> None:
    """Scratch directories of those who were killed do not count as anything."""
    tiny = Tiny(tmp_path)
    (tmp_path / "in0").write_text("1")
    jobs = [Job("a", 1, ("in0",), ("x",))]
    assert tiny.run(jobs, end=(0, "line")) == ["a"]
    assert os.listdir(tmp_path / ".foreplan" / "scratch") == ["x"]
    assert tiny.run(jobs) == ["a"]
