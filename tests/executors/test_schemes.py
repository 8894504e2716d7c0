"""Executors are found by what `--on` names: in the room's folders, or in other packages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreplan.errors import ForeplanError, InputError
from foreplan.executors import base
from foreplan.executors.base import examples, find_scheme

FOLDERS = sorted(p.parent.name for p in Path(base.__file__).parent.glob("*/scheme.py"))


def test_every_folder_is_a_scheme() -> None:
    assert FOLDERS == ["dask", "local"]
    for name in FOLDERS:
        scheme = find_scheme(name)
        assert scheme.name == name
        assert f"`{name}" in scheme.examples
        assert scheme.examples in examples()


@pytest.mark.parametrize(
    "on", ["loca", "", "Local", "../local", "dask:x", "dask", "tls:x", "tls://", 5, None]
)
def test_no_place(on: Any) -> None:
    with pytest.raises(InputError, match="is no place to run") as caught:
        find_scheme(on).check(on)
    assert examples() in str(caught.value)


_LOADED = """
import sys
from foreplan.executors.base import find_scheme
find_scheme("local:4").check("local:4")
print(*sorted(name for name in sys.modules if name.split(".")[0] in ("foreplan", "numpy", "dask")))
"""


def test_only_the_one_that_is_asked_for_is_imported() -> None:
    command = [sys.executable, "-c", _LOADED]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "foreplan.executors.local.scheme" in loaded
    others = ("foreplan.executors.dask", "foreplan.executors.local.executor", "numpy", "dask")
    assert not set(others) & set(loaded)


PACKAGE = """
from foreplan.executors.base import Scheme

class Moon(Scheme):
    name = "moon"
    examples = "`moon:crater`"

SCHEME = Moon()
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that declares an executor."""
    (tmp_path / "moon_executor.py").write_text(PACKAGE)
    info = tmp_path / "moon_executor-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: moon-executor\nVersion: 1\n")
    declared = "[foreplan.executors]\nmoon = moon_executor:SCHEME\n"
    (info / "entry_points.txt").write_text(declared)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("moon_executor", None)


@pytest.mark.usefixtures("installed")
def test_another_package_declares_one() -> None:
    assert find_scheme("moon:tycho").name == "moon"
    with pytest.raises(InputError, match="`tls://host:port`, or `moon:crater`"):
        find_scheme("mars")


def test_one_that_is_broken(installed: Path) -> None:
    (installed / "moon_executor.py").write_text("import nowhere_to_be_found\n")
    with pytest.raises(ForeplanError, match=r"executor 'moon' \(moon_executor:SCHEME\) is broken"):
        find_scheme("moon:tycho")
