"""The units of the AHEFT experiment: by whom and in how many sessions they are done is all one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreplan.errors import ForeplanError, InputError
from foreplan_reproductions import cluster as on_dask
from foreplan_reproductions.aheft import units as aheft
from foreplan_reproductions.aheft.experiment import EXPERIMENT
from foreplan_reproductions.aheft.runs import Columns
from foreplan_reproductions.aheft.units import SAMPLE, units
from foreplan_reproductions.experiment import Checkpoint
from reproductions.aheft_units import made_up, nearly_done, small

SMALL = small()


@pytest.fixture(scope="module")
def expected() -> dict[int, Columns]:
    """What the small units come to, in this process."""
    return {number: EXPERIMENT.perform(SAMPLE, number)[0] for number in SMALL}


def reopened(path: Path) -> Checkpoint:
    checkpoint = Checkpoint.open(path, SAMPLE.described())
    checkpoint.close()
    return checkpoint


def completed(path: Path, jobs: int = 1, on: str | None = None) -> dict[int, Columns]:
    """The small units, once all are done."""
    checkpoint = Checkpoint.open(path, SAMPLE.described())
    try:
        EXPERIMENT.complete(SAMPLE, checkpoint, jobs, on=on)
    finally:
        checkpoint.close()
    assert len(checkpoint.done) == len(units(SAMPLE))
    found = reopened(path).done
    assert found == checkpoint.done
    return {number: found[number] for number in SMALL}


# the checkpoint


def test_what_is_added_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "units.log"
    checkpoint = Checkpoint.open(path, {"seed": 1})
    checkpoint.add(3, {"heft": [0.1, 1 / 3]}, 0.5)
    checkpoint.rise(2.0, 2)
    checkpoint.close()
    again = Checkpoint.open(path, {"seed": 1})
    assert again.done == {3: {"heft": [0.1, 1 / 3]}}
    assert (again.seconds, again.sessions) == (0.5, [(2.0, 2)])
    again.add(4, {"heft": [2.0]}, 0.25)
    again.close()
    last = Checkpoint.open(path, {"seed": 1})
    last.close()
    assert set(last.done) == {3, 4}


def test_torn_and_damaged_lines_are_done_again(tmp_path: Path) -> None:
    path = tmp_path / "units.log"
    checkpoint = Checkpoint.open(path, {})
    for number in range(4):
        checkpoint.add(number, {"heft": [float(number)]}, 0.0)
    checkpoint.close()
    head, *lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"1.0", b"7.0")
    whole = head + b"".join(lines)
    for cut in range(1, len(lines[-1]) + 1):
        path.write_bytes(whole[: len(whole) - cut])
        torn = Checkpoint.open(path, {})
        assert set(torn.done) == ({0, 2, 3} if cut == 1 else {0, 2})
        torn.add(9, {"heft": [9.0]}, 0.0)
        torn.close()
        again = Checkpoint.open(path, {})
        again.close()
        assert set(again.done) == {*torn.done}


def test_other_settings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "units.log"
    Checkpoint.open(path, {"seed": 1, "full": False}).close()
    with pytest.raises(InputError, match=r"seed 1, not 2.*--fresh"):
        Checkpoint.open(path, {"seed": 2, "full": False})
    path.write_bytes(b"something else\n")
    with pytest.raises(InputError, match=r"damaged.*--fresh"):
        Checkpoint.open(path, {"seed": 2})
    Checkpoint.open(path, {"seed": 2}, fresh=True).close()
    Checkpoint.open(path, {"seed": 2}).close()
    with pytest.raises(InputError, match="cannot use it"):
        Checkpoint.open(tmp_path, {})


# the work


def test_jobs_and_sessions_change_nothing(tmp_path: Path, expected: dict[int, Columns]) -> None:
    for jobs in (1, 2):
        path = tmp_path / f"{jobs}.log"
        nearly_done(path, SMALL)
        assert completed(path, jobs) == expected
        torn = path.read_bytes()
        at = torn.index(b'"unit":%d,' % SMALL[1])  # stopped in the midst of its line
        path.write_bytes(torn[: at + 40])
        left = set(SMALL) - set(reopened(path).done)
        assert SMALL[1] in left
        assert completed(path, jobs) == expected
    assert json.loads(json.dumps(expected[SMALL[0]])) == expected[SMALL[0]]


def test_hash_seed_changes_nothing(expected: dict[int, Columns]) -> None:
    code = (
        "import json; from foreplan_reproductions.aheft.experiment import EXPERIMENT as e\n"
        f"print(json.dumps(e.perform(e.sample, {SMALL[0]})[0]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        check=True,
        timeout=120,
    )
    assert json.loads(done.stdout) == expected[SMALL[0]]


def test_nothing_left_is_no_session(tmp_path: Path) -> None:
    path = tmp_path / "units.log"
    nearly_done(path, [])
    checkpoint = Checkpoint.open(path, SAMPLE.described())
    EXPERIMENT.complete(SAMPLE, checkpoint, 1)
    checkpoint.close()
    assert checkpoint.sessions == []


def test_stopped_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: dict[int, Columns]
) -> None:
    path = tmp_path / "units.log"
    nearly_done(path, SMALL)
    performed: list[int] = []

    def perform(settings: aheft.Settings, number: int) -> tuple[Columns, float]:
        if len(performed) == 2:
            raise KeyboardInterrupt
        performed.append(number)
        return expected[number], 0.0

    with monkeypatch.context() as patch:
        patch.setattr(EXPERIMENT, "perform", perform)
        with pytest.raises(KeyboardInterrupt):
            completed(path)
    kept = reopened(path)
    assert set(performed) <= set(kept.done)
    assert len(units(SAMPLE)) - len(kept.done) == len(SMALL) - 2
    assert len(kept.sessions) == 1
    assert completed(path) == expected


# on a cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("distributed")
    from executors.cluster import Cluster

    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.close()


def dask_address(cluster: Any) -> str:
    return str(cluster.address).replace("tcp://", "dask://")


def test_a_cluster_gives_the_same(
    cluster: Any, tmp_path: Path, expected: dict[int, Columns]
) -> None:
    cluster.have(2)
    path = tmp_path / "units.log"
    nearly_done(path, SMALL)
    told: list[float] = []
    checkpoint = Checkpoint.open(path, SAMPLE.described())
    try:
        EXPERIMENT.complete(SAMPLE, checkpoint, 1, told.append, dask_address(cluster))
    finally:
        checkpoint.close()
    assert {number: reopened(path).done[number] for number in SMALL} == expected
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_a_cluster_that_fails_says_so(cluster: Any, tmp_path: Path) -> None:
    cluster.have(1)
    path = tmp_path / "units.log"
    nearly_done(path, SMALL)
    checkpoint = Checkpoint.open(path, SAMPLE.described())
    wrong, on = [10**9], dask_address(cluster)  # there is no such unit
    try:
        with pytest.raises(ForeplanError, match="the cluster could not do its part"):
            on_dask.perform(EXPERIMENT, SAMPLE, wrong, checkpoint, on, lambda share: None)
    finally:
        checkpoint.close()


@pytest.mark.parametrize("on", ["local", "dask://", "dask://127.0.0.1:1"])
def test_no_cluster(on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(on_dask, "_CONNECTS_IN", 0.2)
    path = tmp_path / "units.log"
    nearly_done(path, SMALL[:1])
    with pytest.raises(InputError, match="--on" if "1" not in on else "no Dask scheduler answers"):
        completed(path, on=on)


def test_made_up_units_look_like_real_ones(expected: dict[int, Columns]) -> None:
    for number in SMALL:
        fake = made_up(units(SAMPLE)[number])
        assert set(fake) == set(expected[number])
        assert {len(v) for v in fake.values()} == {len(v) for v in expected[number].values()}
