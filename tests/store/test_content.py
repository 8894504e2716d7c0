"""Contents of files and folders, and what is remembered of them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from foreplan.errors import InputError
from foreplan.store import content
from foreplan.store.content import Memory, hash_file, settle
from foreplan.store.parts import make_folder


def later() -> None:
    """Until what was written before is not of this moment any more."""
    time.sleep(0.05)


class Reading:
    """Counts the files that are really read."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.read: list[str] = []
        patch.setattr(content, "hash_file", self.hash)

    def hash(self, path: str) -> str:
        self.read.append(os.path.basename(path))
        return hash_file(path)


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Reading:
    return Reading(monkeypatch)


def test_a_file_is_read_once(tmp_path: Path, reading: Reading) -> None:
    (tmp_path / "a").write_text("one")
    later()
    memory = Memory(tmp_path)
    assert memory.content("a") == memory.content("a") == content.digest_of(b"one")
    again = Memory(tmp_path, memory.news)
    assert again.content("a") == content.digest_of(b"one")
    assert reading.read == ["a"]


def test_what_has_only_just_changed_is_read_again(tmp_path: Path, reading: Reading) -> None:
    memory = Memory(tmp_path)
    for word in ("one", "two", "six"):  # the same size, perhaps within one tick
        (tmp_path / "a").write_text(word)
        assert memory.content("a") == content.digest_of(word.encode())
    assert reading.read == ["a"] * 3


def test_times_of_whole_seconds_are_believed_later(tmp_path: Path, reading: Reading) -> None:
    now = int(time.time())
    for name, seconds in (("new", now - 1), ("old", now - 60)):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (seconds, seconds))
    memory = Memory(tmp_path)
    for _ in range(2):
        memory.contents(("new", "old"))
    assert reading.read == ["new", "old", "new"]


