"""Kernels at two speeds: the same source as plain Python, and compiled by Numba where it pays.

Importing Numba and loading a compiled kernel takes about a second, so small one-shot plans run
the plain source. Once the plain work done in this process would have paid for it, we compile. A
kernel that no process of this machine has compiled before takes ten seconds and more, so it is
rarely worth it for a plan that is over in two: such work goes on in plain Python for longer.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

WORTH_COMPILING = 3_000_000  # steps of a plain inner loop, roughly the second that Numba takes
ANEW = 10  # times that, if it must compile and not only load

# A function that uses one of these names makes arrays or lists; the others only work on them.
MAKES_ARRAYS = frozenset(
    {"zeros", "empty", "full", "ones", "arange", "copy", "append", "heapify", "heappush"}
)

_compiled: dict[FunctionType, Any] = {}
_called: dict[FunctionType, Any] = {}  # those that kernels call
_at_hand: dict[Callable[..., Any], bool] = {}
_plain_work = 0


def pays(work: int, kernel: Callable[..., Any]) -> bool:
    """Whether a call of a kernel with so many inner steps should run compiled."""
    global _plain_work
    if kernel in _compiled or _plain_work + work > ANEW * WORTH_COMPILING:
        return True
    loading_pays = _compiled or _plain_work + work > WORTH_COMPILING
    if loading_pays and _can_be_loaded(kernel):
        return True
    _plain_work += work
    return False


def expect(work: int) -> None:
    """So many inner steps are to come: then there is no need to wait and see."""
    global _plain_work
    _plain_work += work


def compiled(kernel: Kernel) -> Kernel:
    """The kernel compiled, and with it every kernel function that it calls."""
    function = cast(FunctionType, kernel)
    if function not in _compiled:
        _compiled[function] = _compile(function, {})
    return cast(Kernel, _compiled[function])


def _inner(kernel: FunctionType) -> Any:
    """A kernel for others to call: no code of Python calls it, and half the time is in that."""
    if kernel not in _called:
        _called[kernel] = _compile(kernel, {"no_cpython_wrapper": True, "no_cfunc_wrapper": True})
    return _called[kernel]


def _compile(kernel: FunctionType, more: dict[str, bool]) -> Any:
    import numba

    names = dict(kernel.__globals__)
    for name, called in _calls(kernel).items():
        names[name] = _inner(called)
    twin = FunctionType(kernel.__code__, names, kernel.__name__, kernel.__defaults__)
    twin.__module__ = kernel.__module__
    twin.__qualname__ = kernel.__qualname__ + ("_inner" if more else "")  # the name in the cache
    options: dict[str, Any] = {"cache": True, "nogil": True, "forceinline": True, **more}
    if not _makes_arrays(kernel):
        # Nothing to count: without this, every use of an array in a tuple is an atomic
        # increment and decrement of its references, and the loops run nine times slower.
        options["_nrt"] = False
    config: Any = numba.config
    others, config.CACHE_DIR = config.CACHE_DIR, str(_cache_directory())
    made = numba.njit(**{name: on for name, on in options.items() if _is_offered(name)})(twin)
    config.CACHE_DIR = others  # other people's kernels in this process stay where they were
    return made


def _calls(kernel: FunctionType) -> dict[str, FunctionType]:
    """The kernel functions that a kernel calls, by name."""
    found = {name: kernel.__globals__.get(name) for name in kernel.__code__.co_names}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, FunctionType) and value.__module__.startswith("weft.kernels.")
    }


def _makes_arrays(kernel: FunctionType) -> bool:
    """Whether a kernel, or one that it calls, makes arrays: what it calls is compiled like it."""
    if MAKES_ARRAYS.intersection(kernel.__code__.co_names):
        return True
    return any(_makes_arrays(called) for called in _calls(kernel).values())


def _is_offered(option: str) -> bool:
    """Whether this Numba has an option; some are not part of its public face."""
    from numba.core.registry import cpu_target

    return option == "cache" or hasattr(cpu_target.options, option)


def _can_be_loaded(kernel: Callable[..., Any]) -> bool:
    """Whether a kernel was compiled on this machine before."""
    if kernel not in _at_hand:
        name = f"{kernel.__module__.rpartition('.')[2]}.{kernel.__qualname__}-*.nbi"
        _at_hand[kernel] = next(_cache_directory().glob(f"*/{name}"), None) is not None
    return _at_hand[kernel]


@cache
def _cache_directory() -> Path:
    """Keyed by the kernels' source: Numba alone does not notice a change in a callee's file."""
    here = Path(__file__).parent
    source = b"".join(path.read_bytes() for path in sorted(here.glob("*.py")))
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "weft" / f"kernels-{hashlib.sha256(source).hexdigest()[:16]}"
