"""The real coordinator drives every executor through random workflows and interference."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from executors.bench import Bench
from executors.cluster import Cluster
from executors.driven import drive, workflows
from executors.sites import (
    DASK_CARRIED,
    DASK_FUNCTIONS,
    DASK_SHARED,
    LOCAL_COMMANDS,
    LOCAL_FUNCTIONS,
    SIMULATED,
    Site,
)
from executors.works import Work, expected
from foreplan.model.world import WorldFile
from runs.people import nothing_starts_where_it_leaves

SEEDS = st.integers(0, 2**32 - 1)
MOVES = st.sampled_from([0, 3, 8])
DASK = [DASK_FUNCTIONS, DASK_SHARED, DASK_CARRIED]
over_dask = pytest.mark.parametrize("site", DASK, ids=[site.name for site in DASK])


def examples(n: int) -> settings:
    return settings(
        max_examples=n,
        deadline=None,
        phases=[Phase.generate],  # what takes real time is not made smaller
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@contextmanager
def bench_of(
    site: Site, works: list[Work], cluster: Cluster | None = None, **options: Any
) -> Iterator[Bench]:
    with (
        tempfile.TemporaryDirectory(prefix="foreplan-") as folder,
        site.open(works, Path(folder), cluster, **options) as bench,
    ):
        yield bench


def check_products(site: Site, bench: Bench) -> None:
    """What no task reads tells of all that was read."""
    read = {t for work in bench.works for t in work.reads}
    for task in range(len(bench.works)):
        if "results" in site.has and task not in read:
            assert bench.result(task) == expected(bench.works, task)


def run_through(site: Site, works: list[Work], seed: int, moves: int, **options: Any) -> None:
    with bench_of(site, works, **options) as bench:
        drive(bench, seed, moves)
        check_products(site, bench)


FAILURES = st.lists(st.integers(1, 40), min_size=1, max_size=6, unique=True).map(
    lambda times: tuple(0.003 * t for t in sorted(times))
)


@given(works=workflows(fails=False), seed=SEEDS, moves=MOVES, died=FAILURES)
@examples(60)
def test_simulated(works: list[Work], seed: int, moves: int, died: tuple[float, ...]) -> None:
    run_through(SIMULATED, works, seed, moves)
    run_through(SIMULATED, works, seed, moves, world=WorldFile(failures={"q": died}))


@given(works=workflows(), seed=SEEDS, moves=MOVES)
@examples(15)
def test_local_commands(works: list[Work], seed: int, moves: int) -> None:
    run_through(LOCAL_COMMANDS, works, seed, moves)


@given(works=workflows(), seed=SEEDS, moves=MOVES)
@examples(10)
def test_local_functions(works: list[Work], seed: int, moves: int) -> None:
    run_through(LOCAL_FUNCTIONS, works, seed, moves)


@over_dask
@given(works=workflows(), seed=SEEDS, moves=MOVES)
@examples(10)
def test_dask(
    site: Site, works: list[Work], seed: int, moves: int, conformance_cluster: Cluster
) -> None:
    run_through(site, works, seed, moves, cluster=conformance_cluster, lent=True)


TIMES = st.lists(st.integers(1, 12), min_size=1, max_size=4, unique=True)
LOCAL = [LOCAL_COMMANDS, LOCAL_FUNCTIONS]


@pytest.mark.parametrize("site", LOCAL, ids=[site.name for site in LOCAL])
@given(works=workflows(), seed=SEEDS, moves=MOVES, drains=TIMES, joins=TIMES, later=st.booleans())
@examples(8)
def test_local_with_joins_and_leaves(
    site: Site,
    works: list[Work],
    seed: int,
    moves: int,
    drains: list[int],
    joins: list[int],
    later: bool,
) -> None:
    """After so many events a processor joins, or one is drained, at once or soon."""
    drains, joins = sorted(drains), sorted(joins)
    with bench_of(site, works) as bench:
        drained: set[int] = set()

        def disturb(heard: int) -> None:
            stay = [p for p in range(bench.watched.known) if p not in drained]
            if joins and heard >= joins[0]:
                bench.watched.add(1 + joins.pop(0) % 2)
            if drains and heard >= drains[0] and len(stay) > 1:
                goes = stay[drains.pop(0) % len(stay)]
                drained.add(goes)
                bench.watched.drain(goes, bench.clock() + 0.01 if later else None)

        nothing_starts_where_it_leaves(drive(bench, seed, moves, disturb))
        check_products(site, bench)


@over_dask
@given(works=workflows(), seed=SEEDS, moves=MOVES, drains=TIMES, by_dask=st.booleans())
@examples(5)
def test_dask_with_joins_and_leaves(
    site: Site,
    works: list[Work],
    seed: int,
    moves: int,
    drains: list[int],
    by_dask: bool,
    conformance_cluster: Cluster,
) -> None:
    """After so many events a worker comes, and another is drained, or retired by Dask."""
    cluster, left = conformance_cluster, sorted(drains)
    with bench_of(site, works, cluster, lent=True) as bench:
        told: set[int] = set()

        def disturb(heard: int) -> None:
            watched = bench.watched
            stay = [p for p in range(watched.known) if p not in watched.gone | told]
            if left and heard >= left[0] and stay:
                goes = stay[left.pop(0) % len(stay)]
                told.add(goes)
                cluster.add()
                if by_dask:
                    cluster.retire(watched.platform.processor_names[goes])
                else:
                    watched.drain(goes)

        nothing_starts_where_it_leaves(drive(bench, seed, moves, disturb))
        check_products(site, bench)


@over_dask
@given(
    works=workflows(),
    seed=SEEDS,
    moves=MOVES,
    kills=st.lists(st.integers(1, 12), min_size=1, max_size=3, unique=True),
)
@examples(5)
def test_dask_with_losses(
    site: Site,
    works: list[Work],
    seed: int,
    moves: int,
    kills: list[int],
    conformance_cluster: Cluster,
) -> None:
    """Workers die after so many events; each time another comes."""
    cluster, left = conformance_cluster, sorted(kills)
    with bench_of(site, works, cluster, lent=True) as bench:
        killed: set[str] = set()

        def disturb(heard: int) -> None:
            names, w = bench.watched.platform.processor_names, bench.watched
            alive = {names[p] for p in range(w.known) if p not in w.gone} - killed
            if alive and left and heard >= left[0]:
                name = sorted(alive)[left.pop(0) % len(alive)]
                cluster.add()
                cluster.kill(name)
                killed.add(name)

        drive(bench, seed, moves, disturb)
        check_products(site, bench)
