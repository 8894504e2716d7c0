"""Outputs of runs of before there was a store count, unless anything speaks against it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import weft
from runs.test_again import ALL, Place, pipeline, place
from runs.test_older_journals import KILLED, home_of
from weft.runs import Options, find_rest
from weft.runs.entries import Header
from weft.runs.home import RunHome
from weft.runs.journal import decode, encode
from weft.runs.rest import Rest

__all__ = ["place"]  # the fixture


def forget_store(place: Place) -> None:
    """Leave what a version without a store would have left."""
    shutil.rmtree(place.data / ".weft" / "store")
    for home in (place.data / ".weft" / "runs").iterdir():
        first, *lines = (home / "journal.jsonl").read_bytes().splitlines(keepends=True)
        header = decode(first.partition(b" ")[2])
        header["options"] = {k: v for k, v in header["options"].items() if k not in NEW_OPTIONS}
        header = {k: v for k, v in header.items() if k not in ("seq", "reasons")}
        (home / "journal.jsonl").write_bytes(b"".join([encode(0, header), *lines]))


NEW_OPTIONS = ("trust", "force", "targets")


@pytest.fixture
def former(place: Place) -> Place:
    """A directory in which all was made by a former version."""
    for name in ("x.txt", "y.txt", "count.sh"):
        wait_for_tick(place.data / name)
    assert place.run(pipeline()) == ALL
    forget_store(place)
    return place


def wait_for_tick(path: Path) -> None:
    """Until the clock of files has gone on since a file was written."""
    from weft.runs.former import TICK

    other = path.with_name("clock")
    while True:
        other.touch()
        if other.stat().st_ctime > path.stat().st_ctime + 2 * TICK:
            other.unlink()
            return


def rest(place: Place) -> Rest:
    return find_rest(weft.load({"tasks": pipeline()}), Options(directory=place.data))


def test_all_of_it_counts_and_is_said(former: Place) -> None:
    found = rest(former)
    assert found.messages == [
        "5 results of runs of earlier versions of weft count: nothing of them has changed"
    ]
    assert not found.numbers
    assert not (former.data / ".weft" / "store").exists()  # nothing was begun
    assert former.run(pipeline()) == set()
    again = rest(former)
    assert (again.messages, again.numbers) == ([], ())


def test_it_is_remembered_though_nothing_is_run(former: Place) -> None:
    rest(former).remember()
    for journal in former.data.glob(".weft/runs/*/journal.jsonl"):
        journal.unlink()
    assert former.run(pipeline()) == set()


def test_an_input_has_changed(former: Place) -> None:
    former.write("x.txt", "1\n2\n3\n")  # the same, but nobody knows that
    assert set(rest(former).reasons) == {"cut-x", "count-x", "join"}
    assert former.run(pipeline()) == {"cut-x", "count-x", "join"}


def test_an_input_that_is_older_but_was_put_there_since(former: Place) -> None:
    other = former.data / "other.txt"
    other.write_text("3\n2\n1\n")
    os.utime(other, (1e9, 1e9))
    other.rename(former.data / "x.txt")
    assert set(rest(former).reasons) == {"cut-x", "count-x", "join"}


def test_an_output_has_changed(former: Place) -> None:
    former.write("x.cut", "2\n1\n")  # of the same size
    assert set(rest(former).reasons) == {"cut-x", "count-x", "join"}


def test_an_output_is_missing(former: Place) -> None:
    (former.data / "x.n").unlink()
    assert set(rest(former).reasons) == {"count-x", "join"}


def test_a_command_has_changed(former: Place) -> None:
    tasks = pipeline()
    tasks["count-y"]["run"] = tasks["count-y"]["run"].replace("sh count.sh", "sh  count.sh")
    found = find_rest(weft.load({"tasks": tasks}), Options(directory=former.data))
    assert set(found.reasons) == {"count-y", "join"}


def test_a_damaged_journal_tells_nothing(former: Place) -> None:
    (journal,) = former.data.glob(".weft/runs/*/journal.jsonl")
    journal.write_bytes(b"nothing\n" + journal.read_bytes())
    assert set(rest(former).reasons) == ALL


def test_a_former_run_is_resumed(former: Place) -> None:
    (home,) = (former.data / ".weft" / "runs").iterdir()
    assert former.run(pipeline(), resume="last") == set()
    assert RunHome(home).journal.exists()
    assert former.run(pipeline()) == set()


@pytest.mark.parametrize("path", KILLED[:3], ids=lambda path: path.stem)
def test_kept_journals_whose_files_are_newer(path: Path, tmp_path: Path) -> None:
    """They are of real former versions; their outputs were written just now, so none counts."""
    from weft.runs.journal import read

    home = home_of(path, tmp_path)
    workflow = Header.from_dict(read(home.journal).header, tmp_path).workflow
    found = find_rest(workflow, Options(directory=tmp_path))
    assert (len(found.numbers), found.messages) == (16, [])
