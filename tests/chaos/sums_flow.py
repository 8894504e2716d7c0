"""A script of Python functions that is run, killed, and run again: it goes on where it was."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import foreplan
from foreplan.runs.home import runs

MODULUS = 1_000_003


def total(first: int, *others: int) -> int:
    """A sum, of which the environment is told that it was made."""
    name = f"{os.environ['FOREPLAN_TASK']}@{os.environ['FOREPLAN_ATTEMPT']}"
    with Path(os.environ["FOREPLAN_CHAOS_RECORDS"], name).open("a") as file:
        file.write("run\n")
    time.sleep(float(os.environ.get("FOREPLAN_CHAOS_PAUSE", "0")))
    return (first + sum(others)) % MODULUS


def flow_of(sources: list[list[int]]) -> foreplan.Flow:
    flow = foreplan.Flow("sums")
    tasks: list[Any] = []
    for i, row in enumerate(sources):
        tasks.append(flow.task(total, i, *(tasks[k] for k in row), name=f"t{i}", cost=0.01))
    return flow


def main(strategy: str, sources: list[list[int]]) -> int:
    flow = flow_of(sources)
    known = runs(".")
    if known and not os.environ.get("FOREPLAN_CHAOS_ANEW"):
        outcome = foreplan.run(flow, on="local:2", resume=known[0].id)
    else:
        outcome = foreplan.run(flow, on="local:2", strategy=strategy)
    if not outcome.id:
        print("nothing was to do")
    print(outcome.status, outcome.failures)
    if outcome.ok:
        print([outcome.result(task) for task in flow.tasks])
    return 0 if outcome.ok else 1


if __name__ == "__main__":
    rows = [[int(k) for k in row.split(",") if k] for row in sys.argv[2].split(";")]
    sys.exit(main(sys.argv[1], rows))
