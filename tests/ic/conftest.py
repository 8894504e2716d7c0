"""Kernels at either speed."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["plain", "compiled"])
def speed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Kernels as plain Python, or compiled."""
    wanted: str = request.param
    monkeypatch.setattr("weft.ic.dag.pays", lambda work, kernel: wanted == "compiled")
    return wanted
