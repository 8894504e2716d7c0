"""Functions that add tasks: they are run, known again, resumed, and refused if they are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.executors.results import result_path
from foreplan.runs.home import runs
from foreplan.runs.journal import read
from foreplan.runs.replay import replay
from runs.splitting import (
    clash,
    command,
    late,
    nested,
    plain,
    pooled,
    square,
    squares,
    strangers,
    summed,
    too_wide,
    total,
    whole,
)


class Ran:
    """What ran: a line of each function, outside of the data directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text("")

    def take(self) -> list[str]:
        ran = sorted(self.path.read_text().split())
        self.path.write_text("")
        return ran


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ran:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "history"))
    monkeypatch.setenv("RAN", str(tmp_path / "ran"))
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "data")
    return Ran(tmp_path / "ran")


def run(flow: foreplan.Flow, **options: Any) -> Any:
    outcome = foreplan.run(flow, "local:2", progress=False, **options)
    if outcome.ok:
        check_run(outcome.run)
    return outcome


def split(n: int, function: Any = squares) -> foreplan.Flow:
    flow = foreplan.Flow("splitting")
    added = flow.task(function, n, name="split", expand=True)
    flow.task(total, added, name="sum")
    return flow


def squared(*numbers: int) -> list[str]:
    return [f"square-{k}" for k in numbers]


def test_who_takes_the_result_takes_those_of_the_added_tasks(ran: Ran) -> None:
    flow = foreplan.Flow("kinds")
    some = flow.task(squares, 3, name="some", expand=True)
    all_ = flow.task(whole, 0, name="all", expand=True)
    parts = flow.task(summed, 2, name="parts", expand=True)
    none = flow.task(squares, 0, name="none", expand=True)
    last = flow.task(str, [some, all_, parts["sum"], parts, some[1], none])
    after = flow.task(square, 7, after=some)
    outcome = run(flow)
    given = {"sum": 841, "first": 400, "half": 1}
    values = [[0, 1, 4], [100, 121], given, []]
    assert [outcome.result(task) for task in (some, all_, parts, none)] == values
    assert outcome.result(parts["first"]) == 400
    assert outcome.result(last) == str([[0, 1, 4], [100, 121], 841, given, 1, []])
    names = outcome.run.workflow.task_names
    assert {"some/square", "some/square-2", "all/square", "parts/total"} < {*names}
    starts = dict(zip(outcome.run.attempts.task, outcome.run.attempts.start, strict=True))
    ends = dict(zip(outcome.run.attempts.task, outcome.run.attempts.finish, strict=True))
    assert starts[flow.index(after)] >= ends[names.index("some/square-3")]


def test_what_is_up_to_date_is_known(ran: Ran) -> None:
    first = run(split(3))
    assert first.result(first.flow.tasks[1]) == 5
    assert ran.take() == [*squared(0, 1, 2), "squares", "total"]
    again = run(split(3))
    assert (again.id, len(again.up_to_date)) == ("", 5)
    assert [again.result(task) for task in again.flow.tasks] == [[0, 1, 4], 5]
    more = run(split(4))
    assert more.result(more.flow.tasks[1]) == 14
    assert ran.take() == [*squared(3), "squares", "total"]
    assert len(run(split(3)).up_to_date) == 5
    assert ran.take() == []


def test_targets_and_force(ran: Ran) -> None:
    outcome = run(split(2), targets=["split"])
    assert outcome.result(outcome.flow.tasks[0]) == [0, 1]
    assert ran.take() == [*squared(0, 1), "squares"]
    assert run(split(2), targets=["split"]).id == ""
    assert run(split(2), force=["split"]).ok
    assert ran.take() == ["squares", "total"]
    assert run(split(2), force=True).ok
    assert ran.take() == [*squared(0, 1), "squares", "total"]


