"""What share of the wanted time is given, from what /proc says of threads."""

from __future__ import annotations

import os
import signal
import subprocess
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.bench import until
from foreplan.executors.cpu_share import (
    CpuTimes,
    cpu_share,
    times_of_thread,
    times_of_tree,
    wanted_cores,
)

S = 10**9  # nanoseconds


def times(at: float, stopped: bool = False, **threads: tuple[int, int]) -> CpuTimes:
    return CpuTimes({ord(name): value for name, value in threads.items()}, at, stopped)


def test_a_thread_that_wants_all_the_time() -> None:
    before, after = times(0.0, a=(5 * S, 7 * S)), times(2.0, a=(5 * S + S // 2, 7 * S + 3 * S // 2))
    assert cpu_share(before, after) == pytest.approx(0.25)
    assert wanted_cores(before, after)


def test_what_sleeps_loses_little() -> None:
    before, after = times(0.0, a=(0, 0)), times(1.0, a=(S // 100, S // 50))
    assert cpu_share(before, after) == pytest.approx(0.98)
    assert not wanted_cores(before, after)
    assert cpu_share(before, times(1.0, a=(0, 0))) == 1.0


def test_several_threads_and_new_ones() -> None:
    before = times(0.0, a=(9 * S, 9 * S), c=(S, S))  # the last one has ended
    after = times(1.0, a=(10 * S, 9 * S), b=(S // 2, S // 2))
    assert cpu_share(before, after) == pytest.approx(0.75)


def test_stopped_is_zero_unless_something_ran() -> None:
    before = times(0.0, a=(S, S))
    assert cpu_share(before, times(1.0, True, a=(S, S))) == 0.0
    assert cpu_share(before, times(1.0, True, a=(2 * S, S))) == 1.0


@given(*(st.integers(0, 10 * S) for _ in range(4)), st.floats(-1, 10), st.booleans())
def test_always_a_share(a: int, b: int, c: int, d: int, at: float, stopped: bool) -> None:
    share = cpu_share(times(0.0, a=(a, b)), times(at, stopped, a=(a + c, b + d)))
    assert 0.0 <= share <= 1.0


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="no /proc")
def test_processes_of_this_machine() -> None:
    mine = times_of_thread(threading.get_native_id())
    assert mine is not None
    assert not mine.is_stopped
    process = subprocess.Popen(
        ["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, process_group=0
    )
    assert process.stdout is not None
    try:
        child = int(process.stdout.readline())
        found = times_of_tree(process.pid)
        assert found is not None
        assert {process.pid, child} <= found.threads.keys()
        assert not found.is_stopped
        os.kill(child, signal.SIGSTOP)
        until(lambda: (now := times_of_tree(process.pid)) and now.is_stopped, "it is stopped")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert times_of_tree(process.pid) is None
