"""Which measurement counts: of one's own workflow, declared, of the directory, of elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foreplan.formats import load
from foreplan.history import repository as module
from foreplan.history.predictor import Prediction, Source, predict
from foreplan.history.records import (
    NEWEST,
    History,
    Origin,
    TaskRecord,
    categories_of,
    commands_of,
)
from foreplan.history.repository import Repository
from foreplan.model import Call, Workflow

from .samples import bag, processors, task

HERE = Origin("/data/mine", "bag")


def made(record: TaskRecord, workflow: str, directory: str, command: str = "same") -> TaskRecord:
    """The record, from elsewhere."""
    return replace(record, workflow=workflow, directory=directory, command=command)


OWN = made(task(seconds=1.0), "bag", "/data/mine", "another")
NEAR = made(task(seconds=2.0), "other", "/data/mine", "another")
FAR = made(task(seconds=4.0), "bag", "/data/theirs")


def asked(records: Sequence[TaskRecord], cost: float = np.nan, command: str = "same") -> Prediction:
    """What is expected of a task `align` of the workflow `bag` in /data/mine."""
    workflow = bag(["align"], [cost])
    with Repository() as repository:
        repository.forget()
        repository.add(records)
        history = repository.history(categories_of(workflow), [command], HERE)
    names, marks = categories_of(workflow), [command]
    return predict(workflow, processors(1), ["m0"], names, history, None, marks)


def test_the_nearest_counts() -> None:
    chain = [
        ([OWN, NEAR, FAR], 1.0, Source.MEASURED),
        ([NEAR, FAR], 2.0, Source.NEAR),
        ([FAR], 4.0, Source.FAR),
        ([], 1.0, Source.DEFAULT),
    ]
    for records, seconds, source in chain:
        found = asked(records)
        assert found.source.tolist() == [[source]]
        assert found.estimates.cost[0, 0] == pytest.approx(seconds)
        assert found.blind == (not records)


def test_a_declared_cost_gives_way_to_ones_own_measurements_alone() -> None:
    assert asked([OWN, NEAR], 5.0).estimates.cost[0, 0] == pytest.approx(1.0)
    for records in ([NEAR], [FAR], [NEAR, FAR]):
        found = asked(records, 5.0)
        assert found.source.tolist() == [[Source.DECLARED]]
        assert found.estimates.cost[0, 0] == pytest.approx(5.0)


def test_far_away_only_the_same_command_counts() -> None:
    assert asked([FAR], command="another").blind
    assert asked([FAR], command="").blind
    assert asked([replace(FAR, command="")], command="").blind


def test_others_do_not_crowd_out_ones_own() -> None:
    many = [replace(FAR, at=2e9 + k, seconds=99.0) for k in range(10 * NEWEST)]
    many += [replace(NEAR, at=3e9 + k, seconds=99.0) for k in range(10 * NEWEST)]
    assert asked([OWN, *many]).estimates.cost[0, 0] == pytest.approx(1.0)
    few = [replace(OWN, at=1e9 + k, seconds=90.0 if k == 3 else 1.0) for k in range(7)]
    assert asked([*few, *many]).estimates.cost[0, 0] == pytest.approx(1.0)  # nor does a spike


def test_machines_are_told_by_work_that_is_alike() -> None:
    # `align` is another thing in each of the two directories: it says nothing of the machines
    quick = [made(task("align", "m0", 0.2), "a", "/data/a", "x")]
    slow = [made(task("align", "m1", 20.0), "b", "/data/b", "y")]
    workflow = bag(["own"])
    records = [made(task("own", "m0", 3.0), "bag", "/data/mine"), *quick, *slow]
    history = History(records, origin=HERE)
    machines = ["m0", "m1"]
    found = predict(workflow, processors(2), machines, categories_of(workflow), history)
    assert found.estimates.cost[0] == pytest.approx([3.0, 3.0])


def test_what_it_rests_on_can_be_said() -> None:
    runs = [replace(OWN, run=f"run-{k % 3}") for k in range(9)]
    history = History([*runs, FAR], origin=HERE)
    workflow = bag(["align", "new"])
    found = predict(workflow, processors(1), ["m0"], categories_of(workflow), history)
    assert found.origins() == "1 measured here before, 1 not measured yet"
    assert history.n_runs(row for row in found.rows if row) == 3
    assert found.measured().tolist() == [True, False]


def commands(run: str, reads: str, writes: str) -> str:
    """The mark of a command with its files."""
    tasks = {"t": {"run": run, "inputs": [reads], "outputs": [writes]}}
    return commands_of(load({"tasks": tasks}))[0]


def test_the_same_command_for_other_files() -> None:
    one = commands("align -k 5 --in=a.fq > out/a.bam", "a.fq", "out/a.bam")
    assert one == commands("align -k 5 --in=b.fq > out/b.bam ", "b.fq", "out/b.bam")
    assert one != commands("align -k 6 --in=b.fq > out/b.bam", "b.fq", "out/b.bam")
    assert one != commands("align -k 5 --in=c.fq > out/b.bam", "b.fq", "out/b.bam")
    assert commands_of(load({"tasks": {"t": {"run": "sleep 1"}, "u": {}}}))[1] == ""
    assert "align" not in one


def test_functions_are_known_by_their_names() -> None:
    workflow: Workflow = bag(["a", "b"])
    first, second = commands_of(workflow, [Call(sorted), Call(sum)])
    assert first != second
    assert commands_of(workflow, [Call(sorted, ([1],)), Call(sorted)]) == (first, first)


def test_functions_of_one_name_are_told_apart_by_their_code() -> None:
    """Two projects may each have a `load` in a `main.py`; a copy of a project is the same."""

    def made(source: str) -> Call:
        scope: dict[str, Any] = {"__name__": "main"}
        exec(source, scope)
        return Call(scope["load"])

    inner = "def load(x):\n    def twice(): return 2 * x\n    return twice()"
    calls = [
        made("def load(x): return x"),
        made("\n\n\ndef load(x): return x  # moved"),
        made("def load(x): return x + 1"),
        made(inner),
        made(inner.replace("*", "+")),
    ]
    workflow = load({"tasks": {str(k): {} for k in range(len(calls))}})
    first, moved, *others = commands_of(workflow, calls)
    assert first == moved
    assert len({first, *others}) == 4


def test_the_same_directory_by_whatever_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    monkeypatch.chdir(tmp_path / "there")
    ways: list[str | Path] = [".", "../link", tmp_path / "there", tmp_path / "link"]
    assert len({Origin.of(bag(["a"]), way) for way in ways}) == 1


def test_what_is_read_is_found_by_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECENT", 0)
    with Repository() as repository, repository._reading([("a", "b")]):
        place = {"directory": "d", "workflow": "w"}
        for cells in (module._DIRECTORY, module._COMMANDS):
            plan = repository._rows(f"EXPLAIN QUERY PLAN {cells.newest(5)}", place)
            told = [row[3] for row in plan]
            assert not [line for line in told if line.startswith("SCAN tasks")], told
