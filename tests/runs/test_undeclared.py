"""Files that commands write beside their outputs: refused, or not kept and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.errors import InputError

Tasks = dict[str, dict[str, Any]]


def run(tasks: Tasks, data: Path, **options: Any) -> Any:
    return foreplan.run({"tasks": tasks}, "local:2", dir=data, **options)


def test_a_redirection_to_a_file_that_is_there_is_refused_before_the_run(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    tasks = {"a": {"run": "echo a > a; echo half > notes.txt", "outputs": ["a"]}}
    assert run(tasks, tmp_path).ok  # a new file, which is not kept
    notes.write_text("precious")
    with pytest.raises(InputError, match=r"a redirects output to notes.txt, which is in the data"):
        run(tasks, tmp_path)
    tasks["a"]["ignores"] = ["notes.txt"]
    assert run(tasks, tmp_path, force=True).ok
    assert notes.read_text() == "precious"


def test_a_redirection_to_a_file_that_appears_is_refused_before_the_task(tmp_path: Path) -> None:
    tasks = {
        "a": {"run": 'echo a > a; echo precious > "$FOREPLAN_DIR/notes"', "outputs": ["a"]},
        "b": {"run": 'touch "$FOREPLAN_DIR/ran"; echo half > notes', "inputs": ["a"]},
    }
    failed = run(tasks, tmp_path)
    (failure,) = failed.failures
    assert failure.reason.startswith("it redirects output to notes, which is in the data directory")
    assert failure.unlisted == ()
    assert (tmp_path / "notes").read_text() == "precious\n"
    assert not (tmp_path / "ran").exists()
