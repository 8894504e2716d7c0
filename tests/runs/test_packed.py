"""Arrays as text: the same bits come back, and nothing else is taken for an array."""

import base64
import tracemalloc
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from foreplan.errors import InputError
from foreplan.runs.entries import MAX_BYTES, pack, unpack
from foreplan.runs.journal import decode, encode

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
_arrays = st.sampled_from([*TYPES, "float32", "float64", ">f8", ">i4", "<i8"]).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0))
)


@given(array=_arrays)
@settings(deadline=None)
def test_the_same_bits_come_back(array: npt.NDArray[Any]) -> None:
    content = decode(encode(0, {"array": pack(array)})[9:-1])["array"]
    again = unpack(content)
    assert again.dtype == array.dtype.newbyteorder("=")
    assert again.shape == array.shape
    assert again.tobytes() == array.astype(again.dtype).tobytes()
    assert not again.flags.writeable


def test_views_are_packed_as_they_look() -> None:
    array = np.arange(24.0).reshape(4, 6)[::-2, ::3].T
    assert np.array_equal(unpack(pack(array)), array)


@pytest.mark.parametrize("dtype", ["object", "complex128", "U3", "datetime64[s]", "i4,f8"])
def test_other_types_are_refused(dtype: str) -> None:
    with pytest.raises(TypeError, match="cannot be packed"):
        pack(np.zeros(2, dtype=dtype))


def _text(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw)).decode()


GOOD = pack(np.arange(6, dtype=np.int32).reshape(2, 3))


@pytest.mark.parametrize(
    "bad",
    [
        None,
        [],
        {"a": "int32"},
        {**GOOD, "more": 1},
        {**GOOD, "a": "object"},
        {**GOOD, "a": ["int32"]},
        {**GOOD, "a": "int64"},
        {**GOOD, "n": [3, 3]},
        {**GOOD, "n": [1, 3]},
        {**GOOD, "n": 6},
        {**GOOD, "n": [-2, -3]},
        {**GOOD, "n": [2.0, 3]},
        {**GOOD, "n": [True, 6]},
        {**GOOD, "n": [0, 10**30]},
        {**GOOD, "n": [2, 3] + [1] * 60},
        {**GOOD, "n": [MAX_BYTES, 2]},
        {**GOOD, "z": 5},
        {**GOOD, "z": "not base64!"},
        {**GOOD, "z": "ümlaut"},
        {**GOOD, "z": base64.b64encode(b"not zlib").decode()},
        {**GOOD, "z": _text(bytes(24))[:-8]},
        {**GOOD, "z": base64.b64encode(zlib.compress(bytes(24)) + b"tail").decode()},
    ],
)
def test_what_is_no_array_is_refused(bad: Any) -> None:
    with pytest.raises(InputError, match="packed array"):
        unpack(bad)


def test_a_bomb_is_not_inflated() -> None:
    bomb = {"a": "uint8", "n": [10], "z": _text(bytes(50_000_000))}
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="are not the 10"):
            unpack(bomb)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    with pytest.raises(InputError, match="more than the limit"):
        unpack({**GOOD, "n": [2, 3]}, limit=23)
    assert unpack(GOOD, limit=24).shape == (2, 3)


def test_too_large_to_pack() -> None:
    huge = np.broadcast_to(np.float64(0), (MAX_BYTES,))
    with pytest.raises(ValueError, match="too large"):
        pack(huge)
