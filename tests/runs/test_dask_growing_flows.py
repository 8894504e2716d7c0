"""Functions that add tasks, on Dask: with results kept or not, again, and resumed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.errors import ForeplanError
from runs.splitting import late, plain, square, squares, summed, total

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(processes=False, protocol="tcp", host="127.0.0.1", **options) as c,
        distributed.Client(c) as client,
    ):
        yield client


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "history"))
    monkeypatch.setenv("RAN", str(tmp_path / "ran"))
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "data")
    (tmp_path / "ran").write_text("")
    return tmp_path / "ran"


def take(ran: Path) -> list[str]:
    found = sorted(ran.read_text().split())
    ran.write_text("")
    return found


def splitting(n: int) -> foreplan.Flow:
    flow = foreplan.Flow("splitting")
    added = flow.task(squares, n, name="split", expand=True)
    parts = flow.task(summed, 2, name="parts", expand=True)
    none = flow.task(squares, 0, name="none", expand=True)
    flow.task(str, [added, parts["sum"], parts["first"], none], name="last")
    flow.task(square, 7, after=added, name="after")
    return flow


def run(flow: foreplan.Flow, client: Any, **options: Any) -> Any:
    outcome = foreplan.run(flow, client, progress=False, **options)
    if outcome.ok:
        check_run(outcome.run)
    return outcome


@pytest.mark.parametrize("keep", [False, True])
def test_added_functions(client: Any, ran: Path, keep: bool) -> None:
    flow = splitting(3)
    outcome = run(flow, client, keep_results=keep)
    assert outcome.ok, outcome.failures
    assert outcome.result(flow.tasks[3]) == "[[0, 1, 4], 841, 400, []]"
    if keep:
        assert outcome.result(flow.tasks[0]) == [0, 1, 4]
    else:
        with pytest.raises(ForeplanError, match="keep_results=True"):
            outcome.result(flow.tasks[0])
    counted = ["square-0", "square-1", "square-2", "square-20", "square-21", "square-7"]
    assert take(ran) == [*counted, "squares", "squares", "total"]
    assert run(flow, client, keep_results=keep).id == ""
    more = splitting(4)
    outcome = run(more, client, keep_results=keep)
    assert outcome.result(more.tasks[3]) == "[[0, 1, 4, 9], 841, 400, []]"
    ran_again = {*take(ran)}
    assert {"square-3", "squares"} <= ran_again
    assert keep == ({"square-0", "square-20"}.isdisjoint(ran_again))  # which are gone, or kept


def test_a_plain_value_fails_its_task(client: Any, ran: Path) -> None:
    flow = foreplan.Flow("bad")
    flow.task(str, flow.task(plain, expand=True))
    good = flow.task(total, [1, 2])
    outcome = run(flow, client, keep_going=True)
    (failure,) = outcome.failures
    assert (failure.task, failure.cause) == ("plain", "expansion")
    assert outcome.result(good) == 3


@pytest.mark.parametrize("keep", [False, True])
def test_a_run_is_resumed(client: Any, ran: Path, keep: bool) -> None:
    flow = foreplan.Flow("late")
    added = flow.task(late, 3, name="late", expand=True)
    flow.task(str, [added])
    failed = run(flow, client, keep_results=keep)
    assert [failure.task for failure in failed.failures] == ["late/careful"]
    Path(f"{ran}.go").touch()
    outcome = run(flow, client, resume=failed.id)
    assert outcome.ok, outcome.failures
    assert outcome.result(flow.tasks[1]) == "[5]"
