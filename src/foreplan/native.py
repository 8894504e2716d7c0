"""Kernels at one speed: compiled when foreplan is built, else the plain source.

The build gathers every function marked `@compiled`, and all that it calls, into the extension
`foreplan._native` (docs/decisions/001-kernels-ahead-of-time.md). The same source runs uncompiled.
An extension that was built from other sources than those that are here is never used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, TypeVar, cast

from foreplan.version import DISTRIBUTION

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

ASKED_FOR_PLAIN = "FOREPLAN_PLAIN_KERNELS"  # an environment variable: run the sources uncompiled
_SAID = "FOREPLAN_SAID_PLAIN"  # set for the processes that this one starts: it was said


class Trouble(NamedTuple):
    """Why the kernels are not compiled, and what to do about it."""

    state: str  # plain: there are none, or none are wanted; stale; broken: they cannot be loaded
    why: str
    advice: str


def compiled(kernel: Kernel) -> Kernel:
    """A kernel that Python calls: its compiled form takes its place, if there is one."""
    if _native is None:
        return kernel
    function = cast(FunctionType, kernel)
    module = function.__module__.partition(".")[2].replace(".", "_")
    door = getattr(_native, f"{module}__{function.__name__}_door", None)
    if door is None:  # it is newer than the build; the others are what they were
        why = f"the compiled kernels lack {function.__name__} of {function.__module__}"
        _note(Trouble("stale", why, _again()))
        return kernel
    return cast(Kernel, door)


def trouble() -> Trouble | None:
    """Why the kernels are not compiled; None if they are."""
    return _trouble


def extension() -> ModuleType | None:
    """The extension that is in use."""
    return _native


def _load() -> tuple[ModuleType | None, Trouble | None]:
    if os.environ.get(ASKED_FOR_PLAIN):
        why = f"{ASKED_FOR_PLAIN} asks for plain Python"
        return None, Trouble("plain", why, f"unset {ASKED_FOR_PLAIN}")
    try:
        found = import_module("foreplan._native")
    except ModuleNotFoundError:
        why = "foreplan was installed without a C compiler"
        return None, Trouble("plain", why, f"install one, then {_again()}")
    except ImportError as error:
        why = f"the compiled kernels cannot be loaded ({error})"
        return None, Trouble("broken", why, _again())
    changed = _changed(found)
    if changed is not None:
        why = f"the compiled kernels are older than {changed}"
        return None, Trouble("stale", why, _again())
    return found, None


def _again() -> str:
    """How to install foreplan again; pip would take what it has built before from its cache."""
    if Path(__file__).parents[2].joinpath("setup.py").exists():
        return "`make dev`"
    return f"`pip install --force-reinstall --no-cache-dir {DISTRIBUTION}`"


def _changed(found: ModuleType) -> str | None:
    """A source that is not what it was when the extension was built."""
    built = os.stat(cast(str, found.__file__)).st_mtime_ns
    for name, fingerprint in found.SOURCES:
        path = Path(__file__).parent.parent / name
        try:
            newer = os.stat(path).st_mtime_ns >= built
        except OSError:
            return cast(str, name)
        if newer and _fingerprint(path) != fingerprint:
            return cast(str, name)
    return None


def _fingerprint(path: Path) -> str:
    import hashlib  # which loads OpenSSL: only if it must

    return hashlib.sha256(path.read_bytes()).hexdigest()


def _note(trouble: Trouble) -> None:
    """Say it once, in one line; not in the processes that this one starts."""
    global _trouble
    _trouble = trouble
    if _SAID not in os.environ and ASKED_FOR_PLAIN not in os.environ:
        os.environ[_SAID] = "1"
        line = f"foreplan: {trouble.why}, so all is slow: {trouble.advice} (see `foreplan doctor`)"
        print(line, file=sys.stderr)


_native, _trouble = _load()
if _trouble is not None:
    _note(_trouble)
