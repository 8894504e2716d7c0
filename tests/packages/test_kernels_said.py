"""Kernels that are not compiled: one line says so, and `foreplan doctor` tells which it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from foreplan import native

# a command line with another extension in the place of foreplan's own
WITH_EXTENSION = """
import sys, types
from importlib.machinery import ModuleSpec
kind = sys.argv.pop(1)
class Broken:
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self, origin=sys.executable) if name == "foreplan._native" else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        raise ImportError("broken")
if kind == "broken":
    sys.meta_path.insert(0, Broken())
else:
    found = types.ModuleType("foreplan._native")
    found.__file__ = sys.executable  # older than any edit
    found.__spec__ = ModuleSpec("foreplan._native", None, origin=sys.executable)
    found.SOURCES = [("foreplan/kernels/ranks.py", "of another source")] if kind == "stale" else []
    sys.modules["foreplan._native"] = None if kind == "missing" else found
from foreplan.cli import main
sys.argv[0] = "foreplan"
main()
"""
EXAMPLES = Path(__file__).parents[2] / "examples"
PLAN = ("plan", EXAMPLES / "montage.yaml", "-p", EXAMPLES / "cluster.yaml")


def foreplan_with(kind: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command with another extension."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("FOREPLAN_")}
    return subprocess.run(
        [sys.executable, "-c", WITH_EXTENSION, kind, *arguments],
        capture_output=True, text=True, check=False, env=variables,
    )  # fmt: skip


LINES = {
    "missing": "foreplan was installed without a C compiler, so all is slow: install one, then "
    "`make",
    "broken": "the compiled kernels cannot be loaded (broken), so all is slow: `make dev`",
    "stale": "the compiled kernels are older than foreplan/kernels/ranks.py, so all is slow: `make",
    "lacking": "the compiled kernels lack ",
}


@pytest.mark.parametrize("kind", LINES)
def test_it_is_said_in_one_line_and_the_plan_is_made(kind: str) -> None:
    done = foreplan_with(kind, *PLAN)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"foreplan: {LINES[kind]}")
    assert line.endswith("(see `foreplan doctor`)")
    assert "planner heft: makespan 1 min 7 s" in done.stdout


def test_processes_that_foreplan_starts_do_not_say_it_again() -> None:
    compare = ("compare", *PLAN[1:], "--strategies", "static,fifo", "--runs", "4", "--jobs", "2")
    done = foreplan_with("missing", *compare)
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("kind", "code"), [("missing", 0), ("broken", 1), ("stale", 1), ("lacking", 1)]
)
def test_the_doctor_tells_which_it_is(kind: str, code: int) -> None:
    done = foreplan_with(kind, "doctor", "--json")
    assert done.returncode == code
    found = json.loads(done.stdout)
    kernels = found["kernels"]
    assert kernels["state"] == {"missing": "plain", "lacking": "stale"}.get(kind, kind)
    assert kernels["why"].startswith(LINES[kind].partition(", so all")[0])
    assert "make dev" in kernels["advice"]
    assert found["broken"] == ([f"{kernels['why']}: {kernels['advice']}"] if code else [])


@pytest.mark.skipif(native.extension() is None, reason="there is no C compiler here")
def test_the_doctor_names_the_extension() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from foreplan.cli import main; main()", "doctor"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"kernels: compiled, {native.extension().__file__}, " in done.stdout  # type: ignore[union-attr]
