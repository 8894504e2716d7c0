"""Tasks say how much of them is done: by a file, or to the worker that runs them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import foreplan
from foreplan.executors import progress as progress_module
from foreplan.executors.progress import (
    VARIABLE,
    forget_progress,
    progress,
    read_progress,
    report_to,
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = str(tmp_path / "x.progress")
    monkeypatch.setenv(VARIABLE, path)
    monkeypatch.setattr(progress_module, "_noted", ("", 0.0))
    return path


def test_outside_of_a_run_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    foreplan.progress(0.5)
    monkeypatch.setenv(VARIABLE, "/no/such/directory/x")
    foreplan.progress(0.5)


def test_what_is_no_number_is_an_error_everywhere() -> None:
    with pytest.raises(ValueError, match="much"):
        foreplan.progress("much")  # type: ignore[arg-type]


def test_the_file_has_the_share(file: str) -> None:
    assert read_progress(file) is None
    progress(0.25)
    found = read_progress(file)
    assert found is not None
    assert found[0] == 0.25
    assert 0 <= found[1] < 60
    progress(0.5)  # at once: not written
    found = read_progress(file)
    assert found is not None
    assert found[0] == 0.25
    forget_progress(file)
    forget_progress(file)
    assert read_progress(file) is None


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("0.1\n0.4\n", 0.4),
        ("0.4", 0.4),
        ("\n0.4 \n\n", 0.4),
        ("7", 1.0),
        ("-1", 0.0),
        ("inf", 1.0),
        ("", None),
        ("nan", None),
        ("half\n", None),
        ("0.1\nhalf\n", None),
        ("0.1\n" * 10_000 + "0.9\n", 0.9),
    ],
)
def test_the_last_number_counts(file: str, text: str, share: float | None) -> None:
    Path(file).write_text(text)
    found = read_progress(file)
    assert (None if found is None else found[0]) == share


def test_odd_files_are_no_progress(file: str, tmp_path: Path) -> None:
    os.mkfifo(file)
    assert read_progress(file) is None
    assert read_progress(str(tmp_path)) is None


def test_who_listens_hears_only_this_thread(file: str) -> None:
    heard: list[float] = []
    with report_to(heard.append):
        progress(0.5)
        with report_to(lambda share: heard.append(10 * share)):
            progress(0.1)
        progress(2.0)
        progress(float("nan"))
        thread = threading.Thread(target=progress, args=[0.75])
        thread.start()
        thread.join()
    assert heard == [0.5, 1.0, 1.0]
    progress(0.9)
    found = read_progress(file)
    assert found is not None
    assert found[0] == 0.75  # of the other thread, and the next one came at once


def test_telling_progress_imports_little() -> None:
    code = "import foreplan, sys; foreplan.progress(0.5); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "False\n"
