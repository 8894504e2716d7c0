"""A directory for the files of a run, with a history of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "history"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"
