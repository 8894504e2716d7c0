"""Functions that add tasks, for flows that worker processes and Dask's workers import."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import foreplan


def note(name: str) -> None:
    with open(os.environ["RAN"], "a") as file:
        file.write(name + "\n")


def square(k: int) -> int:
    note(f"square-{k}")
    return k * k


def total(numbers: list[int]) -> int:
    note("total")
    return sum(numbers)


def careful(numbers: list[int]) -> int:
    """The total, if that is allowed."""
    if not Path(os.environ["RAN"] + ".go").exists():
        raise ValueError("not yet")
    return total(numbers)


def squares(n: int) -> Any:
    """A list of tasks."""
    note("squares")
    more = foreplan.Flow()
    return [more.task(square, k) for k in range(n)]


def whole(n: int) -> Any:
    """A flow."""
    more = foreplan.Flow()
    more.task(square, n + 10)
    more.task(square, n + 11)
    return more


def summed(n: int) -> Any:
    """One task, and others that it takes; one of these is given back, too."""
    more = foreplan.Flow()
    parts = [more.task(square, 20 + k) for k in range(n)]
    return {"sum": more.task(total, parts), "first": parts[0], "half": more.task(divmod, 7, 2)[1]}


def late(n: int) -> Any:
    """A task that may not go on at first."""
    more = foreplan.Flow()
    return more.task(careful, [more.task(square, k) for k in range(n)])


def plain() -> int:
    return 5


def nested() -> Any:
    return foreplan.Flow().task(squares, 2, expand=True)


def command() -> Any:
    more = foreplan.Flow()
    more.command("date")
    return more


def strangers() -> Any:
    return [foreplan.Flow().task(square, 1), foreplan.Flow().task(square, 2)]


def clash() -> Any:
    return foreplan.Flow().task(square, 1, name="taken")


def too_wide() -> Any:
    return foreplan.Flow().task(square, 1, cores=1000)


def pooled() -> Any:
    return foreplan.Flow(pools={"licence": 5}).task(square, 1, pools={"licence": 1})
