"""What is shown of a run that Python drives: on standard error, in a notebook, or not at all."""

from __future__ import annotations

import io
import math
import sys
import types
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

import foreplan
from foreplan.display.display import PythonDisplay, showing
from foreplan.display.live import LiveScreen
from foreplan.display.notebook import NotebookScreen, html_of, in_notebook
from foreplan.display.screens import LateScreen, Screen
from foreplan.display.view import View, Work, look
from foreplan.errors import InputError
from foreplan.executors.progress import VARIABLE as PROGRESS_FILE
from foreplan.model import Money
from foreplan.runs import RunHome, Session
from foreplan.runs.session import Silent


class Told(Screen):
    """A screen that keeps what it was shown."""

    def __init__(self) -> None:
        super().__init__(io.StringIO())
        self.said: list[str] = []
        self.finished: list[Any] = []
        self.closed = False

    def say(self, message: str, style: str = "") -> None:
        self.said.append(message)

    def update(self, session: Session, finished: list[Any]) -> None:
        self.finished += finished

    def close(self) -> None:
        self.closed = True


def session(stopping: bool = False) -> Session:
    return cast("Session", SimpleNamespace(stopping=stopping))


def flow() -> foreplan.Flow:
    made = foreplan.Flow("sums")
    made.task(sum, [made.task(abs, -3), made.task(abs, 4)])
    return made


def test_of_what_is_soon_over_nothing_is_shown() -> None:
    told = Told()
    late = LateScreen(told, math.inf)
    late.say("begun")
    late.update(session(), [])
    late.close()
    assert (told.said, told.closed) == ([], False)


@pytest.mark.parametrize(("seconds", "stopping"), [(0.0, False), (math.inf, True)])
def test_what_was_kept_back_is_shown_once_it_takes_long(seconds: float, stopping: bool) -> None:
    """Whoever stops a run is answered, however early that is."""
    told = Told()
    late = LateScreen(told, math.inf)
    late.say("begun")
    late.update(session(), cast("Any", [1]))
    late._from = seconds
    late.update(session(stopping), cast("Any", [2]))
    late.say("more")
    late.close()
    assert (told.said, told.finished, told.closed) == (["begun", "more"], [1, 2], True)


def test_plain_lines_on_standard_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = foreplan.run(flow(), "local:1", dir=tmp_path, progress=True)
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert any(line.startswith(f"run {outcome.id}: 3 tasks on 1 processor") for line in lines)
    assert sum(" done on local-1 in " in line for line in lines) == 3
    assert lines[-1] == str(outcome)
    assert lines[-1].startswith(f"run {outcome.id} finished: 3 tasks done in ")
    log = RunHome(outcome.home).log.read_text().splitlines()
    assert log[-1] == str(outcome)  # for `foreplan attach`


