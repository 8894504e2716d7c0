"""The home of a run: private, its own, and found by id, prefix or `last`."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreplan.errors import ForeplanError, InputError
from foreplan.runs.home import _ID, RunHome, _base, runs
from foreplan.runs.journal import Journal

NOON = datetime(2025, 6, 1, 12, 0, 0, tzinfo=UTC)


def begun(directory: Path, name: str, moment: datetime = NOON) -> RunHome:
    home = RunHome.create(directory, name, moment)
    Journal.create(home.journal, {"type": "run"}).close()
    return home


@contextmanager
def umask(mask: int) -> Iterator[None]:
    old = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old)


@pytest.mark.parametrize("mask", [0, 0o022, 0o277])
def test_private_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    with umask(mask):
        home = begun(tmp_path, "etl")
    places = [tmp_path / ".foreplan", *(tmp_path / ".foreplan").rglob("*")]
    assert {p.name for p in places if p.is_dir()} == {
        ".foreplan", "runs", home.id, "attempts", "logs", "results",
    }  # fmt: skip
    for place in places:
        wanted = 0o700 if place.is_dir() else 0o600
        assert stat.S_IMODE(place.stat().st_mode) == wanted, place
    assert (tmp_path / ".foreplan" / ".gitignore").read_text() == "*\n"


def test_paths(tmp_path: Path) -> None:
    home = RunHome.create(tmp_path, "etl", NOON)
    assert home.id == "etl-20250601-120000"
    assert home.path == tmp_path / ".foreplan" / "runs" / home.id
    assert home.data == tmp_path
    assert home.journal == home.path / "journal.jsonl"
    assert all(place.is_dir() for place in (home.attempts, home.logs, home.results))


def test_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = begun(Path(), "etl")
    assert home.path.is_absolute()
    assert RunHome.find(".", "last") == home


def test_times_of_any_zone_are_in_order(tmp_path: Path) -> None:
    home = RunHome.create(tmp_path, "x", NOON.astimezone(datetime.now().astimezone().tzinfo))
    assert home.id == "x-20250601-120000"


def test_many_in_one_second(tmp_path: Path) -> None:
    homes = [RunHome.create(tmp_path, "etl", NOON) for _ in range(20)]
    assert len({home.id for home in homes}) == 20
    assert all(home.id.startswith("etl-20250601-120000") for home in homes)


def test_who_started_last_comes_first(tmp_path: Path) -> None:
    """Whatever the clock says: it may be set back, and runs may start within one second."""
    assert runs(tmp_path) == []
    moments = [NOON, NOON + timedelta(days=1), NOON, NOON, NOON - timedelta(days=400), NOON]
    homes = [begun(tmp_path, f"{'mzazab'[k]}", moment) for k, moment in enumerate(moments)]
    for home in homes:
        os.utime(home.path, ns=(0, 0))
    assert runs(tmp_path) == homes[::-1]
    assert RunHome.find(tmp_path, "last") == homes[-1]


def test_runs_that_were_copied_here_come_last_by_the_clock(tmp_path: Path) -> None:
    early, late = begun(tmp_path, "z"), begun(tmp_path, "a", NOON + timedelta(hours=1))
    order = tmp_path / ".foreplan" / "order"
    order.unlink()
    own = begun(tmp_path, "own", NOON - timedelta(days=1))
    assert runs(tmp_path) == [own, late, early]
    order.write_text(f"\n{early.id}\n{own.id[:5]}")  # cut off
    assert runs(tmp_path) == [early, late, own]
    assert runs(tmp_path)[0] == early
    again = begun(tmp_path, "again", NOON - timedelta(days=1))
    assert runs(tmp_path)[:2] == [again, early]


def test_only_runs_are_listed(tmp_path: Path) -> None:
    home = begun(tmp_path, "etl")
    begun(tmp_path, "old", NOON - timedelta(days=1)).journal.unlink()
    (home.path.parent / "notes").mkdir()
    (home.path.parent / "file-20250601-120000").touch()
    (home.path.parent / "link-20250601-120000").symlink_to(home.path)
    assert runs(tmp_path) == [home]


def test_find(tmp_path: Path) -> None:
    etl = begun(tmp_path, "etl")
    again = begun(tmp_path, "etl", NOON)
    other = begun(tmp_path, "other")
    assert RunHome.find(tmp_path, etl.id) == etl  # though it is a prefix of the next
    assert RunHome.find(tmp_path, again.id) == again
    assert RunHome.find(tmp_path, "o") == other
    with pytest.raises(InputError, match="2 runs begin with 'etl'") as caught:
        RunHome.find(tmp_path, "etl")
    assert again.id in str(caught.value)
    with pytest.raises(InputError, match=f"did you mean '{other.id}'"):
        RunHome.find(tmp_path, "othr-20250601-120000")
    with pytest.raises(InputError, match="known: "):
        RunHome.find(tmp_path, "")


@pytest.mark.parametrize("wanted", ["last", "etl", "", "..", "/"])
def test_no_runs(tmp_path: Path, wanted: str) -> None:
    with pytest.raises(InputError, match="nor any other"):
        RunHome.find(tmp_path, wanted)


def test_nothing_wanted_leaves_the_runs(tmp_path: Path) -> None:
    home = begun(tmp_path, "etl")
    outside = tmp_path / "out-20250601-120000"
    outside.mkdir()
    (outside / "journal.jsonl").touch()
    for wanted in ("../../out-20250601-120000", str(outside), f"./{home.id}", "..", ".", "\0"):
        with pytest.raises(InputError):
            RunHome.find(tmp_path, wanted)


@given(name=st.text() | st.text(alphabet="./\\-_ aZ0\0\n\udc80"))
def test_any_name_gives_one_id(name: str) -> None:
    base = _base(name, NOON)
    assert _ID.fullmatch(base)
    assert Path(base).name == base
    assert len(base) <= 60


def test_names_in_ids() -> None:
    assert _base("Genome (größe) 2.0", NOON) == "Genome-große-2.0-20250601-120000".replace("ß", "")
    assert _base("../../etc/passwd", NOON) == "etc-passwd-20250601-120000"
    assert _base("日本", NOON) == "run-20250601-120000"


def test_no_place_for_a_home(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such directory"):
        RunHome.create(tmp_path / "none", "etl")
    (tmp_path / ".foreplan").touch()
    with pytest.raises(ForeplanError, match="must be a directory"):
        RunHome.create(tmp_path, "etl")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ForeplanError, match=r"permission denied.*--dir"):
        RunHome.create(tmp_path, "etl")


def test_what_others_can_write_is_not_trusted(tmp_path: Path) -> None:
    home = begun(tmp_path, "etl")
    for place in (tmp_path / ".foreplan", home.path.parent, home.path):
        place.chmod(0o770)
        with pytest.raises(InputError, match=r"others can write.*chmod 700"):
            RunHome.find(tmp_path, "last")
        place.chmod(0o755)
        assert RunHome.find(tmp_path, "last") == home
    RunHome.create(tmp_path, "etl")
    assert stat.S_IMODE((tmp_path / ".foreplan").stat().st_mode) == 0o700


def test_what_belongs_to_others_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(tmp_path, "etl")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 12345)
    for attempt in (lambda: runs(tmp_path), lambda: RunHome.create(tmp_path, "etl")):
        with pytest.raises(InputError, match="another user"):
            attempt()
