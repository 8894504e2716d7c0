"""`foreplan history`: shows, exports, forgets, and says where it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from foreplan.cli.history import app
from foreplan.errors import InputError
from foreplan.history.database import FILE
from foreplan.history.repository import Repository

from .samples import move, task

DAY = 86_400.0


def run(*arguments: str) -> str:
    """What the command prints; errors that a user can mend come out as they are."""
    done = CliRunner().invoke(app, arguments, catch_exceptions=False, env={"COLUMNS": "200"})
    if done.exception is not None:
        raise done.exception
    return done.output


@pytest.fixture
def filled(home: Path) -> Path:
    """A history of two categories; the time of `sort` follows the size."""
    with Repository() as repository:
        repository.add(
            [task("align[x]", "m0", 10.0 + at % 3, at * DAY) for at in range(9)]
            + [task("align[x]", "m1", 20.0, DAY)]
            + [task("sort", "m0", 2.0 * size, size * DAY, size * 1e6) for size in range(1, 30)],
            [move(at=DAY)],
        )
    return home


def test_show(filled: Path) -> None:
    lines = run("show").splitlines()
    assert lines[0].split() == [
        "category", "machine", "n", "median", "spread", "memory", "cores", "last", "seen", "by",
        "size",
    ]  # fmt: skip
    assert len(lines) == 4
    assert lines[1].split()[:6] == ["align[x]", "m0", "9", "11", "s", "13%"]
    assert lines[2].split()[:5] == ["m1", "1", "20", "s", "-"]
    assert lines[3].split()[:3] == ["sort", "m0", "29"]
    assert lines[3].rstrip().endswith("yes")
    assert "1970-01-" in lines[3]


def test_show_as_json(filled: Path) -> None:
    rows = json.loads(run("show", "--json", "--category", "sort"))
    assert [row["category"] for row in rows] == ["sort"]
    assert rows[0]["machine"] == "m0"
    assert rows[0]["count"] == 29
    assert rows[0]["median"] == pytest.approx(34.0)  # of the newest
    assert rows[0]["by_size"] is True
    assert rows[0]["last"] == 29 * DAY


def test_show_an_unknown_category(filled: Path) -> None:
    with pytest.raises(InputError, match=r"unknown category 'srt' \(did you mean 'sort'\?\)"):
        run("show", "--category", "srt")


def test_no_history_yet(home: Path) -> None:
    assert "no history yet" in run("show")
    assert json.loads(run("show", "--json")) == []
    for arguments in (["export", "x.csv"], ["forget", "--all"]):
        with pytest.raises(InputError, match="no history yet"):
            run(*arguments)
    assert not home.exists()  # looking does not make one
    Repository().close()
    assert "no history yet" in run("show")


def test_path(home: Path) -> None:
    assert run("path") == f"{home / FILE}\n"
    assert not home.exists()


def test_export(filled: Path, tmp_path: Path) -> None:
    target = tmp_path / "all.json"
    assert run("export", str(target)) == (f"wrote {target}: 39 records of tasks, 1 of transfers\n")
    assert len(json.loads(target.read_text())["tasks"]) == 39
    with pytest.raises(InputError, match=r"\.csv or \.json"):
        run("export", str(tmp_path / "all.xlsx"))


def test_forget(filled: Path) -> None:
    assert run("forget", "--category", "sort", "--before", "1970-01-11T00:00+00:00") == (
        "forgot 9 records of tasks, 0 of transfers\n"
    )
    assert run("forget", "--machine", "m1").startswith("forgot 1 record of tasks, 1 of")
    assert run("forget", "--all").startswith("forgot 29 records of tasks")
    assert "no history yet" in run("show")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "say which records: --category, --machine or --before, or --all"),
        (["--all", "--machine", "m0"], "--all is for all records"),
        (["--before", "yesterday"], "'yesterday' is not a date; write it as 2026-01-31"),
    ],
)
def test_forgetting_nothing_in_particular(filled: Path, arguments: list[str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        run("forget", *arguments)
    with Repository() as repository:
        assert len(repository.tasks()) == 39


@pytest.mark.parametrize("command", ["show", "export", "forget", "path"])
def test_help_teaches(command: str) -> None:
    assert f"foreplan history {command}" in run(command, "--help")
