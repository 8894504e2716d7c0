"""`foreplan.run(flow)` a second time: what is up to date is not run, and its results are there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.errors import ForeplanError, InputError
from foreplan.executors.results import result_path
from foreplan.runs.home import runs
from runs.noted import GO, SCALE, Point, Strange, bad, draw, half, note, picky, plus


class Notes:
    """What ran: a line of each task, outside of the data directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text("")

    def take(self) -> list[str]:
        ran = sorted(self.path.read_text().split())
        self.path.write_text("")
        return ran


def sums(first: int = 4, more: int = 1, function: Any = half) -> foreplan.Flow:
    flow = foreplan.Flow("sums")
    a = flow.task(function, first, name="a")
    b = flow.task(plus, a, more, name="b")
    other = flow.task(plus, 7, name="other")
    flow.task(plus, b, other, name="c")
    return flow


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Notes:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "history"))
    monkeypatch.setenv("RAN", str(tmp_path / "ran"))
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "data")
    return Notes(tmp_path / "ran")


def run(flow: foreplan.Flow, **options: Any) -> Any:
    outcome = foreplan.run(flow, options.pop("on", "local:1"), **options)
    assert outcome.ok, outcome.failures
    check_run(outcome.run)
    return outcome


def values(outcome: Any, flow: foreplan.Flow) -> list[Any]:
    return [outcome.result(task) for task in flow.tasks]


ALL = ["a", "b", "c", "other"]


