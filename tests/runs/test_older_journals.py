"""Journals of every version of the rules: they are shown, and the runs are resumed."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from chaos.runs import limited
from runs.kept import JOURNALS, keep
from weft.checks.runs import check_run
from weft.engine.kernels import arrays as a
from weft.errors import InputError
from weft.model import Estimates, Platform
from weft.model.platform import Processor
from weft.report.data import report_of
from weft.runs import Outcome, reopen_run
from weft.runs.entries import RULES, Header
from weft.runs.home import RunHome
from weft.runs.journal import Journal, read
from weft.runs.options import Options
from weft.runs.replay import replay

# runs of 16 commands, `t5` writes `x5`, whose weft was killed when about half was done; the one on
# Dask has ended. By name: rules-VERSION-STRATEGY. `write_journal` makes new ones:
# python -m runs.test_older_journals gtp 'gtp/c[period=0.2]' --price 1 --budget 30
OLDER = sorted(JOURNALS.glob("rules-*.jsonl"))
KILLED = [path for path in OLDER if "dask" not in path.stem]


def resume(home: RunHome) -> Outcome:
    """The run, driven to its end."""
    with reopen_run(home) as session:
        return session.drive()


def version(path: Path) -> int:
    return int(path.stem.split("-")[1])


def facts_of(entries: list[dict[str, Any]]) -> tuple[dict[int, tuple[int, int]], set[int]]:
    """Attempts as (task, processor), and those that have finished, read off the plain entries."""
    attempts = dict[int, tuple[int, int]]()
    finished = set[int]()
    for entry in entries:
        if entry["t"] == "commands":
            attempts |= {c[1]: (c[2], c[3]) for c in entry["do"] if c[0] == "start"}
        elif entry.get("kind") == "task_finished":
            finished.add(entry["which"])
    return attempts, finished


def home_of(path: Path, directory: Path) -> RunHome:
    """The run in a directory of its own, with the files of the tasks that are done."""
    contents = read(path)
    attempts, finished = facts_of(contents.entries)
    for attempt in finished:
        task = contents.header["workflow"]["tasks"][attempts[attempt][0]]
        (directory / f"x{task.removeprefix('t')}").write_text(f"{task.removeprefix('t')}\n")
    home = directory / ".weft" / "runs" / "kept-20260101-000000"
    home.mkdir(parents=True)
    shutil.copy(path, home / "journal.jsonl")
    return RunHome(home)


def test_every_version_is_kept() -> None:
    """Whoever changes the rules keeps a journal of a run by the new ones, too."""
    assert {version(path) for path in OLDER} == set(range(1, RULES + 1))


@pytest.mark.parametrize("path", OLDER, ids=lambda path: path.stem)
def test_shown(path: Path, tmp_path: Path) -> None:
    contents = read(path)
    assert contents.damage is None
    assert contents.header.get("rules", 1) == version(path)
    home = home_of(path, tmp_path)
    told = report_of(home)
    attempts, finished = facts_of(contents.entries)
    log = told.run.attempts
    assert dict(enumerate(zip(log.task, log.processor, strict=True))) == attempts
    lost = set(np.flatnonzero(log.end == a.REWOUND).tolist())
    assert set(np.flatnonzero(log.end == a.FINISHED).tolist()) == finished - lost
    assert told.done == len({attempts[k][0] for k in finished - lost})
    judged = [e for e in contents.entries if e["t"] == "evaluation"]
    plans = [e for e in contents.entries if e["t"] == "plan"]
    taken = sum(e["taken"] for e in judged) if judged else len(plans)
    assert len(told.run.plans) == taken
    if told.done == told.tasks:
        check_run(told.run)


def test_the_rules_before_decided_the_same_of_all_but_standstill() -> None:
    """Rules 8 expect Min-Min's running tasks, and those that stand still, to end as plans do."""
    contents = read(Path(__file__).parent / "journals" / "rules-7-adaptive.jsonl")
    replayed = replay(replace(contents, header={**contents.header, "rules": RULES}), Path())
    assert replayed.decisions == replayed.journalled
    assert len(replayed.decisions) == 9


