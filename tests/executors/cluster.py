"""A small Dask cluster of processes of this machine, whose workers can be killed and added.

The workers are forked from one process that has imported Dask: to add one takes no second.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]


class Cluster:
    """A scheduler, and as many workers as are asked for, of one thread or more."""

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join([str(TESTS), *sys.path])
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
        self.address = self._answer()
        self._pids: dict[str, int] = {}
        self._kinds: dict[str, str] = {}
        self._client: Any = None

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode().strip()
        assert line, "the Dask cluster did not start"
        return line

    @property
    def client(self) -> Any:
        """A client to look at the cluster with."""
        if self._client is None:
            from distributed import Client

            make: Any = Client
            self._client = make(self.address, set_as_default=False)
        return self._client

    def add(self, **options: Any) -> str:
        """One more worker, which comes up by and by; its name."""
        name = f"worker-{len(self._pids)}"
        self._kinds[name] = json.dumps(options, sort_keys=True)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name} {self._kinds[name]}\n".encode())
        self._process.stdin.flush()
        self._pids[name] = int(self._answer())
        return name

    def kill(self, name: str) -> None:
        """Kill a worker, as a machine that loses power."""
        try:
            descriptor = os.pidfd_open(self._pids[name])
        except ProcessLookupError:  # it has ended by itself
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        select.select([descriptor], [], [], 30)
        os.close(descriptor)

    def signal(self, name: str, number: int) -> None:
        """Stop a worker, as a machine that stands still, or let it go on."""
        os.kill(self._pids[name], number)

    def have(self, n: int, **options: Any) -> list[str]:
        """Have so many workers, all known to the scheduler; some may just have been killed."""
        kind = json.dumps(options, sort_keys=True)
        alive = [name for name, pid in self._pids.items() if _runs(pid)]
        fit = [name for name in alive if self._kinds[name] == kind][:n]
        for name in set(alive).difference(fit):
            self.kill(name)
        alive = fit + [self.add(**options) for _ in range(n - len(fit))]
        self.client.sync(self._wait_for, set(alive), callback_timeout=60)
        return alive

    async def _wait_for(self, names: set[str]) -> None:
        while True:
            info = await self.client.scheduler.identity()
            if {w["name"] for w in info["workers"].values()} == names:
                return
            await asyncio.sleep(0.02)

    def keys(self) -> list[str]:
        """What the scheduler has of runs."""
        found: list[str] = self.client.run_on_scheduler(_keys)
        return found

    def plugins(self) -> list[str]:
        """What the workers and the scheduler have of runs."""
        found: dict[str, list[str]] = self.client.run(_plugins)
        others: list[str] = self.client.run_on_scheduler(_scheduler_plugins)
        return [name for names in found.values() for name in names] + others

    def only_on(self, name: str) -> list[str]:
        """What of runs only this worker has, in its memory or in work."""
        found: list[str] = self.client.run_on_scheduler(_only_on, name)
        return found

    def retire(self, *names: str) -> None:
        """Have Dask retire workers, and wait until it has; those that it has do not linger."""
        retired: dict[str, Any] = self.client.retire_workers(names=list(names))
        for worker in retired.values():
            self.kill(worker["name"])

    def close(self) -> None:
        """Stop everything."""
        if self._client is not None:
            self._client.close()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _keys(dask_scheduler: Any) -> list[str]:
    return [str(key) for key in dask_scheduler.tasks if str(key).startswith("foreplan-")]


def _only_on(name: str, dask_scheduler: Any) -> list[str]:
    [worker] = [w for w in dask_scheduler.workers.values() if w.name == name]
    alone = [task for task in worker.has_what if len(task.who_has) == 1]
    found = [str(task.key) for task in [*alone, *worker.processing]]
    return [key for key in found if key.startswith("foreplan-")]


def _plugins(dask_worker: Any) -> list[str]:
    return [name for name in dask_worker.plugins if name.startswith("foreplan-")]


def _scheduler_plugins(dask_scheduler: Any) -> list[str]:
    return [name for name in dask_scheduler.plugins if name.startswith("foreplan-")]


async def _schedule() -> None:
    from distributed import Scheduler

    make: Any = Scheduler
    async with make(port=0, host="127.0.0.1", dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()


async def _work(address: str, name: str, options: dict[str, Any]) -> None:
    from distributed import Worker

    make: Any = Worker
    usual = {"nthreads": 1, "memory_limit": 0, "dashboard": False}
    async with make(address, name=name, **{**usual, **options}) as worker:
        await worker.finished()


def _fork(work: Any) -> int:
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        asyncio.run(work)
    finally:
        os._exit(0)


def main() -> None:
    """Fork a scheduler, and a worker for each name that is read."""
    import distributed  # noqa: F401

    read, write = os.pipe()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the dead
    own = os.dup(1)
    os.dup2(write, 1)
    pids = [_fork(_schedule())]
    with os.fdopen(read) as file:
        address = file.readline().strip()
    os.dup2(own, 1)
    print(address, flush=True)
    for line in sys.stdin:
        name, _, options = line.partition(" ")
        pids.append(_fork(_work(address, name, json.loads(options))))
        print(pids[-1], flush=True)
    for pid in pids:
        if _runs(pid):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