def test_what_runs_after_a_change(ran: Notes) -> None:
    def check(flow: foreplan.Flow, tasks: list[str], expected: list[int]) -> None:
        outcome = run(flow)
        assert ran.take() == tasks
        assert values(outcome, flow) == expected
        assert sorted((*outcome.up_to_date, *outcome.run.workflow.task_names)) == ALL

    check(sums(), ALL, [2, 3, 7, 10])
    check(sums(), [], [2, 3, 7, 10])
    check(sums(more=2), ["b", "c"], [2, 4, 7, 11])
    check(sums(more=1), [], [2, 3, 7, 10])  # of two runs before
    check(sums(5), ["a"], [2, 3, 7, 10])  # it gives 2 again: what takes it is not run
    check(sums(function=lambda x: note() or x // 2), ["a"], [2, 3, 7, 10])
    check(sums(function=lambda x: note() or x // 4), ["a", "b", "c"], [1, 2, 7, 9])


def test_a_global_that_the_program_has_set(ran: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker imports its module anew, and is sent the value; each has its result."""
    flow = sums()
    for scale, half_of_four in ((10, 20), (1, 2)):
        monkeypatch.setitem(SCALE, "k", scale)
        outcome = run(flow)
        assert not outcome.warnings
        assert values(outcome, flow)[0] == half_of_four
        assert "a" in ran.take()
    monkeypatch.setitem(SCALE, "k", 10)
    assert len(run(flow).up_to_date) == 4


def test_nothing_to_do_makes_no_run(ran: Notes) -> None:
    flow = sums()
    run(flow)
    made, (told, listener) = runs("."), _listener()
    outcome = foreplan.run(flow, listener=listener)
    assert (outcome.id, outcome.status, outcome.makespan) == ("", "finished", 0.0)
    assert sorted(outcome.up_to_date) == ALL
    assert outcome.to_dict()["run"] is None
    assert runs(".") == made
    assert told == ["nothing to do: 4 tasks up to date"]
    tasks = {"t": {"run": "echo 1 > x", "outputs": ["x"]}}
    assert [bool(foreplan.run({"tasks": tasks}).id) for _ in range(2)] == [True, False]


def _listener() -> tuple[list[str], Any]:
    from foreplan.runs.session import Silent

    told: list[str] = []

    class Hearing(Silent):
        def said(self, message: str) -> None:
            told.append(message)

    return told, Hearing()


def test_force_and_targets(ran: Notes) -> None:
    flow = sums()
    outcome = run(flow, targets=["b"])
    assert ran.take() == ["a", "b"]
    with pytest.raises(ForeplanError, match="'c' has no result: it was not asked for"):
        outcome.result(flow.tasks[3])
    run(flow)
    assert ran.take() == ["c", "other"]
    run(flow, force=["a"])
    assert ran.take() == ["a"]
    run(flow, force=["?"])
    assert ran.take() == ["a", "b", "c"]
    run(flow, force=True)
    assert ran.take() == ALL
    for wrong in ({"force": ["aa"]}, {"targets": ["cc"]}):
        with pytest.raises(InputError, match=r"'a'|'c'"):
            run(flow, **wrong)


def test_results_that_are_gone(ran: Notes) -> None:
    flow = sums()
    first = run(flow).home
    ran.take()
    os.unlink(result_path(first / "results", 0))
    outcome = run(flow)
    assert ran.take() == []  # nobody needs it
    with pytest.raises(
        ForeplanError, match=r"'a' is up to date, but not there any more: .*targets"
    ):
        outcome.result(flow.tasks[0])
    assert run(flow, targets=["a"]).result(flow.tasks[0]) == 2
    assert ran.take() == ["a"]
    shutil.rmtree(first)
    told, listener = _listener()
    assert values(run(flow, listener=listener), flow) == [2, 3, 7, 10]
    assert ran.take() == ["b", "c", "other"]  # the result of a is of another run
    assert "  c: its result is not there any more" in told
    run(flow)
    assert ran.take() == []


def test_a_result_that_was_taken_stays_when_its_run_goes(ran: Notes) -> None:
    first = run(sums()).home
    flow = sums(more=5)
    second = run(flow)
    shutil.rmtree(first)
    ran.take()
    assert second.result(next(task for task in flow.tasks if task.name == "b")) == 7
    flow = sums(more=6)
    assert values(run(flow), flow) == [2, 8, 7, 15]
    assert ran.take() == ["b", "c"]  # what a and other gave is a link in the second run


def test_a_damaged_result_is_made_again(ran: Notes) -> None:
    flow = sums()
    path = Path(result_path(run(flow).home / "results", 3))
    ran.take()
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert run(flow).result(flow.tasks[3]) == 10
    assert ran.take() == ["c"]


def test_what_cannot_be_compared_is_run_again_and_said_once(ran: Notes) -> None:
    flow = foreplan.Flow("locks")
    a = flow.task(lambda x, lock=None: note() or x, 4, name="a")
    b = flow.task(Strange(), a, name="b")
    flow.task(plus, b, name="c")
    for expected in (["a", "b", "c"], ["b"]):  # b gives the same again: c is up to date
        outcome = run(flow)
        assert ran.take() == expected
        (warning,) = outcome.warnings
        assert warning.startswith("'b': its function or arguments cannot be compared: ")
        assert warning.endswith("it is run by every run")
        assert outcome.result(b) == 4


def test_methods_arrays_and_partials(ran: Notes) -> None:
    from functools import partial

    def flow(offset: int, last: float) -> tuple[foreplan.Flow, Any]:
        made = foreplan.Flow("kinds")
        array = np.arange(100.0)
        array[-1] = last
        p = made.task(Point(offset).far, 2, name="method")
        q = made.task(partial(plus, 1), 2, name="partial")
        r = made.task(lambda a: note() or a.sum(), array, name="array")
        end = made.task(lambda p, q, r: note() or (p.x, q, float(r)), p, q, r, name="end")
        return made, end

    for given, tasks, value in (
        ((1, 0.0), ["array", "end", "method", "partial"], (3, 3, 4851.0)),
        ((1, 0.0), [], (3, 3, 4851.0)),
        ((2, 0.0), ["end", "method"], (4, 3, 4851.0)),
        ((2, 1.0), ["array", "end"], (4, 3, 4852.0)),
    ):
        work, end = flow(*given)
        assert run(work).result(end) == value
        assert ran.take() == tasks


def test_a_failed_run_goes_on_with_the_next(ran: Notes) -> None:
    flow = foreplan.Flow("sums")
    a = flow.task(half, 4, name="a")
    flow.task(bad, a, name="b")
    failed = foreplan.run(flow)
    assert failed.status == "failed"
    with pytest.raises(KeyError, match="odd"):
        failed.result(flow.tasks[1])
    flow = sums()
    assert values(run(flow), flow) == [2, 3, 7, 10]
    assert ran.take() == ["a", "b", "c", "other"]


def test_an_error_of_a_part_is_found(ran: Notes) -> None:
    """The numbers of tasks in a run are its own."""
    run(sums(), targets=["b"])
    flow = sums()
    flow.task(bad, flow.tasks[1], name="bad")
    outcome = foreplan.run(flow, keep_going=True)
    assert outcome.run.workflow.task_names == ("other", "c", "bad")
    with pytest.raises(KeyError, match="odd"):
        outcome.result(flow.tasks[4])
    assert outcome.result(flow.tasks[3]) == 10


def picky_sums(first: int = 4) -> foreplan.Flow:
    flow = sums(first)
    flow.task(picky, flow.tasks[3], flow.tasks[0], name="last")
    return flow


def test_a_run_of_a_part_is_resumed(ran: Notes) -> None:
    earlier = run(sums()).home
    flow = picky_sums()
    failed = foreplan.run(flow)
    assert (failed.status, failed.not_done) == ("failed", ("last",))
    shutil.rmtree(earlier)  # what the run takes, it has
    ran.take()
    with pytest.raises(InputError, match="the arguments of 'a', 'c' have changed since"):
        foreplan.run(picky_sums(6), resume="last")
    Path(GO).touch()
    outcome = foreplan.run(flow, resume="last")
    assert outcome.ok, outcome.failures
    assert ran.take() == ["last"]
    assert outcome.result(flow.tasks[4]) == 12
    assert not foreplan.run(flow, targets=["last"]).id


def test_a_resumed_run_asks_what_others_have_made(ran: Notes) -> None:
    flow = picky_sums()
    failed = foreplan.run(flow, "local:1")
    Path(GO).touch()
    run(flow)
    ran.take()
    outcome = foreplan.run(flow, resume=failed.id)
    assert outcome.ok
    assert ran.take() == []
    assert values(outcome, flow) == [2, 3, 7, 10, 12]


def test_a_resumed_run_knows_its_own_results(ran: Notes) -> None:
    """A function that gives something else each time: what its run has is what others took."""
    flow = foreplan.Flow("chance")
    a = flow.task(draw, name="a")
    flow.task(lambda x: note() or x.hex(), a, name="b")
    last = flow.task(picky, 1, 2, after=flow.tasks[1], name="last")
    failed = foreplan.run(flow, "local:1")
    Path(GO).touch()
    run(flow, force=["a"])  # another value, which is the latest
    outcome = foreplan.run(flow, resume=failed.id)
    assert outcome.ok
    assert outcome.result(flow.tasks[1]) == outcome.result(a).hex()
    assert outcome.result(last) == 3
    flow.task(lambda x, y: note() or (x.hex(), y), a, flow.tasks[1], name="both")
    given = run(flow).result(flow.tasks[3])
    assert given[0] == given[1]


SCRIPT = """
import os, sys
from dataclasses import dataclass
import foreplan

NAMES = {"one", "two", "three", "four", "five"}

@dataclass
class Point:
    x: int
    names: frozenset = frozenset("abc")
    def far(self): return self.x + len(NAMES)

def note():
    with open(os.environ["RAN"], "a") as file:
        file.write(os.environ["FOREPLAN_TASK"] + "\\n")

def make(x):
    note()
    return Point(x // 2), set(NAMES)

def use(pair):
    note()
    return pair[0].far()

flow = foreplan.Flow("script")
last = flow.task(use, flow.task(make, int(sys.argv[1]), name="make"), name="use")
if __name__ == "__main__":
    print(foreplan.run(flow, "local:1").result(last))
"""


def test_a_script_is_run_twice(ran: Notes) -> None:
    """Whatever the hash seed; and a result that is the same is known to be, in any process."""

    def python(seed: int, text: str, argument: int = 4) -> str:
        Path("script.py").write_text(text)
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        command = [sys.executable, "script.py", str(argument)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert python(1, SCRIPT) == "7\n"
    assert ran.take() == ["make", "use"]
    assert python(2, "# moved\n" + SCRIPT) == "7\n"
    assert ran.take() == []
    assert python(3, SCRIPT, 5) == "7\n"  # the same point, made anew
    assert ran.take() == ["make"]
    assert python(4, SCRIPT.replace("self.x + len", "self.x - len")) == "-3\n"
    assert ran.take() == ["make", "use"]  # what is given to `use` does something else now


def test_runs_side_by_side(ran: Notes) -> None:
    """Two runs of one directory at once: each has what it needs, whoever makes it."""
    found: list[list[Any]] = []

    def go() -> None:
        flow = sums()
        found.append(values(run(flow), flow))

    threads = [threading.Thread(target=go) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[2, 3, 7, 10]] * 2
    run(sums())
    assert set(ran.take()) == set(ALL)


def test_what_others_can_write_is_not_read(ran: Notes) -> None:
    run(sums())
    os.chmod(".foreplan/runs", 0o777)
    with pytest.raises(InputError, match="others can write to it"):
        foreplan.run(sums())


@pytest.mark.parametrize("fails", [False, True])
def test_compute_leaves_nothing_behind(
    ran: Notes, fails: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    dask = pytest.importorskip("dask")
    Path("numbers").write_text("1 2 3")
    divide: Callable[[int], Any] = dask.delayed(lambda n: [int(x) // n for x in read().split()])

    def read() -> str:
        return Path("numbers").read_text()

    if fails:
        with pytest.raises(foreplan.RunFailedError, match="ZeroDivisionError"):
            foreplan.compute(divide(0))
    else:
        assert [foreplan.compute(divide(1)) for _ in range(2)] == [[1, 2, 3]] * 2
    assert os.listdir(".") == ["numbers"]
    with pytest.raises(InputError, match="has no resume"):
        foreplan.compute(divide(1), resume="last")
    with pytest.raises(TypeError):
        foreplan.compute(divide(1), nonsense=1)
