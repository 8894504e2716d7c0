"""The content of files in a few letters; what was read once is remembered by its status.

A digest is the first half of SHA-256: with the processors' own instructions for it that is nearly
twice as fast as BLAKE2b (808 and 443 MiB a second on one core), and 128 bits are enough where
nobody forges files. The system's clock for files ticks: within a tick a file can change and keep
its status. So a file that has only just changed is not remembered, and outputs get a time that no
tick has.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

from foreplan.durable import reason
from foreplan.errors import InputError
from foreplan.model.filenames import is_many, is_pattern, is_tree, matching_files

Status = tuple[int, int, int]  # size, time of change in nanoseconds, inode
Entry = tuple[int, int, int, str]  # a status, and the content that goes with it

T = TypeVar("T")
S = TypeVar("S")
CONTENT, MTIME = "content", "mtime"  # what is trusted: what files hold, or when they changed
TRUSTS = (CONTENT, MTIME)
LARGE = 64 << 20  # bytes from which on a file is read by several threads
_CHUNK = 16 << 20
_MANY = 64  # files from which on several threads read them
_FINE, _COARSE = 20_000_000, 3_000_000_000  # nanoseconds that a tick takes at most
_DAY = 86_400_000_000_000
NO_INODE = -1
_DERIVED = "__pycache__"  # Python writes there what it reads beside it


def digest_of(*content: bytes | memoryview) -> str:
    """The digest of some bytes."""
    whole = hashlib.sha256()
    for part in content:
        whole.update(part)
    return whole.hexdigest()[:32]


def digest_of_parts(*parts: str) -> str:
    """The digest of texts, each for itself."""
    whole = "".join([f"{len(part)}:{part}" for part in parts])
    return digest_of(whole.encode("utf-8", "surrogatepass"))


def hash_file(path: str) -> str:
    """The digest of a file; of a large one it is that of its chunks' digests."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        if size > LARGE:
            return _hash_large(descriptor, size)
        whole = hashlib.sha256()
        while chunk := os.read(descriptor, min(max(size, 1 << 16), 1 << 22)):
            whole.update(chunk)
        return whole.hexdigest()[:32]
    finally:
        os.close(descriptor)


def _hash_large(descriptor: int, size: int) -> str:
    def hash_chunk(begin: int) -> bytes:
        whole, end = hashlib.sha256(), min(begin + _CHUNK, size)
        while begin < end and (part := os.pread(descriptor, min(1 << 22, end - begin), begin)):
            whole.update(part)
            begin += len(part)
        return whole.digest()

    return digest_of(b"chunks" + b"".join(_in_threads(hash_chunk, range(0, size, _CHUNK))))


def _in_threads(work: Callable[[T], S], things: Iterable[T]) -> Iterator[S]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(8, (os.cpu_count() or 1) + 1)) as pool:
        yield from pool.map(work, things)


def status_of(state: os.stat_result) -> Status:
    """By what a file is known again; a pipe or a device is what it is."""
    if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
        return 0, 0, 0
    return state.st_size, state.st_mtime_ns, state.st_ino


def settle(path: str, trust: str = CONTENT) -> Entry | None:
    """The status and content of an output that is made; None if it is not there.

    Its time of change becomes one that no later write gives it, so that its status will tell.
    """
    try:
        state = os.stat(path)
        size, changed, inode = status_of(state)
        if state.st_nlink > 1 or os.path.islink(path):  # another file too, perhaps an input
            inode = NO_INODE
        elif time.time_ns() - changed < _DAY:
            try:
                os.utime(path, ns=(state.st_atime_ns, changed - 1))
                changed = os.stat(path).st_mtime_ns  # as far as the file system keeps it
            except PermissionError:  # of another owner: it will be read again
                inode = NO_INODE
        content = hash_file(path) if trust == CONTENT else by_time(size, changed)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return size, changed, inode, content


