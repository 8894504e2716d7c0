"""The GTP experiment: its cases, its runs, and what is counted of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foreplan.checks.runs import check_run
from foreplan.errors import InputError
from foreplan.generators import measured_ccr
from foreplan.model.events import ProcessorGone, SendItem
from foreplan.scheduling.nsl import mean_path
from foreplan_reproductions.experiment import Checkpoint
from foreplan_reproductions.gtp import units as gtp
from foreplan_reproductions.gtp.cases import (
    BOUNDS,
    CCRS,
    METHODS,
    PROCESSORS,
    SIZES,
    Case,
    Graph,
    Instance,
    shapes,
)
from foreplan_reproductions.gtp.experiment import EXPERIMENT
from foreplan_reproductions.gtp.runs import AT_PEAK, METRICS, SPECS, data_seconds, figures, simulate
from foreplan_reproductions.gtp.shared_links import SharedLinks
from foreplan_reproductions.gtp.units import (
    BY_PLANNER,
    CALM,
    FAILING_SWEEPS,
    FAILURE,
    FULL,
    PERIODS,
    PLANNERS,
    POLICIES,
    SAMPLE,
    SHARED,
    SWEEPS,
    Columns,
    Settings,
    units,
)
from model.told import what
from reproductions.gtp_units import nearly_done, small

SMALL = small()
STG = "3\n0 0 0\n1 4 1 0\n2 6 1 0\n3 5 2 1 2\n4 0 1 3\n# Standard Task Graph Set Project\n"
CHAIN = "2\n0 3 0\n1 4 1 0\n"


# the cases


def test_all_cases_of_the_paper() -> None:
    cells = {
        (u.part, u.graph.size, u.graph.ccr, p.value) for u in units(FULL) for p in u.points
        if u.part in (CALM, FAILURE)
    }  # fmt: skip
    assert len(cells) == 2 * len(SIZES) * len(CCRS) * len(BOUNDS) == 2 * 5 * 3 * 10


@pytest.mark.parametrize("settings", [SAMPLE, FULL])
def test_methods_in_equal_shares_and_every_sweep(settings: Settings) -> None:
    counts: dict[tuple[object, ...], Counter[int]] = {}
    for u in units(settings):
        what = (u.part, replace(u.graph, number=0))
        counts.setdefault(what, Counter())[u.graph.number % len(METHODS)] += 1
        assert len({tuple(point.specs) for point in u.points}) == 1
    assert all(len(c) == 4 and len(set(c.values())) == 1 for c in counts.values())
    assert {part for part, _ in counts} == {
        CALM,
        FAILURE,
        *SWEEPS,
        *FAILING_SWEEPS,
        BY_PLANNER,
        SHARED,
    }


def test_the_same_graph_and_events_whatever_is_varied() -> None:
    graph = Graph(size=60, number=2)
    one = Instance(graph)
    for other in (replace(graph, ccr=1.5), replace(graph, spread=0.0)):
        there = Instance(other)
        assert (there.estimates.cost == one.estimates.cost).all()
        assert (there.workflow.use_task == one.workflow.use_task).all()
    assert measured_ccr(one.workflow) == pytest.approx(0.5)
    some, more = (one.truth(Case(bound=bound)).changes for bound in (0.3, 0.6))
    assert [e.time for e in some] == [e.time for e in more[: len(some)]]
    assert min(what(e) for e in some) >= 0.7
    assert Instance(replace(graph, seed=1)).planned != one.planned


def test_one_processor_fails_in_time() -> None:
    instance = Instance(Graph(size=60, number=1))
    [death] = [
        e
        for e in instance.truth(Case(bound=0.4, failures=1)).changes
        if isinstance(e, ProcessorGone)
    ]
    assert 0 <= death.time < instance.planned


@pytest.mark.parametrize("number", range(4))
def test_density_is_what_it_says(number: int) -> None:
    graph = Graph(size=300, number=number, predecessors=5.0)
    assert Instance(graph).workflow.n_edges / 300 == pytest.approx(5.0, rel=0.15)


def test_shapes_from_stg_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "diamond.stg").write_text(STG)
    (tmp_path / "chain.stg").write_text(CHAIN)
    found = shapes(str(tmp_path))
    assert {size: [name for name, _ in some] for size, some in found.items()} == {
        2: ["chain"], 3: ["diamond"]
    }  # fmt: skip
    settings = replace(SAMPLE, stg=str(tmp_path))
    assert (settings.sizes, settings.main_size) == ((2, 3), 3)
    parts = {u.part for u in units(settings)}
    assert "density" not in parts
    assert {"period", "ccr", CALM} <= parts
    wf = Instance(Graph(size=3, ccr=1.5, number=7, stg=str(tmp_path))).workflow
    assert (wf.n_tasks, wf.n_edges) == (5, 5)
    cost = np.array([wf.processor_cost[f"p{p}"] for p in range(PROCESSORS)])
    assert not cost[:, [0, 4]].any()
    assert (cost[:, 1:4] > 0).all()


def test_shapes_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        shapes(str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"no \.stg file"):
        shapes(str(tmp_path))


# the runs


@pytest.mark.parametrize("spec", SPECS.values())
@pytest.mark.parametrize(
    "case", [Case(bound=0.0), Case(bound=0.6, rate=5.0), Case(bound=0.4, failures=1, error=0.2)]
)
def test_every_run_is_valid_and_its_figures_are_possible(spec: str, case: Case) -> None:
    for number, ccr in ((0, 0.5), (3, 1.5)):
        instance = Instance(Graph(size=50, ccr=ccr, number=number))
        run = simulate(instance, instance.truth(case), spec)
        if spec != AT_PEAK:  # its plans do not know what they might
            check_run(run, instance.estimates)
        found = figures(run)
        assert list(found) == list(METRICS)
        if not case.error:
            least = instance.estimates.cost.min(axis=1, keepdims=True)
            assert found["makespan"] >= mean_path(instance.workflow, least)
        assert (found["rewound"] > 0) <= (case.failures > 0)
        assert found["needed"] > 0
        if spec == "static" and case == Case(bound=0.0):
            assert found["makespan"] == pytest.approx(instance.planned)
            assert found["lost"] == found["resent"] == found["remappings"] == 0


@pytest.mark.parametrize("part", ["planner", "period"])
def test_runs_of_the_sweeps_are_valid(part: str) -> None:
    graph = Graph(size=50, number=1)
    [(variant, points)] = SWEEPS[part](graph)
    instance = Instance(variant)
    point = points[-1]
    assert len(point.specs) == (len(POLICIES) * len(PLANNERS) if part == "planner" else 4)
    for spec in point.specs.values():
        check_run(simulate(instance, instance.truth(point.case), spec), instance.estimates)


def test_at_peak_speeds_is_the_same_only_if_nothing_changes() -> None:
    instance = Instance(Graph(size=50, number=1))
    for bound, same in ((0.0, True), (0.4, False)):
        truth = instance.truth(Case(bound=bound))
        one, other = (simulate(instance, truth, spec) for spec in ("dls/sr", AT_PEAK))
        assert (one.makespan == other.makespan) == same
        assert same or other.replans > one.replans  # a plan that knows less is late more often


def test_transfers_share_a_link() -> None:
    instance = Instance(Graph(size=50, number=1, spread=0.0))
    world = SharedLinks(instance, instance.truth(Case(bound=0.0)))
    short, long = (float(x) for x in np.sort(instance.workflow.item_size[:2]))
    for transfer, (item, hosts) in enumerate(
        zip(np.argsort(instance.workflow.item_size[:2]).tolist(), ((3, 5), (5, 3)), strict=True)
    ):
        world.perform(SendItem(transfer, item, *hosts, time=2.0))
    ends = [event.time for event in (world.next_event(), world.next_event()) if event]
    assert ends == pytest.approx([2 + 2 * short, 2 + short + long])


def test_shared_links_make_runs_longer() -> None:
    instance = Instance(Graph(size=50, number=1))
    truth = instance.truth(Case(bound=0.0))
    for spec in ("static", "dls/sr", "gtp", "gtp/c"):
        alone, shared = (simulate(instance, truth, spec, way) for way in (False, True))
        assert shared.makespan > alone.makespan


def test_data_sent_in_vain() -> None:
    instance = Instance(Graph(size=50, ccr=1.5, number=1, spread=0.0))
    truth = instance.truth(Case(bound=0.8, rate=10.0))
    for spec in ("gtp", "gtp/c"):
        run = simulate(instance, truth, spec)
        needed, resent = data_seconds(run)
        sent = run.workflow.item_size[run.transfers.item].sum()  # of links of bandwidth 1
        assert needed + resent == pytest.approx(sent)
        assert resent > 0
        assert run.migrations > 0


# the units


def test_a_strategy_that_does_not_depend_on_the_period_is_run_once() -> None:
    [unit] = [u for u in units(SAMPLE) if u.part == "period" and u.graph.number == 0]
    smaller = replace(unit, graph=replace(unit.graph, size=50))
    columns = gtp.measured(SAMPLE, smaller)
    assert len(columns["HEFT|makespan"]) == len(PERIODS)
    assert len(set(columns["HEFT|makespan"])) == len(set(columns["DLS/sr|makespan"])) == 1
    assert columns["GTP|remappings"][0] > 5 * columns["GTP|remappings"][-1]


@pytest.fixture(scope="module")
def expected() -> dict[int, Columns]:
    """What the small units come to, in this process."""
    return {number: EXPERIMENT.perform(SAMPLE, number)[0] for number in SMALL}


@pytest.mark.parametrize("jobs", [1, 2])
def test_by_how_many_processes_is_all_one(
    jobs: int, tmp_path: Path, expected: dict[int, Columns]
) -> None:
    path = tmp_path / "units.log"
    nearly_done(path, SMALL)
    checkpoint = Checkpoint.open(path, SAMPLE.described())
    try:
        EXPERIMENT.complete(SAMPLE, checkpoint, jobs)
    finally:
        checkpoint.close()
    assert {number: checkpoint.done[number] for number in SMALL} == expected
    assert [processes for _, processes in checkpoint.sessions] == [jobs]


def test_same_figures_on_any_hash_seed(expected: dict[int, Columns]) -> None:
    code = (
        "import json; from foreplan_reproductions.gtp.experiment import EXPERIMENT as e\n"
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
