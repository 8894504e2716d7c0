"""What the package says of itself: one version, one licence, the Pythons that it is built for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.cli.doctor import PURPOSES
from foreplan.version import DISTRIBUTION, install_command

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_is_in_one_place_and_in_the_changelog(config: dict[str, Any]) -> None:
    assert "version" in config["project"]["dynamic"]
    assert (
        config["tool"]["setuptools"]["dynamic"]["version"]["attr"] == "foreplan.version.__version__"
    )
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(foreplan.__version__)}\]", changes, re.M)


def test_the_licence_is_an_expression_and_no_classifier(config: dict[str, Any]) -> None:
    assert config["project"]["license"] == "Apache-2.0"
    assert not [c for c in config["project"]["classifiers"] if c.startswith("License ::")]
    assert all((ROOT / file).is_file() for file in config["project"]["license-files"])


def test_wheels_are_for_the_pythons_that_are_named(config: dict[str, Any]) -> None:
    wheels = re.findall(r"cp3(\d+)-", config["tool"]["cibuildwheel"]["build"])
    named = re.findall(r"Python :: 3\.(\d+)", " ".join(config["project"]["classifiers"]))
    assert wheels == named
    assert config["project"]["requires-python"] == f">=3.{named[0]}"


def test_wheels_are_tested_by_a_script_that_is_there(config: dict[str, Any]) -> None:
    _, script, expected = config["tool"]["cibuildwheel"]["test-command"].split()
    assert (ROOT / script.removeprefix("{project}/")).is_file()
    assert expected == "compiled"


def test_every_extra_says_what_it_is_for(config: dict[str, Any]) -> None:
    assert PURPOSES.keys() == config["project"]["optional-dependencies"].keys() - {"dev", "docs"}


def test_advice_about_extras_comes_from_one_constant(config: dict[str, Any]) -> None:
    assert config["project"]["name"] == DISTRIBUTION
    assert install_command("dask") == f"pip install '{DISTRIBUTION}[dask]'"
    sources = [path for path in (ROOT / "src").rglob("*.py") if path.name != "version.py"]
    assert len(sources) > 100
    named = re.compile(rf"{DISTRIBUTION}\[({'|'.join(config['project']['optional-dependencies'])})")
    assert not [str(p) for p in sources if named.search(p.read_text(encoding="utf-8"))]
