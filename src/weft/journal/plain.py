"""Values as plain JSON: numbers that JSON does not know become words, numpy's become Python's."""

from __future__ import annotations

import math
import os
from typing import Any

from weft.errors import InputError


def plain(value: Any) -> Any:
    """The value as JSON can hold it: inf, -inf and nan as these words; keys as text.

    `real` reads the words back. Arrays are refused: they are packed.
    """
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, dict):
        return {_key(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if getattr(value, "ndim", None) == 0:  # a scalar of numpy, which need not be imported here
        return plain(value.item())
    raise TypeError(f"a journal holds plain values only, and no {type(value).__name__}")


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(plain(key))


def real(value: Any) -> float:
    """A number as the journal holds it, words for inf, -inf and nan included."""
    if value in ("inf", "-inf", "nan") or (
        isinstance(value, (int, float)) and not isinstance(value, bool)
    ):
        return float(value)
    raise InputError(f"a number is expected here, and not {value!r}")
