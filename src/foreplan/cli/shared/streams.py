"""Standard streams of the command: closed ones are replaced, and a reader may leave early."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

NAMES = ("stdin", "stdout", "stderr")  # by descriptor
_FAILING = ("strict", "surrogateescape")  # the second is that of the C locale


class _Output(io.FileIO):
    """Standard output or error; what is written after its reader has left is dropped.

    `foreplan run | head -1` must finish its tasks, and end with the exit code of the work.
    """

    reader_left = False

    def write(self, content: ReadableBuffer, /) -> int:
        """Write to the descriptor; from a broken pipe on, to the null device."""
        try:
            return super().write(content)
        except BrokenPipeError:
            self.reader_left = True
            _open_null_device(self.fileno())
            return memoryview(content).nbytes


def prepare_streams() -> None:
    """Make the standard streams usable; called first, before any other file is opened.

    A closed descriptor gets the null device: the next file that is opened, such as a journal, would
    take its number, and everything that is printed would go there.
    """
    for number, name in enumerate(NAMES):
        try:
            os.fstat(number)
        except OSError as error:
            if error.errno == errno.EBADF:
                _open_null_device(number)
        if getattr(sys, name) is None:
            setattr(sys, name, _opened(number))
    for name in NAMES[1:]:
        setattr(sys, name, _with_early_end(getattr(sys, name)))


def reader_left() -> bool:
    """Return whether whoever read standard output, such as `head`, has closed it."""
    buffer = getattr(sys.stdout, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    return isinstance(raw, _Output) and raw.reader_left


def _opened(number: int) -> TextIO:
    return open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False)


def _with_early_end(stream: object) -> object:
    """Return the stream with an `_Output` below; one that is not a plain file stays as it is."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    is_buffered = isinstance(stream.buffer, io.BufferedWriter)  # else PYTHONUNBUFFERED is set
    with suppress(OSError, ValueError):
        stream.flush()
        raw = _Output(stream.fileno(), "w", closefd=False)
        return io.TextIOWrapper(
            io.BufferedWriter(raw) if is_buffered else raw,
            encoding=stream.encoding,
            # an encoding may lack characters, and a file name may be no text: escape those
            errors="backslashreplace" if stream.errors in _FAILING else stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
    return stream


def _open_null_device(number: int) -> None:
    descriptor = os.open(os.devnull, os.O_RDWR)
    if descriptor != number:
        os.dup2(descriptor, number)
        os.close(descriptor)
    else:
        os.set_inheritable(number, True)
