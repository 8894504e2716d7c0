"""Where copies come from on Dask, and what links are taken to be there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

distributed = pytest.importorskip("distributed")

import foreplan  # noqa: E402
from executors.dask_trials import BIG, blob, finish, functions, length, running, take  # noqa: E402
from foreplan.executors.base import find_scheme  # noqa: E402
from foreplan.executors.dask.cluster import LINK  # noqa: E402
from foreplan.history.records import History, TransferRecord  # noqa: E402
from foreplan.history.repository import Repository  # noqa: E402
from foreplan.model import Link, Platform  # noqa: E402
from foreplan.model.call import Call, Ref  # noqa: E402
from foreplan.model.events import ItemArrived, SendItem  # noqa: E402
from foreplan.model.platform import Processor  # noqa: E402
from foreplan.runs.estimates import expect, with_links  # noqa: E402
from model.told import whom  # noqa: E402

MB = 1e6


@pytest.fixture(scope="module")
def three() -> Iterator[Any]:
    """Three workers in this process: tests can look at what each has fetched."""
    options = {"n_workers": 3, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(
        processes=False, protocol="tcp", host="127.0.0.1", **options
    ) as cluster:
        yield cluster


@pytest.mark.parametrize("source", [0, 1])
def test_a_copy_comes_from_the_source_that_was_chosen(
    three: Any, tmp_path: Path, source: int
) -> None:
    calls = [Call(blob, (BIG,)), Call(length, (Ref(0),))]
    workflow, address = functions(calls, {0: [1]}), three.scheduler_address
    with running(workflow, address, tmp_path, calls) as executor:
        names = executor.platform.host_names
        workers = {worker.address: worker for worker in three.workers.values()}
        finish(executor, 0, 0, 0)
        for transfer, (begin, end) in enumerate([(0, 1), (source, 2)]):
            executor.perform(SendItem(transfer, 0, begin, end, 0.0))
            event = take(executor)
            assert (type(event), whom(event)) == (ItemArrived, transfer)
        assert workers[names[2]].transfer_incoming_log[-1]["who"] == names[source]


def test_a_source_that_does_not_hold_it_is_replaced(three: Any, tmp_path: Path) -> None:
    calls = [Call(blob, (BIG,)), Call(length, (Ref(0),))]
    workflow, address = functions(calls, {0: [1]}), three.scheduler_address
    with running(workflow, address, tmp_path, calls) as executor:
        finish(executor, 0, 0, 0)
        executor.perform(SendItem(0, 0, 1, 2, 0.0))
        assert isinstance(take(executor), ItemArrived)


def test_a_run_begins_with_the_links_of_former_runs(
    three: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "home"))
    on = three.scheduler_address.replace("tcp", "dask")
    _, machines = find_scheme(on).look(on)
    with Repository() as repository:
        repository.add([], [TransferRecord(1.0, "r", machines[2], machines[0], 10 * MB, 5.0)])
    tasks = {"name": "t", "tasks": {"a": {"run": "true"}, "b": {"run": "true"}}}
    platform = foreplan.run(tasks, on=on, dir=tmp_path).run.platform
    assert platform.time_per_unit[0, 2] == platform.time_per_unit[2, 0] == 5 / (10 * MB)
    assert platform.time_per_unit[0, 1] == platform.time_per_unit[1, 2] == LINK.time_per_unit
    planned = expect(foreplan.load(tasks), on=on).platform
    assert (planned.time_per_unit == platform.time_per_unit).all()
    later = with_links(planned, lambda p: machines[p], History(), platform)
    assert later is planned


def test_links_that_are_known_stay_and_new_ones_are_looked_up() -> None:
    records = History()
    for source, target, seconds in [
        ("x", "y", 1.0),
        ("y", "x", 2.0),
        ("y", "x", 2.0),
        ("z", "x", 4.0),
    ]:
        records.observe_transfer(source, target, 10 * MB, seconds)
    names = ("x", "y", "z")
    two, three = (Platform.build([Processor(n) for n in names[:k]], LINK) for k in (2, 3))
    found = with_links(three, lambda p: names[p], records)
    assert found.time_per_unit[0].tolist() == [0.0, 2 / (10 * MB), 4 / (10 * MB)]
    assert (found.time_per_unit == found.time_per_unit.T).all()
    grown = with_links(three, lambda p: names[p], records, two)
    assert grown.time_per_unit[0].tolist() == [0.0, 1e-8, 4 / (10 * MB)]
    assert with_links(three, lambda p: names[p], History()) is three
    at_once = Platform.build([Processor(n) for n in names], Link(0.0, 0.0))
    assert with_links(at_once, lambda p: names[p], records) is at_once
