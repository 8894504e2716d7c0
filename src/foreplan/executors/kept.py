"""What is kept of a failed attempt: its directory, with its command as a script."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

SCRIPTS = ("command.sh", "foreplan-command.sh")  # the second where the task has a file of that name
ENDING = ".failed"  # how the directory is called then
_MOVED = 'cd "$(dirname "$0")" || exit 1'
# beside what foreplan sets; nothing else of the environment is written down, as it may hold secrets
VARIABLES = (
    "PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "LANG", "LC_ALL", "TZ",
)  # fmt: skip


class Script(NamedTuple):
    """A command as a script: its first lines, what it does, and what it sets before."""

    head: str
    lines: list[str]
    variables: Mapping[str, str]

    @property
    def text(self) -> str:
        """All of it; it runs in its own directory."""
        exports = [f"export {name}={shlex.quote(value)}" for name, value in self.variables.items()]
        return "\n".join([self.head, _MOVED, *exports, *self.lines, ""])


def keep(scratch: str, place: str, script: Script) -> str | None:
    """Move a directory to the place where it is kept; the place, or None if it could not be."""
    with suppress(OSError):
        if os.statvfs(scratch).f_bavail == 0:  # a full disk is not to be filled further
            return None
        write_script(scratch, script)
        os.rename(scratch, place)
        return place
    return None


def write_script(folder: str, script: Script) -> str | None:
    """A new file: never through a link, which would lead to the user's data; its name."""
    for name in SCRIPTS:
        with suppress(FileExistsError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            descriptor = os.open(os.path.join(folder, name), flags, 0o700)
            with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(script.text)
            return name
    return None


def find_script(folder: str) -> str | None:
    """The name of the script in a directory that was kept; a task may have made one of its own."""
    for name in reversed(SCRIPTS):
        path = os.path.join(folder, name)
        with suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
            if any(line.strip() == _MOVED for line in islice(file, 4)):
                return name
    return None


def exports_of(path: str) -> dict[str, str]:
    """What a script sets before its command."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        _, _, rest = file.read().partition(_MOVED)
    found, words = dict[str, str](), shlex.shlex(rest, posix=True, punctuation_chars=False)
    words.whitespace_split, words.commenters = True, ""
    with suppress(ValueError):  # what comes after may be no text for a shell
        while words.get_token() == "export":
            name, _, value = (words.get_token() or "").partition("=")
            found[name] = value
    return found
