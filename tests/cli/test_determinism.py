"""The same input gives the same bytes, whatever the seed of Python's hashes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import foreplan
from foreplan import registry
from foreplan.formats import save, save_platform
from foreplan.generators import generate, generate_platform
from foreplan.scheduling.margins import plan_to_dict

# Every planner through the command in one process: a line with the digest of what each prints,
# then one of each chart that needs no drawing library.
PROGRAM = """
import contextlib, hashlib, io, pathlib, sys
from foreplan import registry
from foreplan.cli import main

folder = pathlib.Path(sys.argv[1])
for name in registry.planner_names():
    charts = [folder / f"{name}.html", folder / f"{name}.json"]
    sys.argv = ["foreplan", "plan", "wf.yaml", "-p", "pf.yaml", "--json", "--planner", name]
    sys.argv += [word for chart in charts for word in ("--gantt", str(chart))]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            main()
        except SystemExit as end:
            assert end.code == 0
    contents = [printed.getvalue().encode(), *(chart.read_bytes() for chart in charts)]
    print(name, *(hashlib.sha256(content).hexdigest() for content in contents))
"""
SEEDS = ("0", "1", "2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random workflow with files, shared items and many ties, on hosts of two processors."""
    home = tmp_path_factory.mktemp("determinism")
    save(generate("montage", seed=4, images=8, spread=0.0), home / "wf.yaml")
    save_platform(generate_platform(6, cores=2, heterogeneity=0.0, seed=4), home / "pf.yaml")
    return home


def digests(folder: Path, seed: str) -> str:
    (folder / seed).mkdir()
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder / seed)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_same_bytes_under_every_hash_seed(folder: Path) -> None:
    first, *others = (digests(folder, seed) for seed in SEEDS)
    assert others == [first, first]
    workflow = foreplan.load(folder / "wf.yaml")
    platform = foreplan.load_platform(folder / "pf.yaml")
    printed = {}
    for name in registry.planner_names():
        schedule = foreplan.plan(workflow, platform, planner=name)
        foreplan.check_schedule(schedule)
        text = json.dumps(plan_to_dict(schedule), indent=1) + "\n"
        printed[name] = hashlib.sha256(text.encode()).hexdigest()
    rows = [line.split() for line in first.splitlines()]
    assert {row[0]: row[1] for row in rows} == printed
