"""`foreplan ic`: what it tells of a workflow, as text, as JSON and as a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import foreplan as library
from foreplan.formats import save
from foreplan.generators import generate
from foreplan.ic import Dag, best_order, play

from .commands import refuse, succeed

# a has priority over neither of b and c: the two blocks gain at unlike steps, whichever goes first
NONE = {
    "name": "none",
    "tasks": {
        "a": {"cost": 1, "outputs": ["a"]},
        "b": {"cost": 1, "outputs": ["b"]},
        "c": {"cost": 1, "outputs": ["c"]},
        **{f"a{i}": {"cost": 1, "inputs": ["a"]} for i in range(2)},
        **{f"bc{i}": {"cost": 1, "inputs": ["b", "c"]} for i in range(5)},
    },
}


def told(tmp_path: Path, workflow: Any, *options: str) -> dict[str, Any]:
    save(workflow, tmp_path / "wf.yaml")
    answer: dict[str, Any] = json.loads(succeed("ic", "wf.yaml", "--json", *options, cwd=tmp_path))
    return answer


def test_an_ic_optimal_schedule(tmp_path: Path) -> None:
    workflow = generate("butterfly", rows=3)
    answer = told(tmp_path, workflow)
    dag = Dag.from_workflow(workflow)
    played = play(dag, best_order(dag))
    assert (answer["ic_optimal"], answer["exists"]) == (True, True)
    assert answer["reason"] == "ICO: a priority-linear composition of 12 x Q(2)"
    assert answer["order"] == [workflow.task_names[t] for t in played.order]
    assert answer["profile"] == played.profile.tolist()
    assert answer["area"] == sum(answer["profile"])
    assert answer["normalised_area"] == pytest.approx(answer["area"] / 32)
    assert (answer["tasks"], answer["arcs"], answer["plays"], answer["seed"]) == (32, 48, 50, 0)
    assert list(answer["heuristics"]) == ["fifo", "lifo", "greedy", "hops"]
    for other in answer["heuristics"].values():
        assert other["normalised_area"] <= answer["normalised_area"]
        assert other["deviation"] >= 0


def test_none_exists(tmp_path: Path) -> None:
    answer = told(tmp_path, library.load(NONE))
    assert (answer["ic_optimal"], answer["exists"]) == (False, False)
    assert answer["reason"].startswith("no IC-optimal schedule exists: none that is best at each")
    assert " a" in answer["reason"]
    assert sorted(answer["order"]) == sorted(NONE["tasks"])


def test_the_seed_decides(tmp_path: Path) -> None:
    workflow = generate("composition", 1, tasks=60)
    answers = [told(tmp_path, workflow, "--plays", "5", "--seed", seed) for seed in "001"]
    assert answers[0] == answers[1]
    assert answers[0]["heuristics"] != answers[2]["heuristics"]


def test_in_words(tmp_path: Path) -> None:
    save(generate("evolving_mesh", levels=6), tmp_path / "wf.yaml")
    lines = succeed("ic", "wf.yaml", "--plays", "3", cwd=tmp_path).splitlines()
    assert lines[0] == "evolving_mesh-21-seed0: 21 tasks, 30 dependencies"
    assert lines[1] == "an IC-optimal schedule exists"
    assert lines[2].startswith("  ICO: a priority-linear composition")
    assert lines[3].startswith("order: n0, n1, n2, ")
    assert lines[3].endswith(" and 9 more (--json has all)")
    assert [line.split()[0] for line in lines[5:10]] == ["ico", "fifo", "lifo", "greedy", "hops"]
    assert lines[5].split()[-1] == lines[6].split()[-1] == "100.0%"  # FIFO is optimal here, too
    assert lines[10].endswith("of 3 plays")
    save(library.load(NONE), tmp_path / "none.yaml")
    said = succeed("ic", "none.yaml", cwd=tmp_path)
    assert said.splitlines()[1] == "no IC-optimal schedule exists"


def test_a_dagman_file(tmp_path: Path) -> None:
    (tmp_path / "my.dag").write_text("JOB A a.sub\nJOB B b.sub\nPARENT A CHILD B\n")
    assert "order: A, B\n" in succeed("ic", "my.dag", cwd=tmp_path)


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_picture(tmp_path: Path, kind: str) -> None:
    save(generate("butterfly", rows=2), tmp_path / "wf.yaml")
    file = tmp_path / f"curve.{kind}"
    words = ("ic", "wf.yaml", "--plays", "2", "--plot", file)
    assert succeed(*words, cwd=tmp_path).endswith(f"wrote {file}\n")
    first = file.read_bytes()
    assert first.startswith(b"\x89PNG" if kind == "png" else b"<?xml")
    if kind == "svg":
        for word in ("ICO", "FIFO", "LIFO", "GREEDY", "tasks eligible", "tasks executed"):
            assert word.encode() in first
    succeed(*words, cwd=tmp_path)
    assert file.read_bytes() == first


def test_what_is_refused(tmp_path: Path) -> None:
    save(generate("chain"), tmp_path / "wf.yaml")
    assert "cannot draw a plot of this kind" in refuse(
        "ic", "wf.yaml", "--plot", "a.pdf", cwd=tmp_path
    )
    assert "nowhere.yaml" in refuse("ic", "nowhere.yaml", cwd=tmp_path)


def test_one_task(tmp_path: Path) -> None:
    answer = told(tmp_path, generate("independent", tasks=1), "--plot", "one.png")
    assert (answer["ic_optimal"], answer["order"], answer["profile"]) == (True, ["n0"], [1, 0])
    assert answer["reason"] == "no task waits for another, so every order is IC-optimal"
