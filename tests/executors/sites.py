"""The executors that the conformance suite is for, and what each of them can do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executors.bench import Bench, Watched, limited, until
from executors.cluster import Cluster
from executors.works import Work
from foreplan.executors.base import Workload
from foreplan.executors.local.executor import LocalExecutor
from foreplan.model import Estimates, Link, Platform, Processor
from foreplan.model.world import WorldFile
from foreplan.simulation.reality import from_world
from foreplan.simulation.simulated import SimulatedExecutor

REAL = frozenset({"fails", "real", "results"})


@dataclass(frozen=True)
class Site:
    """An executor of two processors; `has` says which checks it is for."""

    name: str
    has: frozenset[str] = frozenset()
    functions: bool = False

    def executor(self, bench: Bench, **options: Any) -> Any:
        raise NotImplementedError

    def queued(self, executor: Any) -> bool:
        """Whether something has happened that was not taken yet."""
        return True

    @contextlib.contextmanager
    def open(
        self, works: Sequence[Work], folder: Path, cluster: Cluster | None = None, **options: Any
    ) -> Iterator[Bench]:
        """A bench with the executor on it, closed in the end."""
        with limited():
            if cluster is not None:
                cluster.have(2, **({"nthreads": 2} if options.get("wide") else {}))
                options["cluster"] = cluster
            bench = Bench(works, folder, self.functions)
            bench.cluster = cluster
            executor = self.executor(bench, **options)
            fixed = getattr(executor, "fixed", None)
            platform = (lambda: fixed) if fixed is not None else (lambda: executor.platform)
            bench.watched = Watched(executor, platform, "real" in self.has)
            try:
                yield bench
            except BaseException as error:
                error.add_note("\n".join(map(str, bench.watched.log[-100:])))
                raise
            finally:
                bench.close()


class _Simulated(SimulatedExecutor):
    """It is closed as the others are, and tells its platform."""

    fixed: Platform

    def close(self) -> None:
        """There is nothing to be closed."""


class Simulated(Site):
    """Two hosts in a simulated world."""

    def executor(self, bench: Bench, **options: Any) -> Any:
        world: WorldFile = options.get("world", WorldFile())
        platform = Platform.build([Processor("p"), Processor("q")], Link(1e-3, 1e-3))
        estimates = Estimates.declared(bench.workflow, platform)
        reality = from_world(bench.workflow, platform, estimates, world, 0.5, per_processor=True)
        executor = _Simulated(bench.workflow, platform, reality)
        executor.fixed = platform
        return executor


class Local(Site):
    """Two processors of this machine, or four."""

    def executor(self, bench: Bench, **options: Any) -> Any:
        work = Workload(bench.workflow, bench.calls, bench.dir)
        return LocalExecutor(work, 4 if options.get("wide") else 2, bench.home, bench.clock)

    def queued(self, executor: Any) -> bool:
        return not executor.inbox.empty()


@dataclass(frozen=True)
class Dask(Site):
    """Two workers of one thread, or of two."""

    shared: bool = False

    def executor(self, bench: Bench, **options: Any) -> Any:
        from foreplan.executors.dask.executor import DaskExecutor

        cluster: Cluster = options["cluster"]
        return DaskExecutor(
            Workload(bench.workflow, bench.calls, bench.dir, self.shared),
            cluster.client if options.get("lent") else cluster.address,
            bench.home,
            bench.clock,
            options.get("platform"),
        )

    def queued(self, executor: Any) -> bool:
        return not executor.inbox.empty()


SIMULATED = Simulated("simulated")
LOCAL_COMMANDS = Local("local-commands", REAL | {"stops", "keeps", "local", "tails", "wide"})
LOCAL_FUNCTIONS = Local(
    "local-functions", REAL | {"stops", "keeps", "local", "wide"}, functions=True
)
DASK_FUNCTIONS = Dask("dask-functions", REAL | {"dask", "ahead", "wide"}, functions=True)
DASK_SHARED = Dask(
    "dask-shared", REAL | {"dask", "stops", "keeps", "tails", "shared", "wide"}, shared=True
)
DASK_CARRIED = Dask("dask-carried", REAL | {"dask", "stops", "tails", "wide"})
SITES = [
    SIMULATED,
    LOCAL_COMMANDS,
    LOCAL_FUNCTIONS,
    DASK_FUNCTIONS,
    DASK_SHARED,
    DASK_CARRIED,
]


def wait_queued(site: Site, bench: Bench) -> None:
    """Wait until something has happened, without taking it."""
    if bench.watched.real:
        until(lambda: site.queued(bench.watched.executor), "something has happened")
