"""A small Dask cluster that the tests of executors share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from executors.cluster import Cluster


@pytest.fixture(scope="session")
def conformance_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("cluster")
    cluster = Cluster(folder)
    yield cluster
    cluster.close()
