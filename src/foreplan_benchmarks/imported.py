"""A Snakefile run by Snakemake, and imported and run by foreplan: the same files, and the times."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from foreplan.errors import InputError

SAMPLES = 20  # with 6 jobs each, and 3 for all
LINES = 30_000  # of a sample
SNAKEFILE = Path(__file__).with_name("mapping.smk")


def write_project(place: Path, samples: int = SAMPLES) -> int:
    """The Snakefile with its inputs; how many jobs it comes to."""
    for folder in ("reads", "scripts"):
        (place / folder).mkdir(parents=True)
    (place / "Snakefile").write_text(SNAKEFILE.read_text())
    (place / "config.yaml").write_text(f"lines: {LINES}\n")
    (place / "scripts/report.sh").write_text('wc -l < "$1"; head -n 3 "$1"\n')
    (place / "ref.txt").write_text("".join(f"{k * 37 % 1009}\n" for k in range(2000)))
    for k in range(samples):
        lines = (f"{(k * 7 + j * 13) % 9973}\n" for j in range(LINES))
        (place / f"reads/s{k:02}.txt").write_text("".join(lines))
    return 6 * samples + 3


@dataclass(frozen=True)
class Taken:
    """What a command took."""

    tool: str
    what: str
    seconds: float


def measure(
    program: str, samples: int, repeats: int, progress: Callable[[float], None]
) -> Iterator[Taken]:
    """All of it by both, each time from nothing; what is made must be the same, to the byte."""
    foreplan = [sys.executable, "-c", "from foreplan.cli.main import main; main()"]
    snakemake = [program, "-c2", "--nocolor", "-q", "all"]
    run = [*foreplan, "run", "workflow.yaml", "--quiet", "--on", "local:2"]
    bring = [*foreplan, "import", "snakemake", "--snakemake", program, "--cores", "2"]
    steps = [
        ("Snakemake", "all of it", snakemake),
        ("Snakemake", "once more", snakemake),
        ("foreplan", "import", bring),
        ("foreplan", "all of it", run),
        ("foreplan", "once more", run),
    ]
    for repeat in range(repeats):
        with tempfile.TemporaryDirectory(prefix="foreplan-imported-") as folder:
            places = {tool: Path(folder, tool) for tool in ("Snakemake", "foreplan")}
            for place in places.values():
                jobs = write_project(place, samples)
            for number, (tool, what, command) in enumerate(steps):
                yield Taken(tool, what, _seconds(command, places[tool]))
                progress((repeat + (number + 1) / len(steps)) / repeats)
            _compare(places["Snakemake"], places["foreplan"], jobs)


def _seconds(command: list[str], place: Path) -> float:
    environment = {**os.environ, "FOREPLAN_HOME": str(place.parent / "history")}
    begin = time.perf_counter()
    done = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    seconds = time.perf_counter() - begin
    if done.returncode:
        raise InputError(f"{command[:4]} failed: {(done.stdout + done.stderr)[-1500:]}")
    return seconds


def contents(place: Path) -> dict[str, str]:
    """The digest of every file that is not of a tool's own."""
    found = {}
    for folder, folders, files in os.walk(place):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            path = Path(folder, name)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[path.relative_to(place).as_posix()] = digest
    return found


def _compare(one: Path, other: Path, jobs: int) -> None:
    first, second = contents(one), contents(other)
    second.pop("workflow.yaml")
    different = sorted(
        name for name in first.keys() | second.keys() if first.get(name) != second.get(name)
    )
    if different or len(first) < jobs:
        raise InputError(f"foreplan and Snakemake made different files: {different[:10]}")
