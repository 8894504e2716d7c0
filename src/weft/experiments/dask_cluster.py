"""A Dask cluster of processes on this machine, whose workers differ in speed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from weft.errors import InputError

SPEED = "WEFT_BENCH_SPEED"
CGROUP = Path("/sys/fs/cgroup/cpu")  # version 1
PERIOD = 20_000  # microseconds: short, so that a task of some 100 ms feels an even speed
_STARTS_IN = 60.0


@contextmanager
def cluster(speeds: Sequence[float], cpu_share: float = 0.0) -> Iterator[Any]:
    """A Client on a scheduler and one worker per speed, each with one thread.

    With a CPU share, a worker of speed s may use s x share of a core, by a quota of its cgroup.
    """
    try:
        from distributed import Client
    except ImportError:
        raise InputError("Dask is not installed here: pip install 'weft[dask]'") from None

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="weft-bench-"))
        meeting = ["--scheduler-file", str(Path(folder) / "scheduler.json")]
        _process(stack, folder, "scheduler", *meeting, "--no-dashboard", "--port", "0")
        for k, speed in enumerate(speeds):
            options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0"]
            options += ["--name", f"bench-{len(speeds)}-{k}-{speed:g}"]
            own = 1.0 if cpu_share else speed
            process = _process(stack, folder, "worker", *meeting, *options, speed=own)
            if cpu_share:
                stack.enter_context(quota(process.pid, speed * cpu_share))
        client: Any = Client(  # type: ignore[no-untyped-call]
            scheduler_file=meeting[1], set_as_default=False, timeout=_STARTS_IN
        )
        stack.callback(client.close)
        client.wait_for_workers(len(speeds), timeout=_STARTS_IN)
        yield client


def _process(
    stack: ExitStack, folder: str, what: str, *arguments: str, speed: float = 1.0
) -> subprocess.Popen[bytes]:
    """A scheduler or worker, stopped in the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.dask_{what}", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={**os.environ, SPEED: str(speed), "OMP_NUM_THREADS": "1"},
    )
    stack.callback(_stop, process)
    return process


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def quotas_possible() -> bool:
    """Whether CPU quotas can be set here: cgroup version 1, and the right to."""
    return os.access(CGROUP, os.W_OK) and (CGROUP / "cpu.cfs_quota_us").exists()


@contextmanager
def quota(pid: int, cores: float) -> Iterator[None]:
    """A process may use so much of a core, while this lasts."""
    group = CGROUP / f"weft-bench-{os.getpid()}-{pid}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD))
        (group / "cpu.cfs_quota_us").write_text(str(max(1000, int(PERIOD * cores))))
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        with suppress(OSError):
            (CGROUP / "cgroup.procs").write_text(str(pid))
        with suppress(OSError):
            group.rmdir()
