"""A Dask cluster of processes on this machine, whose workers differ in speed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from foreplan.errors import ForeplanError, InputError
from foreplan.runs.session import Session, Silent
from foreplan.version import install_command

SPEED = "FOREPLAN_BENCH_SPEED"
CGROUP = Path("/sys/fs/cgroup/cpu")  # version 1
PERIOD = 20_000  # microseconds: short, so that a task of some 100 ms feels an even speed
_STARTS_IN = 60.0
_OPTIONS = {"nthreads": 1, "memory_limit": 0, "dashboard": False}
# runs the module of its first argument, and ends once nobody can write to its stdin any more:
# so it ends with the process that has started it, however that ends
WHILE_PARENT_LIVES = """
import os, runpy, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
sys.argv[:] = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
_WAIT = (
    "import sys; from foreplan_benchmarks.dask_cluster import wait_and_join as w; w(*sys.argv[1:])"
)


@contextmanager
def cluster(speeds: Sequence[float], cpu_share: float = 0.0) -> Iterator[Any]:
    """A Client on a scheduler and one worker per speed, each with one thread.

    With a CPU share, a worker of speed s may use s x share of a core, by a quota of its cgroup.
    """
    try:
        from distributed import Client
    except ImportError:
        raise InputError(f"Dask is not installed here: {install_command('dask')}") from None

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="foreplan-bench-"))
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
        [sys.executable, "-c", WHILE_PARENT_LIVES, f"distributed.cli.dask_{what}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=_environment(folder, speed),
        start_new_session=True,  # Ctrl-C is for foreplan, which stops its run and then these
    )
    stack.callback(_stop, process)
    return process


def _environment(folder: str, speed: float) -> dict[str, str]:
    """What Dask writes is in the folder, and goes with it."""
    own = {SPEED: str(speed), "OMP_NUM_THREADS": "1", "DASK_TEMPORARY_DIRECTORY": folder}
    return {**os.environ, **own}


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


@contextmanager
def spare_workers(
    client: Any, speeds: Sequence[float], preload: Sequence[str] = ()
) -> Iterator[Callable[[], None]]:
    """Workers that have started and imported all they need, and join when this is called.

    In the end they are gone, and the cluster is what it was before.
    """
    before = _workers(client)
    with ExitStack() as stack:
        stack.callback(_until_back, client, before)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="foreplan-bench-"))
        spares = []
        for k, speed in enumerate(speeds):
            process = stack.enter_context(_spare(folder, f"spare-{k}-{speed:g}", speed, preload))
            spares.append(process)
        for process in spares:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise ForeplanError("a worker that was to join later did not start")
        address = f"{client.scheduler.address}\n".encode()

        def join() -> None:
            for process in spares:
                assert process.stdin is not None
                with suppress(OSError, ValueError):  # it is stopped already
                    process.stdin.write(address)
                    process.stdin.flush()

        yield join


@contextmanager
def _spare(
    folder: str, name: str, speed: float, preload: Sequence[str]
) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", _WAIT, name, *preload],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=_environment(folder, speed),
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            _stop(process)


def wait_and_join(name: str, *preload: str) -> None:
    """Be a worker of the scheduler whose address is read; gone once nobody can write any more."""
    import asyncio

    from distributed import Worker

    for module in preload:
        importlib.import_module(module)
    print("ready", flush=True)
    address = sys.stdin.readline().strip()
    if not address:
        return

    def until_nobody_writes() -> None:
        sys.stdin.read()
        os._exit(0)

    async def work() -> None:
        make: Any = Worker
        async with make(address, name=name, **_OPTIONS) as worker:
            await worker.finished()

    threading.Thread(target=until_nobody_writes, daemon=True).start()
    asyncio.run(work())


def _workers(client: Any) -> set[str]:
    found: set[str] = set(client.run_on_scheduler(_addresses))
    return found


def _addresses(dask_scheduler: Any) -> list[str]:
    return list(dask_scheduler.workers)


def _until_back(client: Any, before: set[str]) -> None:
    """Dask hears of a worker that was stopped a little later."""
    end = time.monotonic() + _STARTS_IN
    while client.status == "running" and _workers(client) - before:
        if time.monotonic() > end:
            raise ForeplanError("Dask still counts on workers that are stopped")
        time.sleep(0.02)


class JoinAt(Silent):
    """Listens to a run, and has workers join at a time of the run's own clock."""

    def __init__(self, at: float, join: Callable[[], None]) -> None:
        self._at, self._join = at, join
        self._timer: threading.Timer | None = None

    def began(self, session: Session) -> None:
        """The run's clock has started."""
        self._timer = threading.Timer(max(0.0, self._at - session.clock()), self._join)
        self._timer.start()

    def close(self) -> None:
        """Have nobody join any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()


def quotas_possible() -> bool:
    """Whether CPU quotas can be set here: cgroup version 1, and the right to."""
    return os.access(CGROUP, os.W_OK) and (CGROUP / "cpu.cfs_quota_us").exists()


@contextmanager
def quota(pid: int, cores: float) -> Iterator[None]:
    """A process may use so much of a core, while this lasts."""
    group = CGROUP / f"foreplan-bench-{os.getpid()}-{pid}"
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
