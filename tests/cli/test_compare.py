"""`foreplan compare`: paired runs, intervals, the same for any number of jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import foreplan as library
from chaos.runs import LIMIT, until
from foreplan.comparison import Mean, t_quantile
from foreplan.errors import ForeplanError, InputError
from foreplan.simulation.scenario import EVENT_RATE
from foreplan.workers import in_order

from .commands import MAIN, foreplan, refuse, succeed, written

ARGUMENTS = ("compare", "wf.yaml", "-p", "pf.yaml", "--runs", "6")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    written(tmp_path)
    tasks: dict[str, Any] = {f"t{i}": {"cost": 3 + i % 5} for i in range(12)}
    edges = [[f"t{i // 3}", f"t{i}", 2] for i in range(3, 12)]
    other = {"name": "other", "tasks": tasks, "edges": edges}
    (tmp_path / "other.json").write_text(json.dumps(other))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def untimed(content: Any) -> Any:
    """Without the planning times, which are measured."""
    if isinstance(content, dict):
        return {k: untimed(v) for k, v in content.items() if k != "planning_milliseconds"}
    return [untimed(v) for v in content] if isinstance(content, list) else content


def test_json_and_any_number_of_jobs(folder: Path) -> None:
    words = [*ARGUMENTS[:2], "other.json", *ARGUMENTS[2:], "--qoi", "0.4", "--seed", "3", "--json"]
    words += ["--strategies", "static, slack[planner=dls],always,fifo"]
    printed = [json.loads(succeed(*words, "--jobs", jobs)) for jobs in ("1", "2", "5")]
    assert untimed(printed[0]) == untimed(printed[1]) == untimed(printed[2])
    content = printed[0]
    assert list(content) == ["runs", "qoi", "seed", "strategies", "workflows"]
    assert (content["runs"], content["qoi"], content["seed"]) == (6, 0.4, 3)
    rows = content["strategies"]
    names = ["static", "slack[planner=dls]", "always", "fifo"]
    assert [row["strategy"] for row in rows] == names
    assert list(rows[0]) == [
        "strategy", "makespan", "ratio", "nsl", "cost", "considered", "replans",
        "planning_milliseconds",
    ]  # fmt: skip
    assert rows[0]["ratio"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert rows[2]["considered"] > rows[1]["considered"] >= rows[0]["considered"] == 0
    assert [w["workflow"] for w in content["workflows"]] == ["small", "other"]
    for row in rows:
        assert row["makespan"]["low"] <= row["makespan"]["mean"] <= row["makespan"]["high"]


def test_a_run_is_a_simulation_with_the_same_seed(folder: Path) -> None:
    workflow, platform = library.load("other.json"), library.load_platform("pf.yaml")
    result = library.compare(
        workflow, platform, ["static", "always"], runs=4, qoi=0.3, seed=5, jobs=1
    )
    runs = {
        name: [library.simulate(workflow, platform, name, qoi=0.3, seed=5 + r) for r in range(4)]
        for name in ("static", "always")
    }
    spans = {name: np.array([run.makespan for run in of]) for name, of in runs.items()}
    first, second = result.overall
    assert first.makespan == Mean.of(spans["static"])
    assert second.makespan == Mean.of(spans["always"])
    assert second.ratio == Mean.of(spans["always"] / spans["static"])
    assert second.replans == np.mean([run.replans for run in runs["always"]])
    assert second.cost == Mean.of(np.array([run.cost for run in runs["always"]]))
    assert result.by_workflow == (("other", result.overall),)


OPTIONS: dict[str, Any] = {"variability": 0.5, "failures": 1, "return_after": 4.0}
WORDS = ["--variability", "0.5", "--failures", "1", "--return-after", "4"]


def test_scenarios_are_paired(folder: Path) -> None:
    workflow, platform = library.load("other.json"), library.load_platform("pf.yaml")
    names = ("static", "always", "fifo")
    result = library.compare(workflow, platform, names, 4, qoi=0.3, seed=5, jobs=1, **OPTIONS)
    for name, figures in zip(names, result.overall, strict=True):
        runs = [
            library.simulate(workflow, platform, name, qoi=0.3, seed=5 + r, **OPTIONS)
            for r in range(4)
        ]
        assert figures.makespan == Mean.of(np.array([run.makespan for run in runs]))
        assert len({run.changes[0] for run in runs}) == 4  # to each run its own scenario
    calm = library.compare(workflow, platform, names, 4, qoi=0.3, seed=5, jobs=1)
    assert calm.overall[0].makespan.mean < result.overall[0].makespan.mean  # type: ignore[operator]


def test_scenarios_of_the_command(folder: Path) -> None:
    words = [*ARGUMENTS, "other.json", "--strategies", "static,always", *WORDS]
    printed = [json.loads(succeed(*words, "--json", "--jobs", jobs)) for jobs in ("1", "2")]
    assert untimed(printed[0]) == untimed(printed[1])
    assert printed[0]["scenario"] == {**OPTIONS, "event_rate": EVENT_RATE, "failure_rate": 0.0}
    workflows = [library.load("wf.yaml"), library.load("other.json")]
    platform = library.load_platform("pf.yaml")
    ours = library.compare(workflows, platform, "static,always", runs=6, jobs=1, **OPTIONS)
    assert untimed(printed[0]) == untimed(ours.to_dict())
    shown = succeed(*words, "--plot", "a.png").splitlines()
    told = "variability 50%, 1 failure, back after 4 s"
    assert shown[0] == f"2 workflows: 6 runs of each strategy, QoI 0.2, {told}, seeds 0 to 5"
    assert shown[-1] == "wrote a.png"


def test_the_library_gives_what_the_command_prints(folder: Path) -> None:
    printed = json.loads(succeed(*ARGUMENTS, "--strategies", "static,spare", "--json"))
    ours = library.compare(
        [library.load("wf.yaml")], library.load_platform("pf.yaml"), "static,spare", runs=6, jobs=1
    )
    assert untimed(printed) == untimed(ours.to_dict())


def test_the_table(folder: Path) -> None:
    shown = succeed(*ARGUMENTS, "other.json", "--strategies", "static,always")
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert lines[0] == "2 workflows: 6 runs of each strategy, QoI 0.2, seeds 0 to 5"
    head = "strategy makespan +- ratio 95% interval NSL considered taken cost planning"
    assert lines.count(head) == 3
    assert lines[2].startswith("static ")
    assert " 1.0000 1.0000 to 1.0000 1.171 0 0 " in lines[2]
    assert {"small", "other"} <= set(lines)


def test_one_run_has_no_interval(folder: Path) -> None:
    words = [*ARGUMENTS[:4], "--runs", "1", "--strategies", "static,always"]
    shown = succeed(*words)
    assert "1 run of each strategy" in shown
    rows = json.loads(succeed(*words, "--json"))["strategies"]
    assert (rows[1]["makespan"]["low"], rows[1]["ratio"]["high"]) == (None, None)


def test_nothing_takes_any_time(folder: Path) -> None:
    (folder / "wf.yaml").write_text('{"tasks": {"a": {"cost": 0}}}')
    rows = json.loads(succeed(*ARGUMENTS, "--strategies", "static,always", "--json"))["strategies"]
    assert [row["ratio"]["mean"] for row in rows] == [1.0, 1.0]


@pytest.mark.parametrize("name", ["plot.png", "plot.SVG"])
def test_the_plot(folder: Path, name: str) -> None:
    words = [*ARGUMENTS, "other.json", "--strategies", "static,slack[planner=dls]"]
    shown = succeed(*words, "--plot", name)
    assert shown.splitlines()[-1] == f"wrote {name}"
    if name.endswith("png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG\r\n")
        return
    words = [e.text or "" for e in ElementTree.parse(folder / name).iter() if e.tag[-4:] == "text"]
    assert {"static", "slack[planner=dls]", "new plans per run"} <= set(words)
    assert "2 workflows, 6 runs of each strategy, QoI 20%" in words


BAD: list[tuple[list[str], list[str]]] = [
    (["--strategies", "static,slakc"], ["unknown strategy 'slakc'", "'slack'"]),
    (["--strategies", "static,static"], ["static is given twice"]),
    (["--strategies", "slack,slack[planner=heft]"], ["slack is given twice"]),
    (["--strategies", ","], ["no strategy"]),
    (["--strategies", "slack["], ["closing bracket"]),
    (["--strategies", "static", "--qoi", "1.5"], ["QoI"]),
    (["--strategies", "static", "--variability", "-1"], ["variability"]),
    (["--strategies", "static", "--failures", "2"], ["2 of 2 processors", "at most 1"]),
    (["--strategies", "static", "--return-after", "2"], ["a number of failures"]),
    (["--strategies", "static", "--plot", "a.pdf"], ["a.pdf", ".png, .svg"]),
    (["--strategies", "static", "--plot", "none/a.png"], ["none/a.png"]),
    (["none.yaml", "--strategies", "static"], ["none.yaml"]),
    (["costless.yaml", "--strategies", "static"], ["costless.yaml: line 1: tasks.a.cost"]),
]


@pytest.mark.parametrize(("options", "told"), BAD, ids=lambda x: " ".join(x)[:40])
def test_bad_input(folder: Path, options: list[str], told: list[str]) -> None:
    (folder / "costless.yaml").write_text("tasks: {a: {cost: {fast: 1}}}")
    message = refuse(*ARGUMENTS, *options)
    assert all(word in message for word in told), message


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_error_in_a_run_is_told_once(folder: Path, jobs: str) -> None:
    leaving = "processors: {fast: {leaves: 5}, slow: {joins: 1, leaves: 2}}"
    (folder / "pf.yaml").write_text(leaving)
    (folder / "wf.yaml").write_text("tasks: {a: {cost: 4.9}}")
    message = refuse(*ARGUMENTS, "--strategies", "static,always", "--jobs", jobs, "--qoi", "0.5")
    assert message


def test_bad_numbers(folder: Path) -> None:
    for words in (["--runs", "0"], ["--jobs", "0"], ["--seed", "-1"]):
        done = foreplan(*ARGUMENTS, "--strategies", "static", *words)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
    workflow, platform = library.load("wf.yaml"), library.load_platform("pf.yaml")
    wrong: list[dict[str, Any]] = [{"runs": 0}, {"jobs": 0}, {"seed": -1}, {"qoi": -1}]
    for options in wrong:
        with pytest.raises(InputError):
            library.compare(workflow, platform, "static", **options)
    with pytest.raises(InputError, match="no workflow"):
        library.compare([], platform, "static")


def ignores(pid: str, number: int) -> bool:
    """Whether a process ignores a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) >> (number - 1) & 1)


