"""Workers of Dask that cost money: known ones, and one that comes while the run goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import foreplan
from chaos.runs import limited
from runs.people import Somebody, checked, wait_for

pytest.importorskip("distributed")

from executors.cluster import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "cluster").mkdir()
    cluster = Cluster(tmp_path / "cluster")
    yield cluster
    cluster.close()


def test_prices(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "history"))
    names = cluster.have(2)
    flow, gate = foreplan.Flow("paid"), str(tmp_path / "go")
    made = [flow.task(wait_for, gate, cost=10.0, size=10.0, name=f"w{k}") for k in range(2)]
    total = flow.task(wait_for, gate, *made, cost=10.0, name="total")

    def act(me: Somebody) -> None:
        me.until(lambda: len(me.running()) > 0)
        names.append(cluster.add())
        me.until(lambda: len(me.session.coordinator.platform.processor_names) == 3)
        Path(gate).touch()

    place = f"dask://{cluster.address.removeprefix('tcp://')}"
    told = foreplan.estimate(flow.build()[0], on=place, price={"worker-*": 1, names[1]: (2, 3600)})
    costs = dict(zip(told.platform.processor_names, told.platform.price.tolist(), strict=True))
    assert costs == {names[0]: 1, names[1]: 2}  # what a run would have, before there is one
    assert told.estimates.cost.tolist() == pytest.approx(np.full((3, 2), 10.0))
    somebody = Somebody(act)
    price: dict[str, float | tuple[float, float]] = {"worker-*": 1, names[1]: (2, 3600)}
    with limited(90):
        outcome = foreplan.run(
            flow, place, dir=tmp_path, price=price,
            transfer_price=0.5, budget=1e6, use_history=False, listener=somebody,
        )  # fmt: skip
    assert somebody.error is None
    assert outcome.result(total) == 0
    run = checked(outcome)
    platform = run.platform
    by_name = dict(zip(platform.processor_names, platform.price.tolist(), strict=True))
    assert by_name == {names[0]: 1, names[1]: 2, names[2]: 1}
    assert platform.billing.tolist() == [3600 * (n == names[1]) for n in platform.processor_names]
    assert set(platform.link_price.ravel().tolist()) == {0, 0.5}
    assert platform.link_price.diagonal().tolist() == [0, 0, 0]
    sent = run.workflow.item_size[run.transfers.item].sum()
    assert run.usage.transfers == pytest.approx(0.5 * sent)
    assert outcome.money is not None
    assert outcome.money.spent == pytest.approx(run.cost)
