"""The kinds of value that a kernel knows, and what they are in C."""

from __future__ import annotations

from dataclasses import dataclass


class KernelError(Exception):
    """A kernel uses what the build does not understand: where, and what."""


@dataclass(frozen=True)
class Kind:
    """A kind of value: what it is called in the generated text."""

    c: str


@dataclass(frozen=True)
class ArrayKind(Kind):
    """A flat array: what its elements are in C, and to a kernel."""

    element_c: str
    element: Kind
    numpy: str  # its type number


@dataclass(frozen=True)
class StateKind(Kind):
    """A NamedTuple of numbers and arrays."""

    fields: tuple[tuple[str, Kind], ...]

    def field(self, name: str) -> Kind | None:
        """The kind of a field, if there is one of that name."""
        return dict(self.fields).get(name)


@dataclass(frozen=True)
class TupleKind(Kind):
    """Several values at once."""

    parts: tuple[Kind, ...]

    @property
    def has_arrays(self) -> bool:
        """Whether it can only be a tuple of Python's."""
        return any(isinstance(part, ArrayKind) for part in self.parts)


NOTHING = Kind("void")
BOOL, INT, FLOAT = Kind("bint"), Kind("int64_t"), Kind("double")
FLOATS = ArrayKind("Floats", "double", FLOAT, "NPY_FLOAT64")
INTS = ArrayKind("Ints", "int32_t", INT, "NPY_INT32")
LONGS = ArrayKind("Longs", "int64_t", INT, "NPY_INT64")
BYTES = ArrayKind("Bytes", "int8_t", INT, "NPY_INT8")
BOOLS = ArrayKind("Bools", "uint8_t", BOOL, "NPY_BOOL")
ARRAYS = (FLOATS, INTS, LONGS, BYTES, BOOLS)

NAMED: dict[str, Kind] = {
    "None": NOTHING, "bool": BOOL, "int": INT, "float": FLOAT,
    "FloatArray": FLOATS, "IntArray": INTS, "LongArray": LONGS, "ByteArray": BYTES,
    "BoolArray": BOOLS,
}  # fmt: skip
BY_DTYPE = {
    "np.float64": FLOATS, "np.int32": INTS, "np.int64": LONGS, "np.int8": BYTES,
    "np.bool_": BOOLS,
}  # fmt: skip
_WIDTH = {BOOL: 0, INT: 1, FLOAT: 2}


def tuple_of(parts: tuple[Kind, ...]) -> TupleKind:
    """The kind of several values."""
    return TupleKind("Tuple_" + "_".join(part.c for part in parts), parts)


def is_number(kind: Kind) -> bool:
    """Whether it can be reckoned with."""
    return kind in _WIDTH


def wider(one: Kind, other: Kind) -> Kind | None:
    """What can hold either, if anything can."""
    if one == other:
        return one
    if one in _WIDTH and other in _WIDTH:
        return one if _WIDTH[one] > _WIDTH[other] else other
    return None


def fits(value: Kind, place: Kind) -> bool:
    """Whether a value may be given where this kind is asked for."""
    return value == place or (
        value in _WIDTH and place in _WIDTH and _WIDTH[value] <= _WIDTH[place]
    )
