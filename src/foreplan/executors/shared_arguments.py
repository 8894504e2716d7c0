"""Large arguments that several calls take: they travel once, not with every call.

Arrays of numbers, bytes and texts count, by identity: nothing in them refers to other objects, so
it makes no difference to a function that they were pickled apart from its other arguments.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from foreplan.executors import packing
from foreplan.executors.calls import SHARED, Place
from foreplan.model.call import Call, found_in

LARGE = packing.MAPPED  # bytes from which on it is worth it
_TEXTS = (bytes, bytearray, str)
KINDS = (*_TEXTS, np.ndarray)


def is_large(value: Any) -> bool:
    """Return whether a value is worth being sent once."""
    if type(value) is np.ndarray:
        return bool(value.nbytes >= LARGE and not value.dtype.hasobject)
    return type(value) in _TEXTS and len(value) >= LARGE


def large_in(call: Call | None) -> dict[int, Any]:
    """Return the large values that a call holds where it may hold tasks, by their ids."""
    return {id(value): value for value in found_in(call, KINDS) if is_large(value)}


def find_shared(calls: Iterable[Call | None]) -> dict[int, Any]:
    """Return the large values that several of these calls hold, by their ids."""
    seen = dict[int, Any]()
    shared = dict[int, Any]()
    for call in calls:
        own = large_in(call)
        shared |= {key: value for key, value in own.items() if key in seen}
        seen |= own
    return shared


class SharedArguments:
    """Large values as files of a run, written when a second call takes them; for any thread.

    Arrays may also be parts of objects. One that is made anew whenever its object is pickled is
    never met again, and never written.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._known: dict[int, tuple[Callable[[], Any], str | None]] = {}  # None: not written
        self._written = 0

    def find(self, value: Any, call: Call) -> Place | None:
        """Return the place of a value that was met before; None if it must travel with its call."""
        with self._lock:
            alive, path = self._known.get(id(value), (lambda: None, None))
            if alive() is not value:
                if type(value) is np.ndarray:
                    self._known[id(value)] = weakref.ref(value), None
                elif id(value) in large_in(call):  # which keeps it
                    self._known[id(value)] = lambda: value, None
                return None
            if path is None:
                path = self._write(value)
                self._known[id(value)] = alive, path
            return (SHARED, path) if path else None

    def _write(self, value: Any) -> str:
        """Write a file; an empty path if that is impossible."""
        self._written += 1
        path = os.path.join(self._folder, f"shared-{self._written}.pkl")
        try:
            packing.write(path, value)
        except OSError:  # the disk is full, or the like
            with contextlib.suppress(OSError):
                os.unlink(path)
            return ""
        return path
