"""What the tests of imports share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A history of this test's own."""
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