def test_ctrl_c_stops_all_quietly(folder: Path) -> None:
    words = ["compare", "other.json", "-p", "pf.yaml", "--strategies", "always", "--runs", "900000"]
    command = [sys.executable, "-c", MAIN, *words, "--jobs", "2"]
    began = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    children = Path(f"/proc/{began.pid}/task/{began.pid}/children")
    workers: list[str] = []

    def begun() -> bool:  # all workers, and each leaves Ctrl-C to who has started it
        workers[:] = children.read_text().split()
        return len(workers) >= 2 and all(ignores(worker, signal.SIGINT) for worker in workers)

    until(begun, "two workers")
    os.killpg(began.pid, signal.SIGINT)  # as a terminal does: everyone in the group
    out, err = began.communicate(timeout=LIMIT)
    assert began.returncode in (1, 130)
    assert out == ""
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 1, err
    for worker in workers:
        assert not Path(f"/proc/{worker}").exists()


def test_means_and_quantiles() -> None:
    known = {1: 12.706, 5: 2.571, 10: 2.228, 11: 2.201, 15: 2.131, 30: 2.042, 60: 2.000, 120: 1.980}
    for df, quantile in known.items():
        assert t_quantile(df) == pytest.approx(quantile, abs=6e-4)
    assert t_quantile(10**9) == pytest.approx(1.959964, abs=1e-6)
    falling = [t_quantile(df) for df in range(1, 200)]
    assert falling == sorted(falling, reverse=True)
    mean = Mean.of(np.array([1.0, 2.0, 3.0]))
    assert mean.mean == 2.0
    assert mean.high == pytest.approx(2 + 4.30265 / np.sqrt(3))
    assert Mean.of(np.array([4.0])) == Mean(4.0, None, None)
    assert Mean.of(np.array([4.0, np.inf])) == Mean(None, None, None)


