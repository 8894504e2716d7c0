"""A second run on Dask: what was kept, or came home, is not made again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.errors import ForeplanError
from foreplan.executors.results import SMALL
from foreplan.model.events import REUSED, Event, TaskFinished
from foreplan.runs import Session
from foreplan.runs.cleaning import Choice, look
from foreplan.runs.session import Silent

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


def note(name: str) -> None:
    with open(os.environ["RAN"], "a") as file:
        file.write(name + "\n")


def half(x: int) -> list[int]:
    note("a")
    return [x // 2] * 4000


def plus(name: str, *values: Any) -> Any:
    note(name)
    return sum(value if isinstance(value, int) else value[0] for value in values)


def sums(first: int = 4, last: int = 1, memory: str | None = None) -> foreplan.Flow:
    flow = foreplan.Flow("sums")
    a = flow.task(half, first, name="a", memory=memory)
    b = flow.task(plus, "b", a, name="b")
    flow.task(plus, "c", a, b, last, name="c")
    return flow


def run(flow: foreplan.Flow, client: Any, **options: Any) -> Any:
    outcome = foreplan.run(flow, client, **options)
    assert outcome.ok, outcome.failures
    check_run(outcome.run)
    return outcome


def test_what_is_not_kept_is_made_again_only_if_it_is_needed(client: Any, ran: Path) -> None:
    flow = sums()
    assert run(flow, client, keep_results=False).result(flow.tasks[2]) == 5
    assert take(ran) == ["a", "b", "c"]
    outcome = run(flow, client)
    assert outcome.result(flow.tasks[2]) == 5
    assert (take(ran), outcome.id) == ([], "")
    with pytest.raises(ForeplanError, match="not there any more"):
        outcome.result(flow.tasks[0])
    flow = sums(last=2)
    assert run(flow, client).result(flow.tasks[2]) == 6
    assert take(ran) == ["a", "b", "c"]  # c takes a and b, which nobody has kept
    run(sums(), "local:1")
    assert take(ran) == []  # of either


def test_what_is_kept(client: Any, ran: Path) -> None:
    first = run(sums(), client)
    (goes,) = look(Path(), Choice(older=0.0)).things
    assert (goes.name, goes.about.partition(" of ")[0]) == (first.id, "finished; 3 results")
    take(ran)
    flow = sums(last=2)
    assert run(flow, client).result(flow.tasks[2]) == 6
    assert take(ran) == ["c"]
    flow = sums(5, last=3)  # a gives the same again, so b is taken from where it is kept
    outcome = run(flow, client, keep_results=False)
    assert take(ran) == ["a", "c"]
    assert outcome.result(flow.tasks[2]) == 7
    reused = [e for e in outcome.run.events or () if e.detail and REUSED in e.detail]
    assert len(reused) == 1
    assert run(flow, client, force=["b"]).ok
    assert take(ran) == ["a", "b"]  # what a gave was not kept; c is as it was


class StopSoon(Silent):
    """Stops the run once a task is done; what has begun then comes to its end."""

    advice = ""  # for who loses the scheduler

    def happened(self, session: Session, events: list[Event]) -> None:
        self.advice = session.machines._jobs.advice  # type: ignore[attr-defined]
        if any(isinstance(event, TaskFinished) for event in events) and not session.stopping:
            session.stop()


@pytest.mark.parametrize("place", ["dask", "local:1"])
def test_a_resumed_run_repeats_nothing(client: Any, ran: Path, place: str) -> None:
    flow = sums(memory="1MB")  # so that nothing is begun ahead
    listener = StopSoon()
    stopped = foreplan.run(flow, client, listener=listener)
    assert f"resume={stopped.id!r}" in listener.advice
    assert (stopped.status, take(ran)) == ("stopped", ["a", "b"])
    assert stopped.result(flow.tasks[0]) == [2] * 4000
    again = foreplan.run(flow, client if place == "dask" else place, resume=stopped.id)
    assert again.result(flow.tasks[2]) == 5
    assert take(ran) == ["c"]
    check_run(again.run)


def test_a_damaged_result_is_made_again(client: Any, ran: Path) -> None:
    flow = sums(memory="1MB")
    stopped = foreplan.run(flow, client, listener=StopSoon())
    take(ran)
    small = stopped.home / "results" / SMALL
    small.write_bytes(small.read_bytes().replace(bytes([2]), bytes([3])))
    again = foreplan.run(flow, client, resume=stopped.id)
    assert again.result(flow.tasks[2]) == 5
    assert "a" in take(ran)


def commands() -> dict[str, Any]:
    def task(run: str, inputs: list[str], output: str) -> dict[str, Any]:
        return {"run": f"{run}; echo $FOREPLAN_TASK >> $RAN", "inputs": inputs, "outputs": [output]}

    return {
        "cut": task("head -n 1 x.txt > x.cut", ["x.txt"], "x.cut"),
        "count": task("wc -l < x.cut > x.n", ["x.cut"], "x.n"),
        "both": task("cat x.cut x.n > x.both", ["x.cut", "x.n"], "x.both"),
        "last": task("cat x.n > x.last", ["x.n"], "x.last"),
    }


def test_commands_whose_files_travel(client: Any, ran: Path) -> None:
    def again(on: Any, **options: Any) -> list[str]:
        outcome = foreplan.run({"tasks": commands()}, on, **options)
        assert outcome.ok, outcome.failures
        assert not outcome.warnings
        return take(ran)

    everything = ["both", "count", "cut", "last"]
    Path("x.txt").write_text("1\n2\n")
    assert again(client) == everything
    assert sorted(p for p in os.listdir() if p != ".foreplan") == ["x.both", "x.last", "x.txt"]
    assert again(client) == []
    assert again("local:1") == []
    Path("x.txt").write_text("1\n3\n")
    assert again(client) == ["count", "cut"]  # the same line; nobody has what it was counted from
    Path("x.txt").write_text("4\n3\n")
    assert again("local:1") == ["both", "count", "cut"]  # it counts one line again
    assert again(client) == []
    Path("x.txt").write_text("5\n3\n")  # now there are files of an earlier run, which are renewed
    assert again(client) == ["both", "count", "cut"]
    assert Path("x.cut").read_text() == "5\n"
    assert again(client) == []
    assert again("local:1") == []
    Path("x.last").unlink()
    assert again(client) == ["last"]
    assert again(client, force=["cut"]) == ["cut"]
    Path("x.both").write_text("6\n")
    with pytest.raises(ForeplanError, match="somebody has changed"):
        again(client)
    assert again(client, trust="mtime") == everything  # of what was made elsewhere nothing is known


def test_an_input_that_changes_after_it_has_travelled(client: Any, ran: Path) -> None:
    def task(name: str, *more: str) -> dict[str, Any]:
        command = f"cat x.txt > {name}; echo 2 > {Path.cwd()}/x.txt"
        return {"run": command, "inputs": ["x.txt", *more], "outputs": [name]}

    tasks = {"a": task("a"), "b": task("b", "a")}
    Path("x.txt").write_text("1\n")
    outcome = foreplan.run({"tasks": tasks}, client)
    assert outcome.ok
    assert Path("b").read_text() == "1\n"  # as it had travelled
    (warning,) = outcome.warnings
    assert warning == "b: x.txt, which it takes, was changed while it ran: it will be run again"
    assert foreplan.run({"tasks": tasks}, client).run.n_done
    assert Path("b").read_text() == "2\n"


def test_directories_and_patterns_in_a_shared_directory(client: Any, ran: Path) -> None:
    data = Path.cwd()
    (data / "in").write_text("x\ny\n")
    tasks: dict[str, Any] = {
        "index": {"run": "mkdir idx; cp in idx/a", "inputs": ["in"], "outputs": ["idx/"]},
        "split": {"run": "split -l 1 in parts/p-; mv parts/p-aa parts/1.txt", "inputs": ["in"],
                  "outputs": ["parts/*.txt"], "temp": True},
        "use": {"run": "cat idx/a parts/*.txt > all", "inputs": ["idx/", "parts/*.txt"],
                "outputs": ["all"], "protected": True, "env": {"A": "1"}},
    }  # fmt: skip

    def outcome() -> Any:
        found = foreplan.run({"tasks": tasks}, client, dir=data, shared=True)
        assert found.ok, found.failures
        return found

    outcome()
    assert (data / "all").read_text() == "x\ny\nx\n"
    assert os.listdir(data / "parts") == []
    assert not os.access(data / "all", os.W_OK) or os.getuid() == 0
    assert outcome().id == ""
    (data / "all").unlink()
    check_run(outcome().run)
    assert (data / "all").read_text() == "x\ny\nx\n"
