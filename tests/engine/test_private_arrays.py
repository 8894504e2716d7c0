"""The arrays of a run are touched in engine and simulation only; everybody else asks RunState."""

from __future__ import annotations

import re
from pathlib import Path

import foreplan

SOURCE = Path(str(foreplan.__file__)).parents[1]
INSIDE = (SOURCE / "foreplan" / "engine", SOURCE / "foreplan" / "simulation")
TOUCHED = re.compile(r"(?<!foreplan)\.arrays\b(?!\()")


def test_only_engine_and_simulation_touch_them() -> None:
    """The import contract sees who imports the tuple, not who takes it from a state."""
    packages = (
        SOURCE / name for name in ("foreplan", "foreplan_benchmarks", "foreplan_reproductions")
    )
    files = [path for package in packages for path in package.rglob("*.py")]
    outside = [p for p in files if not any(p.is_relative_to(room) for room in INSIDE)]
    assert len(files) > len(outside) > 200
    assert [str(p) for p in outside if TOUCHED.search(p.read_text())] == []
    assert any(TOUCHED.search(p.read_text()) for p in files)  # it is looked for in the right way