def test_about_95_of_100_intervals_hold_the_mean() -> None:
    rng = np.random.default_rng(1)
    means = [Mean.of(rng.normal(3.0, 2.0, 6)) for _ in range(4000)]
    held = np.mean([m.low <= 3.0 <= m.high for m in means])  # type: ignore[operator]
    assert 0.94 < held < 0.96


def test_results_in_order_and_errors_from_one_process() -> None:
    seen: list[float] = []
    assert in_order(lambda i: i * i, 5, 1, seen.append) == [0, 1, 4, 9, 16]
    assert seen == [0.2, 0.4, 0.6, 0.8, 1.0]

    def fail(i: int) -> int:
        raise ForeplanError(f"unit {i}")

    with pytest.raises(ForeplanError, match="unit 0"):
        in_order(fail, 5, 1)


def test_strategies_under_a_budget(folder: Path) -> None:
    """All keep it; what is left for surprises makes plans cheaper, and longer."""
    asked = ("--strategies", "static,slack", "--qoi", "0", "--json")
    free = json.loads(succeed(*ARGUMENTS, *asked))
    kept = json.loads(succeed(*ARGUMENTS, *asked, "--budget", "6.5"))
    left = json.loads(succeed(*ARGUMENTS, *asked, "--budget", "6.5", "--reserve", "0.1"))
    costs = [result["strategies"][0]["cost"]["mean"] for result in (free, kept, left)]
    assert costs == [16.5, 6.0, 0.0]
    assert "a reserve is a share of a budget" in refuse(*ARGUMENTS, *asked, "--reserve", "0.1")
    blind = refuse(*ARGUMENTS, "--strategies", "static,fifo", "--budget", "6.5")
    assert "cannot keep a budget" in blind
