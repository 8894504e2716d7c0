"""A disk that is full, or takes little at a time, or fails: nothing acknowledged is lost."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from foreplan.durable import write_all
from foreplan.errors import ForeplanError
from foreplan.runs.journal import RULES, Contents, Journal, read

HEADER = {"type": "run", "rules": RULES}
ENTRIES: list[dict[str, Any]] = [{"t": "event", "n": n, "text": "x" * 50} for n in range(5)]
Write = Callable[[int, Any], int]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "etl-20250101-000000" / "journal.jsonl"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    path.parent.mkdir()
    with Journal.create(path, HEADER) as journal:
        journal.append(ENTRIES[:1])
        yield journal


def room_for(room: int, error: BaseException) -> Write:
    """A disk with so much room; first it writes less than it was asked for, then it fails."""
    write = os.write

    def fake(descriptor: int, content: Any) -> int:
        nonlocal room
        if room == 0:
            raise error
        written = write(descriptor, content[: min(room, 7)])
        room -= written
        return written

    return fake


def full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_short_writes(journal: Journal, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", room_for(10**6, full()))
        journal.append(ENTRIES[1:])
    assert read(path) == Contents(HEADER, ENTRIES, None)


def test_a_system_that_writes_nothing_does_not_hang(
    journal: Journal, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, content: 0)
        with pytest.raises(ForeplanError, match="nothing could be written"):
            journal.append(ENTRIES[1:])
    assert read(path) == Contents(HEADER, ENTRIES[:1], None)


@pytest.mark.parametrize("room", [0, 1, 30, 100, 200])
def test_full_disk(
    journal: Journal, path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", room_for(room, full()))
        with pytest.raises(ForeplanError, match="no space left on device") as caught:
            journal.append(ENTRIES[1:])
    assert "nothing finished is lost" in str(caught.value)
    assert "foreplan resume etl-20250101-000000" in str(caught.value)
    assert read(path) == Contents(HEADER, ENTRIES[:1], None)
    journal.append(ENTRIES[1:])  # there is room again
    assert read(path) == Contents(HEADER, ENTRIES, None)


def test_full_disk_that_cannot_be_cut_back(
    journal: Journal, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int, length: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", room_for(100, full()))
        patch.setattr(os, "ftruncate", fail)
        with pytest.raises(ForeplanError, match="no space left"):
            journal.append(ENTRIES[1:])
    with pytest.raises(ForeplanError, match="input/output error"):
        journal.append(ENTRIES[1:])  # after half a line nothing may follow
    again, contents = Journal.open(path)
    with again:
        assert contents.damage is not None
        assert contents.entries == ENTRIES[:2]  # one of the batch was whole
        again.append(ENTRIES[2:])
    assert read(path) == Contents(HEADER, ENTRIES, None)


def test_a_failed_sync_is_not_tried_again(
    journal: Journal, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("foreplan.runs.journal.sync", fail)
        with pytest.raises(ForeplanError, match="input/output error"):
            journal.append(ENTRIES[1:])
    with pytest.raises(ForeplanError, match="input/output error"):
        journal.append(ENTRIES[1:])
    assert read(path) == Contents(HEADER, ENTRIES[:1], None)


def test_interrupted_while_writing(
    journal: Journal, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", room_for(100, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            journal.append(ENTRIES[1:])
    journal.append(ENTRIES[1:])
    assert read(path) == Contents(HEADER, ENTRIES, None)


def test_no_room_to_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", room_for(10, full()))
        with pytest.raises(ForeplanError, match="nothing has been started"):
            Journal.create(tmp_path / "journal.jsonl", HEADER)
    assert list(tmp_path.iterdir()) == []


def test_no_room_to_repair(journal: Journal, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with path.open("ab") as file:
        file.write(b"half a line that is longer than the room")
    raw = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", room_for(10, full()))
        with pytest.raises(ForeplanError, match="cannot be repaired: no space left"):
            Journal.open(path)
    assert path.read_bytes() == raw
    assert list(path.parent.iterdir()) == [path]


def test_someone_else_writes(journal: Journal, path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"#")
    with pytest.raises(ForeplanError, match="changed by another program"):
        journal.append(ENTRIES[1:])


def test_the_file_is_deleted(journal: Journal, path: Path) -> None:
    path.unlink()
    with pytest.raises(ForeplanError, match="deleted"):
        journal.append(ENTRIES[1:])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_device_that_is_always_full() -> None:
    with open("/dev/full", "wb", buffering=0) as device, pytest.raises(OSError, match="No space"):
        write_all(device.fileno(), b"x")


LIMITED = """
import resource, sys
from pathlib import Path
from foreplan.errors import ForeplanError
from foreplan.runs.journal import RULES, Journal
journal = Journal.create(Path(sys.argv[1]), {"type": "run", "rules": RULES})
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
done = 0
try:
    while True:
        journal.append([{"n": done + i, "text": "x" * 100} for i in range(7)])
        done += 7
except ForeplanError as error:
    print(done, error)
"""


def test_the_systems_own_limit(tmp_path: Path) -> None:
    """For real: the system writes a part of the last batch, then refuses."""
    path = tmp_path / "journal.jsonl"
    child = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, timeout=60
    )
    assert child.stderr == ""
    done, message = child.stdout.split(maxsplit=1)
    assert "file too large" in message
    contents = read(path)
    assert contents.damage is None
    assert [entry["n"] for entry in contents.entries] == list(range(int(done)))
    assert int(done) > 0
