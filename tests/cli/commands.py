"""Running the command as a user does, and small files to run it on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from .forked import run_forked

# what is said where a machine is so busy that a small search takes seconds
SLOW = re.compile(r"^(looking for a plan|planning for many budgets): \d+% after \d+ s\n", re.M)
MAIN = "import sys; from foreplan.cli import main; sys.argv[0] = 'foreplan'; main()"

WORKFLOW = """\
name: small
tasks:
  prepare: {cost: 4}
  left: {cost: {fast: 2, slow: 6}}
  right: {cost: 3}
edges:
- [prepare, left, 1]
- [prepare, right, 10]
"""
PLATFORM = """\
processors:
  fast: {speed: 2, price: 3}
  slow: {}
"""


def foreplan(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    done = run_forked(MAIN, [*map(str, arguments)], cwd)
    done.stderr = SLOW.sub("", done.stderr)
    return done


def succeed(*arguments: str | Path, cwd: Path | None = None) -> str:
    """What the command prints; it must succeed and say nothing else."""
    done = foreplan(*arguments, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def refuse(*arguments: str | Path, cwd: Path | None = None) -> str:
    """The one line of a refusal: exit code 2, no traceback, nothing else on standard error."""
    done = foreplan(*arguments, cwd=cwd)
    assert done.returncode == 2, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("foreplan: error: "), done.stderr
    return lines[0].removeprefix("foreplan: error: ")


def written(folder: Path, workflow: str = WORKFLOW, platform: str = PLATFORM) -> None:
    """The two files, as wf.yaml and pf.yaml."""
    (folder / "wf.yaml").write_text(workflow)
    (folder / "pf.yaml").write_text(platform)
