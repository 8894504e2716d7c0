"""Charts of tasks with several cores, and of memory and GPUs in use."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import foreplan
from foreplan.charts.build import chart_of, run_chart_of
from foreplan.charts.chart import Chart
from foreplan.charts.gantt import SUFFIXES, page, write_gantt
from foreplan.charts.picture import svg
from foreplan.model import Run, Schedule
from foreplan.model.profiles import profile, rows_of
from foreplan.model.record import AttemptLog
from foreplan.model.resources import Cores
from foreplan.scheduling.critical import Bound, critical_steps

from .browser import NEEDED, looked_at
from .fitted import PLATFORM, WORKFLOW, fitted_plan, fitted_run, planned


def row_names(chart: Chart, bar: int) -> set[str]:
    """The names of the rows that a bar takes, over all of its blocks."""
    blocks = chart.bars.blocks
    assert blocks is not None
    at = range(blocks.ptr[bar], blocks.ptr[bar + 1])
    taken = [row for k in at for row in range(blocks.row[k], blocks.row[k] + blocks.rows[k])]
    assert len(taken) == len(set(taken))
    return {chart.rows[row].name for row in taken}


def test_a_wide_task_takes_the_rows_of_its_cores() -> None:
    schedule = fitted_plan()
    chart, names = chart_of(schedule), schedule.platform.processor_names
    assert schedule.cores is not None
    for task in range(schedule.workflow.n_tasks):
        assert row_names(chart, task) == {names[p] for p in schedule.cores.of(task)}
    run = fitted_run()
    chart, log = run_chart_of(run), run.attempts
    assert log.cores is not None
    for k in range(len(log.task)):
        cores = {names[p] for p in log.cores.of(k)}
        assert row_names(chart, run.workflow.n_tasks + k) == cores


def test_cores_that_are_not_neighbours_are_blocks_apart() -> None:
    tasks = {"long": {"cost": 9}, "one": {"cost": 1}, "wide": {"cost": 1, "cores": 2}}
    apart = replace(
        planned({"tasks": tasks}, {"hosts": {"h": {"cores": 3}}}),
        processor=np.array([1, 0, 0], dtype=np.int32),
        start=np.array([0.0, 0.0, 1.0]),
        finish=np.array([9.0, 1.0, 2.0]),
        cores=Cores(np.array([0, 1, 2, 4]), np.array([1, 0, 0, 2])),
    )
    foreplan.check_schedule(apart)
    blocks = chart_of(apart).bars.blocks
    assert blocks is not None
    assert blocks.ptr.tolist() == [0, 1, 2, 4]
    assert (blocks.row.tolist(), blocks.rows.tolist()) == ([1, 0, 0, 2], [1, 1, 1, 1])
    ElementTree.fromstring(svg(chart_of(apart)))


def in_use(shown: Schedule | Run, host: str, time: float, column: int) -> float:
    """What is held then, task by task."""
    rows, pf = rows_of(shown), shown.platform
    needs = None if isinstance(rows, AttemptLog) else rows.needs
    amount = rows.amount if isinstance(rows, AttemptLog) else needs.amount if needs else None
    assert amount is not None
    return sum(
        float(amount[k, column])
        for k in range(len(rows.start))
        if pf.host_names[pf.host[rows.processor[k]]] == host
        and rows.start[k] <= time < rows.finish[k]
    )


def test_gauges_have_what_is_held() -> None:
    plan, run = fitted_plan(), fitted_run()
    for chart in (chart_of(plan), run_chart_of(run)):
        found = [(g.host, g.kind, g.size) for g in chart.gauges]
        assert found == [("big", "memory", 32e9), ("big", "gpus", 2.0)]  # nothing is held on small
        for gauge in chart.gauges:
            for level in gauge.levels:
                shown = plan if level.meant or len(chart.lanes) == 1 else run
                for k, time in enumerate(level.time):
                    column = ("memory", "gpus").index(gauge.kind)
                    assert level.held[k] == in_use(shown, gauge.host, float(time), column)
                    assert level.held[k] <= gauge.size
    assert max(max(level.held, default=0) for level in chart.gauges[0].levels) >= 20e9


def test_gauges_of_which_hardly_any_is_held_are_left_out() -> None:
    hosts = {"big": {"cores": 2, "memory": "100GB", "gpus": 4}}
    for memory, kinds in (("999MB", ["gpus"]), ("1GB", ["memory", "gpus"])):
        tasks = {"a": {"cost": 2, "memory": memory, "gpus": 1}}
        chart = chart_of(planned({"tasks": tasks}, {"hosts": hosts}))
        assert [gauge.kind for gauge in chart.gauges] == kinds
        legends = {level.legend for gauge in chart.gauges for level in gauge.levels}
        assert legends == {f"{', '.join(kinds)} held"}
    small = {"tasks": {"a": {"cost": 2, "memory": "1MB"}}}
    assert chart_of(planned(small, {"hosts": hosts})).gauges == ()


def test_a_profile_ends_before_it_begins() -> None:
    times = np.array([0.0, 1.0, 1.0]), np.array([1.0, 2.0, 1.0])
    steps = profile(*times, np.array([0.1, 0.2, 7.0]))
    assert steps.time.tolist() == [0.0, 1.0, 2.0]
    assert steps.held.tolist() == [0.1, 0.2, 0.0]
    assert steps.most == 0.2
    assert profile(*(np.empty(0),) * 3).most == 0.0


def test_plain_plans_have_no_gauges_on_hosts_with_memory() -> None:
    chart = chart_of(planned({"tasks": {"a": {"cost": 1}}}, PLATFORM))
    assert chart.gauges == ()
    assert chart.bars.blocks is None
    assert chart.places.row.tolist() == [*range(13)]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files(tmp_path: Path, suffix: str) -> None:
    shown: list[Schedule | Run] = [fitted_plan(), fitted_run(), fitted_run("fifo")]
    for k, each in enumerate(shown):
        write_gantt(each, tmp_path / f"{k}{suffix}")
    content = (tmp_path / f"1{suffix}").read_bytes()
    assert 1000 < len(content) < 1_000_000
    if suffix == ".svg":
        root = ElementTree.fromstring(content)
        drawn = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
        words = {"memory 32 GB", "gpus 2", "planned to be held"}
        assert words <= set(drawn)
        assert "memory, gpus held" in drawn


def test_a_task_that_waits_for_memory_is_told() -> None:
    tasks = {"a": {"cost": 4, "memory": "6GB"}, "b": {"cost": 3, "memory": "6GB"}}
    plan = planned({"tasks": tasks}, {"hosts": {"h": {"cores": 2, "memory": "8GB"}}})
    assert plan.makespan == 7.0
    plan = replace(plan, processor=np.array([0, 1], dtype=np.int32), cores=None)
    foreplan.check_schedule(plan)
    assert [step.bound for step in critical_steps(plan)] == [Bound.NOTHING, Bound.AMOUNTS]
    wide = {"a": {"cost": 4}, "b": {"cost": 3, "cores": 2}, "c": {"cost": 3}}
    plan = planned({"tasks": wide}, {"hosts": {"h": {"cores": 2}}})
    bounds = [step.bound for step in critical_steps(plan)]
    assert bounds == [Bound.NOTHING, Bound.PROCESSOR]


AFTER = """<script>
const marks = document.getElementById("marks"), tips = new Set(), report = {};
const box = marks.getBoundingClientRect();
const ink = () => {
  const data = marks.getContext("2d").getImageData(0, 0, marks.width, marks.height).data;
  let count = 0;
  for (let i = 3; i < data.length; i += 4) if (data[i] > 0) count++;
  return count;
};
const middle = box.left + box.width * 0.45;
for (let y = box.top + 28; y < box.bottom; y += 4) {
  marks.dispatchEvent(new PointerEvent("pointermove",
    { clientX: middle, clientY: y, bubbles: true, pointerId: 1 }));
  const tip = document.getElementById("tip");
  if (!tip.hidden) tips.add(tip.textContent);
}
report.tips = [...tips];
const search = document.getElementById("search");
search.value = "c";
search.dispatchEvent(new Event("input"));
search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
report.found = document.getElementById("tip").textContent;
report.legend = document.getElementById("legend").textContent;
setTimeout(() => {
  report.marked = ink();
  report.problems = window.problems;
  const answer = document.createElement("pre");
  answer.id = "report";
  answer.textContent = JSON.stringify(report);
  document.body.append(answer);
}, 300);
</script>"""


@NEEDED
def test_the_page_tells_cores_and_memory(tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    write_gantt(fitted_run(), path)
    report = looked_at(path, AFTER)
    assert report["problems"] == []
    assert "8 cores on big: big-1 to big-8" in report["found"]
    assert "memory, gpus held" in report["legend"]
    told = [tip for tip in report["tips"] if tip.startswith("memory of big")]
    assert told
    assert all("size32 GB" in tip and "held" in tip and "planned" in tip for tip in told)
    assert any(tip.startswith("gpus of big") for tip in report["tips"])
    assert any("baractual" in tip and tip.startswith("c") for tip in report["tips"])
    assert any("barplanned" in tip and tip.startswith("c") for tip in report["tips"])
    assert report["marked"] > 1000


def test_the_page_has_blocks_only_where_there_are_some() -> None:
    def data(chart: Chart) -> dict[str, object]:
        text = page(chart).decode()
        content = text.partition('type="application/json">')[2].partition("</script>")[0]
        found: dict[str, object] = json.loads(content)
        return found

    wide = data(chart_of(fitted_plan()))
    bars = wide["bars"]
    assert isinstance(bars, dict)
    assert sum(bars["blocks"]["rows"]) == sum(
        task["cores"] for task in fitted_plan().to_dict()["tasks"].values()
    )
    plain = {name: {"cost": 1} for name in WORKFLOW["tasks"]}
    found = data(chart_of(planned({"tasks": plain}, PLATFORM)))
    assert found["gauges"] == []
    assert isinstance(found["bars"], dict)
    assert found["bars"]["blocks"] is None
