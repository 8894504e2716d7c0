"""The store on disk: writers side by side, folding, damage."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.errors import ForeplanError, InputError
from foreplan.store import parts
from foreplan.store.cleaning import foldable
from foreplan.store.content import Entry
from foreplan.store.parts import Part, encode, list_parts, make_folder, read_parts
from foreplan.store.store import MANY, KeptResult, Result, Store, StoreError, file_lines


def result(k: int, content: str = "c", at: float = 0.0) -> Result:
    entry: Entry = (k, k, k, f"{content}{k}")
    return Result(f"t{k}", "r", at, f"key{k}", {"how": "h", "inputs": {}}, {f"f{k}": entry})


def write(data: Path, writer: str, *results: Result) -> None:
    part = Part(make_folder(data), writer)
    for one in results:
        part.append(encode(one.line()))
    part.close()


KEPT = KeptResult("run", 3, "content", (1, 2, 3, "digest"))


def over(run: str) -> bool:
    return False


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    call = Result("g", "r", 2.0, "key", {"how": "h"}, {}, "note", KEPT)
    without = Result("t", "r", 3.0, None, {}, {"x": (1, 2, 3, "y")}, "its input was changed")
    write(tmp_path, "r", result(1), call, without)
    store = Store.read(tmp_path)
    assert store.results("key1") == [result(1)]
    assert store.results("key") == [call]
    assert store.made("x") == [without]
    assert store.of_task("g") == [call]
    assert store.is_own("x", "y")
    assert not store.is_own("x", "z")
    assert store.knows("f1")
    assert not store.knows("f2")
    assert store.files == {"f1": (1, 1, 1, "c1"), "x": (1, 2, 3, "y")}


def test_a_directory_without_a_store_has_an_empty_one(tmp_path: Path) -> None:
    store = Store.read(tmp_path)
    assert store.results("key") == []
    assert not (tmp_path / ".foreplan").exists()


def test_the_store_is_private(tmp_path: Path) -> None:
    write(tmp_path, "r", result(1))
    folder = tmp_path / ".foreplan" / "store"
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir())


def test_the_latest_counts_wherever_it_stands(tmp_path: Path) -> None:
    write(tmp_path, "z", result(1, "old", at=1.0))
    write(tmp_path, "a", result(1, "new", at=2.0))
    store = Store.read(tmp_path)
    assert [r.outputs["f1"][3] for r in store.results("key1")] == ["new1", "old1"]
    assert store.files["f1"][3] == "new1"
    part = Part(store.folder, "m")
    part.append(file_lines({"f1": (9, 9, 9, "read")}, 1.5))
    assert Store.read(tmp_path).files["f1"][3] == "new1"
    part.append(file_lines({"f1": (9, 9, 9, "read")}, 2.5))
    assert Store.read(tmp_path).files["f1"][3] == "read"


OTHER_FORMAT = "another version of foreplan wrote this store.*clean --store --all"


@pytest.mark.parametrize(
    "line", [{"later": 1}, {"outputs": 3}, {"files": {"f": [1]}}, {"seen": 4}], ids=str
)
def test_unknown_lines_are_refused(line: parts.Line, tmp_path: Path) -> None:
    part = Part(make_folder(tmp_path), "r")
    part.append(encode(line))
    with pytest.raises(StoreError, match=OTHER_FORMAT):
        Store.read(tmp_path)


@pytest.mark.parametrize("mark", [f"format-{parts.FORMAT + 1}", None])
def test_a_store_of_another_format_is_refused(mark: str | None, tmp_path: Path) -> None:
    write(tmp_path, "r", result(1))
    folder = parts.folder_of(tmp_path)
    (folder / f"format-{parts.FORMAT}").unlink()
    if mark is not None:
        (folder / mark).touch()
    before = sorted(os.listdir(folder))
    for read in (Store.read, lambda data: Store.open(data, over)):
        with pytest.raises(StoreError, match=OTHER_FORMAT):
            read(tmp_path)
    assert sorted(os.listdir(folder)) == before


# ---- folding


def test_old_parts_are_folded_and_live_ones_left_alone(tmp_path: Path) -> None:
    write(tmp_path, "live", result(1000))
    for k in range(MANY + 1):
        write(tmp_path, f"r{k}", result(k, at=k), result(0, f"v{k}-", at=k))
    before = Store.read(tmp_path)
    store = Store.open(tmp_path, lambda run: run == "live")
    names = list_parts(store.folder)
    assert [parts.writer_of(name) for name in names] == ["folded", "live"]
    assert store.files == before.files
    assert store.results("key1000") == [result(1000)]
    for k in range(1, MANY + 1):
        assert store.results(f"key{k}") == [result(k, at=k)]
    assert store.results("key0") == before.results("key0")[:4]
    for k in range(MANY + 1):  # what it ever held is known, though not from what it was made
        assert store.is_own("f0", f"v{k}-0")
    again = Store.open(tmp_path, over)
    assert again.n_parts == 2
    assert again.files == before.files


def test_results_of_functions_are_kept_for_every_key(tmp_path: Path) -> None:
    def call(k: int) -> Result:
        kept = KEPT._replace(run=f"r{k}")
        return Result("t", f"r{k}", float(k), f"k{k}", {"how": "h"}, {}, "", kept)

    for k in range(MANY + 1):
        if k != 3:
            (tmp_path / ".foreplan" / "runs" / f"r{k}").mkdir(parents=True)
        write(tmp_path, f"r{k}", call(k))
    store = Store.open(tmp_path, over)
    assert store.n_parts == 1
    # as long as the run is there that has kept it; of each task, the last ones anyway
    for k in range(MANY + 1):
        assert store.results(f"k{k}") == ([] if k == 3 else [call(k)])


def test_a_writer_whose_part_was_folded_begins_another(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    part = Part(folder, "slow")
    part.append(encode(result(500).line()))
    for k in range(MANY + 1):
        write(tmp_path, f"r{k}", result(k))
    Store.open(tmp_path, over)  # it takes the slow one's run to be over
    part.append(encode(result(501).line()))
    part.append(encode(result(502).line()))
    store = Store.read(tmp_path)
    assert all(store.results(f"key{k}") for k in (500, 501, 502))


def test_reading_and_folding_at_once_loses_nothing(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    stop = threading.Event()
    written = 0

    def fold() -> None:
        while not stop.is_set():
            Store.open(tmp_path, over)

    folders = [threading.Thread(target=fold) for _ in range(2)]
    for thread in folders:
        thread.start()
    try:
        for k in range(150):
            write(tmp_path, f"r{k}", result(k))
            written += 1
            if k % 10 == 0:
                store = Store.read(tmp_path)
                assert all(store.results(f"key{i}") for i in range(written)), k
    finally:
        stop.set()
        for thread in folders:
            thread.join()
    store = Store.open(tmp_path, over)
    assert all(
        store.results(f"key{i}") == [result(i)] * len(store.results(f"key{i}")) for i in range(150)
    )
    assert all(store.results(f"key{i}") for i in range(150))
    assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]


def test_a_line_that_comes_while_its_part_is_folded_is_kept(tmp_path: Path) -> None:
    part = Part(make_folder(tmp_path), "slow")
    part.append(encode(result(1).line()))
    folder = parts.folder_of(tmp_path)
    found = read_parts(folder)
    part.append(encode(result(2).line()))
    parts.fold(folder, found, [line for one in found for line in one.lines])
    store = Store.read(tmp_path)
    assert all(store.results(f"key{k}") for k in (1, 2))
    part.append(encode(result(3).line()))
    assert Store.read(tmp_path).results("key3")


def test_what_a_killed_folder_has_left_is_kept(tmp_path: Path) -> None:
    write(tmp_path, "slow", result(500))
    folder = parts.folder_of(tmp_path)
    (name,) = list_parts(folder)
    (folder / name).rename(folder / name.replace(".jsonl", ".gone"))
    assert Store.read(tmp_path).results("key500") == [result(500)]
    for k in range(MANY + 1):
        write(tmp_path, f"r{k}", result(k))
    Store.open(tmp_path, over)
    store = Store.read(tmp_path)
    assert store.results("key500") == [result(500)]
    assert not [name for name in os.listdir(folder) if name.endswith(".gone")]


def _write_many(data: str, writer: int, threads: bool) -> None:
    folder = str(parts.folder_of(data))

    def lines(first: int, last: int) -> None:
        for k in range(first, last):
            parts.append(folder, f"w{writer}", encode(result(writer * 1000 + k).line()))

    if threads:
        both = [threading.Thread(target=lines, args=span) for span in ((0, 100), (100, 200))]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
    else:
        lines(0, 200)


@pytest.mark.parametrize("threads", [False, True])
def test_writers_side_by_side(tmp_path: Path, threads: bool) -> None:
    make_folder(tmp_path)
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=_write_many, args=(str(tmp_path), 1, threads)),
        context.Process(target=_write_many, args=(str(tmp_path), 1, threads)),  # of the same run
        context.Process(target=_write_many, args=(str(tmp_path), 2, threads)),
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    store = Store.read(tmp_path)
    assert not store.warnings
    assert store.n_parts == 3
    assert [len(store.results(f"key{k}")) for k in (1000, 1199, 2000, 2199)] == [2, 2, 1, 1]


def test_a_forked_writer_has_a_part_of_its_own(tmp_path: Path) -> None:
    part = Part(make_folder(tmp_path), "r")
    part.append(encode(result(1).line()))
    child = os.fork()
    if child == 0:
        part.append(encode(result(2).line()))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    part.append(encode(result(3).line()))
    store = Store.read(tmp_path)
    assert store.n_parts == 2
    assert all(store.results(f"key{k}") for k in (1, 2, 3))


def test_a_disk_that_is_full_leaves_no_half_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Part(make_folder(tmp_path), "r")
    part.append(encode(result(1).line()))

    def half(descriptor: int, content: bytes) -> None:
        os.write(descriptor, content[: len(content) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(parts, "write_all", half)
        with pytest.raises(OSError, match="No space"):
            part.append(encode(result(2).line()))
    part.append(encode(result(3).line()))
    store = Store.read(tmp_path)
    assert not store.warnings
    assert [bool(store.results(f"key{k}")) for k in (1, 2, 3)] == [True, False, True]


# ---- damage


def lines_of(folder: Path) -> Iterator[bytes]:
    for name in list_parts(folder):
        yield from (folder / name).read_bytes().splitlines(keepends=True)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_damage_loses_no_more_than_the_lines_that_it_hits(data: st.DataObject) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        path = Path(place)
        n = 8
        write(path, "r", *(result(k) for k in range(n)))
        folder = parts.folder_of(path)
        (file,) = (folder / name for name in list_parts(folder))
        raw = bytearray(file.read_bytes())
        hit = sorted(data.draw(st.sets(st.integers(0, len(raw) - 1), min_size=1, max_size=3)))
        ends = [i for i, byte in enumerate(raw) if byte == 10]
        touched = {sum(end < place for end in ends) for place in hit}
        touched |= {sum(end < place for end in ends) + 1 for place in hit if place in ends}
        for spot in hit:
            raw[spot] ^= data.draw(st.integers(1, 255))
        file.write_bytes(raw)
        store = Store.read(path)
        for k in range(n):
            if k not in touched:
                assert store.results(f"key{k}") == [result(k)]
            else:
                assert store.results(f"key{k}") in ([], [result(k)])
        opened = Store.open(path, over)
        assert bool(opened.warnings) == bool(store.warnings)
        assert {k for k in range(n) if opened.results(f"key{k}")} == {
            k for k in range(n) if store.results(f"key{k}")
        }
        if store.warnings:
            assert "is damaged" in opened.warnings[0]
            assert (folder / "damaged" / file.name).read_bytes() == bytes(raw)
        assert not Store.open(path, over).warnings  # it is said once


def test_a_line_that_is_cut_off_at_the_end_is_passed_by(tmp_path: Path) -> None:
    write(tmp_path, "r", result(1), result(2))
    folder = parts.folder_of(tmp_path)
    (name,) = list_parts(folder)
    raw = (folder / name).read_bytes()
    for length in range(raw.index(b"\n") + 1, len(raw)):
        (folder / name).write_bytes(raw[:length])
        store = Store.open(tmp_path, over)
        assert not store.warnings
        assert store.results("key1") == [result(1)]
        assert store.results("key2") == []


def test_a_damaged_part_of_a_live_run_is_left_to_it(tmp_path: Path) -> None:
    write(tmp_path, "live", result(1), result(2))
    folder = parts.folder_of(tmp_path)
    (name,) = list_parts(folder)
    raw = bytearray((folder / name).read_bytes())
    raw[20] ^= 1
    (folder / name).write_bytes(raw)
    store = Store.open(tmp_path, lambda run: True)
    (warning,) = store.warnings
    assert "1 line of it cannot be read, 1 can" in warning
    assert "moved" not in warning
    assert list_parts(folder) == [name]
    (mended,) = Store.open(tmp_path, over).warnings
    assert "moved to" in mended


def test_a_part_that_is_deleted_is_forgotten(tmp_path: Path) -> None:
    for k in range(3):
        write(tmp_path, f"r{k}", result(k))
    folder = parts.folder_of(tmp_path)
    (folder / list_parts(folder)[1]).unlink()
    store = Store.open(tmp_path, over)
    assert not store.warnings
    assert sum(bool(store.results(f"key{k}")) for k in range(3)) == 2


def test_parts_that_vanish_while_they_are_read_are_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for k in range(MANY + 1):
        write(tmp_path, f"r{k}", result(k))
    folder, read = parts.folder_of(tmp_path), parts.read_part
    calls = []

    def slow(path: Path, keep: bool = False) -> parts.Found:
        calls.append(path)
        if len(calls) == 5:
            with monkeypatch.context() as patch:
                patch.setattr(parts, "read_part", read)
                Store.open(tmp_path, over)
        return read(path, keep)

    monkeypatch.setattr(parts, "read_part", slow)
    found = read_parts(folder)
    keys = {line.get("key") for part in found for line in part.lines}
    assert keys >= {f"key{k}" for k in range(MANY + 1)}


def test_of_one_key_what_is_kept_outlives_what_is_not(tmp_path: Path) -> None:
    """A later run may have made the same without keeping it, as Dask does."""
    held = Result("t", "r0", 0.0, "k", {"how": "h"}, {}, "", KEPT._replace(run="r0"), None, 2.5)
    write(tmp_path, "r0", held)
    for k in range(1, MANY + 1):
        (tmp_path / ".foreplan" / "runs" / f"r{k}").mkdir(parents=True)
        lost = KEPT._replace(run=f"r{k}", file=(0, 0, 0, ""))
        write(tmp_path, f"r{k}", Result("t", f"r{k}", float(k), "k", {"how": "h"}, {}, "", lost))
    (tmp_path / ".foreplan" / "runs" / "r0").mkdir()
    store = Store.open(tmp_path, over)
    assert store.n_parts == 1
    assert held in store.results("k")


def test_a_store_of_others_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever can write to it could forge what is up to date."""
    folder = make_folder(tmp_path)
    readers = (
        lambda: Store.read(tmp_path),
        lambda: Store.open(tmp_path, lambda run: False),
        lambda: foldable(tmp_path, lambda run: False, lambda run: True),
    )
    for place in (folder, folder.parent):
        place.chmod(0o770)
        for read in readers:
            with pytest.raises(InputError, match=r"others can write.*chmod 700"):
                read()
        place.chmod(0o755)
        for read in readers:
            read()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 12345)
    for read in readers:
        with pytest.raises(InputError, match="another user"):
            read()


def test_a_fifo_in_the_place_of_a_part_is_refused(tmp_path: Path) -> None:
    os.mkfifo(make_folder(tmp_path) / "run.12345678.jsonl")
    with pytest.raises(ForeplanError, match="a named pipe"):
        Store.read(tmp_path)
