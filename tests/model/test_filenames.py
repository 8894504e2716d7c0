"""Which files directories and patterns have, and which they may share."""

from __future__ import annotations

import glob
from pathlib import Path

import pytest

from foreplan.errors import InputError
from foreplan.model import filenames
from foreplan.model.filenames import (
    Holders,
    covers,
    find_matches,
    is_there,
    matching_files,
    may_gather,
    may_share,
)


def test_a_pattern_of_directories_has_all_that_is_in_them() -> None:
    for name in ("res/a", "res/a/n.txt", "res/a/b/c"):
        assert covers("res/*/", name)
        assert list(Holders(["res/*/", "other/"]).of(name)) == ["res/*/"]
    assert not covers("res/*/", "res")
    assert not covers("res/[^a]/", "res/a/n.txt")


@pytest.mark.parametrize(
    ("one", "other", "shares"),
    [
        ("res/*/out.txt", "res/a/", True),
        ("res/*/out.txt", "res/a/*.txt", True),
        ("res/*/out.txt", "res/a/*.csv", False),
        ("res/*/", "res/a/b/*.txt", True),
        ("res/*.txt", "res/a/", False),
        ("res/**/out.txt", "res/a/b/o*", True),
        ("res/**/out.txt", "other/out.txt", False),
    ],
)
def test_what_patterns_and_directories_may_share(one: str, other: str, shares: bool) -> None:
    assert may_share(one, other) is shares
    assert may_share(other, one) is shares
    assert may_gather(one, other) is shares


def test_a_pattern_means_folders_too() -> None:
    assert may_gather("res/*", "res/a/")
    assert not may_gather("res/*", "res/a/b/")


def make_tree(folder: Path) -> None:
    """Make some files, hidden ones, and links that lead nowhere or around in circles."""
    for name in ("a/b/c.txt", "a/d.txt", "a/.hidden/e.txt", "f.txt", "a/[x].txt", ".g.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / "a/nothing.txt").symlink_to("nowhere")
    (folder / "a/itself").symlink_to("itself")
    (folder / "linked").symlink_to("a/b")


@pytest.mark.parametrize(
    "pattern",
    ["*", "**", "**/*.txt", "a/*", "a/**/*.txt", "*/b/*", "a/[[]x].txt", "a/?.txt", "[!a]*", "a*/",
     ".*", "a/.hidden/*", "**/b/**", "**/**/c.txt", "a//*", "f.txt", "none/*", "**/.hidden/*",
     "a/**"],
)  # fmt: skip
def test_patterns_find_what_glob_finds(tmp_path: Path, pattern: str) -> None:
    make_tree(tmp_path)
    found = glob.glob(pattern, root_dir=tmp_path, recursive=True)
    assert {*find_matches(str(tmp_path), pattern)} == {*found}


def test_links_that_lead_around_in_circles_are_not_followed(tmp_path: Path) -> None:
    make_tree(tmp_path)
    for k in range(20):  # every path through them would be 40 links deep
        (tmp_path / f"a/b/up{k}").symlink_to("..")
        (tmp_path / f"a/b/here{k}").symlink_to(".")
    found = matching_files(str(tmp_path), "a/**/*.txt")
    assert found == ["a/[x].txt", "a/b/c.txt", "a/d.txt"]
    assert not is_there(str(tmp_path), "**/*.none")


def test_a_pattern_stops_at_a_million_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert filenames.MOST_FILES == 1_000_000
    make_tree(tmp_path)
    monkeypatch.setattr(filenames, "MOST_FILES", 4)
    with pytest.raises(InputError, match=r"'\*\*/\*' matches more than 4 files"):
        list(find_matches(str(tmp_path), "**/*"))
    (tmp_path / "h/i/j/k").mkdir(parents=True)
    with pytest.raises(InputError, match="looks through as many folders"):
        list(find_matches(str(tmp_path), "**/*.none"))
    assert is_there(str(tmp_path), "**/*")  # one is enough


@pytest.mark.parametrize("pattern", ["/proc/**/*", "../*", "a/../../*"])
def test_a_pattern_does_not_leave_its_folder(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(InputError, match="leaves the run's directory"):
        matching_files(str(tmp_path), pattern)
