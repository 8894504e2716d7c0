"""What another version wrote is refused with one sentence, by every command that reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from foreplan.runs.home import RunHome
from foreplan.runs.journal import RULES, Journal, read
from foreplan.store.parts import FORMAT

from .commands import foreplan, refuse
from .journals import forks, write_run


@pytest.fixture
def home(tmp_path: Path) -> RunHome:
    """A run whose journal has rules that this version does not know."""
    home = write_run(tmp_path, forks(2), stop_after=2, ended=None)
    contents = read(home.journal)
    home.journal.unlink()
    with Journal.create(home.journal, {**contents.header, "rules": RULES + 1}) as journal:
        journal.append(contents.entries)
    return home


@pytest.mark.parametrize(
    "command",
    ["resume RUN", "report RUN", "attach RUN", "why split RUN", "logs split RUN", "diff RUN RUN",
     "what-if RUN --add 1", "show --run RUN", "machines RUN", "shell split RUN"],
)  # fmt: skip
def test_a_journal(command: str, home: RunHome) -> None:
    before = home.journal.read_bytes()
    problem = refuse(*command.replace("RUN", home.id).split(), cwd=home.data)
    told = f"another version of foreplan wrote this journal (rules {RULES + 1};"
    assert told in problem
    assert home.journal.read_bytes() == before


def test_a_list_of_runs_has_it(home: RunHome) -> None:
    done = foreplan("runs", cwd=home.data)
    assert done.returncode == 0
    assert "unreadable" in done.stdout
    assert f"{home.id}: the journal: another version of foreplan wrote it" in done.stdout


def test_a_store(tmp_path: Path) -> None:
    (tmp_path / "wf.yaml").write_text("tasks: {a: {run: echo 1 > x, outputs: [x]}}\n")
    assert foreplan("run", "wf.yaml", cwd=tmp_path).returncode == 0
    store = tmp_path / ".foreplan" / "store"
    (store / f"format-{FORMAT}").rename(store / f"format-{FORMAT + 1}")
    for command in ("run wf.yaml", "run -n wf.yaml", "plan wf.yaml", "adopt x", "clean --store"):
        problem = refuse(*command.split(), cwd=tmp_path)
        assert "another version of foreplan wrote this store" in problem
    assert foreplan("clean", "--store", "--all", "--yes", cwd=tmp_path).returncode == 0
    assert " finished: 1 task done in " in foreplan("run", "wf.yaml", cwd=tmp_path).stdout
