"""`foreplan doctor`: what foreplan has found here, and what to do about what is missing."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreplan.cli.shared.options import json_option
from foreplan.version import DISTRIBUTION, __version__, install_command

if TYPE_CHECKING:
    from packaging.requirements import Requirement

BROKEN = 1
REFUSED = "not here: they need Linux or macOS, WSL or a Linux container"
MODULES = {"PyYAML": "yaml", "pillow": "PIL"}  # where the module is not called like its package
PURPOSES = {
    "bench": "`foreplan bench plan` beside anrg-saga",
    "dask": "runs on Dask clusters (--on dask://host:port, tls://host:port)",
    "optimum": "the optimum in `foreplan bench budget`",
    "snakemake": "`foreplan import snakemake`, and `foreplan bench snakefile` beside it",
    "reproductions": "`foreplan reproduce aheft` on a Dask cluster",
}


def doctor(
    as_json: Annotated[bool, json_option("what was found")] = False,
    sizes: Annotated[
        bool, typer.Option("--sizes", help="List foreplan and all packages that it needs by size.")
    ] = False,
) -> None:
    """Tell what foreplan runs on here, what is missing, and what to do about it.

    The kernels are compiled, or plain Python and slow; then Python, the system, the packages that
    foreplan needs, and the optional packages and programs that are found.

    The exit code is 0, or 1 if something is broken: a package that foreplan needs is missing, of a
    wrong version or cannot be imported, or the compiled kernels do not load or are older than
    their source. Plain kernels and missing optional parts are not broken.

    Example: `foreplan doctor`
    """
    if sizes:
        _show_sizes(as_json)
        return
    found = examine()
    if as_json:
        print(json.dumps(asdict(found) | {"broken": found.broken}, indent=1))
    else:
        _show(found)
    raise typer.Exit(BROKEN if found.broken else 0)


@dataclass(frozen=True)
class Dependency:
    """A package, or a program; `advice` says what to do where it is missing or does not work."""

    name: str
    purpose: str
    found: str | None  # the version, or the path
    works: bool
    advice: str = ""


@dataclass(frozen=True)
class Kernels:
    """How the kernels run: compiled, plain, or plain because the compiled ones are no good."""

    state: str  # compiled, plain, stale, broken
    place: str | None = None
    bytes: int = 0
    why: str = ""
    advice: str = ""


@dataclass(frozen=True)
class Findings:
    """All that `foreplan doctor` tells."""

    foreplan: str
    place: str
    python: str
    interpreter: str
    system: str
    processors: int
    cores: int  # that runs may use here
    memory: float  # bytes, likewise; 0: not known
    gpus: int
    limit: str  # how `--limit` holds tasks
    runs: bool  # whether real runs can be driven here
    kernels: Kernels
    needed: list[Dependency]
    optional: list[Dependency]
    programs: list[Dependency]

    @property
    def broken(self) -> list[str]:
        """What does not work, and what to do."""
        parts = [f"{part.name}: {part.advice}" for part in self.needed if not part.works]
        if self.kernels.state in ("stale", "broken"):
            parts.append(f"{self.kernels.why}: {self.kernels.advice}")
        return parts


def examine() -> Findings:
    """Look at everything; what may not work is not imported before it is looked at."""
    from foreplan.runs.home import CAN_RUN

    try:
        packages, extras = [_examined(r) for r in _requirements(DISTRIBUTION)], optional_parts()
    except (ImportError, metadata.PackageNotFoundError) as error:
        again = "install it with pip, which brings what it needs"
        packages, extras = [Dependency(error.name or DISTRIBUTION, "", None, False, again)], []
    here = _this_machine()
    return Findings(
        foreplan=__version__,
        place=str(Path(__file__).parents[1]),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        interpreter=sys.executable,
        system=platform.platform(),
        processors=os.cpu_count() or 1,
        **here,
        runs=CAN_RUN,
        kernels=_kernels(),
        needed=packages,
        optional=extras,
        programs=_programs(),
    )


def _this_machine() -> dict[str, Any]:
    """What runs may use here, and how tasks can be held to what they ask for."""
    try:
        from foreplan.executors.limits import groups, in_words
        from foreplan.executors.local.this_machine import available_processors, this_host
    except ImportError:  # of a package that is missing, which is told, too
        return {"cores": os.cpu_count() or 1, "memory": 0.0, "gpus": 0, "limit": "not known"}
    has = this_host({}).amounts
    return {
        "cores": available_processors(),
        "memory": has.get("memory", 0.0),
        "gpus": int(has.get("gpus", 0)),
        "limit": in_words(groups()),
    }


def _kernels() -> Kernels:
    """How the kernels run here, and the extension, even if it is not used."""
    from foreplan import native

    package = Path(__file__).parents[1]
    for path in package.glob("*/kernels/*.py"):
        name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        with suppress(ImportError):  # of a package that is missing, which is told, too
            importlib.import_module(name)
    spec = importlib.util.find_spec("foreplan._native")
    place = None if spec is None else spec.origin
    size = 0 if place is None else os.path.getsize(place)
    trouble = native.trouble()
    if trouble is None:
        return Kernels("compiled", place, size)
    return Kernels(trouble.state, place, size, trouble.why, trouble.advice)


COMPILER = "apt install g++, xcode-select --install, or the Build Tools for Visual Studio"


def _programs() -> list[Dependency]:
    """Programs that foreplan, or its installation from source, can use."""
    known = (
        ("bash", ("bash",), "commands of tasks", "they run with sh and `set -eu`"),
        ("C compiler", _compilers("CC", "cc", "gcc", "clang"), "builds the kernels", COMPILER),
        ("C++ compiler", _compilers("CXX", "c++", "g++", "clang++"), "`foreplan bench`", COMPILER),
    )
    parts = []
    for name, programs, purpose, advice in known:
        found = next((path for program in programs if (path := shutil.which(program))), None)
        parts.append(Dependency(name, purpose, found, found is not None, "" if found else advice))
    return parts


def _compilers(variable: str, *usual: str) -> tuple[str, ...]:
    """What a build would take: the one that is asked for, or one of the usual ones."""
    asked = os.environ.get(variable, "").split()
    return tuple(asked[:1]) or (*usual, *(("cl",) if os.name == "nt" else ()))


def _examined(requirement: Requirement) -> Dependency:
    """A package without which foreplan does not work, imported to see whether it does."""
    name, wanted = requirement.name, str(requirement)
    version = _version(name)
    again = f"pip install --upgrade '{wanted}'"
    if version is None:
        return Dependency(name, wanted, None, False, again)
    if not requirement.specifier.contains(version, prereleases=True):
        return Dependency(name, wanted, version, False, f"another version is needed: {again}")
    try:
        importlib.import_module(MODULES.get(name, name))
    except Exception as error:  # whatever a broken package does
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        return Dependency(name, wanted, version, False, f"it cannot be imported ({why}): {again}")
    return Dependency(name, wanted, version, True)


def optional_parts() -> list[Dependency]:
    """What foreplan can use, each package by the smallest extra that brings it."""
    extras = metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    brought = {
        extra: list(_requirements(DISTRIBUTION, extra)) for extra in extras if extra != "dev"
    }
    found: dict[str, Dependency] = {}
    for extra in sorted(brought, key=lambda name: (len(brought[name]), name)):
        for requirement in brought[extra]:
            found.setdefault(requirement.name, _looked_up(extra, requirement))
    return [found[name] for name in sorted(found)]


def _looked_up(extra: str, requirement: Requirement) -> Dependency:
    version = _version(requirement.name)
    fits = version is not None and requirement.specifier.contains(version, prereleases=True)
    advice = "" if fits else install_command(extra)
    return Dependency(requirement.name, PURPOSES.get(extra, extra), version, fits, advice)


@dataclass(frozen=True)
class Size:
    """A package and the bytes of its files."""

    name: str
    version: str
    bytes: int


def installed_sizes() -> list[Size]:
    """foreplan and all that comes with it, the largest first."""
    found: dict[str, Size] = {}
    left = ["foreplan"]
    while left:
        name = left.pop()
        if name.lower() not in found and (version := _version(name)) is not None:
            found[name.lower()] = Size(name, version, _size(name))
            left += [requirement.name for requirement in _requirements(name)]
    return sorted(found.values(), key=lambda size: -size.bytes)


def _size(name: str) -> int:
    if name == "foreplan":  # it may be installed as a link to its source
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


def _show(found: Findings) -> None:
    kernels = found.kernels
    print(f"foreplan {found.foreplan}, {found.place}")
    print(f"Python: {found.python}, {found.interpreter}")
    print(f"system: {found.system}, {found.processors} processors")
    print(f"real runs: {'possible' if found.runs else REFUSED}")
    if found.runs:
        from foreplan.quantities import data_size

        memory = f", {data_size(found.memory)} of memory" if found.memory else ""
        gpus = f", {found.gpus} GPUs" if found.gpus else ""
        print(f"`--on local`: {found.cores} cores{memory}{gpus}")
        print(f"`--limit`: {found.limit}")
    place = f", {kernels.place}, {kernels.bytes / 1e6:.1f} MB" if kernels.place else ""
    print(f"kernels: {kernels.state}{place}")
    if kernels.why:
        print(f"  {kernels.why}: {kernels.advice}")
    _show_parts("needed", found.needed)
    _show_parts("optional", [*found.optional, *found.programs])
    for sentence in found.broken:
        print(f"broken: {sentence}")


def _show_parts(title: str, parts: list[Dependency]) -> None:
    print(f"{title}:")
    rows = [(part.name, part.found or "missing", part.purpose) for part in parts]
    wide = [max((len(row[k]) for row in rows), default=0) for k in range(3)]
    for (name, state, purpose), part in zip(rows, parts, strict=True):
        line = f"  {name:{wide[0]}}  {state:{wide[1]}}  {purpose:{wide[2]}}  {part.advice}"
        print(line.rstrip())


def _show_sizes(as_json: bool) -> None:
    listed = installed_sizes()
    if as_json:
        print(json.dumps([asdict(size) for size in listed], indent=1))
        return
    total = Size("together", "", sum(size.bytes for size in listed))
    for size in [*listed, total]:
        print(f"{size.bytes / 1e6:8.1f} MB  {size.name} {size.version}".rstrip())
