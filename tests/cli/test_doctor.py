"""`foreplan doctor`: what is found, what is missing, what to do; 1 if something is broken."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.cli import doctor
from foreplan.cli.doctor import examine
from foreplan.executors.local.this_machine import available_processors

from .commands import succeed

# a command line in which some packages cannot be imported
WITHOUT = """
import sys
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None
from foreplan.cli import main; main()
"""


def test_it_tells_what_it_runs_on() -> None:
    told = succeed("doctor")
    for fact in (
        foreplan.__version__,
        platform.python_version(),
        sys.executable,
        platform.platform(),
    ):
        assert fact in told
    assert f"numpy {metadata.version('numpy')}" in " ".join(told.split())
    assert "kernels: " in told
    assert "real runs: possible" in told
    assert f"`--on local`: {available_processors()} cores, " in told
    assert "`--limit`: the memory of each process by RLIMIT_DATA" in told
    assert "broken" not in told


def test_the_same_as_json() -> None:
    found = json.loads(succeed("doctor", "--json"))
    assert found["foreplan"] == foreplan.__version__
    assert found["runs"] is True
    assert found["cores"] == available_processors()
    assert found["memory"] > 10**8
    assert found["broken"] == []
    assert {part["name"] for part in found["needed"]} >= {"numpy", "PyYAML", "typer", "rich"}
    assert all(part["works"] and part["found"] for part in found["needed"])
    by_name = {part["name"]: part for part in [*found["optional"], *found["programs"]]}
    assert by_name["distributed"]["found"] == metadata.version("distributed")
    assert by_name["bash"]["found"] == shutil.which("bash")
    for part in by_name.values():
        assert bool(part["advice"]) is not part["works"]  # what is missing says what to do


def test_a_package_that_cannot_be_imported_is_broken() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "yaml,matplotlib", "doctor"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    broken = [line for line in done.stdout.splitlines() if line.startswith("broken: ")]
    assert len(broken) == 2
    assert broken[0].startswith("broken: PyYAML: it cannot be imported (ModuleNotFoundError")
    assert "pip install --upgrade 'PyYAML" in broken[0]


@pytest.mark.parametrize(("version", "told"), [(None, "pip install"), ("0.1", "another version")])
def test_a_package_that_is_missing_or_old(
    version: str | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = doctor._version
    monkeypatch.setattr(
        doctor,
        "_version",
        lambda name: version if name in ("rich", "distributed") else real(name),
    )
    found = examine()
    (sentence,) = found.broken
    assert sentence.startswith(f"rich: {told}")
    (dask,) = (part for part in found.optional if part.name == "distributed")
    assert (dask.found, dask.works, dask.advice) == (version, False, "pip install 'foreplan[dask]'")


def test_programs_that_are_missing(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path), "CC": "", "CXX": "no-such-compiler -O2"}
    done = subprocess.run(
        [sys.executable, "-c", "from foreplan.cli import main; main()", "doctor", "--json"],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")  # foreplan works without
    programs: list[dict[str, Any]] = json.loads(done.stdout)["programs"]
    assert [(part["name"], part["found"]) for part in programs] == [
        ("bash", None), ("C compiler", None), ("C++ compiler", None)
    ]  # fmt: skip
    assert all(part["advice"] for part in programs)


def test_without_foreplan_s_own_metadata_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    (sentence,) = examine().broken
    assert sentence == "foreplan: install it with pip, which brings what it needs"


def test_sizes_are_of_all_that_comes_with_foreplan() -> None:
    sizes = {
        size["name"]: size["bytes"] for size in json.loads(succeed("doctor", "--sizes", "--json"))
    }
    assert sizes["numpy"] > 10_000_000
    assert sizes["foreplan"] > 1_000_000
    assert "kiwisolver" in sizes  # which matplotlib needs
    assert "pytest" not in sizes
    assert list(sizes.values()) == sorted(sizes.values(), reverse=True)
    shown = succeed("doctor", "--sizes").splitlines()
    assert len(shown) == len(sizes) + 1
    assert shown[-1].split() == [f"{sum(sizes.values()) / 1e6:.1f}", "MB", "together"]
