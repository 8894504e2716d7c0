"""Arrays in the journal: their bytes, compressed, as text. Reading one never runs code."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.errors import InputError

MAX_BYTES = 1 << 28  # 256 MiB: 10,000 tasks on 3,000 processors
_MAX_DIMENSIONS = 8
_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_TYPES = {name: np.dtype(name) for name in ("bool", *_SIGNED, *_UNSIGNED, "float32", "float64")}


def pack(array: npt.NDArray[Any]) -> dict[str, Any]:
    """An array as JSON: its type, its shape, and its little-endian bytes."""
    if array.dtype.name not in _TYPES:
        raise TypeError(f"arrays of {array.dtype.name} cannot be packed")
    if array.nbytes > MAX_BYTES or array.ndim > _MAX_DIMENSIONS:
        raise ValueError(f"an array of shape {array.shape} is too large to be packed")
    raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    # level 1: a plan is packed while the run waits
    text = base64.b64encode(zlib.compress(raw, 1)).decode("ascii")
    return {"a": array.dtype.name, "n": list(array.shape), "z": text}


def unpack(content: Any, limit: int = MAX_BYTES) -> npt.NDArray[Any]:
    """The array that was packed, read-only."""
    if not isinstance(content, dict) or set(content) != {"a", "n", "z"}:
        raise InputError("a packed array has a type (a), a shape (n) and bytes (z)")
    dtype = _TYPES.get(content["a"]) if isinstance(content["a"], str) else None
    if dtype is None:
        raise InputError(f"packed array: unknown type {content['a']!r}")
    shape = _shape(content["n"])
    size = math.prod(shape) * dtype.itemsize
    if size > limit:
        raise InputError(f"packed array: {size:,} bytes are more than the limit, {limit:,}")
    raw = _bytes(content["z"], size)
    array = np.frombuffer(raw, dtype=dtype.newbyteorder("<")).reshape(shape)
    native = array.astype(dtype, copy=False)
    native.flags.writeable = False
    return native


def _shape(content: Any) -> tuple[int, ...]:
    """A shape whose product is its own measure: no zero hides a huge number."""
    if (
        not isinstance(content, list)
        or len(content) > _MAX_DIMENSIONS
        or not all(type(n) is int and 0 <= n <= MAX_BYTES for n in content)
    ):
        raise InputError(f"packed array: {content!r} is not a shape")
    return tuple(content)


def _bytes(text: Any, size: int) -> bytes:
    """Decompress exactly so many bytes; never more, whatever the text would give."""
    inflater = zlib.decompressobj()
    try:
        if not isinstance(text, str):
            raise ValueError
        raw = inflater.decompress(base64.b64decode(text, validate=True), size + 1)
    except (ValueError, binascii.Error, zlib.error):
        raise InputError("packed array: its bytes cannot be read") from None
    if len(raw) != size or not inflater.eof or inflater.unused_data:
        raise InputError(f"packed array: its bytes are not the {size:,} of its type and shape")
    return raw