@pytest.mark.parametrize("wanted", [False, None])
def test_no_progress(
    wanted: bool | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """None is as the environment says: the tests say no."""
    assert foreplan.run(flow(), "local:1", dir=tmp_path, progress=wanted).ok
    assert capfd.readouterr() == ("", "")


def test_what_is_soon_over_is_shown_nowhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREPLAN_DISPLAY", "yes")
    monkeypatch.setattr("foreplan.display.display.SOON", math.inf)
    assert foreplan.run(flow(), "local:1", dir=tmp_path).ok
    assert capfd.readouterr() == ("", "")


def test_compute_shows_its_progress(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    dask = pytest.importorskip("dask")
    assert foreplan.compute(dask.delayed(abs)(-3), dir=tmp_path, progress=True) == 3
    assert " finished: 1 task done in " in capfd.readouterr().err.splitlines()[-1]


def test_who_shows_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Silent()
    with showing(None, own) as shown:
        assert shown is own
    with showing(False, None) as nobody:
        assert nobody is None
    with pytest.raises(InputError, match="a listener or progress=True"), showing(True, own):
        pass
    monkeypatch.setenv("FOREPLAN_DISPLAY", "yes")
    with showing(None, None) as display:
        assert isinstance(display, PythonDisplay)
    monkeypatch.setenv("FOREPLAN_DISPLAY", "perhaps")
    with pytest.raises(InputError, match="FOREPLAN_DISPLAY: it is yes or no, not 'perhaps'"):
        foreplan.run({"tasks": {"a": {"run": "true"}}})


def test_what_tells_a_task_where_its_progress_goes_is_something_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A task may run a flow of its own."""
    monkeypatch.setenv("FOREPLAN_DISPLAY", "yes")
    monkeypatch.setenv(PROGRESS_FILE, "/somewhere")
    with showing(None, None) as display:
        assert isinstance(display, PythonDisplay)


def test_without_standard_error_nothing_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with showing(True, None) as shown:
        assert shown is None
    assert foreplan.run(flow(), "local:1", dir=tmp_path, progress=True).ok


def test_standard_output_stays_the_programs() -> None:
    """While the picture is on the terminal, too: what is printed may go elsewhere."""
    terminal, before = io.StringIO(), sys.stdout
    screen = LiveScreen(Console(file=terminal, force_terminal=True, width=80))
    run = SimpleNamespace(header=SimpleNamespace(workflow=SimpleNamespace(name="w")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("foreplan.display.live.look", lambda session: view(work=()))
        screen.update(cast("Session", run), [])
        assert sys.stdout is before
    screen.close()
    assert "25%" in terminal.getvalue()


EVIL = "<script>x</script>\x1b"


def view(**changes: Any) -> View:
    work = (
        Work("p<1>", True, EVIL, 1.0, 0.25),
        Work("p2", True),
        Work("p3", False),
        Work("p4", True, "wide", 0.0, None, 4),
        Work("p5", True, "wide", 0.0, None, 0),
    )
    plain = View(3.0, 8, 2, 2, failed=0, projected=7.0, work=work)
    return replace(plain, **changes)


class Text(HTMLParser):
    """What a page says, and its elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


def test_a_run_in_a_notebook() -> None:
    money = Money(spent=1.0, committed=2.0, planned=3.0)
    page = Text(html_of(view(money=money, deadline=9.0), EVIL, [(f"line {EVIL}", "red")]))
    assert page.tags <= {"div", "b", "table", "tr", "td"}
    assert "25%" in page.text
    assert "2/8 done, 2 running, 4 waiting" in page.text
    assert "3.0 s elapsed, expected to end at 7.0 s (4.0 s more), deadline 9.0 s" in page.text
    assert "1 spent, 2 committed" in page.text
    assert "wide (4 cores)" in page.text
    assert "line <script>x</script>\N{REPLACEMENT CHARACTER}" in page.text
    assert "gone" in page.text
    ended = Text(html_of(view(done=8, running=0), "w", [("it is over", "")], ended=True))
    assert "table" not in ended.tags
    assert "it is over" in ended.text
    many = tuple(Work(f"p{k}", True, "t" if k < 3 else None) for k in range(20))
    assert "3 of 20 processors are at work" in Text(html_of(view(work=many), "w", [])).text
    lines = Text(html_of(None, "", [(f"line {k};", "") for k in range(50)])).text
    assert "... 42 lines before" in lines
    assert "line 42;" in lines
    assert "line 41;" not in lines


def test_one_output_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As IPython.display does it, which the notebook of the manual tries for real."""
    shown: list[str] = []

    class Handle:
        def update(self, drawn: str) -> None:
            shown.append(f"again {drawn}")

    def display(drawn: str, display_id: bool) -> Handle:
        shown.append(f"first {drawn}")
        return Handle()

    module: Any = types.ModuleType("IPython.display")
    module.HTML, module.display = str, display
    ipython: Any = types.ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    assert not in_notebook()
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    assert in_notebook()
    screen = NotebookScreen()
    for message in ("one", "two"):
        screen.say(message)
    screen.close()
    assert [line.split()[0] for line in shown] == ["first", "again"]
    assert "two" in shown[-1]


def test_a_look_while_tasks_are_being_added(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = [IndexError("of a plan of fewer tasks"), "the run"]

    def half_done(session: Any) -> Any:
        if isinstance(found := seen.pop(0), Exception):
            raise found
        return found

    monkeypatch.setattr("foreplan.display.view._look", half_done)
    assert look(cast(Any, None)) == cast(Any, "the run")