def settle_many(
    folder: str, name: str, trust: str, matched: Iterable[str] = ()
) -> tuple[Entry, dict[str, Entry]]:
    """The same of a directory, or of what matches a pattern: of all as one, and of each file."""

    def settle_one(file: str) -> Entry | None:
        if is_tree(file):  # nothing is in it
            return 0, 0, NO_INODE, content_of_many(file, {})
        return settle(os.path.join(folder, file), trust)

    files = list(matched) or Memory(folder).files_of(name)
    read = map(settle_one, files) if len(files) < _MANY else _in_threads(settle_one, files)
    found = {f: entry for f, entry in zip(files, read, strict=True) if entry is not None}
    content = content_of_many(name, {file: entry[3] for file, entry in found.items()})
    whole = (sum(entry[0] for entry in found.values()), 0, NO_INODE, content)
    return whole, {file: entry for file, entry in found.items() if not is_tree(file)}


def content_of_many(name: str, contents: Mapping[str, str | None]) -> str:
    """The content of a folder or pattern: the names and contents of its files.

    That of a directory does not depend on where it is; a folder that a command names does.
    """
    skip, kind = len(name) if is_tree(name) else 0, "files" if is_pattern(name) else "tree"
    return digest_of_parts(kind, *(f"{file[skip:]}\0{c}" for file, c in contents.items()))


def by_time(size: int, changed: int) -> str:
    """What stands for the content of a file that is not read."""
    return f"mtime:{size}:{changed}"


