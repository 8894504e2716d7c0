"""Directories as outputs: made whole before they are seen, and put into their place at once."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from contextlib import suppress

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE


def make_own(path: str) -> None:
    """Replace links that lead out of a directory by what they lead to; an OSError if they cannot.

    From another place a link would lead elsewhere, and what it leads to is not ours.
    """
    if os.path.islink(path):
        _replace_link(path)
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            place = os.path.join(folder, name)
            if not os.path.islink(place):
                mode = os.lstat(place).st_mode
                if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                    raise OSError(errno.EINVAL, "it is no file", place)
            elif not os.path.exists(place):
                raise OSError(errno.ENOENT, "it leads to nothing", place)
            elif not _leads_within(place, path):
                _replace_link(place)


def _leads_within(link: str, path: str) -> bool:
    """By what it says: what it leads to may be a link that is replaced, too."""
    said = os.readlink(link)
    place = os.path.normpath(os.path.join(os.path.dirname(link), said))
    return not os.path.isabs(said) and f"{place}/".startswith(f"{path}/")


def _replace_link(link: str) -> None:
    real, new = os.path.realpath(link), f"{link}.{secrets.token_hex(4)}"
    if os.path.isdir(real):
        shutil.copytree(real, new)
    else:
        shutil.copy2(real, new)
    os.unlink(link)
    os.rename(new, link)


def put_tree(source: str, target: str) -> None:
    """Put a directory into its place; one that was there is then where the new one came from.

    Where the file system cannot exchange two, there is a moment at which neither is to be seen: a
    kill just then leaves it missing, never a mixture.
    """
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno == errno.EXDEV:
            _copy_tree(source, target)
        elif error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            _exchange(source, target)
        else:
            raise


def _copy_tree(source: str, target: str) -> None:
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:20]}.{secrets.token_hex(6)}.tmp")
    try:
        shutil.copytree(source, temporary, symlinks=True)
        put_tree(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _exchange(source: str, target: str) -> None:
    with suppress(OSError):  # a folder that may not be written to cannot be moved
        os.chmod(target, stat.S_IMODE(os.stat(target).st_mode) | 0o200)
    if not exchange_at_once(source, target):
        aside = f"{source}.{secrets.token_hex(4)}"
        os.rename(target, aside)
        os.rename(source, target)


def exchange_at_once(source: str, target: str) -> bool:
    """Whether the system has exchanged two names in one step; not every file system can."""
    import ctypes

    try:
        exchange = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    names = os.fsencode(source), os.fsencode(target)
    return bool(exchange(_HERE, names[0], _HERE, names[1], _EXCHANGE) == 0)


def bytes_in(path: str) -> int:
    """The bytes of all files in a directory."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            with suppress(OSError):
                total += os.stat(os.path.join(folder, name)).st_size
    return total
