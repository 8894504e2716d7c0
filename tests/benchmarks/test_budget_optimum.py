"""The optimum under a budget: against brute force; gaps, files and the command; where installed."""

from __future__ import annotations

import csv
import itertools
import json
import math
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from foreplan import registry
from foreplan.arrays import FloatArray
from foreplan.checks.schedules import check_schedule
from foreplan.errors import InputError, PlanningError
from foreplan.model import Link, Platform, Processor, Schedule, Situation, Workflow
from foreplan_benchmarks import budget_optimum, budget_optimum_report
from foreplan_benchmarks.budget_optimum import (
    AT_HEFT,
    BEST,
    HEFT,
    ORDER_ONLY,
    ROWS,
    VARIANTS,
    Result,
    Settings,
    gaps,
    parts,
)
from foreplan_benchmarks.budget_optimum_cases import FAMILIES, Case, cases
from foreplan_benchmarks.budget_optimum_model import installed, interruptible, optimum
from foreplan_benchmarks.command import app

needs_ortools = pytest.mark.skipif(not installed(), reason="OR-tools is not installed")
TINY = Settings(tasks=9, runs=1, seed=3, ks=(0.3, 0.8))


def tiny(seed: int) -> Situation:
    """Four or five tasks on two or three machines, two of which may share a host."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(4, 6)), int(rng.integers(2, 4))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.5]
    ends = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    workflow = Workflow.from_edges(
        f"tiny{seed}",
        [f"t{i}" for i in range(n)],
        ends[:, 0],
        ends[:, 1],
        rng.integers(0, 15, len(ends)).astype(np.float64),
        processor_cost={f"p{q}": rng.integers(1, 20, n).astype(np.float64) for q in range(p)},
    )
    hosts = rng.permutation(["a", "b", "b" if seed % 2 else "c"])
    machines = [
        Processor(f"p{q}", host=str(hosts[q]), price=float(rng.integers(1, 6))) for q in range(p)
    ]
    links = {("a", "b"): Link(2.0, 1.0)} if {"a", "b"} <= {m.host for m in machines} else {}
    return Situation.at_start(workflow, Platform.build(machines, Link(1.0, 2.0), links))


def brute_force(situation: Situation, budget: float) -> float:
    """The shortest of all assignments in all orders, each task as early as the order lets it."""
    cost, price = situation.cost, situation.platform.price
    n, p = cost.shape
    best = math.inf
    edges = _edges(situation)
    ranks = [
        order
        for order in itertools.permutations(range(n))
        if all(order.index(i) < order.index(j) for i, j, _ in edges)
    ]
    for on in itertools.product(range(p), repeat=n):
        if sum(cost[t, on[t]] * price[on[t]] for t in range(n)) > budget:
            continue
        takes = [float(cost[t, on[t]]) for t in range(n)]
        delays = [[(i, float(d[on[i], on[j]])) for i, j, d in edges if j == t] for t in range(n)]
        best = min(best, *(_makespan(order, on, takes, delays) for order in ranks))
    return best


def _edges(situation: Situation) -> list[tuple[int, int, FloatArray]]:
    platform, workflow = situation.platform, situation.workflow
    at = np.ix_(platform.host, platform.host)
    startup, per_unit, size = platform.startup[at], platform.time_per_unit[at], workflow.item_size
    return [
        (int(i), int(j), startup + size[item] * per_unit)
        for item, i, j in zip(*workflow.dependencies(), strict=True)
    ]


def _makespan(
    order: tuple[int, ...],
    on: tuple[int, ...],
    takes: list[float],
    delays: list[list[tuple[int, float]]],
) -> float:
    finish, free = [0.0] * len(on), [0.0] * (max(on) + 1)
    for t in order:
        ready = max((finish[i] + d for i, d in delays[t]), default=0.0)
        finish[t] = free[on[t]] = max(ready, free[on[t]]) + takes[t]
    return max(finish)


@needs_ortools
@pytest.mark.parametrize("seed", range(8))
def test_brute_force_finds_nothing_shorter(seed: int) -> None:
    situation = tiny(seed)
    money = situation.cost * situation.platform.price
    least, most = money.min(axis=1).sum(), money.max(axis=1).sum()
    for share in (0.0, 0.2, 0.6):
        budget = float(least + share * (most - least))
        found = optimum(situation, budget)
        check_schedule(found.schedule, situation)
        assert found.schedule.cost <= budget
        assert found.proven
        assert found.makespan == found.bound == brute_force(situation, budget)


@needs_ortools
def test_more_money_is_never_slower_and_a_hint_changes_nothing() -> None:
    case = cases(12, 1, 5, ["random_layered"])[0]
    found = [optimum(case.situation, case.budget(k)) for k in (0.0, 0.5, 1.0)]
    assert [o.makespan for o in found] == sorted((o.makespan for o in found), reverse=True)
    hinted = optimum(case.situation, case.budget(1.0), hint=case.heft)
    assert hinted.makespan == found[-1].makespan <= case.heft.makespan
    unlimited = optimum(case.situation, math.inf)
    assert unlimited.makespan <= found[-1].makespan


@needs_ortools
def test_a_search_cut_short_is_not_called_an_optimum() -> None:
    case = cases(20, 1, 0, ["fork_join"])[0]
    found = optimum(case.situation, case.budget(0.5), 1e-6, _best_affordable(case, 0.5))
    assert not found.proven
    assert 0 < found.bound < found.makespan
    check_schedule(found.schedule, case.situation)
    again = optimum(case.situation, case.budget(0.5), 1e-6, _best_affordable(case, 0.5))
    assert (again.bound, again.makespan) == (found.bound, found.makespan)


def _best_affordable(case: Case, k: float) -> Schedule:
    return registry.planner(BEST).plan(replace(case.situation, budget=float(case.budget(k))))


@needs_ortools
def test_what_cannot_be_modelled_or_afforded_is_told() -> None:
    situation = tiny(1)
    with pytest.raises(PlanningError, match="the cheapest schedule costs"):
        optimum(situation, 1.0)
    half = replace(situation.platform, price=situation.platform.price + 0.5)
    with pytest.raises(InputError, match="whole numbers"):
        optimum(replace(situation, platform=half), 1e9)
    hourly = replace(situation.platform, billing=np.full(len(situation.platform.price), 9.0))
    with pytest.raises(InputError, match="billing"):
        optimum(replace(situation, platform=hourly), 1e9)
    with pytest.raises(InputError, match="at the start"):
        optimum(replace(situation, now=1.0), 1e9)


def test_without_ortools_the_user_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"foreplan\[optimum\]"):
        budget_optimum.run(TINY)


@pytest.mark.parametrize("tasks", [9, 13, 20])
def test_instances_are_small_whole_and_repeat(tasks: int) -> None:
    drawn, again = cases(tasks, 2, 7), cases(tasks, 2, 7)
    assert {case.family for case in drawn} == set(FAMILIES)
    for one, other in zip(drawn, again, strict=True):
        assert one.situation.workflow.n_tasks <= tasks
        assert (one.situation.cost == other.situation.cost).all()
        assert (one.situation.cost == np.rint(one.situation.cost)).all()
        assert (one.situation.platform.price >= 1).all()
        assert one.cheapest == one.budget(0) < one.budget(0.5) < one.budget(1) == one.heft.cost
    with pytest.raises(InputError, match="tasks"):
        cases(21, 1, 0)


@pytest.fixture(scope="module")
def measured() -> list[Result]:
    return budget_optimum.run(TINY, jobs=1)


@needs_ortools
def test_no_planner_beats_a_proven_optimum(measured: list[Result]) -> None:
    assert len(measured) == len(FAMILIES) * 3
    for result in measured:
        assert result.proven
        assert all(makespan >= result.optimum for makespan in result.makespans.values())
        assert (HEFT in result.makespans) == (result.k == AT_HEFT)
        assert result.makespans[BEST] <= min(result.makespans[name] for name in VARIANTS)


@needs_ortools
def test_gaps_are_means_over_the_proven_and_bounds_elsewhere(measured: list[Result]) -> None:
    at = [replace(r, optimum=100, bound=100, makespans={BEST: m, ORDER_ONLY: 100.0})
          for r, m in zip(measured[:2], (110.0, 100.0), strict=True)]  # fmt: skip
    at = [replace(r, k=0.3) for r in at]
    at.append(replace(at[0], proven=False, bound=55))
    (best,) = (gap for gap in gaps(at) if gap.planner == BEST)
    assert (best.proven, best.unproven) == (2, 1)
    assert best.mean == pytest.approx(0.05)
    assert best.worst == pytest.approx(0.1)
    assert best.exact == 0.5
    assert best.least == pytest.approx(0.1)
    assert best.most == pytest.approx(1.0)
    assert sum(part.cases for part in parts(at)) == 4  # by family and by CCR
    assert "## Where no optimum is proven" in budget_optimum_report.markdown(TINY, at, "foreplan")


@needs_ortools
def test_two_processes_find_the_same(measured: list[Result]) -> None:
    assert budget_optimum.run(TINY, jobs=2) == measured


@needs_ortools
def test_the_command_writes_and_prints_the_same_figures(
    measured: list[Result], tmp_path: Path
) -> None:
    options = ["--tasks", "9", "--runs", "1", "--seed", "3", "--ks", "0.3,0.8", "--jobs", "1"]
    done = CliRunner().invoke(app, ["budget", *options, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert f"{len(measured)} of {len(measured)} optima proven" in done.output
    assert all(name in done.output for name in ROWS)
    with (tmp_path / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row[BEST]) for row in rows] == [r.makespans[BEST] for r in measured]
    assert (tmp_path / "gaps.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "README.md").read_text()
    assert "foreplan bench budget --tasks 9 --runs 1 --seed 3 --ks 0.3,0.8`" in page
    printed = json.loads(budget_optimum_report.to_json(TINY, measured))
    assert len(printed["results"]) == len(measured)


@needs_ortools
def test_stopped_in_the_middle_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(budget_optimum, "run", stopped)
    done = CliRunner().invoke(app, ["budget", "--out", str(tmp_path)])
    assert done.exit_code == 130
    assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_a_search_at_once() -> None:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread hears Ctrl-C")
    stopped, main = threading.Event(), threading.get_ident()

    class Endless:
        heard = False

        def solve(self, model: object) -> None:
            signal.pthread_kill(main, signal.SIGINT)
            self.heard = stopped.wait(60)

        def stop_search(self) -> None:
            stopped.set()

    solver: Any = Endless()
    model: Any = None
    with pytest.raises(KeyboardInterrupt):
        interruptible(solver, model)
    assert solver.heard


def test_numbers_that_are_none_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("0.1,x", "2", ""):
        done = CliRunner().invoke(app, ["budget", "--ks", wrong])
        assert isinstance(done.exception, InputError)
