"""Files that outlive a kill: new and private, written whole, in lines with a checksum."""

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


def make_file(path: Path) -> int:
    """A descriptor of a new private file, whatever the umask."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, FILE_MODE)
    os.fchmod(descriptor, FILE_MODE)
    return descriptor


def make_directory(path: Path) -> None:
    """Make a private directory that was not there, whatever the umask."""
    path.mkdir(mode=DIRECTORY_MODE)
    path.chmod(DIRECTORY_MODE)
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
    return (error.strerror or type(error).__name__).lower()


def unframed(line: bytes) -> bytes | None:
    """The payload of a line, if the line is whole and its checksum is right."""
    payload = line[_SUM + 1 : -1]
    right = line.endswith(b"\n") and line.startswith(b"%08x " % crc32(payload))
    return payload if right else None
