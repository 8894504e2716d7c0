"""`weft doctor`: what weft has found here, and what to do about what is missing."""

from __future__ import annotations

import importlib.util
import json
import os
import pkgutil
import platform
import shutil
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli.installed import Part, Size

BROKEN = 1
REFUSED = "not here: they need Linux or macOS, WSL or a Linux container"


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
    sizes: Annotated[
        bool, typer.Option("--sizes", help="List weft and all packages that it needs by size.")
    ] = False,
) -> None:
    """Tell what weft runs on here, what is missing, and what to do about it.

    The kernels are compiled, or plain Python and slow; then Python, the system, the packages that
    weft needs, and the optional packages and programs that are found.

    The exit code is 0, or 1 if something is broken: a package that weft needs is missing, of a
    wrong version or cannot be imported, or the compiled kernels do not load or are older than
    their source. Plain kernels and missing optional parts are not broken.

    Example: `weft doctor`
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
class Kernels:
    """How the kernels run: compiled, plain, or plain because the compiled ones are no good."""

    state: str  # compiled, plain, stale, broken
    place: str | None = None
    bytes: int = 0
    why: str = ""
    advice: str = ""


@dataclass(frozen=True)
class Findings:
    """All that `weft doctor` tells."""

    weft: str
    place: str
    python: str
    interpreter: str
    system: str
    processors: int
    runs: bool  # whether real runs can be driven here
    kernels: Kernels
    needed: list[Part]
    optional: list[Part]
    programs: list[Part]

    @property
    def broken(self) -> list[str]:
        """What does not work, and what to do."""
        parts = [f"{part.name}: {part.advice}" for part in self.needed if not part.works]
        if self.kernels.state in ("stale", "broken"):
            parts.append(f"{self.kernels.why}: {self.kernels.advice}")
        return parts


def examine() -> Findings:
    """Look at everything; nothing of weft that may not work is imported before it is looked at."""
    from weft import __version__
    from weft.cli.installed import needed, optional
    from weft.journal.system import CAN_RUN

    try:
        packages, extras = needed(), optional()
    except (ImportError, metadata.PackageNotFoundError) as error:
        again = "install it with pip, which brings what it needs"
        packages, extras = [Part(error.name or "weft", "", None, False, again)], []
    return Findings(
        weft=__version__,
        place=str(Path(__file__).parents[1]),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        interpreter=sys.executable,
        system=platform.platform(),
        processors=os.cpu_count() or 1,
        runs=CAN_RUN,
        kernels=_kernels(),
        needed=packages,
        optional=extras,
        programs=_programs(),
    )


def _kernels() -> Kernels:
    """How the kernels run here, and the extension, even if it is not used."""
    from weft import kernels, native

    for kernel in pkgutil.iter_modules(kernels.__path__):
        with suppress(ImportError):  # of a package that is missing, which is told, too
            importlib.import_module(f"weft.kernels.{kernel.name}")
    spec = importlib.util.find_spec("weft._native")
    place = None if spec is None else spec.origin
    size = 0 if place is None else os.path.getsize(place)
    trouble = native.trouble()
    if trouble is None:
        return Kernels("compiled", place, size)
    return Kernels(trouble.state, place, size, trouble.why, trouble.advice)


COMPILER = "apt install g++, xcode-select --install, or the Build Tools for Visual Studio"


def _programs() -> list[Part]:
    """Programs that weft, or its installation from source, can use."""
    known = (
        ("bash", ("bash",), "commands of tasks", "they run with sh and `set -eu`"),
        ("C compiler", _compilers("CC", "cc", "gcc", "clang"), "builds the kernels", COMPILER),
        ("C++ compiler", _compilers("CXX", "c++", "g++", "clang++"), "`weft bench`", COMPILER),
    )
    parts = []
    for name, programs, purpose, advice in known:
        found = next((path for program in programs if (path := shutil.which(program))), None)
        parts.append(Part(name, purpose, found, found is not None, "" if found else advice))
    return parts


def _compilers(variable: str, *usual: str) -> tuple[str, ...]:
    """What a build would take: the one that is asked for, or one of the usual ones."""
    asked = os.environ.get(variable, "").split()
    return tuple(asked[:1]) or (*usual, *(("cl",) if os.name == "nt" else ()))


def _show(found: Findings) -> None:
    kernels = found.kernels
    print(f"weft {found.weft}, {found.place}")
    print(f"Python: {found.python}, {found.interpreter}")
    print(f"system: {found.system}, {found.processors} processors")
    print(f"real runs: {'possible' if found.runs else REFUSED}")
    place = f", {kernels.place}, {kernels.bytes / 1e6:.1f} MB" if kernels.place else ""
    print(f"kernels: {kernels.state}{place}")
    if kernels.why:
        print(f"  {kernels.why}: {kernels.advice}")
    _show_parts("needed", found.needed)
    _show_parts("optional", [*found.optional, *found.programs])
    for sentence in found.broken:
        print(f"broken: {sentence}")


def _show_parts(title: str, parts: list[Part]) -> None:
    print(f"{title}:")
    rows = [(part.name, part.found or "missing", part.purpose) for part in parts]
    wide = [max((len(row[k]) for row in rows), default=0) for k in range(3)]
    for (name, state, purpose), part in zip(rows, parts, strict=True):
        line = f"  {name:{wide[0]}}  {state:{wide[1]}}  {purpose:{wide[2]}}  {part.advice}"
        print(line.rstrip())


def _show_sizes(as_json: bool) -> None:
    from weft.cli.installed import sizes

    listed: list[Any] = sizes()
    if as_json:
        print(json.dumps([asdict(size) for size in listed], indent=1))
        return
    total = Size("together", "", sum(size.bytes for size in listed))
    for size in [*listed, total]:
        print(f"{size.bytes / 1e6:8.1f} MB  {size.name} {size.version}".rstrip())
