"""Results of functions as files: a pickle, and behind it the large buffers of what was pickled.

A result without any is a plain pickle. Buffers of others (the
contents of arrays, mostly) stand there as they are in memory, and the file ends with their lengths:
nothing is copied into a pickle, and who reads them has them by a memory map, or by one read. Worker
processes import this, so it imports little.
"""

from __future__ import annotations

import contextlib
import functools
import io
import math
import mmap
import os
import pickle
import struct
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

_END = b"\0foreplan-1\n"  # no pickle ends like this
_NUMBER = struct.Struct("<Q")
_ALIGNED = 64  # bytes that buffers begin at a multiple of, as libraries of arrays like it
_PARTS = (types.FunctionType, type, types.ModuleType)
LARGE = 1 << 16  # bytes from which on a buffer stands beside the pickle
MAPPED = 1 << 20  # bytes from which on a file is mapped
_HUGE = 4 << 20  # bytes of at least one huge page, wherever it begins

Frame = bytes | memoryview
Frames = Sequence[Frame]  # the pickle, and buffers


class _Buffers(list[memoryview]):
    """The large buffers of what is pickled: the others stay in the pickle."""

    def keep_apart(self, buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= LARGE:
            self.append(raw)
        return raw.nbytes < LARGE


class TooLargeError(Exception):
    """A value is larger than it may be."""


class _Bounded(io.BytesIO):
    """A file that takes a limited number of bytes."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self.left = limit

    def write(self, content: Any) -> int:
        self.left -= len(content)
        if self.left < 0:
            raise TooLargeError
        return super().write(content)


def pack(value: Any, limit: float = math.inf) -> list[Frame]:
    """A value as its pickle and its large buffers, which are not copied.

    Raise TooLargeError as soon as these are found to have more than `limit` bytes.
    """
    buffers = _Buffers()
    file = io.BytesIO() if limit == math.inf else _Bounded(limit)
    pickler()(file, protocol=5, buffer_callback=buffers.keep_apart).dump(value)
    if file.tell() + sum(map(len, buffers)) > limit:
        raise TooLargeError
    return [file.getvalue(), *buffers]


def dumps(value: Any) -> tuple[bytes, list[Any]]:
    """A value as one pickle, functions of scripts and closures too.

    And the functions, classes and modules that are in it.
    """
    file = io.BytesIO()
    pickling = pickler()(file, protocol=5)
    pickling.met = []
    pickling.dump(value)
    return file.getvalue(), pickling.met


@functools.cache
def pickler() -> Any:
    """cloudpickle's, which also takes along what `functools` has made of a script's functions."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        met: list[Any] | None = None  # where the parts of programs that are pickled are listed

        def reducer_override(self, value: Any) -> Any:
            if self.met is not None and isinstance(value, _PARTS):
                self.met.append(value)
            return _made_again(value) or super().reducer_override(value)

    # in a child that multiprocessing has spawned, the script is a module that no worker can import
    if (script := sys.modules.get("__mp_main__")) is not None:
        cloudpickle.register_pickle_by_value(script)
    return Pickler


def _made_again(value: Any) -> Any:
    """How a function with a cache, or one that chooses by type, is made again; None: as all is."""
    if (made := make_again(value)) is not None:
        from foreplan.store.programs import imported_as

        if not hasattr(value, "__qualname__") or not imported_as(value):
            return made
    return None


def make_again(value: Any) -> Any:
    """Return how a function of `functools` is made again; None if it is an ordinary one."""
    if type(value) is functools._lru_cache_wrapper:
        parameters = value.cache_parameters()
        return _cached, (value.__wrapped__, parameters["maxsize"], parameters["typed"])
    if type(value) is types.FunctionType:
        from foreplan.store.programs import DISPATCHER

        if value.__code__ is DISPATCHER:
            return _dispatching, (tuple(vars(value)["registry"].items()),)
    return None


def _cached(function: Any, maxsize: int | None, typed: bool) -> Any:
    return functools.lru_cache(maxsize, typed)(function)


def _dispatching(functions: Sequence[tuple[type, Any]]) -> Any:
    """A function that chooses by the type of its argument; the first is for all others."""
    made = functools.singledispatch(functions[0][1])
    for kind, function in functions[1:]:
        made.register(kind, function)
    return made


def unpack(frames: Frames) -> Any:
    """The value; its arrays have the memory of the frames, and can be written to if that can."""
    return pickle.loads(frames[0], buffers=frames[1:])


def write(path: str, value: Any, given: Iterable[str] = ()) -> int:
    """Write the file of a result, for its owner only; its size.

    A large one that is what one of the `given` files holds becomes a link to that.
    """
    with _new(path) as file:
        buffers = _dump(value, file)
        length = file.tell()
        behind = list(_behind(length, buffers))
        size = length + sum(map(len, behind))
        if buffers:
            file.flush()
            head = os.pread(file.fileno(), length, 0)
            if _link_same(path, [head, *behind], given):
                return size
        file.writelines(behind)
    return size


def write_frames(path: str, frames: Frames, given: Iterable[str] = ()) -> None:
    """The same of a result that is packed."""
    pieces = [frames[0], *_behind(len(frames[0]), frames[1:])]
    with _new(path) as file:
        if len(frames) == 1 or not _link_same(path, pieces, given):
            file.writelines(pieces)


@contextlib.contextmanager
def _new(path: str) -> Iterator[BinaryIO]:
    """A new file: what is there under its name is not written to, as it may be a link."""
    for left in (path, path + ".same"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(left)
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        yield file


def _dump(value: Any, file: BinaryIO) -> list[memoryview]:
    buffers = _Buffers()
    try:
        pickle.dump(value, file, protocol=5, buffer_callback=buffers.keep_apart)
    except Exception:  # of this process only, as functions and classes of a script are
        file.seek(0)
        file.truncate()
        buffers.clear()
        pickler()(file, protocol=5, buffer_callback=buffers.keep_apart).dump(value)
    return buffers


def _behind(length: int, buffers: Frames) -> Iterator[Frame]:
    """What stands in a file behind a pickle of this length."""
    at = length
    for buffer in buffers:
        yield bytes(-at % _ALIGNED)
        yield buffer
        at += -at % _ALIGNED + len(buffer)
    if buffers:
        lengths = (length, *map(len, buffers), len(buffers) + 1)
        yield b"".join(map(_NUMBER.pack, lengths)) + _END


def _link_same(path: str, pieces: Frames, given: Iterable[str]) -> bool:
    """Put a link in the place of a file, if one of these holds just what it is to hold."""
    size = sum(map(len, pieces))
    for other in given:
        with contextlib.suppress(OSError):  # it is gone, or this file system has no links
            if os.path.getsize(other) == size and _holds(other, pieces):
                os.link(other, path + ".same")
                os.replace(path + ".same", path)
                return True
    return False


def _holds(path: str, pieces: Frames) -> bool:
    with (
        open(path, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole,
        memoryview(whole) as there,
    ):
        at = 0
        for piece in pieces:
            with there[at : at + len(piece)] as part:
                if part != piece:
                    return False
            at += len(piece)
    return True


def copy_buffer(buffer: Frame) -> memoryview:
    """Return a copy of a buffer that may be written to, a large one in huge pages."""
    if len(buffer) < _HUGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return memoryview(bytearray(buffer))
    new = mmap.mmap(-1, len(buffer), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # the system has no such pages
        new.madvise(mmap.MADV_HUGEPAGE)
    copy = memoryview(new)
    copy[:] = buffer
    return copy


class MemoryFile:
    """The file of a result that is in memory only, for the threads of one process.

    Each reader maps it for itself: what nobody writes to is shared, and a page that a reader writes
    to becomes that reader's own.
    """

    def __init__(self, frames: Frames) -> None:
        """Copy frames; an OSError says that the system cannot do this, or not now."""
        if not hasattr(os, "memfd_create"):
            raise OSError("there are no files in memory here")
        self._descriptor = os.memfd_create("foreplan-result")
        if self._descriptor > _descriptors() // 2:  # the others are for files and connections
            raise OSError("too many files are open")
        with open(self._descriptor, "wb", closefd=False) as file:
            file.writelines([frames[0], *_behind(len(frames[0]), frames[1:])])
        self._size = os.fstat(self._descriptor).st_size

    def map(self) -> list[Frame]:
        """Return the frames, in memory that the caller may write to."""
        return split(mmap.mmap(self._descriptor, self._size, access=mmap.ACCESS_COPY))

    def view(self) -> list[Frame]:
        """Return the frames to be read only; they count as memory of this process."""
        populate = getattr(mmap, "MAP_POPULATE", 0)
        flags = mmap.MAP_SHARED | populate
        return split(mmap.mmap(self._descriptor, self._size, flags=flags, prot=mmap.PROT_READ))

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):  # it was never made
            os.close(self._descriptor)


@functools.cache
def _descriptors() -> int:
    """The number of files that this process may have open."""
    import resource

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 30 if most == resource.RLIM_INFINITY else most


def read(path: str, mapped: bool = False) -> list[Frame]:
    """The frames of a file, in memory of this process that may be written to.

    Mapped, what is not written to is shared by all processes that read it, and is read when it is
    looked at. Files of results are replaced and removed, but never changed.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # never wait for a FIFO
        size = os.fstat(file.fileno()).st_size
        if mapped and size >= MAPPED:
            return split(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY))
        whole = bytearray(size)
        if file.readinto(whole) < size:
            raise pickle.UnpicklingError("the file is cut short")
        return split(whole)


def load(path: str) -> Any:
    """Return the value of a file; mapped, it is the caller's own to write to."""
    return unpack(read(path, mapped=True))


def split(content: bytes | bytearray | mmap.mmap) -> list[Frame]:
    """The frames of a file, each a part of its memory."""
    whole = memoryview(content)
    end = len(whole) - len(_END) - _NUMBER.size
    if end < 0 or bytes(whole[-len(_END) :]) != _END:
        return [whole]
    (count,) = _NUMBER.unpack_from(whole, end)
    first = end - count * _NUMBER.size
    if first < 0:
        raise pickle.UnpicklingError("the file is damaged")
    lengths = [_NUMBER.unpack_from(whole, first + k * _NUMBER.size)[0] for k in range(count)]
    frames, at = list[Frame](), 0
    for length in lengths:
        frames.append(whole[at : at + length])
        at += length + -(at + length) % _ALIGNED
    if sum(map(len, frames)) != sum(lengths):
        raise pickle.UnpicklingError("the file is damaged")
    return frames