def test_the_clock_is_that_of_the_file_system(
    tmp_path: Path, reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine whose clock is ahead must not take what is new for old."""
    make_folder(tmp_path)
    monkeypatch.setattr("foreplan.store.content.time.time_ns", lambda: 2 * 10**18)
    (tmp_path / "a").write_text("one")
    memory = Memory(tmp_path)
    memory.content("a")
    assert not memory.news


def test_a_touch_is_read_and_a_change_of_the_inode_too(tmp_path: Path, reading: Reading) -> None:
    (tmp_path / "a").write_text("one")
    later()
    memory = Memory(tmp_path)
    first = memory.content("a")
    os.utime(tmp_path / "a", (1, 1))
    assert memory.content("a") == first
    (tmp_path / "b").write_text("two")
    os.utime(tmp_path / "b", (1, 1))
    os.replace(tmp_path / "b", tmp_path / "a")
    assert memory.content("a") == content.digest_of(b"two")
    assert reading.read == ["a"] * 3


def test_an_output_that_is_changed_at_once_has_another_status(tmp_path: Path) -> None:
    """Within the tick of the clock in which it was made, at the same size."""
    file = tmp_path / "a"
    for k in range(200):
        file.write_text("one")
        entry = settle(str(file))
        assert entry is not None
        with file.open("r+") as opened:
            opened.write("two")
        memory = Memory(tmp_path, {"a": entry})
        assert memory.content("a") == content.digest_of(b"two"), k


def rewrite(file: Path, text: str, changed: int) -> None:
    """Change a file in place within the tick of the clock in which it was changed before."""
    with file.open("r+") as opened:
        opened.write(text)
    os.utime(file, ns=(changed, changed))


def test_a_change_within_one_tick_is_seen(tmp_path: Path) -> None:
    """Whatever the clock of this file system: of inputs, and of outputs."""
    file = tmp_path / "a"
    file.write_text("one")
    changed = file.stat().st_mtime_ns
    memory = Memory(tmp_path)
    assert memory.content("a") == content.digest_of(b"one")
    rewrite(file, "two", changed)
    assert memory.content("a") == content.digest_of(b"two")
    entry = settle(str(file))
    assert entry is not None
    memory.learn("a", entry)
    rewrite(file, "six", changed)
    assert memory.content("a") == content.digest_of(b"six")


def test_an_output_of_old_times_keeps_them(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    os.utime(tmp_path / "a", ns=(10**18, 10**18))
    entry = settle(str(tmp_path / "a"))
    assert entry is not None
    assert entry[1] == 10**18
    assert settle(str(tmp_path / "none")) is None


def test_an_output_of_somebody_else_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError

    (tmp_path / "a").write_text("one")
    monkeypatch.setattr("foreplan.store.content.os.utime", refuse)
    entry = settle(str(tmp_path / "a"))
    assert entry is not None
    assert entry[2] < 0


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_an_output_that_is_a_link_leaves_what_it_leads_to_alone(tmp_path: Path, link: Any) -> None:
    (tmp_path / "input").write_text("one")
    before = (tmp_path / "input").stat().st_mtime_ns
    link(tmp_path / "input", tmp_path / "a")
    entry = settle(str(tmp_path / "a"))
    assert entry is not None
    assert entry[2:] == (-1, content.digest_of(b"one"))
    assert (tmp_path / "input").stat().st_mtime_ns == before


def test_large_files_are_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "LARGE", 100)
    monkeypatch.setattr(content, "_CHUNK", 64)
    file = tmp_path / "a"
    seen = set()
    for size in (99, 100, 101, 128, 129, 1000):
        file.write_bytes(b"x" * size)
        seen.add(hash_file(str(file)))
        for place in (0, 63, 64, size - 1):
            changed = bytearray(b"x" * size)
            changed[min(place, size - 1)] = 0
            file.write_bytes(changed)
            seen.add(hash_file(str(file)))
    assert len(seen) == 6 + sum(
        len({0, 63, 64, size - 1}) for size in (99, 100, 101, 128, 129, 1000)
    )


def test_many_files_are_read_by_threads(tmp_path: Path) -> None:
    names = [f"f{k}" for k in range(200)]
    for name in names:
        (tmp_path / name).write_text(name)
    found = Memory(tmp_path).contents([*names, "none"])
    assert found == {name: content.digest_of(name.encode()) for name in names} | {"none": None}


def test_a_folder_is_its_names_and_contents(tmp_path: Path) -> None:
    folder = tmp_path / "lib"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.py").write_text("1")
    (folder / "inner" / "b.py").write_text("2")
    memory = Memory(tmp_path)
    contents, statuses = [memory.content("lib")], [memory.status("lib")]

    def look() -> bool:
        """Whether it is another folder now; its content and its status say the same."""
        contents.append(memory.content("lib"))
        statuses.append(memory.status("lib"))
        assert (contents[-1] == contents[-2]) == (statuses[-1] == statuses[-2])
        return contents[-1] != contents[-2]

    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "a.pyc").write_text("compiled")
    assert not look()
    later()
    (folder / "inner" / "b.py").write_text("3")
    assert look()
    (folder / "inner" / "c.py").write_text("")
    assert look()
    (folder / "inner" / "c.py").rename(folder / "c.py")
    assert look()
    (folder / "link.py").symlink_to("a.py")
    assert look()
    (folder / "round").symlink_to("..")
    (folder / "nothing").symlink_to("elsewhere")
    memory.content("lib")  # it ends


def test_what_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("one")

    def refuse(path: str) -> str:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(content, "hash_file", refuse)
    with pytest.raises(InputError, match=r"^a: it cannot be read: permission denied"):
        Memory(tmp_path).content("a")


def test_times_can_be_trusted(tmp_path: Path, reading: Reading) -> None:
    (tmp_path / "a").write_text("one")
    later()
    first = Memory(tmp_path, trust="mtime")
    assert first.content("a") == first.content("a")
    assert (tmp_path / "a").stat().st_mtime_ns == int(str(first.content("a")).split(":")[2])
    # what is known by its content stays so, whatever its inode
    read = Memory(tmp_path)
    known = read.content("a")
    entry = read.known["a"]
    moved = Memory(tmp_path, {"a": (entry[0], entry[1], 7, entry[3])}, "mtime")
    assert moved.content("a") == known
    assert reading.read == ["a"]
