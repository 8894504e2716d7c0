"""The page in a real browser, where there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from foreplan.charts.gantt import write_gantt
from foreplan.charts.graph import graph_of, write_graph
from foreplan.model import Schedule

from .browser import NEEDED, looked_at
from .schedules import chain, hostile_schedule, random_schedule

AFTER = """<script>
const marks = document.getElementById("marks"), base = document.getElementById("base");
marks.setPointerCapture = () => {};
const text = (id) => document.getElementById(id).textContent;
const ink = (canvas) => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0;
  for (let i = 3; i < pixels.length; i += 4) if (pixels[i] > 0) count++;
  return count;
};
const dark = (canvas) => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let drawn = 0, black = 0;
  for (let i = 0; i < pixels.length; i += 4) {
    if (pixels[i + 3] < 200) continue;
    drawn++;
    if (pixels[i] < 60 && pixels[i + 1] < 60 && pixels[i + 2] < 60) black++;
  }
  return black / drawn;
};
const report = { ink: ink(base), dark: dark(base), title: document.title };
const at = (kind, x, y) => marks.dispatchEvent(new PointerEvent(kind,
  { clientX: x, clientY: y, button: 0, bubbles: true, pointerId: 1 }));
const key = (name, target = marks) => target.dispatchEvent(
  new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
const wheel = (extra) => marks.dispatchEvent(new WheelEvent("wheel",
  { deltaY: -200, clientX: 600, clientY: 300, bubbles: true, cancelable: true, ...extra }));
for (const extra of [{}, { shiftKey: true }, { ctrlKey: true }, { deltaX: 300, deltaY: 0 }]) {
  wheel(extra);
}
for (const name of ["+", "-", "[", "]", "ArrowLeft", "ArrowUp", "0"]) key(name);
at("pointerdown", 500, 300); at("pointermove", 400, 320); at("pointerup", 400, 320);
key("0");
key("n"); key("n");
report.spoken = text("spoken");
const search = document.getElementById("search");
search.value = document.body.dataset.wanted;
search.dispatchEvent(new Event("input"));
report.count = text("found");
key("Enter", search);
report.tip = text("tip");
report.found = text("found");
document.getElementById("show-transfers").click();
document.getElementById("reset").click();
document.getElementById("stage").style.height = "300px";
setTimeout(() => {
  report.after = ink(base);
  report.images = document.images.length;
  report.hacked = window.hacked ?? null;
  report.problems = window.problems;
  const answer = document.createElement("pre");
  answer.id = "report";
  answer.textContent = JSON.stringify(report);
  document.body.append(answer);
}, 500);
</script>"""


def visit(schedule: Schedule, folder: Path, wanted: str) -> Any:
    """What the page of a chart reports after it was used a little."""
    path = folder / "chart.html"
    write_gantt(schedule, path)
    return looked_at(path, AFTER, wanted)


@NEEDED
def test_the_page_draws_and_can_be_used(tmp_path: Path) -> None:
    schedule = random_schedule(60, 6, per_host=2)
    report = visit(schedule, tmp_path, wanted=schedule.workflow.task_names[17])
    assert report["problems"] == []
    assert report["ink"] > 100_000
    assert report["after"] > 50_000
    assert report["title"] == "example, planned by greedy"
    assert "critical path yes, 2 of" in report["spoken"]
    assert (report["count"], report["found"]) == ("1 found", "1 of 1")
    assert report["tip"].startswith(schedule.workflow.task_names[17])


@NEEDED
def test_a_long_critical_path_is_not_black(tmp_path: Path) -> None:
    report = visit(chain(801, processors=2), tmp_path, wanted="n7")
    assert report["problems"] == []
    assert 0.01 < report["dark"] < 0.3


@NEEDED
def test_hostile_names_stay_text(tmp_path: Path) -> None:
    report = visit(hostile_schedule(), tmp_path, wanted="onerror")
    assert report["problems"] == []
    assert (report["hacked"], report["images"]) == (None, 0)
    assert report["tip"].startswith("</script><img src=x onerror")
    assert report["ink"] > 100_000


GRAPH = """<script>
const picture = document.getElementById("graph"), stage = document.getElementById("stage");
const text = (id) => document.getElementById(id).textContent, report = {};
const inside = (node) => {
  const box = node.getBoundingClientRect(), all = stage.getBoundingClientRect();
  return box.width > 0 && box.left >= all.left && box.right <= all.right && box.top >= all.top
    && box.bottom <= all.bottom;
};
const key = (name, target = stage) => target.dispatchEvent(
  new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
const nodes = [...picture.querySelectorAll(".node")];
report.nodes = nodes.length;
report.seen = nodes.filter(inside).length;
const first = picture.getAttribute("viewBox");
stage.dispatchEvent(new WheelEvent("wheel", { deltaY: -200, clientX: 600, clientY: 300 }));
for (const name of ["+", "-", "ArrowLeft", "ArrowUp"]) key(name);
report.moved = picture.getAttribute("viewBox") !== first;
key("0");
report.back = picture.getAttribute("viewBox") === first;
nodes[1].dispatchEvent(new PointerEvent("pointermove", { bubbles: true, pointerId: 1 }));
report.tip = text("tip");
nodes[1].dispatchEvent(new PointerEvent("pointerdown", { bubbles: true, button: 0, pointerId: 1 }));
nodes[1].dispatchEvent(new PointerEvent("pointerup", { bubbles: true, button: 0, pointerId: 1 }));
report.near = picture.querySelectorAll(".near").length;
const search = document.getElementById("search");
search.value = document.body.dataset.wanted;
search.dispatchEvent(new Event("input"));
key("Enter", search);
report.found = text("found");
report.chosen = picture.querySelector(".node.chosen").dataset.n;
setTimeout(() => {
  report.images = document.images.length;
  report.hacked = window.hacked ?? null;
  report.problems = window.problems;
  const answer = document.createElement("pre");
  answer.id = "report";
  answer.textContent = JSON.stringify(report);
  document.body.append(answer);
}, 300);
</script>"""


@NEEDED
def test_the_page_of_a_graph_can_be_used(tmp_path: Path) -> None:
    workflow = hostile_schedule().workflow
    write_graph(graph_of(workflow), tmp_path / "graph.html")
    report = looked_at(tmp_path / "graph.html", GRAPH, wanted="onerror")
    assert report["problems"] == []
    assert (report["hacked"], report["images"]) == (None, 0)
    assert report["nodes"] == report["seen"] == workflow.n_tasks
    assert report["moved"]
    assert report["back"]
    assert report["tip"].startswith(workflow.task_names[1])
    assert report["near"] == 2
    assert (report["found"], report["chosen"]) == ("1 of 1", "0")
