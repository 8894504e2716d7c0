"""What is installed beside weft: what it needs, what it can use, and how large that is."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement

MODULES = {"PyYAML": "yaml", "pillow": "PIL"}  # where the module is not called like its package
PURPOSES = {
    "bench": "`weft bench plan` beside anrg-saga",
    "dask": "runs on Dask clusters (--on dask://host:port)",
    "optimum": "the optimum in `weft bench budget`",
}


@dataclass(frozen=True)
class Part:
    """A package, or a program; `advice` says what to do where it is missing or does not work."""

    name: str
    purpose: str
    found: str | None  # the version, or the path
    works: bool
    advice: str = ""


def needed() -> list[Part]:
    """The packages without which weft does not work, each imported to see whether it does."""
    return [_examined(requirement) for requirement in _requirements("weft")]


def _examined(requirement: Requirement) -> Part:
    name, wanted = requirement.name, str(requirement)
    version = _version(name)
    again = f"pip install --upgrade '{wanted}'"
    if version is None:
        return Part(name, wanted, None, False, again)
    if not requirement.specifier.contains(version, prereleases=True):
        return Part(name, wanted, version, False, f"another version is needed: {again}")
    try:
        importlib.import_module(MODULES.get(name, name))
    except Exception as error:  # whatever a broken package does
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        return Part(name, wanted, version, False, f"it cannot be imported ({why}): {again}")
    return Part(name, wanted, version, True)


def optional() -> list[Part]:
    """What weft can use, by the extras of its package."""
    extras = metadata.metadata("weft").get_all("Provides-Extra") or []
    return [
        _looked_up(extra, requirement)
        for extra in extras
        if extra != "dev"
        for requirement in _requirements("weft", extra)
    ]


def _looked_up(extra: str, requirement: Requirement) -> Part:
    version = _version(requirement.name)
    fits = version is not None and requirement.specifier.contains(version, prereleases=True)
    advice = "" if fits else f"pip install 'weft[{extra}]'"
    return Part(requirement.name, PURPOSES.get(extra, extra), version, fits, advice)


@dataclass(frozen=True)
class Size:
    """A package and the bytes of its files."""

    name: str
    version: str
    bytes: int


def sizes() -> list[Size]:
    """weft and all that comes with it, the largest first."""
    found: dict[str, Size] = {}
    left = ["weft"]
    while left:
        name = left.pop()
        if name.lower() not in found and (version := _version(name)) is not None:
            found[name.lower()] = Size(name, version, _size(name))
            left += [requirement.name for requirement in _requirements(name)]
    return sorted(found.values(), key=lambda size: -size.bytes)


def _size(name: str) -> int:
    if name == "weft":  # it may be installed as a link to its source
        places = {str(path) for path in Path(__file__).parents[1].rglob("*")}
    else:
        places = {os.path.realpath(str(file.locate())) for file in metadata.files(name) or []}
    return sum(os.path.getsize(place) for place in places if os.path.isfile(place))


def _requirements(name: str, extra: str = "") -> Iterator[Requirement]:
    """What a package requires here, or only one of its extras does."""
    from packaging.requirements import Requirement

    for text in metadata.requires(name) or []:
        requirement = Requirement(text)
        marker, requirement.marker = requirement.marker, None
        always = marker is None or marker.evaluate({"extra": ""})
        also = marker is not None and marker.evaluate({"extra": extra})
        if always if not extra else also and not always:
            yield requirement


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
