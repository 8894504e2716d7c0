"""What README and the manual promise of themselves: size, links, and that nothing is left out."""

from __future__ import annotations

import re

import pytest

import foreplan

from .blocks import ROOT

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 250


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(name: str) -> None:
    """Those of the manual are the build's to check (`make docs`)."""
    text = _FENCE.sub("", (ROOT / name).read_text())
    for link in _LINK.findall(text):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = ROOT / (path or name)
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert anchor in [_anchor(heading) for heading in headings], link


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_reference_has_every_public_name() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    told = re.findall(r"^\.\. auto\w+:: foreplan\.(\w+)$", page, re.MULTILINE)
    assert sorted(told) == sorted([*foreplan.__all__, "contracts"])
