"""Every executor passes the one conformance suite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from executors.bench import Bench
from executors.conformance import CHECKS as FOR_ALL
from executors.conformance import Entry
from executors.conformance_real import CHECKS as FOR_REAL
from executors.sites import SITES, Site

PAIRS = [
    pytest.param(site, entry, id=f"{site.name}-{entry.check.__name__}")
    for site in SITES
    for entry in FOR_ALL + FOR_REAL
    if entry.needs <= site.has
]


@pytest.mark.parametrize(("site", "entry"), PAIRS)
def test_check(site: Site, entry: Entry, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    cluster = request.getfixturevalue("conformance_cluster") if "dask" in site.has else None

    places: list[Path] = []

    @contextmanager
    def open(works: Any, again: bool = False, **options: Any) -> Iterator[Bench]:
        if not again:
            places.append(tmp_path / str(len(places)))
            places[-1].mkdir()
        with site.open(works, places[-1], cluster, **options) as bench:
            yield bench

    entry.check(site, open)
