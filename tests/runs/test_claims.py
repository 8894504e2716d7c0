"""Of the runs under way only one makes a file, whatever it is called and where its run is."""

import json
import multiprocessing
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from foreplan.errors import ForeplanError, InputError
from foreplan.runs.home import RunHome
from foreplan.runs.lock import RunLock, claim


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def begun(stack: ExitStack, data: Path, *outputs: str) -> RunHome:
    """A run under way that makes these files."""
    home = RunHome.create(data, "etl")
    stack.enter_context(RunLock(home))
    claim(home, outputs)
    return home


def test_the_second_is_refused_and_told_who_is_first(tmp_path: Path, stack: ExitStack) -> None:
    first = begun(stack, tmp_path, "a.txt", "b.txt", "sub/c.txt")
    begun(stack, tmp_path, "d.txt", "sub/d.txt")
    begun(stack, tmp_path)
    with pytest.raises(InputError) as caught:
        begun(stack, tmp_path, "e.txt", "b.txt", "sub/c.txt")
    message = str(caught.value)
    assert f"run {first.id} (process {os.getpid()} on host" in message
    assert "is making 'b.txt' and 1 more of these outputs now" in message
    begun(stack, tmp_path, "e.txt")  # what was refused has claimed nothing


@pytest.mark.parametrize(
    ("one", "other"),
    [("idx/", "idx/"), ("idx/", "idx/a/b"), ("p/*.txt", "p/a.txt"), ("idx/", "idx/*.txt")],
)
def test_directories_and_patterns_have_files(tmp_path: Path, one: str, other: str) -> None:
    for mine, theirs in ((one, other), (other, one)):
        with ExitStack() as runs:
            begun(runs, tmp_path, theirs)
            begun(runs, tmp_path, "idx2/", "p/*.csv")
            with pytest.raises(InputError, match="is making"):
                begun(runs, tmp_path, mine)


def test_a_claim_ends_with_the_lock(tmp_path: Path, stack: ExitStack) -> None:
    with ExitStack() as first:
        begun(first, tmp_path, "a.txt")
        with pytest.raises(InputError, match=r"'a\.txt' now"):
            begun(stack, tmp_path, "a.txt")
    second = begun(stack, tmp_path, "a.txt")
    claim(second, ["a.txt"])  # its own claim does not stand in its way
    assert list(json.loads((tmp_path / ".foreplan" / "claims.json").read_text())) == [second.id]


@pytest.mark.parametrize("first_inside", [True, False])
def test_one_directory_inside_the_other(
    tmp_path: Path, stack: ExitStack, first_inside: bool
) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    runs = [(tmp_path, "a/b/x.txt"), (inner, "x.txt")]
    (one, its), (other, others) = reversed(runs) if first_inside else runs
    begun(stack, one, its)
    with pytest.raises(InputError, match="is making"):
        begun(stack, other, others)
    begun(stack, other, "y.txt")


def test_links_lead_to_the_same_file(tmp_path: Path, stack: ExitStack) -> None:
    data, alias = tmp_path / "data", tmp_path / "alias"
    (data / "sub").mkdir(parents=True)
    alias.symlink_to(data)
    (data / "same").symlink_to("sub")
    begun(stack, data, "sub/x.txt", str(tmp_path / "out.txt"))
    for directory, name in (
        (alias, "sub/x.txt"),
        (data, "same/x.txt"),
        (data, str(alias / "same" / "x.txt")),
        (data, str(tmp_path / "out.txt")),
    ):
        with pytest.raises(InputError, match="is making"):
            begun(stack, directory, name)


def test_a_link_is_replaced_not_followed(tmp_path: Path, stack: ExitStack) -> None:
    """Publishing renames onto the name, so where a link there led is nobody's business."""
    (tmp_path / "link.txt").symlink_to("a.txt")
    begun(stack, tmp_path, "a.txt")
    begun(stack, tmp_path, "link.txt")


@pytest.mark.parametrize("content", ["", "[]", '{"x": 1}', "\0", '{"x'])
def test_claims_that_cannot_be_read(tmp_path: Path, stack: ExitStack, content: str) -> None:
    claims = tmp_path / ".foreplan" / "claims.json"
    with ExitStack() as first:
        live = begun(first, tmp_path, "a.txt")
        claims.write_text(content)
        with pytest.raises(InputError, match=rf"which files run {live.id} \(process .*wait"):
            begun(first, tmp_path, "b.txt")
    home = begun(stack, tmp_path, "a.txt")  # no run is under way: there are no claims
    assert list(json.loads(claims.read_text())) == [home.id]


def test_claims_are_private_and_on_disk(
    tmp_path: Path, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = list[os.stat_result]()
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd)))
    begun(stack, tmp_path, "a.txt")
    state = (tmp_path / ".foreplan" / "claims.json").stat()
    assert stat.S_IMODE(state.st_mode) == 0o600
    assert state.st_ino in {one.st_ino for one in synced}
    assert (tmp_path / ".foreplan").stat().st_ino in {one.st_ino for one in synced}


@pytest.mark.parametrize("name", ["claims.json", "claims.lock"])
def test_a_fifo_is_refused(tmp_path: Path, stack: ExitStack, name: str) -> None:
    (tmp_path / ".foreplan").mkdir(mode=0o700)
    os.mkfifo(tmp_path / ".foreplan" / name)
    with pytest.raises(ForeplanError, match=f"{name}.*a named pipe .*, not a file: remove it"):
        begun(stack, tmp_path, "a.txt")


def _race(data: Path, barrier: "multiprocessing.synchronize.Barrier", k: int) -> bool:
    home = RunHome.create(data, "etl")
    with RunLock(home):
        barrier.wait(60)
        try:
            claim(home, [f"own-{k}.txt", "same.txt"])
        except InputError:
            return False
        finally:
            barrier.wait(60)
        return True


def _races(data: Path, barrier: "multiprocessing.synchronize.Barrier", k: int, won: str) -> None:
    results = [_race(data, barrier, k) for _ in range(20)]
    Path(won).write_text(json.dumps(results))


def test_of_those_that_begin_at_once_one_is_first(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, data = context.Barrier(3), tmp_path / "data"
    data.mkdir()
    told = [str(tmp_path / f"{k}.json") for k in range(3)]
    racers = [
        context.Process(target=_races, args=(data, barrier, k, won)) for k, won in enumerate(told)
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(60)
        assert racer.exitcode == 0
    rounds = zip(*(json.loads(Path(won).read_text()) for won in told), strict=True)
    assert [sum(one) for one in rounds] == [1] * 20
