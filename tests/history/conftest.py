"""Every test has a home of its own for its history."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that FOREPLAN_HOME names; it is not there yet."""
    place = tmp_path / "home"
    monkeypatch.setenv("FOREPLAN_HOME", str(place))
    return place
