"""What `result()` says where there is no result."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import foreplan


class OddError(ValueError):
    """An error of the user's own, with more than a message."""

    def __init__(self, number: int) -> None:
        super().__init__(f"{number} is odd")
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return OddError, (self.number,)


def halve(n: int) -> int:
    if n % 2:
        raise OddError(n)
    return n // 2


def vanish() -> None:
    os._exit(3)


def leave() -> None:
    raise SystemExit(7)


def test_of_tasks_that_failed(tmp_path: Path) -> None:
    flow = foreplan.Flow("halves")
    odd, even, gone, left = (
        flow.task(halve, 3), flow.task(halve, 4), flow.task(vanish), flow.task(leave),
    )  # fmt: skip
    after = flow.task(halve, odd, name="after")
    run = foreplan.run(flow, "local:1", dir=tmp_path, keep_going=True, use_history=False)
    assert run.result(even) == 2
    with pytest.raises(OddError, match="3 is odd") as caught:
        run.result(odd)
    assert caught.value.number == 3
    assert "raise OddError(n)" in str(caught.value.__cause__)  # where it was raised, over there
    with pytest.raises(
        foreplan.ForeplanError, match="task 'vanish' failed: its worker process died"
    ):
        run.result(gone)
    with pytest.raises(foreplan.ForeplanError, match="task 'leave' failed: SystemExit: 7"):
        run.result(left)
    with pytest.raises(
        foreplan.ForeplanError, match="task 'after' has no result: it was not done, as"
    ):
        run.result(after)


def test_results_are_of_the_flow_that_was_run(tmp_path: Path) -> None:
    flow, same = foreplan.Flow("halves"), foreplan.Flow("halves")
    four, six = flow.task(halve, 4), same.task(halve, 6)
    run = foreplan.run(flow, "local:1", dir=tmp_path, use_history=False)
    later = flow.task(halve, four)
    assert run.result(four) == 2
    with pytest.raises(LookupError, match="of another flow"):
        run.result(six)
    with pytest.raises(LookupError, match="after it was run"):
        run.result(later)
