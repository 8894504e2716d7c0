"""foreplan as people install it: by its wheel, and from its source, both where no compiler is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from foreplan import native
from foreplan.cli.main import BESIDE

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SMOKE = Path(__file__).with_name("smoke.py")
NOT_SHIPPED = (".*", "build", "dist", "out", "results", "__pycache__", "*.egg-info", "*.so")
PROGRAMS = ("bash", "sh", "cat")  # all that is on the path: no compiler


def built(folder: Path, *options: str) -> Path:
    """The directory of what `python -m build` makes of this checkout, copied so that it stays."""
    tree, made = folder / "tree", folder / "made"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*NOT_SHIPPED))
    done([sys.executable, "-m", "build", "--no-isolation", *options, "-o", made, tree], folder)
    return made


def done(command: list[str | Path], folder: Path, **variables: str) -> str:
    """What a command that must succeed says on standard error."""
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder,
        env={**os.environ, "PIP_NO_INDEX": "1", **variables},
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stderr


class Environment:
    """A fresh environment: only foreplan is installed there, its dependencies are the tests'."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "programs"
        self.path.mkdir()
        for program in PROGRAMS:
            (self.path / program).symlink_to(shutil.which(program) or "/missing")
        venv.create(folder / "env", symlinks=True)
        self.python = folder / "env" / "bin" / "python"
        (site,) = (folder / "env").glob("lib/*/site-packages")
        (site / "tests.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")

    def install(self, package: Path) -> None:
        """What pip does, without the network."""
        pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", self.python, "install"]
        here = ("--quiet", "--no-deps", "--no-build-isolation", "--no-compile", package)
        done([*pip, *here], self.folder, PATH=str(self.path))

    def run(self, *arguments: str | Path) -> str:
        """What its Python says on standard error."""
        return done([self.python, *arguments], self.folder, PATH=str(self.path))


@pytest.mark.skipif(native.extension() is None, reason="there is no C compiler here")
def test_the_wheel_has_compiled_kernels_and_works_without_a_compiler(tmp_path: Path) -> None:
    made = built(tmp_path)
    (wheel,) = made.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    source = {path.relative_to(ROOT / "src").as_posix() for path in shipped(ROOT / "src")}
    assert {"foreplan_benchmarks/plain_heft.cpp", "foreplan_reproductions/command.py"} <= source
    assert source == {name for name in packed if not name.startswith("foreplan/_native.")}
    environment = Environment(tmp_path)
    environment.install(wheel)
    assert environment.run(SMOKE, "compiled") == ""
    main = "from foreplan.cli import main; main()"
    for name in BESIDE:
        environment.run("-c", main, name, "--help")


def shipped(package: Path) -> list[Path]:
    """The files of a package that are written by hand."""
    made = ("__pycache__", ".so", ".pyc")
    files = [p for p in package.rglob("*") if p.is_file() and not str(p).endswith(made)]
    return [p for p in files if not p.relative_to(package).parts[0].endswith(".egg-info")]


def test_the_source_is_installed_and_works_where_no_compiler_is(tmp_path: Path) -> None:
    (source,) = built(tmp_path, "--sdist").glob("*.tar.gz")
    environment = Environment(tmp_path)
    environment.install(source)
    environment.run(SMOKE, "plain")
    plan = ("plan", EXAMPLES / "montage.yaml", "-p", EXAMPLES / "cluster.yaml")
    (line,) = environment.run("-c", "from foreplan.cli import main; main()", *plan).splitlines()
    assert line.startswith(
        "foreplan: foreplan was installed without a C compiler, so all is slow: "
    )
    assert "`pip install --force-reinstall --no-cache-dir foreplan`" in line