def test_what_is_gone_is_made_again(ran: Ran) -> None:
    home = run(split(2)).home
    ran.take()
    Path(result_path(home / "results", 0)).unlink()  # what was added
    assert run(split(2)).ok
    assert ran.take() == ["squares"]
    flow = split(2)
    flow.task(str, flow.tasks[0], name="other")
    for home in runs("."):
        Path(result_path(home.results, 2)).unlink()  # of the first that was added
    assert run(flow).result(flow.tasks[2]) == "[0, 1]"
    assert ran.take() == squared(0)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (plain, "it has returned 5, which is no task"),
        (nested, "the task 'squares' says expand=True"),
        (command, "the task 'date' is a command"),
        (strangers, "belongs to another flow"),
        (clash, "there is a task 'bad/taken' already"),
    ],
)
def test_a_bad_expansion_fails_its_task_alone(ran: Ran, function: Any, why: str) -> None:
    flow = foreplan.Flow("bad")
    bad = flow.task(function, name="bad", expand=True)
    flow.task(str, bad, name="reader")
    good = flow.task(square, 3, name="bad/taken")
    for _ in range(2):  # the second run finds it, and says the same
        outcome = run(flow, keep_going=True)
        (failure,) = outcome.failures
        assert (failure.task, failure.cause) == ("bad", "expansion")
        assert why in failure.reason
        assert outcome.not_done == ("bad", "reader")
        assert outcome.result(good) == 9


def test_added_tasks_must_fit(ran: Ran) -> None:
    flow = foreplan.Flow("wide")
    flow.task(too_wide, expand=True)
    (failure,) = run(flow).failures
    assert (failure.task, failure.cause) == ("too_wide", "expansion")
    assert "fits on no host" in failure.reason


def test_added_tasks_share_the_pools_of_the_run(ran: Ran) -> None:
    flow = foreplan.Flow("pooled", pools={"licence": 1})
    flow.task(square, 2, pools={"licence": 1})
    flow.task(pooled, expand=True)
    (failure,) = run(flow).failures
    assert (failure.task, failure.cause) == ("pooled", "expansion")
    assert "pools are those of the run: what a task adds has none" in failure.reason


def test_a_part_that_is_not_there(ran: Ran) -> None:
    flow = foreplan.Flow("part")
    flow.task(str, flow.task(squares, 2, expand=True)[5])
    (failure,) = run(flow).failures
    assert (failure.task, failure.cause) == ("squares", "expansion")
    assert "the result of 'squares' has no [5]" in failure.reason


def test_a_run_that_stopped_is_resumed(ran: Ran) -> None:
    flow = foreplan.Flow("late")
    before = flow.task(squares, 2, name="before", expand=True)
    none = flow.task(squares, 0, name="none", expand=True)
    added = flow.task(late, 3, name="late", expand=True)
    last = flow.task(str, [added, before, none])
    assert run(flow, targets=["before"]).ok  # the next run takes what it has added
    failed = run(flow)
    assert [failure.task for failure in failed.failures] == ["late/careful"]
    ran.take()
    Path(f"{ran.path}.go").touch()
    outcome = run(flow, resume=failed.id)
    assert outcome.ok, outcome.failures
    assert outcome.result(last) == "[5, [0, 1], []]"
    assert ran.take() == ["total"]
    (home, *_) = runs(".")
    replayed = replay(read(home.journal), home.data)
    assert replayed.decisions == replayed.journalled
    assert "late/careful" in replayed.header.workflow.task_names
    assert run(flow).id == ""


def test_a_run_whose_tasks_are_gone_is_not_resumed(ran: Ran) -> None:
    failed = run(split(3, late))
    Path(result_path(failed.home / "results", 0)).unlink()
    with pytest.raises(foreplan.InputError, match="begin a new run"):
        run(split(3, late), resume=failed.id)


def test_other_arguments_are_refused_on_resume(ran: Ran) -> None:
    failed = run(split(3, late))
    with pytest.raises(foreplan.InputError, match="'split' have changed"):
        run(split(4, late), resume=failed.id)


def boom() -> None:
    raise ValueError("boom")


def one_fails() -> Any:
    flow = foreplan.Flow()
    return {"good": flow.task(abs, -4), "bad": flow.task(boom)}


def test_the_error_of_an_added_task(ran: Ran) -> None:
    flow = foreplan.Flow()
    added = flow.task(one_fails, expand=True)
    outcome = run(flow, keep_going=True)
    with pytest.raises(ValueError, match="boom"):
        outcome.result(added)


def test_commands_and_wrong_values(ran: Ran) -> None:
    flow = foreplan.Flow()
    with pytest.raises(foreplan.InputError, match="unknown field 'expand'"):
        flow.command("date", expand=True)
    with pytest.raises(foreplan.InputError, match="expected True or False"):
        flow.task(squares, 2, expand="yes")  # type: ignore[arg-type]
