"""A directory for a run, with a history of its own, and a gate for its tasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .live_runs import Gate


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "foreplan-home"))
    return tmp_path


@pytest.fixture
def gate(folder: Path) -> Iterator[Gate]:
    made = Gate(folder)
    yield made
    made.close()
