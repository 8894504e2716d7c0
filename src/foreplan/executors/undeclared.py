"""The files that a command has made in its directory beside its outputs."""

from __future__ import annotations

import difflib
import os
from collections.abc import Container, Iterable
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any

from foreplan.model.filenames import is_tree

MOST_SEEN = 2_000  # files and folders that are looked at, beside links and outputs
MOST_NAMES = 5  # that are reported
_NEAR = 3  # that are named for a missing output
_DERIVED = (".foreplan", "__pycache__")  # foreplan's own, and what Python keeps of sources


class UndeclaredFiles:
    """The regular files in an attempt's directory, as far as they were looked at.

    Links are left out: foreplan has put them there, or the command, for its own use. `known` has
    the names of files, and of directories with a slash at the end, that are left out as well.
    """

    def __init__(self, path: str, known: Container[str] = (), most: int = MOST_SEEN) -> None:
        self._path = path
        self._known = known
        self._left = most
        self.sizes: dict[str, int] = {}  # by name
        self.is_all = True
        folders = [""]
        while folders and self.is_all:
            with suppress(OSError):  # a folder that may not be read, or is gone
                folders += self._look_into(folders.pop())

    def _look_into(self, folder: str) -> list[str]:
        """Note the files of a folder; return the folders in it."""
        inner: list[str] = []
        with os.scandir(os.path.join(self._path, folder)) as entries:
            for entry in entries:
                name = folder + entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.is_symlink() or (f"{name}/" if is_folder else name) in self._known:
                    continue
                if self._left == 0:
                    self.is_all = False
                    break
                self._left -= 1
                if is_folder and entry.name not in _DERIVED:
                    inner.append(f"{name}/")
                elif entry.is_file(follow_symlinks=False):
                    self.sizes[name] = entry.stat(follow_symlinks=False).st_size
        return inner

    def report(self, data: str) -> dict[str, Any] | None:
        """Return the detail of an event about these files; None if there are none.

        `older` are names that a file in the data directory has, too: whoever reads that gets what
        was there before. They are the first of the names.
        """
        if not self.sizes:
            return None
        names = sorted(self.sizes)
        older = [name for name in names if os.path.lexists(os.path.join(data, name))]
        others = [name for name in names if name not in set(older)]
        return {
            "files": len(names),
            "bytes": sum(self.sizes.values()),
            "names": [*older, *others][:MOST_NAMES],
            "older": older[:MOST_NAMES],
            "at_least": not self.is_all,
        }


def near_misses(missing: Iterable[str], made: Iterable[str]) -> list[str]:
    """Return the files and folders that may have been meant by missing outputs."""
    files = sorted(made)
    folders = sorted({f"{name.rpartition('/')[0]}/" for name in files if "/" in name})
    found: dict[str, None] = {}
    for output in missing:
        base = os.path.basename(output.rstrip("/"))
        near = [name for name in files if fnmatchcase(os.path.basename(name), base)]
        near += difflib.get_close_matches(output, folders if is_tree(output) else files, _NEAR)
        found |= dict.fromkeys(near[:_NEAR])
    return list(found)[:MOST_NAMES]
