"""A script whose functions add tasks; it is run, killed, and run again: it goes on where it was."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import foreplan
from foreplan.runs.home import runs

PARTS = 6


def record() -> None:
    """Have it known that this task was run."""
    name = f"{os.environ['FOREPLAN_TASK']}@{os.environ['FOREPLAN_ATTEMPT']}".replace("/", ":")
    with Path(os.environ["FOREPLAN_CHAOS_RECORDS"], name).open("a") as file:
        file.write("run\n")


def number(k: int) -> int:
    """A number."""
    record()
    return 1000 + k


def total(*numbers: Any) -> int:
    """A sum, also of lists."""
    record()
    return sum(sum(n) if isinstance(n, list) else n for n in numbers)


def split(base: int, n: int) -> Any:
    """Numbers, and the sum of these."""
    record()
    more = foreplan.Flow()
    parts = [more.task(number, base + k) for k in range(n)]
    return [more.task(total, *parts), *parts]


def main(anew: bool) -> int:
    flow = foreplan.Flow("splitting")
    base = flow.task(number, 0, name="base")
    sides = [flow.task(split, base, PARTS + k, name=f"side-{k}", expand=True) for k in range(3)]
    last = flow.task(total, *sides, name="last")
    known = [] if anew else runs(".")
    outcome = foreplan.run(
        flow, on="local:2", progress=False, resume=known[0].id if known else None
    )
    if not outcome.id:
        print("nothing was to do")
    print(outcome.status, outcome.failures)
    if outcome.ok:
        print(f"last: {outcome.result(last)}")
    return 0 if outcome.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] == ["anew"]))
