"""What is known before a run: declared costs, the history, and the machines of `--on`."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreplan
import foreplan_benchmarks
import foreplan_reproductions
from foreplan.checks.schedules import check_schedule
from foreplan.errors import InputError
from foreplan.executors.local.this_machine import available_processors
from foreplan.history.database import FILE
from foreplan.history.records import TaskRecord, commands_of
from foreplan.history.repository import Repository
from foreplan.model import Situation, Workflow

TASKS: dict[str, dict[str, Any]] = {
    "a": {"category": "align", "run": "align a"},
    "b": {"category": "align", "run": "align b"},
    "c": {"cost": 6.0, "run": "c"},
    "d": {"run": "d"},
}
PLATFORM = {"processors": {"fast": {"speed": 2, "price": 1}, "slow": {}}}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "foreplan-home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "foreplan-home"


def made(tasks: dict[str, dict[str, Any]] = TASKS) -> Workflow:
    return foreplan.load({"name": "wf", "tasks": tasks, "edges": [["a", "c", 1], ["b", "c", 1]]})


def remember(seconds: float, category: str = "align", **changes: Any) -> None:
    """Three runs of this workflow in this directory, on this machine."""
    origin = {"workflow": "wf", "directory": str(Path.cwd()), "machine": socket.gethostname()}
    known = {**origin, "category": category, "seconds": seconds, **changes}
    with Repository() as repository:
        repository.add(TaskRecord(at=1e9 + k, run=f"run-{k % 3}", **known) for k in range(6))


def test_declared_costs_hold_on_a_platform_and_the_history_tells_of_the_others(
    home: Path,
) -> None:
    remember(4.0)
    remember(99.0, "wf/c")
    wf, pf = made(), foreplan.load_platform(PLATFORM)
    told = foreplan.estimate(wf, pf)
    assert told.estimates.cost == pytest.approx(np.array([[2, 4], [2, 4], [3, 6], [2, 4]]))
    assert told.message == (
        "estimates of 4 tasks: 2 measured on other machines (align: 3 runs), 1 by their declared "
        "cost, 1 not measured yet (d: 3 s assumed)"
    )
    schedule = foreplan.plan(wf, pf, estimates=told.estimates)
    check_schedule(schedule, Situation.at_start(wf, pf, told.estimates))
    assert schedule.makespan == pytest.approx(
        foreplan.simulate(wf, pf, estimates=told.estimates).makespan
    )
    (of_one,) = foreplan.compare(
        wf, pf, "static", 1, 0.0, jobs=1, estimates=[told.estimates]
    ).overall
    assert of_one.makespan.mean == pytest.approx(schedule.makespan)
    with pytest.raises(InputError, match="task 'a' has no cost on processor 'fast'"):
        foreplan.estimate(wf, pf, use_history=False)
    with pytest.raises(InputError, match="has no cost"):
        foreplan.plan(wf, pf)  # the library reads the history only where it is told to


def test_where_all_costs_are_declared_nothing_is_read(home: Path) -> None:
    tasks = {name: {**task, "cost": 3.0} for name, task in TASKS.items()}
    remember(99.0)
    wf, pf = made(tasks), foreplan.load_platform(PLATFORM)
    told = foreplan.estimate(wf, pf)
    assert (told.message, told.blind, told.on) == ("", False, None)
    assert (told.estimates.cost[0] == [1.5, 3]).all()


def test_nothing_known_at_all(home: Path) -> None:
    tasks = {name: {"run": name} for name in TASKS}
    wf, pf = made(tasks), foreplan.load_platform(PLATFORM)
    told = foreplan.estimate(wf, pf)
    assert told.blind
    assert told.message.startswith("no task has a cost, so all count alike")
    assert (told.estimates.cost == [0.5, 1.0]).all()
    assert not home.exists()  # looking makes no history


def test_without_a_platform_it_is_as_a_run_would_begin(home: Path) -> None:
    remember(4.0)
    remember(9.0, "wf/c")
    told = foreplan.estimate(made(), price=2.0)
    assert told.platform.n_processors == available_processors()
    assert told.platform.price[0] == 2.0
    assert told.estimates.cost[:, 0] == pytest.approx([4.0, 4.0, 9.0, 4.0])
    assert told.one_host
    three = foreplan.estimate(made(), on="local:3", use_history=False)
    assert three.platform.processor_names == ("local-1", "local-2", "local-3")
    assert three.estimates.cost[:, 0] == pytest.approx([6.0] * 4)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"on": "nowhere"}, "no place to run"),
        ({"on": "local:0"}, "no number of processors"),
        ({"platform": PLATFORM, "on": "local"}, "leave it out"),
        ({"platform": PLATFORM, "price": 1.0}, "leave it out"),
        ({"price": -1.0}, "no price"),
    ],
)
def test_what_cannot_be_meant(home: Path, wrong: dict[str, Any], said: str) -> None:
    if "platform" in wrong:
        wrong = {**wrong, "platform": foreplan.load_platform(wrong["platform"])}
    with pytest.raises(InputError, match=said):
        foreplan.estimate(made(), **wrong)


def test_a_history_that_cannot_be_read_is_told(home: Path) -> None:
    home.mkdir()
    (home / FILE).write_text("no database at all, but long enough to be looked at as one " * 20)
    heard: list[str] = []
    told = foreplan.estimate(made(), on="local:1", warn=heard.append)
    assert told.estimates.cost[:, 0] == pytest.approx([6.0] * 4)
    assert "damaged" in heard[0]


def test_what_if_on_this_machine(home: Path) -> None:
    remember(4.0)
    told = foreplan.estimate(made(), on="local:1")
    answer = foreplan.what_if(made(), expected=told, add="local-1:1")
    assert answer.present.makespan == pytest.approx(18.0)
    assert answer.alternatives[0].makespan == pytest.approx(10.0)  # on the same host: no transfers


def experiments() -> dict[str, Any]:
    """What the reproductions and benchmarks do, on small samples."""
    pf, bare = (
        foreplan.load_platform(PLATFORM),
        made({name: {"category": "align"} for name in TASKS}),
    )
    (strategies,) = [
        each for _, each in foreplan.compare(bare, pf, "static", 2, jobs=1).by_workflow
    ]
    return {
        "plan": foreplan.plan(bare, pf).to_dict(),
        "pareto": foreplan.pareto(bare, pf, points=3).to_dict(),
        "simulate": foreplan.simulate(bare, pf, "aheft", qoi=0.3, seed=2).makespan,
        "compare": [each.makespan for each in strategies],
        "what if": foreplan.what_if(bare, pf, add="fast:2").to_dict(),
    }


def test_reproductions_and_benchmarks_never_read_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = experiments()
    for category in ("align", "wf/a", "wf/b", "wf/c", "wf/d"):
        remember(12345.0, category, command=commands_of(made())[0])

    def opened(*arguments: Any) -> None:
        raise AssertionError("the history was opened")

    monkeypatch.setattr(Repository, "__init__", opened)
    assert experiments() == before
    folders = (Path(str(m.__file__)).parent for m in (foreplan_benchmarks, foreplan_reproductions))
    for file in (path for folder in folders for path in folder.glob("*.py")):
        text = file.read_text()  # real runs of benchmarks have a history of their own
        assert "beforehand" not in text, file
        assert "api.run(" not in text or "own_history" in text, file
