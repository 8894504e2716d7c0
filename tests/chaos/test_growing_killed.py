"""A graph that grows, killed anywhere, then resumed or begun anew: right each time."""

from __future__ import annotations

import json
import random
import subprocess
from typing import Any

import pytest

from chaos.runs import (
    MARK,
    Moment,
    Place,
    after_entries,
    after_seconds,
    check_nothing_repeated,
    drive_and_kill,
    ended,
    rebuilt,
    until,
)
from foreplan.runs.home import runs
from repeated import MANY, repetitions

KILLS = 20 if MANY else 4
PARTS, INNER = 8, 4
LOOPED = 4
RECORD = f'echo run >> "${MARK}/$FOREPLAN_TASK@$FOREPLAN_ATTEMPT"'
ON = ("--on", "local:3")


def task(run: str, **fields: Any) -> dict[str, Any]:
    return {"run": f"{RECORD}; {run}", **fields}


def write(place: Place) -> str:
    """Two tasks add others, half of which add others, and one loops over what another makes.

    The sum of all of it waits for them.
    """
    for side in ("left", "right"):
        added: dict[str, Any] = {}
        for i in range(PARTS):
            name = f"{side}-{i}"
            part, file = f"parts/{name}.num", f"{name}.json"
            plus = f"read b < base.num; echo $((b + {i})) > {part}"
            added[name] = task(plus, inputs=["base.num"], outputs=[part])
            added[f"more-{name}"] = task(f"cat {file}", inputs=[file, part], expand=True)
            inner = {
                f"in-{name}-{j}": task(
                    f"echo {j} > in/{name}-{j}.num", outputs=[f"in/{name}-{j}.num"]
                )
                for j in range(INNER)
            }
            (place.data / file).write_text(json.dumps({"tasks": inner}))
        (place.data / f"{side}.json").write_text(json.dumps({"tasks": added}))
    tasks = {
        "base": task("echo 1000 > base.num", outputs=["base.num"]),
        "left": task("cat left.json", inputs=["left.json", "base.num"], expand=True),
        "right": task("cat right.json", inputs=["right.json"], expand=True),
        "cut": task(f"mkdir cut; seq {LOOPED} | split -l 1 - cut/", outputs=["cut/"]),
        "loop-{f.name}": task(
            "cp {f} {output}",
            foreach={"f": "glob(cut/*)"},
            inputs=["{f}"],
            outputs=["looped/{f.name}.num"],
        ),
        "total": task(
            "cat parts/*.num in/*.num looped/*.num | paste -sd+ | bc > total.num",
            after=["left", "right"],
            inputs=["parts/*.num", "in/*.num", "looped/*.num"],
            outputs=["total.num"],
        ),
    }
    (place.data / "growing.json").write_text(json.dumps({"name": "growing", "tasks": tasks}))
    return "growing.json"


def check(place: Place) -> None:
    sides = 2 * sum(1000 + i for i in range(PARTS))
    inner = 2 * PARTS * sum(range(INNER))
    looped = sum(range(LOOPED + 1))
    assert (place.data / "total.num").read_text() == f"{sides + inner + looped}\n"
    assert len(list((place.data / "in").iterdir())) == 2 * PARTS * INNER


def some_moment(rng: random.Random) -> Moment:
    if rng.random() < 0.2:
        return after_seconds(rng.uniform(0.0, 1.0))
    return after_entries(rng.randint(1, 30))


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.2))
def test_killed_and_resumed(place: Place, seed: int) -> None:
    rng, file = random.Random(seed), write(place)

    def sit() -> subprocess.Popen[str]:
        if place.home() is None:
            return place.foreplan("run", file, *ON)
        return place.foreplan("resume", place.the_home().id)

    snapshots = drive_and_kill(place, sit, [some_moment(rng) for _ in range(KILLS)])
    check(place)
    check_nothing_repeated(place, snapshots)
    assert rebuilt(place).header.workflow.n_tasks == 6 + LOOPED + 4 * PARTS + 2 * PARTS * INNER
    until(lambda: not place.processes(), "the end of all processes of the runs")


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.2))
def test_killed_and_begun_anew(place: Place, seed: int) -> None:
    rng, file = random.Random(seed), write(place)
    for _ in range(KILLS // 2):
        process = place.foreplan("run", file, *ON)
        some_moment(rng)(place, process)
        process.kill()
        process.communicate()
    code, output = ended(place.foreplan("run", file, *ON))
    assert code == 0, output
    check(place)
    before = len(runs(place.data))
    code, output = ended(place.foreplan("run", file, *ON))
    assert (code, "nothing to do" in output) == (0, True), output
    assert len(runs(place.data)) == before
