"""Which files directories and patterns have, and which they may share."""

from __future__ import annotations

import pytest

from foreplan.model.filenames import Holders, covers, may_gather, may_share


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
