"""What attempts used, measured of real processes, and why they failed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executors.calling import Caller, reason, run
from executors.waiting import LIMIT
from foreplan.executors import usage
from foreplan.executors.causes import cause_of_exit
from foreplan.executors.command import CommandJob, CommandOutcome, run_command
from foreplan.executors.cpu_share import times_of_tree
from foreplan.executors.usage import ThreadMeter, UsageMeter, plain
from foreplan.model import Call
from foreplan.model.events import MACHINE_LOST, TaskFinished

MB = 1_000_000
BUSY = "import time\nt = time.process_time() + 0.2\nwhile time.process_time() < t: pass\n"
# a process that is small itself, as what it begins is never taken for smaller
SMALL_PARENT = """
import json, os, subprocess, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import usage
process = subprocess.Popen(["bash", "-c", sys.argv[2]])
os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
used = usage.reap(process)
print(json.dumps([process.returncode, used]))
"""


def measured(command: str) -> tuple[int, dict[str, Any]]:
    import json

    done = subprocess.run(
        [sys.executable, "-c", SMALL_PARENT, usage.__file__, command],
        capture_output=True, text=True, check=True, timeout=LIMIT,
    )  # fmt: skip
    code, used = json.loads(done.stdout.splitlines()[-1])
    return code, used


def python(code: str) -> str:
    return f"{sys.executable} -c '{code}'"


def test_a_command_and_what_it_begins() -> None:
    """Children of children count: the largest of them, the time of all, and all they read."""
    inner = python(f"x = bytearray({60 * MB})\n{BUSY}")
    code, used = measured(f"(({inner}); head -c 3000000 /dev/zero > /dev/null); exit 3")
    assert code == 3
    assert 60 * MB < used["memory"] < 120 * MB
    assert "at_most" not in used
    assert 0.2 <= used["cpu"] < 5
    assert used["read"] > 3 * MB
    assert 3 * MB <= used["written"] < 6 * MB


def test_a_small_command_of_a_large_process_is_known_to_be_no_larger(tmp_path: Path) -> None:
    used = execute(tmp_path, "true").used
    assert used["at_most"]
    assert used["memory"] <= usage._own_peak()


def test_many_processes_at_a_time_are_seen_by_who_looks() -> None:
    # in one piece, whatever the buffers of two that write to one pipe
    code = (
        f"import os, sys; x = bytearray({40 * MB}); os.write(1, bytes((49, 10))); sys.stdin.read()"
    )
    both = f"{python(code)} & exec {python(code)}"
    with subprocess.Popen(
        ["bash", "-c", f"exec 3<&0; {both.replace('&', '<&3 &', 1)}"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == [b"1\n"] * 2
        seen = times_of_tree(process.pid)
        assert process.stdin is not None
        process.stdin.close()
    assert seen is not None
    assert 80 * MB < seen.memory < 200 * MB


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    made = Caller(tmp_path)
    yield made
    made.close()


def fill(size: int) -> int:
    return len(bytearray(size))


def overflow() -> None:
    raise MemoryError("too much")


def test_a_function_in_its_worker(caller: Caller) -> None:
    """The worker is the same for all three calls: each has its own figures."""
    calls = [Call(fill, (60 * MB,)), Call(exec, (BUSY,)), Call(fill, (1,))]
    executor = caller(*calls)
    found = []
    for task in range(3):
        event = run(executor, task, task)
        assert isinstance(event, TaskFinished)
        assert event.detail is not None
        found.append(event.detail["used"])
    large, busy, small = found
    assert 60 * MB < large["memory"] < 150 * MB
    assert "at_most" not in large
    assert 0.2 <= busy["cpu"] < 5
    assert small["cpu"] < 0.2
    if "at_most" not in small:  # where a high-water mark can be reset
        assert small["memory"] < large["memory"] - 30 * MB


def test_a_function_that_runs_out_of_memory(caller: Caller) -> None:
    executor = caller(Call(overflow), Call(os._exit, (3,)), Call(int, ("x",)))
    events = [run(executor, task, task) for task in range(3)]
    assert [(event.detail or {})["cause"] for event in events] == ["out-of-memory", "lost", "exit"]
    assert "MemoryError: too much" in reason(events[0])
    assert "worker process died" in reason(events[1], MACHINE_LOST)


def test_where_high_water_marks_cannot_be_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "_reset_high_water", lambda: False)
    meter = UsageMeter()
    used = meter.read()
    assert used["at_most"]
    assert used["memory"] > 10 * MB


def test_a_thread_knows_its_own_time_and_nothing_of_memory() -> None:
    found = dict[str, Any]()

    def work() -> None:
        meter = ThreadMeter()
        Path("/proc/self/status").read_bytes()
        sum(range(200_000))
        found.update(meter.read())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(LIMIT)
    assert set(found) == {"cpu", "read", "written"}
    assert found["cpu"] > 0
    assert found["read"] > 100


def test_what_is_no_amount_is_left_out() -> None:
    told = {"memory": -1, "cpu": True, "read": 5, "written": float("nan"), "other": 1}
    assert plain(told) == {"read": 5}
    assert plain(None) == {}
    assert plain({"memory": 7, "at_most": True}) == {"memory": 7, "at_most": True}


# causes


def execute(tmp_path: Path, command: str, *outputs: str, **more: Any) -> CommandOutcome:
    data, home = tmp_path / "data", tmp_path / "data" / ".foreplan"
    home.mkdir(parents=True, exist_ok=True)
    job = CommandJob("t", command, str(data), f"{home}/s", f"{home}/log", outputs=outputs, **more)
    return run_command(job)


@pytest.mark.parametrize(
    ("command", "more", "cause"),
    [
        ("exit 3", {}, "exit"),
        ("kill -9 $$", {}, "killed"),
        ("bash -c 'kill -9 $$'", {}, "killed"),
        ("kill -TERM $$", {}, "killed"),
        ("sleep 1000", {"timeout": 0.05}, "time-out"),
        ("true", {"outputs": ("x",)}, "missing-output"),
        ("mkdir x", {"outputs": ("x",)}, "missing-output"),
        ("true", {"inputs": ("none",)}, "system"),
        ("true", {"shell": "./none -c"}, "system"),
        ("python3 -c 'raise MemoryError'", {}, "out-of-memory"),
        ("python3 -c 'raise MemoryError(5)'; exit 1", {}, "out-of-memory"),
        ("echo 'MemoryError: handled' >&2; echo and yet >&2; exit 1", {}, "exit"),
        ("echo \"terminate called after throwing an instance of 'std::bad_alloc'\" >&2; "
         "echo '  what():  std::bad_alloc' >&2; kill -ABRT $$", {}, "out-of-memory"),
        ("kill -ABRT $$", {}, "killed"),
    ],
)  # fmt: skip
def test_causes(tmp_path: Path, command: str, more: dict[str, Any], cause: str) -> None:
    outcome = execute(tmp_path, command, *more.pop("outputs", ()), **more)
    assert outcome.problem is not None
    assert outcome.cause == cause
    assert ("out of memory" in outcome.problem) == (
        cause == "out-of-memory" or "SIGKILL" in outcome.problem
    )


def test_who_is_killed_for_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control group counts: one that was killed meanwhile was this one."""
    counter = tmp_path / "memory.oom_control"
    counter.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 4\n")
    opened = os.open(counter, os.O_RDONLY)
    monkeypatch.setattr(usage, "_oom_counter", lambda: opened)
    assert usage.oom_kills() == 4
    outcome = execute(tmp_path, "kill -9 $$")
    assert outcome.problem == "it was killed by SIGKILL (perhaps out of memory)"
    command = f"printf 'under_oom 0\\noom_kill 5\\n' > {counter}; kill -9 $$"
    outcome = execute(tmp_path, command)
    os.close(opened)
    assert (outcome.cause, outcome.problem) == (
        "out-of-memory", "it was killed by SIGKILL: out of memory",
    )  # fmt: skip


def test_a_signal_that_a_shell_passes_on() -> None:
    assert cause_of_exit(137, "", 1) == "out-of-memory"
    assert cause_of_exit(137, "", 0) == "killed"
    assert cause_of_exit(1, "", 1) == "exit"  # another one was killed
    assert cause_of_exit(255, "", 0) == "exit"
    numpy = "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8 GiB"
    assert cause_of_exit(1, numpy, 0) == "out-of-memory"
