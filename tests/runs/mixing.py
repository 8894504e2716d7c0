"""A flow of commands and functions that note that they ran. Every worker process imports this."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import foreplan
from runs.noted import GO, note


def load(path: Path) -> list[str]:
    note()
    return path.read_text().split()


def join(*parts: Any) -> str:
    note()
    return "-".join(map(str, parts))


def picky(words: list[str]) -> int:
    note()
    if not os.path.exists(GO):
        raise ValueError("not yet")
    return len(words)


def mixed(last: Any = join) -> Any:
    """A flow, and its tasks by name."""
    flow = foreplan.Flow("mixed")
    noted = 'echo "$FOREPLAN_TASK" >> "$RAN"; '
    sort = flow.command(
        noted + "sort {input} > {output}", inputs="raw data.txt", outputs="sorted.txt", name="sort"
    )
    words = flow.task(load, sort.output, name="words")
    raw = flow.task(load, flow.file("raw data.txt"), name="raw")
    joined = flow.task(join, words[0], raw[1:], {"k": words[-1]}, name="joined")
    count = flow.command(
        noted + "wc -l < {inputs[1]} > {output}", inputs=["raw data.txt", sort], outputs=["n.txt"],
        after=joined, name="count",
    )  # fmt: skip
    flow.task(last, count, name="end")
    return flow
