"""Kernels at one speed: compiled when weft is built, or the plain source where that could not be.

The build gathers every function marked `@compiled`, and all that it calls, into the extension
`weft._native` (docs/decisions/001-kernels-ahead-of-time.md). The same source runs uncompiled. An
extension that was built from other sources than those that are here is never used.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

ASKED_FOR_PLAIN = "WEFT_PLAIN_KERNELS"  # an environment variable: run the sources uncompiled
_SAID = "WEFT_SAID_PLAIN"  # set for the processes that this one starts: it was said


def compiled(kernel: Kernel) -> Kernel:
    """A kernel that Python calls: its compiled form takes its place, if there is one."""
    if _native is None:
        return kernel
    function = cast(FunctionType, kernel)
    module = function.__module__.partition(".")[2].replace(".", "_")
    return cast(Kernel, getattr(_native, f"{module}__{function.__name__}_door"))


def trouble() -> str | None:
    """Why the kernels are not compiled; None if they are."""
    return _trouble


def extension() -> ModuleType | None:
    """The extension that is in use."""
    return _native


def _load() -> tuple[ModuleType | None, str | None]:
    if os.environ.get(ASKED_FOR_PLAIN):
        return None, f"{ASKED_FOR_PLAIN} asks for plain Python"
    try:
        found = import_module("weft._native")
    except ModuleNotFoundError:
        return None, "weft was installed without a C compiler"
    except ImportError as error:
        return None, f"the compiled kernels cannot be loaded ({error})"
    changed = _changed(found)
    if changed is not None:
        return None, f"the compiled kernels are older than {changed}"
    return found, None


def _changed(found: ModuleType) -> str | None:
    """A source that is not what it was when the extension was built."""
    built = os.stat(cast(str, found.__file__)).st_mtime_ns
    for name, fingerprint in found.SOURCES:
        path = Path(__file__).parent.parent / name
        try:
            newer = os.stat(path).st_mtime_ns >= built
        except OSError:
            return cast(str, name)
        if newer and hashlib.sha256(path.read_bytes()).hexdigest() != fingerprint:
            return cast(str, name)
    return None


def _say(trouble: str) -> None:
    """Once, in one line; not in the processes that this one starts."""
    if _SAID not in os.environ and ASKED_FOR_PLAIN not in os.environ:
        os.environ[_SAID] = "1"
        do = "install one, then weft again" if "compiler" in trouble else "install weft again"
        print(f"weft: {trouble}, so all is slow: {do} (see weft doctor)", file=sys.stderr)


_native, _trouble = _load()
if _trouble is not None:
    _say(_trouble)
