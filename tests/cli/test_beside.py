"""Commands of the packages beside foreplan: `foreplan reproduce` and `foreplan bench`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from foreplan.cli.main import BESIDE

from .commands import succeed

# a command line in which some modules cannot be imported
WITHOUT = """
import sys
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None
from foreplan.cli import main; sys.argv[0] = "foreplan"; main()
"""


def without(missing: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command where some modules are missing."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, missing, *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_their_help_is_what_the_list_of_commands_says() -> None:
    listed = " ".join(succeed("--help").replace("│", " ").split())
    for name, beside in BESIDE.items():
        assert f"{name} {beside.about}" in listed
        assert beside.about in " ".join(succeed(name, "--help").split())


@pytest.mark.parametrize("name", BESIDE)
def test_where_a_package_is_missing(name: str) -> None:
    package, extra = BESIDE[name].package, BESIDE[name].extra
    done = without(package, name, "--help")
    again = f"pip install 'foreplan[{extra}]' --force-reinstall"
    told = f"foreplan: error: the package {package}, which has `foreplan {name}`, is missing: "
    told += f"{again}\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)


def test_where_what_a_package_needs_is_missing() -> None:
    done = without("rich", "bench", "start")
    told = "foreplan: error: `foreplan bench` needs rich: pip install 'foreplan[bench]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)


def test_all_others_need_neither() -> None:
    missing = ",".join(beside.package for beside in BESIDE.values())
    for arguments in (("--help",), ("planners",)):
        done = without(missing, *arguments)
        assert (done.returncode, done.stderr) == (0, "")
