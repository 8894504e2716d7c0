"""What attempts hold: never two the same, and nobody waits for ever."""

from __future__ import annotations

import threading

import pytest

from foreplan.errors import InputError
from foreplan.executors.gpus import VISIBLE, gpu_names, visible_gpus
from foreplan.executors.holdings import Holdings


def waiting(holdings: Holdings, *take: object) -> tuple[threading.Thread, list[object]]:
    """A thread that takes something, and what it got."""
    got: list[object] = []
    thread = threading.Thread(target=lambda: got.append(holdings.take(*take)))  # type: ignore[arg-type]
    thread.start()
    return thread, got


def test_cores_and_amounts_are_waited_for() -> None:
    holdings = Holdings({"memory": 10.0})
    assert holdings.take(1, (0, 1), {"memory": 6.0}) == ()
    assert holdings.take(2, (2,), {"memory": 4.0}) == ()
    core, got_core = waiting(holdings, 3, (1, 3), {})
    memory, got_memory = waiting(holdings, 4, (4,), {"memory": 5.0})
    holdings.free(2)  # 4 of memory are not enough, and no core of theirs
    assert (got_core, got_memory) == ([], [])
    holdings.free(1)
    core.join(60)
    memory.join(60)
    assert (got_core, got_memory) == ([()], [()])


def test_one_that_is_stopped_does_not_wait() -> None:
    holdings, stopped = Holdings({}), threading.Event()
    holdings.take(1, (0,), {})
    thread, got = waiting(holdings, 2, (0,), {}, stopped.is_set)
    stopped.set()
    holdings.wake()
    thread.join(60)
    assert got == [None]


def test_what_is_larger_than_the_machine_begins_alone() -> None:
    """The run would not have started it; but to wait for ever would hide that."""
    assert Holdings({"memory": 1.0}).take(1, (0,), {"memory": 2.0}) == ()


def test_gpus_are_given_once() -> None:
    holdings = Holdings({"gpus": 3.0}, ["0", "2", "GPU-x"])
    assert holdings.take(1, (0,), {"gpus": 2.0}) == ("0", "2")
    assert holdings.take(2, (1,), {"gpus": 1.0}) == ("GPU-x",)
    assert holdings.take(3, (2,), {"gpus": 0.0}) == ()
    holdings.free(1)
    holdings.free(2)
    assert holdings.take(4, (1,), {"gpus": 1.0}) == ("GPU-x",)  # the one that its core had
    assert holdings.take(5, (3,), {"gpus": 1.0}) == ("0",)
    with pytest.raises(ValueError, match="needs 4 GPUs"):
        Holdings({}, ["0"]).take(1, (0,), {"gpus": 4.0})


def test_amounts_that_just_fit_in_floating_point() -> None:
    holdings = Holdings({"memory": 0.3})
    holdings.take(1, (0,), {"memory": 0.1})
    assert holdings.take(2, (1,), {"memory": 0.2}) == ()  # 0.1 + 0.2 > 0.3


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("0,1,2", ("0", "1", "2")),
        ("GPU-a, GPU-b", ("GPU-a", "GPU-b")),
        ("", ()),
        ("1,-1,2", ("1",)),
        ("-1", ()),
    ],
)
def test_gpus_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, said: str, found: tuple[str, ...]
) -> None:
    monkeypatch.setenv(VISIBLE, said)
    assert visible_gpus() == found
    assert gpu_names(len(found)) == found
    with pytest.raises(InputError, match=rf"counts on 9 GPUs, but {VISIBLE} names {len(found)}"):
        gpu_names(9)


def test_gpus_of_a_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    from pathlib import Path

    root = Path(str(tmp_path))
    monkeypatch.delenv(VISIBLE, raising=False)
    assert visible_gpus(root) == ()
    assert gpu_names(2) == ("0", "1") or visible_gpus()
    for card in ("0000:01:00.0", "0000:41:00.0"):
        (root / "proc/driver/nvidia/gpus" / card).mkdir(parents=True)
    assert visible_gpus(root) == ("0", "1")
