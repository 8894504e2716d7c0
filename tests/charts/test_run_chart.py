"""The chart of a run: plan against fact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import foreplan
from foreplan.charts.build import chart_of, run_chart_of
from foreplan.charts.chart import Chart
from foreplan.charts.gantt import SUFFIXES, page, write_gantt
from foreplan.charts.picture import svg
from foreplan.errors import InputError
from foreplan.formats import run_trace_events
from foreplan.model import ENDS, Platform, Processor, Run
from foreplan.registry import strategy_names

from .schedules import HOSTILE, hostile_schedule, platform, random_schedule, workflow

WORLD: dict[str, Any] = {
    "availability": {"r1": [[20, 0.5]]},
    "failures": {"r2": [30, 60], "r3": 40},
}


def random_run(tasks: int, strategy: str = "slack", world: Any = None, **options: Any) -> Run:
    schedule = random_schedule(tasks, 4, per_host=2)
    options.setdefault("qoi", 0.4)
    return foreplan.simulate(
        schedule.workflow, platform(4, per_host=2), strategy, world=world, **options
    )


def texts(drawing: bytes) -> list[str]:
    root = ElementTree.fromstring(drawing)
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


def check_chart(run: Run, chart: Chart) -> None:
    """Every attempt is a bar where and when it ran; every line goes forward in time."""
    n = run.workflow.n_tasks * len(run.plans[:1])
    bars, log = chart.bars, run.attempts
    assert len(bars.name) == n + len(log.task)
    names = [chart.rows[row].name for row in bars.row.tolist()]
    for k in range(len(log.task)):
        assert bars.name[n + k] == run.workflow.task_names[log.task[k]]
        assert names[n + k] == run.platform.processor_names[log.processor[k]]
        lost = ENDS[log.end[k]] in ("failed", "cancelled", "rewound")
        assert (chart.categories[bars.category[n + k]] == ENDS[log.end[k]]) == lost
    assert np.array_equal(bars.start[n:], log.start)
    assert np.array_equal(bars.finish[n:], log.finish)
    for plan in run.plans[:1]:
        assert np.array_equal(bars.start[:n], plan.start)
        assert names[:n] == [run.platform.processor_names[p] for p in plan.processor]
    inputs = chart.inputs
    inner = inputs.source >= 0
    assert (inputs.target >= n).all()
    assert (inputs.source[inner] >= n).all()
    assert (bars.finish[inputs.source[inner]] <= inputs.sent[inner]).all()
    assert (inputs.sent <= inputs.arrival).all()
    assert (inputs.arrival <= bars.start[inputs.target]).all()
    arrived = np.isfinite(run.transfers.arrival).sum()
    assert np.count_nonzero(inputs.shown) <= arrived
    assert chart.end >= max(float(bars.finish.max()), run.makespan)
    assert bars.finish[list(chart.critical)[-1]] == run.makespan
    assert [bars.start[b] for b in chart.critical] == sorted(bars.start[b] for b in chart.critical)
    assert len(chart.palette) == len(chart.categories)
    assert len(chart.moments) == run.replans
    for row in chart.rows:
        edges = [row.begin, *(t for gap in row.away for t in gap), row.end]
        assert edges == sorted(edges)


@pytest.mark.parametrize("strategy", strategy_names())
@pytest.mark.parametrize("world", [None, WORLD])
def test_the_chart_is_the_run(strategy: str, world: Any) -> None:
    run = random_run(60, strategy, world)
    chart = run_chart_of(run)
    check_chart(run, chart)
    if world is None:
        made = np.isfinite(run.transfers.arrival)
        assert np.count_nonzero(chart.inputs.shown) >= 0.5 * np.count_nonzero(made)
    else:
        away = {row.name: row.away for row in chart.rows}
        assert away["r2"] == ((30.0, 60.0),)
        ends = {row.name: row.end for row in chart.rows}
        assert ends["r3"] == 40.0
        assert "failed" in chart.categories


def test_a_run_as_planned_has_the_critical_path_of_the_plan() -> None:
    run = random_run(60, "static", qoi=0.0)
    chart, planned = run_chart_of(run), chart_of(run.plans[0])
    check_chart(run, chart)
    n = run.workflow.n_tasks
    path = [run.attempts.task[bar - n] for bar in chart.critical]
    assert path == list(planned.critical)
    assert chart.bound == planned.bound


def test_an_input_sent_late_does_not_bind() -> None:
    """Just in time, the transfer waits for the processor: that is what the task waited for."""
    wf = workflow([2, 4, 20, 10], [(0, 3, 2)])
    pf = Platform.build([Processor("p", speed=2), Processor("q")])
    run = foreplan.simulate(wf, pf, "fifo")
    chart = run_chart_of(run)
    check_chart(run, chart)
    # n0 is done at 1, but p goes to n2; at 4 q is free for n3, and 2 s later the item is there
    last = run.to_dict()["tasks"]["n3"]
    assert (last["processor"], last["start"], last["finish"]) == ("q", 6.0, 16.0)
    assert [chart.bars.name[bar] for bar in chart.critical] == ["n1", "n3"]
    assert chart.bound == ("nothing", "processor")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(("tasks", "strategy"), [(1, "static"), (60, "always"), (60, "fifo")])
def test_files(tmp_path: Path, suffix: str, tasks: int, strategy: str) -> None:
    path = tmp_path / f"run{suffix}"
    write_gantt(random_run(tasks, strategy, WORLD), path)
    content = path.read_bytes()
    assert 1000 < len(content) < 1_000_000
    if suffix == ".svg":
        ElementTree.fromstring(content)


def test_many_tasks_stay_small(tmp_path: Path) -> None:
    schedule = random_schedule(2000, 40, per_host=8)
    run = foreplan.simulate(schedule.workflow, schedule.platform, "static", qoi=0.3)
    check_chart(run, run_chart_of(run))
    for suffix in SUFFIXES:
        write_gantt(run, tmp_path / f"run{suffix}")
        assert (tmp_path / f"run{suffix}").stat().st_size < 3_000_000


def test_the_head_and_the_legend() -> None:
    drawn = texts(svg(run_chart_of(random_run(60, "slack", WORLD))))
    assert "example, run by slack" in drawn
    assert any("(planned " in text and "failed attempts: " in text for text in drawn)
    assert {"planned", "new plan", "failed", "critical path", "transfer", "align"} <= set(drawn)
    plain = texts(svg(run_chart_of(random_run(60, "fifo"))))
    assert not {"planned", "new plan", "failed"} & set(plain)


def test_the_page_holds_the_run() -> None:
    run = random_run(40, "slack", WORLD)
    text = page(run_chart_of(run)).decode()
    data = json.loads(text.partition('type="application/json">')[2].partition("</script>")[0])
    assert [lane["meant"] for lane in data["lanes"]] == [True, False]
    assert len(data["moments"]) == run.replans
    assert data["palette"][data["categories"].index("failed")] == "#d64545"


def test_hostile_names(tmp_path: Path) -> None:
    schedule = hostile_schedule()
    run = foreplan.simulate(schedule.workflow, schedule.platform, "always", qoi=0.2)
    check_chart(run, run_chart_of(run))
    for suffix in SUFFIXES:
        write_gantt(run, tmp_path / f"run{suffix}")
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert HOSTILE[0] not in text


def test_an_unknown_suffix(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"known: \.html, \.png, \.svg"):
        write_gantt(random_run(3), tmp_path / "run.pdf")


def test_trace_events_of_a_run() -> None:
    run = random_run(60, "slack", WORLD)
    events = run_trace_events(run)["traceEvents"]
    json.dumps(events, allow_nan=False)
    bars = [e for e in events if e["ph"] == "X"]
    assert [e["ts"] / 1e6 for e in bars] == pytest.approx(run.attempts.start.tolist())
    assert {e["args"]["end"] for e in bars} >= {"finished", "failed"}
    assert len([e for e in events if e["ph"] == "i"]) == run.considered
    arrived = int(np.isfinite(run.transfers.arrival).sum())
    assert [e["ph"] for e in events].count("b") == [e["ph"] for e in events].count("e") == arrived