class Memory:
    """The contents of a data directory's files, of which only what is new is read.

    Names are relative to the directory, or absolute. Not for several threads.
    """

    def __init__(
        self,
        data: str | os.PathLike[str],
        known: Mapping[str, Entry] | None = None,
        trust: str = CONTENT,
    ) -> None:
        self.data = os.fspath(data)
        self.trust = trust
        self.known = {} if known is None else dict(known)
        self.news: dict[str, Entry] = {}  # what was learned, and is to be remembered
        self._now = self._asked = 0

    def learn(self, name: str, entry: Entry) -> None:
        """Somebody else has read a file."""
        self.known[name] = entry

    def status(self, name: str) -> Status | None:
        """The status of a file, or of all that is in a folder; None if it is not there."""
        state = self._stat(name)
        if state is None and is_pattern(name):
            return self._status_of_many(name) if self.files_of(name) else None
        if state is None or not stat.S_ISDIR(state.st_mode):
            return None if state is None else status_of(state)
        return self._status_of_many(name)

    def _status_of_many(self, name: str) -> Status:
        inner = [repr((f, is_tree(f) or self.status(f))) for f in self.files_of(name)]
        return len(inner), 0, int(digest_of_parts(*inner)[:15], 16)

    def entries(self, name: str) -> tuple[Entry, dict[str, Entry]] | None:
        """What is there under a name; and, of a directory or pattern, each file of it."""
        content, status = self.content(name), self.status(name)
        if content is None or status is None:
            return None
        if not is_many(name):
            return (*status, content), {}
        found = {f: self.entries(f) for f in self.files_of(name) if not is_tree(f)}
        inner = {file: entry[0] for file, entry in found.items() if entry is not None}
        return (sum(entry[0] for entry in inner.values()), 0, NO_INODE, content), inner

    def files_of(self, name: str) -> list[str]:
        """The files of a folder, or those that match a pattern, sorted.

        Of a directory, folders in which nothing is count, too.
        """
        if is_pattern(name):
            return matching_files(self.data, name)
        return [file for file in self._inside(name) if file != name]

    def content(self, name: str) -> str | None:
        """The content of a file or folder as it is now; None if it is not there."""
        return self.contents((name,))[name]

    def contents(
        self, names: Iterable[str], statuses: dict[str, Status] | None = None
    ) -> dict[str, str | None]:
        """The contents of many; what must be read is read by several threads.

        Statuses are those from before they were read: if they are still so later, so are contents.
        """
        found: dict[str, str | None] = {}
        unread: dict[str, os.stat_result] = {}
        known, by_inode, prefix = self.known, self.trust == CONTENT, self.data + "/"
        for name in names:
            try:
                state = os.stat(name if name[:1] == "/" else prefix + name)
            except OSError as error:
                _check_missing(name, error)
                found[name] = self._content_of_many(name, statuses) if is_pattern(name) else None
                continue
            if statuses is not None:
                folder = stat.S_ISDIR(state.st_mode)
                statuses[name] = self._status_of_many(name) if folder else status_of(state)
            entry = known.get(name)
            if (
                entry is not None
                and entry[0] == state.st_size
                and entry[1] == state.st_mtime_ns
                and (entry[2] == state.st_ino or not by_inode)
            ):
                found[name] = entry[3]
            elif stat.S_ISREG(state.st_mode):
                unread[name] = state
            elif stat.S_ISDIR(state.st_mode):
                found[name] = self._content_of_many(name)
            else:
                found[name] = f"kind:{stat.S_IFMT(state.st_mode):o}"
        if unread:
            found |= self._read(unread)
        return found

    def _stat(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(os.path.join(self.data, name))
        except OSError as error:
            _check_missing(name, error)
            return None

    def _read(self, states: dict[str, os.stat_result]) -> dict[str, str | None]:
        now = self._file_time()
        if self.trust == MTIME:
            digests = [by_time(state.st_size, state.st_mtime_ns) for state in states.values()]
        elif len(states) < _MANY:
            digests = [self._hash(name) for name in states]
        else:
            digests = list(_in_threads(self._hash, states))
        found: dict[str, str | None] = {}
        for (name, before), digest in zip(states.items(), digests, strict=True):
            found[name] = digest or None
            after = self._stat(name)
            status = status_of(before)
            if digest and after is not None and status_of(after) == status:
                tick = _FINE if status[1] % 1_000_000_000 else _COARSE
                if status[1] + tick < now:
                    self.known[name] = self.news[name] = (*status, digest)
        return found

    def _hash(self, name: str) -> str:
        try:
            return hash_file(os.path.join(self.data, name))
        except OSError as error:
            _check_missing(name, error)
            return ""

    def _content_of_many(self, name: str, statuses: dict[str, Status] | None = None) -> str | None:
        """The content of a folder or pattern, whatever links lead to; None if nothing matches."""
        files = self.files_of(name)
        if is_pattern(name):
            if not files:
                return None
            if statuses is not None:
                statuses[name] = self._status_of_many(name)
        contents = {f: content_of_many(f, {}) if is_tree(f) else None for f in files}
        contents |= self.contents(f for f in files if not is_tree(f))
        return content_of_many(name, contents)

    def _inside(self, name: str, above: frozenset[tuple[int, int]] = frozenset()) -> list[str]:
        """The files of a folder and of those in it, sorted; a link to a folder above is none.

        If the name ends in a slash, one in which nothing is stands for itself.
        """
        base, end = name.rstrip("/"), "/" if is_tree(name) else ""
        try:
            state = os.stat(os.path.join(self.data, name))
            with os.scandir(os.path.join(self.data, name)) as listing:
                inner = sorted((entry.name, entry.is_dir()) for entry in listing)
        except OSError as error:
            _check_missing(name, error)
            return []
        here = (state.st_dev, state.st_ino)
        if here in above:
            return []
        files: list[str] = []
        for child, is_folder in inner:
            if not is_folder:
                files.append(f"{base}/{child}")
            elif child != _DERIVED:
                files += self._inside(f"{base}/{child}{end}", above | {here})
        return files if files or not end else [name]

    def _file_time(self) -> int:
        """What time it is for files, before all that is read from now on; asked once a second."""
        mine = time.monotonic_ns()
        if not self._now or mine - self._asked > 1_000_000_000:
            self._now, self._asked = _clock_of(self.data), mine
        return self._now


def _clock_of(data: str) -> int:
    """The time of the file system, which on a network is another machine's."""
    path = os.path.join(data, ".foreplan", "store", CLOCK)
    with suppress(OSError):
        os.utime(path)
        return os.stat(path).st_mtime_ns
    return time.time_ns()


CLOCK = "clock"  # a file whose time is set to ask the file system what time it is


def _check_missing(name: str, error: OSError) -> None:
    """Any other error than that there is no such file is the user's to repair."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise InputError(f"it cannot be read: {reason(error)}", source=name) from None
