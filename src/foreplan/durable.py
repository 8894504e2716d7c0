"""Files that outlive a kill: new and private, written whole, in lines with a checksum.

Everything in `.foreplan` is opened by `open_file`, so that a FIFO, a device or a directory in the
place of a file is refused: to open a FIFO as a file waits for its other end, perhaps forever.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from foreplan.errors import InputError

DIRECTORY_MODE, FILE_MODE = 0o700, 0o600
# fdatasync also writes the length, which is all that appending changes; macOS has none
sync = getattr(os, "fdatasync", os.fsync)
FRAME = b"%08x %b\n"  # a line: the checksum of what it holds, and that, without line breaks
_SUM = 8  # hexadecimal digits
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)  # no effect on files
_KINDS = (
    (stat.S_ISFIFO, "a named pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte, however few of them the system takes at a time."""
    left = memoryview(content)
    while left:
        written = os.write(descriptor, left)
        if written <= 0:  # never promised not to happen, and it would go on for ever
            raise OSError(errno.EIO, "nothing could be written")
        left = left[written:]


def write_new(path: Path, content: bytes) -> None:
    """Write a new private file; it is whole and on disk, or not there."""
    descriptor = make_file(path)
    try:
        write_all(descriptor, content)
        os.fsync(descriptor)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    sync_directory(path.parent)


def replace_file(path: Path, content: bytes) -> None:
    """Replace a private file, or make it: after a power failure it is the old one or the new."""
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        write_new(hidden, content)
        hidden.replace(path)
        sync_directory(path.parent)
    finally:
        with suppress(OSError):
            hidden.unlink(missing_ok=True)


def open_file(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a regular file; an OSError if the path is anything else."""
    try:
        descriptor = os.open(path, flags | _NO_WAIT, FILE_MODE)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a FIFO that nobody reads
            raise _not_a_file(path, os.stat(path)) from None
        raise
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode):
        os.close(descriptor)
        raise _not_a_file(path, state)
    if _NO_WAIT:
        os.set_blocking(descriptor, True)  # commands may inherit it
    if flags & os.O_CREAT and stat.S_IMODE(state.st_mode) != FILE_MODE:
        with suppress(OSError):
            os.fchmod(descriptor, FILE_MODE)  # whatever the umask
    return descriptor


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a regular file; an OSError if the path is anything else."""
    with open(open_file(path), "rb") as file:
        return file.read()


class IrregularFileError(OSError):
    """A FIFO, a socket, a device or a directory stands in the place of a file."""


def _not_a_file(path: str | os.PathLike[str], state: os.stat_result) -> IrregularFileError:
    kind = next((name for is_kind, name in _KINDS if is_kind(state.st_mode)), "something else")
    return IrregularFileError(errno.EINVAL, f"{path} is {kind}, not a file: remove it")


def make_file(path: Path) -> int:
    """A descriptor of a new private file, whatever the umask."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, FILE_MODE)
    os.fchmod(descriptor, FILE_MODE)
    return descriptor


def make_directory(path: Path, synced: bool = True) -> None:
    """Make a private directory that was not there, whatever the umask.

    If it is not `synced`, its name is on disk only once the caller syncs the directory around it.
    """
    path.mkdir(mode=DIRECTORY_MODE)
    path.chmod(DIRECTORY_MODE)
    if synced:
        sync_directory(path.parent)


def check_owner(place: Path) -> None:
    """Refuse a directory that others may have written to: what is in it is trusted.

    Results of functions are pickles, which run code. Root is not held to it: on network file
    systems its own files may belong to nobody.
    """
    state = place.stat()
    if not stat.S_ISDIR(state.st_mode):
        raise InputError("it must be a directory, for foreplan's runs", source=str(place))
    user = os.geteuid()
    if user not in (0, state.st_uid) or user not in (0, place.lstat().st_uid):
        raise InputError("it belongs to another user: choose another --dir", source=str(place))
    if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InputError(
            "others can write to it: if you trust what is in it, `chmod 700` it", source=str(place)
        )


def sync_directory(path: Path) -> None:
    """Let the names in a directory be on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems do not sync directories
            raise
    finally:
        os.close(descriptor)


def reason(error: OSError) -> str:
    """An error of the system in a few words."""
    if isinstance(error, IrregularFileError):
        return str(error.strerror)  # it names the file
    return (error.strerror or type(error).__name__).lower()


def unframed(line: bytes) -> bytes | None:
    """The payload of a line, if the line is whole and its checksum is right."""
    payload = line[_SUM + 1 : -1]
    right = line.endswith(b"\n") and line.startswith(b"%08x " % crc32(payload))
    return payload if right else None
