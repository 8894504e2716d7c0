"""Directories as outputs: made whole before they are seen, and put into their place at once."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from contextlib import suppress

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE


class TreeError(Exception):
    """A directory cannot be copied: what is wrong with it, and where."""

    def __init__(self, problem: str, path: str) -> None:
        super().__init__(f"{problem}: {path}")
        self.problem = problem
        self.path = path


def make_own(path: str) -> None:
    """Replace links that lead out of a directory by copies; raise a TreeError if that fails.

    From another place a link would lead elsewhere, and what it leads to is not ours.
    """
    if os.path.islink(path):
        _replace_link(path)
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            place = os.path.join(folder, name)
            _regular_mode(place)
            if os.path.islink(place) and not _leads_within(place, path):
                _replace_link(place)


def _regular_mode(path: str) -> int:
    """Return the mode of a file or directory, wherever links lead; else raise a TreeError."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise TreeError("contains a link to nothing", path) from None
    except OSError:
        raise TreeError("contains something that cannot be read", path) from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise TreeError("contains something that is not a regular file", path)
    return mode


def _leads_within(link: str, path: str) -> bool:
    """Return whether a link names a place in a directory; that may be a link to be replaced."""
    text = os.readlink(link)
    place = os.path.normpath(os.path.join(os.path.dirname(link), text))
    return not os.path.isabs(text) and f"{place}/".startswith(f"{path}/")


def _replace_link(link: str) -> None:
    # sorted, the copy comes after the link: `copy_regular` meets a loop before its own copy
    new = f"{link}.{secrets.token_hex(4)}"
    try:
        copy_regular(link, new)
        os.unlink(link)
        os.rename(new, link)
    except TreeError:
        shutil.rmtree(new, ignore_errors=True)
        raise


def copy_regular(source: str, target: str, links: bool = False) -> None:
    """Copy a file, or a directory with all files that links in it lead to.

    With `links`, links within a directory stay links. Raise a TreeError on devices, pipes, sockets
    and loops, before anything is read from them.
    """
    _copy(source, target, links, ())
    if not os.path.isdir(target):
        with open(target, "rb") as file:
            os.fsync(file.fileno())


def _copy(source: str, target: str, links: bool, above: tuple[tuple[int, int], ...]) -> None:
    if links and os.path.islink(source):
        os.symlink(os.readlink(source), target)
        return
    if not stat.S_ISDIR(_regular_mode(source)):
        try:
            shutil.copy2(source, target)
        except PermissionError:
            raise TreeError("contains something that cannot be read", source) from None
        return
    status = os.stat(source)
    here = (status.st_dev, status.st_ino)
    if here in above or _is_above(source, target):
        raise TreeError("contains a link to a folder that it is in", source)
    os.mkdir(target)
    try:
        names = sorted(os.listdir(source))
    except PermissionError:
        raise TreeError("contains something that cannot be read", source) from None
    for name in names:
        _copy(os.path.join(source, name), os.path.join(target, name), links, (*above, here))
    shutil.copystat(source, target)


def _is_above(folder: str, place: str) -> bool:
    """Return whether a place is in a folder, so that its copy there would contain itself."""
    parent = os.path.realpath(os.path.dirname(place))
    return f"{parent}/".startswith(f"{os.path.realpath(folder)}/")


def temporary_beside(target: str) -> str:
    """Return a new name in the folder of a target."""
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name[:20]}.{secrets.token_hex(6)}.tmp")


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
    temporary = temporary_beside(target)
    try:
        copy_regular(source, temporary, links=True)
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
