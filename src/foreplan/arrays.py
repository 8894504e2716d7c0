"""Flat arrays: their types, freezing, and compressed sparse rows (CSR)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.int8]
BoolArray = npt.NDArray[np.bool_]
_TYPES: dict[str, type] = {
    "FloatArray": np.float64,
    "IntArray": np.int32,
    "BoolArray": np.bool_,
}
_NATIVE: dict[type, Any] = {kind: np.dtype(kind) for kind in _TYPES.values()}  # one object each
Scalar = TypeVar("Scalar", bound=np.generic)

BLOCK = 1024  # rows that are filled column by column, so that they stay in the processor's cache


def frozen(values: Any, dtype: type) -> Any:
    """A read-only contiguous array of the values; shares memory where it can."""
    if type(values) is np.ndarray and values.dtype is _NATIVE.get(dtype):
        flags = values.flags
        if flags.c_contiguous:
            return sealed(values.view()) if flags.writeable else values
    array: npt.NDArray[Any] = np.ascontiguousarray(values, dtype=dtype)
    if array is values or array.base is not None:
        array = array.view()
    array.setflags(write=False)
    return array


def sealed(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """The array itself, made read-only: for one that nobody else holds."""
    array.setflags(write=False)
    return array


class FrozenArrays:
    """A frozen dataclass whose arrays become read-only, each of the type that is declared."""

    def __init_subclass__(cls) -> None:
        if "__repr__" not in vars(cls):  # a dataclass would write one with all numbers
            setattr(cls, "__repr__", FrozenArrays.__repr__)  # noqa: B010

    def __repr__(self) -> str:
        kind: Any = type(self)
        shapes = (f"{name} {_shape(getattr(self, name))}" for name in _array_types(kind))
        return f"<{kind.__name__}: {', '.join(shapes)}>"

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, dtype in _array_types(kind).items():
            given = getattr(self, name)
            if given is not None and (array := frozen(given, dtype)) is not given:
                object.__setattr__(self, name, array)


def _shape(array: npt.NDArray[Any] | None) -> str:
    return "-" if array is None else f"[{'x'.join(map(str, array.shape))}]"


@cache
def _array_types(kind: Any) -> dict[str, type]:
    declared = {f.name: str(f.type).removesuffix(" | None") for f in fields(kind) if f.init}
    return {name: _TYPES[given] for name, given in declared.items() if given in _TYPES}


def pieces(array: npt.NDArray[Scalar], **lengths: int) -> dict[str, Any]:
    """The array cut into pieces by their names, one after the other."""
    cut, at = {}, 0
    for name, length in lengths.items():
        cut[name] = array[at : at + length]
        at += length
    return cut


def csr(rows: IntArray, columns: IntArray, n_rows: int) -> tuple[IntArray, IntArray]:
    """Pointers and columns by row; within a row the pairs keep their order."""
    counts = np.bincount(rows, minlength=n_rows)
    pointers = np.zeros(n_rows + 1, dtype=np.int32)
    np.cumsum(counts, out=pointers[1:])
    in_order = bool(np.all(rows[1:] >= rows[:-1]))
    ordered = columns if in_order else columns[np.argsort(rows, kind="stable")]
    return sealed(pointers), frozen(ordered, np.int32)


def row_of_each(pointers: IntArray) -> IntArray:
    """For every entry of a CSR structure, the row it belongs to."""
    return np.repeat(np.arange(len(pointers) - 1, dtype=np.int32), np.diff(pointers))


def side_by_side(columns: Sequence[FloatArray], n_rows: int) -> FloatArray:
    """The columns as one read-only matrix, row by row."""
    matrix = np.empty((n_rows, len(columns)))
    for first in range(0, n_rows, BLOCK):
        rows = slice(first, first + BLOCK)
        for number, column in enumerate(columns):
            matrix[rows, number] = column[rows]
    return sealed(matrix)