@pytest.mark.parametrize("path", KILLED, ids=lambda path: path.stem)
def test_resumed(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "home"))
    home = home_of(path, tmp_path)
    attempts, finished = facts_of(read(path).entries)
    with limited(60):
        outcome = resume(home)
    assert outcome.ok, outcome.failures
    check_run(outcome.run)
    for i in range(16):
        assert (tmp_path / f"x{i}").read_text() == f"{i}\n"
    again = {attempts[k][0] for k in finished} & set(outcome.run.attempts.task[len(attempts) :])
    assert not again  # what was done is not done again
    # and from there on the journal is one by the rules of today, to the letter
    replayed = replay(read(home.journal), home.data)
    assert replayed.decisions == replayed.journalled
    replayed.driver.coordinator.check_state()
    for name, values in vars(outcome.run.attempts).items():
        np.testing.assert_array_equal(values, getattr(replayed.run().attempts, name))


@pytest.mark.parametrize(("rules", "ok"), [(4, True), (RULES, False)])
def test_commands_keep_the_shell_that_they_had(
    rules: int, ok: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was begun when `false; true` was a success is not made to fail half-way."""
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "home"))
    wf = weft.load({"name": "kept", "tasks": {"t0": {"run": "false; echo 0 > x0", "cost": 1}}})
    home = RunHome.create(tmp_path, "kept")
    options = Options(on="local:1", directory=tmp_path)
    platform = Platform.build([Processor("local-1", host="here")])
    header = Header(
        "kept", wf, platform, ("here",), Estimates.declared(wf, platform), "static", 0.0, options,
        False, False, None, "2026-01-01T00:00:00+00:00",
    )  # fmt: skip
    Journal.create(home.journal, {**header.to_dict(), "rules": rules}).close()
    with limited(60):
        assert resume(home).ok == ok


def test_lost_files_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "home"))
    home = home_of(KILLED[0], tmp_path)
    (tmp_path / "x0").unlink()
    with limited(60):
        assert resume(home).ok
    assert (tmp_path / "x0").read_text() == "0\n"


def test_journals_of_a_newer_weft(tmp_path: Path) -> None:
    home = home_of(KILLED[0], tmp_path)
    contents = read(home.journal)
    home.journal.unlink()
    with Journal.create(home.journal, {**contents.header, "rules": RULES + 1}) as journal:
        journal.append(contents.entries)
    with pytest.raises(InputError, match=rf"version 1\.{RULES + 1}.*up to 1\.{RULES}"):
        replay(read(home.journal), home.data)
    home.journal.unlink()
    with Journal.create(home.journal, contents.header) as journal:
        resumed = {"t": "resumed", "time": 9.0, "rules": RULES + 1}
        journal.append([*contents.entries, resumed])
    with pytest.raises(InputError, match="a newer weft has resumed this run"):
        replay(read(home.journal), home.data)


def commands() -> dict[str, Any]:
    """The workflow of the journals; one task fails at first."""
    rng, tasks = random.Random(7), dict[str, Any]()
    for i in range(16):
        some = [f"x{k}" for k in sorted(rng.sample(range(i), min(i, rng.choice((0, 1, 2, 3)))))]
        once = 'mkdir "$WEFT_DIR/once-2" 2>/dev/null && exit 3; ' if i == 2 else ""
        tasks[f"t{i}"] = {
            "run": f"{once}sleep {0.05 + 0.1 * rng.random():.3f}; echo {i} > x{i}",
            "cost": round(0.1 * rng.uniform(0.7, 1.5), 3),
            "inputs": some,
            "outputs": [f"x{i}"],
            "category": "abc"[i % 3],
        }
    return {"name": "kept", "tasks": tasks}


def write_journal(name: str, strategy: str, *options: str) -> None:
    """Keep the journal of a run by today's rules that is killed when seven tasks are done."""
    with tempfile.TemporaryDirectory() as folder:
        place, asked = Path(folder), ("--strategy", strategy, *options)
        (place / "wf.json").write_text(json.dumps(commands()))
        run = ("run", "wf.json", "--on", "local:2", "--retries", "1", "--no-history", *asked)
        program = [sys.executable, "-c", "from weft.cli import main; main()", *run]
        with subprocess.Popen(program, cwd=place) as weft_itself:
            journal = place / "none"
            while not journal.exists() or journal.read_text().count('"task_finished"') < 7:
                assert weft_itself.poll() is None, "it was over before it could be killed"
                journal = next(place.glob(".weft/runs/*/journal.jsonl"), journal)
            weft_itself.kill()
        keep(f"rules-{RULES}-{name}", read(journal), place)


if __name__ == "__main__":
    write_journal(*sys.argv[1:])
