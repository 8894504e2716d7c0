"""Real runs through the library: what is run, what is tried again, what is learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.errors import InputError
from foreplan.model.events import Event
from foreplan.runs import Outcome, Session
from foreplan.runs import session as session_module
from foreplan.runs.home import RunHome
from foreplan.runs.journal import read
from foreplan.runs.replay import replay
from foreplan.runs.session import Silent


@pytest.fixture(autouse=True)
def _own_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "history"))
    (tmp_path / "data").mkdir()


def go(tmp_path: Path, tasks: dict[str, Any], **options: Any) -> Outcome:
    outcome = foreplan.run(
        {"name": "t", "tasks": tasks}, "local:2", dir=tmp_path / "data", **options
    )
    replayed = replay(read(RunHome(outcome.home).journal), tmp_path / "data")
    replayed.driver.coordinator.check_state()
    assert replayed.decisions == replayed.journalled
    if outcome.ok:
        check_run(outcome.run)
        check_run(replayed.run())
    return outcome


CHAIN = {
    "a": {"run": "echo 1 > a", "outputs": ["a"]},
    "b": {"run": "cat a a > b", "inputs": ["a"], "outputs": ["b"]},
}


def test_blind_first_and_planned_then(tmp_path: Path) -> None:
    first = go(tmp_path, CHAIN)
    assert (first.status, first.run.strategy, first.run.plans) == ("finished", "ico", ())
    second = go(tmp_path, CHAIN, force=True)
    assert (second.status, second.run.strategy) == ("finished", "adaptive")
    assert (tmp_path / "data" / "b").read_text() == "1\n1\n"
    assert set(second.measured) == {0, 1}
    third = go(tmp_path, CHAIN, use_history=False, force=True)
    assert third.run.strategy == "ico"


def test_declared_costs_are_planned_with(tmp_path: Path) -> None:
    tasks = {name: {**fields, "cost": 0.1} for name, fields in CHAIN.items()}
    assert go(tmp_path, tasks, use_history=False).run.strategy == "adaptive"


COUNTED = "echo x >> $FOREPLAN_DIR/tries; test $(wc -l < $FOREPLAN_DIR/tries) -ge {n}"


def test_retries(tmp_path: Path) -> None:
    failed = go(tmp_path, {"a": {"run": COUNTED.format(n=3)}}, retries=1)
    assert failed.status == "failed"
    assert [f.task for f in failed.failures] == ["a"]
    assert len(failed.run.attempts.task) == 2
    (tmp_path / "data" / "tries").unlink()
    assert go(tmp_path, {"a": {"run": COUNTED.format(n=3), "retries": 2}}).ok


def test_keep_going(tmp_path: Path) -> None:
    tasks = {
        "bad": {"run": "echo wrong >&2; exit 3", "outputs": ["x"]},
        "after": {"run": "true", "inputs": ["x"]},
        **{f"good{k}": {"run": f"echo {k} > g{k}", "outputs": [f"g{k}"]} for k in range(6)},
    }
    failed = go(tmp_path, tasks, keep_going=True, strategy="static")
    assert failed.not_done == ("bad", "after")
    assert failed.failures[0].task == "bad"
    assert "3" in failed.failures[0].reason
    assert "wrong" in failed.failures[0].tail
    assert all((tmp_path / "data" / f"g{k}").exists() for k in range(6))


def test_a_failed_run_is_taken_up_again(tmp_path: Path) -> None:
    tasks = {
        "a": {"run": "echo a > a; echo a >> $FOREPLAN_DIR/ran", "outputs": ["a"]},
        "b": {
            "run": "test -e $FOREPLAN_DIR/mended && cat a > b",
            "inputs": ["a"],
            "outputs": ["b"],
        },
        "c": {"run": "cat b > c", "inputs": ["b"], "outputs": ["c"]},
    }
    failed = go(tmp_path, tasks)
    assert (failed.status, failed.not_done) == ("failed", ("b", "c"))
    (tmp_path / "data" / "mended").touch()
    again = foreplan.run({"name": "t", "tasks": tasks}, dir=tmp_path / "data", resume=failed.id)
    assert again.status == "finished"
    check_run(again.run)
    assert (tmp_path / "data" / "ran").read_text() == "a\n"
    done = foreplan.run({"name": "t", "tasks": tasks}, dir=tmp_path / "data", resume=failed.id)
    assert done.status == "finished"
    assert len(done.run.attempts.task) == len(again.run.attempts.task)


def test_lost_outputs_are_made_again_if_needed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    tasks = {
        "a": {"run": "echo a > a; echo a >> $FOREPLAN_DIR/ran", "outputs": ["a"]},
        "b": {"run": "cat a > b; echo b >> $FOREPLAN_DIR/ran", "inputs": ["a"], "outputs": ["b"]},
        "c": {"run": "cat b > c; echo c >> $FOREPLAN_DIR/ran", "inputs": ["b"], "outputs": ["c"]},
    }
    first = go(tmp_path, tasks)
    (data / "a").unlink()  # nobody needs it any more
    same = foreplan.run({"name": "t", "tasks": tasks}, dir=data, resume=first.id)
    assert (same.status, (data / "ran").read_text()) == ("finished", "a\nb\nc\n")
    (data / "c").unlink()  # the product; what it is made of is there
    again = foreplan.run({"name": "t", "tasks": tasks}, dir=data, resume=first.id)
    assert (again.status, (data / "ran").read_text()) == ("finished", "a\nb\nc\nc\n")
    for name in ("a", "b", "c"):
        (data / name).unlink(missing_ok=True)
    last = foreplan.run({"name": "t", "tasks": tasks}, dir=data, resume=first.id)
    assert (last.status, (data / "c").read_text()) == ("finished", "a\n")
    check_run(last.run)


def test_bad_input_leaves_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    cases: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"a": {"run": "cat in", "inputs": ["in"]}}, {}, r"it: in \(read by a\); put it"),
        ({"a": {"cost": 1}}, {}, "run"),
        ({"a": {"run": "true", "outputs": ["../x"]}}, {}, "x"),
        ({"a": {"run": "true"}}, {"on": "locl"}, "no place to run"),
        ({"a": {"run": "true"}}, {"on": "local:0"}, "no number of processors"),
        ({"a": {"run": "true"}}, {"strategy": "slak"}, "did you mean 'slack'"),
    ]
    for tasks, options, words in cases:
        with pytest.raises(InputError, match=words):
            foreplan.run({"name": "t", "tasks": tasks}, dir=data, **options)
    assert list(data.glob(".foreplan/runs/*")) == []


def test_functions(tmp_path: Path) -> None:
    flow = foreplan.Flow("sums")
    parts = [flow.task(range, n, category="part") for n in (3, 4)]
    totals = [flow.task(sum, part) for part in parts]
    last = flow.task(max, totals)
    outcome = foreplan.run(flow, "local:2", dir=tmp_path / "data")
    assert outcome.ok
    assert (outcome.result(last), outcome.result(totals[0])) == (6, 3)
    resumed = foreplan.run(flow, dir=tmp_path / "data", resume=outcome.id)
    assert resumed.result(last) == 6


def test_compute(tmp_path: Path) -> None:
    dask = pytest.importorskip("dask")
    one, two = dask.delayed(sum)([1, 2]), dask.delayed(max)([3, 4])
    both = dask.delayed(min)([one, two])
    assert foreplan.compute(both, dir=tmp_path / "data") == 3
    assert foreplan.compute(both, one, [two], dir=tmp_path / "data") == (3, 3, [4])
    with pytest.raises(foreplan.RunFailedError, match="ZeroDivisionError"):
        foreplan.compute(dask.delayed(divmod)(1, 0), dir=tmp_path / "data")


class StopAtOnce(Silent):
    """Stops the run after its first task."""

    def happened(self, session: Session, events: list[Event]) -> None:
        if events and not session.stopping:
            session.stop()


@pytest.mark.parametrize("number", [1, 3])
def test_gone_on_with_on_other_processors(tmp_path: Path, number: int) -> None:
    tasks = {f"t{k}": {"run": f"echo {k} > f{k}", "outputs": [f"f{k}"]} for k in range(8)}
    data = tmp_path / "data"
    stopped = foreplan.run(
        {"name": "t", "tasks": tasks}, "local:2", "static", dir=data, listener=StopAtOnce()
    )
    assert stopped.status == "stopped"
    again = foreplan.run(
        {"name": "t", "tasks": tasks}, f"local:{number}", dir=data, resume=stopped.id
    )
    assert again.ok
    check_run(again.run)
    assert all((data / f"f{k}").exists() for k in range(8))
    assert again.run.platform.n_processors == max(2, number)


def test_ideal_is_for_simulations(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only a simulation"):
        foreplan.run({"tasks": {"a": {"run": "true"}}}, strategy="ideal", dir=tmp_path / "data")


@pytest.mark.parametrize("over", [False, True])
def test_a_run_that_hangs_ends_after_the_second_signal(
    over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = list[int]()
    monkeypatch.setattr(session_module, "_ENDS_IN", 60.0 if over else 0.0)
    monkeypatch.setattr("os._exit", ended.append)
    last = session_module.LastResort("a-run")
    last.begin()
    if over:
        last.close()
    last.thread.join(60)
    assert ended == ([] if over else [130])
    assert not last.thread.is_alive()
    if not over:
        last.close()
