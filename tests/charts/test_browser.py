"""The page in a real browser, where there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from weft.charts import write_gantt
from weft.model import Schedule

from .schedules import hostile_schedule, random_schedule

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--window-size=1200,700",
    "--virtual-time-budget=3000",
    "--dump-dom",
)

BEFORE = """<script>
window.problems = [];
addEventListener("error", (event) => problems.push(String(event.message)));
addEventListener("securitypolicyviolation", (event) => problems.push(event.violatedDirective));
console.error = (...words) => problems.push(words.join(" "));
</script>"""

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
const report = { ink: ink(base), title: document.title };
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
    """What the page reports after it was used a little."""
    path = folder / "chart.html"
    write_gantt(schedule, path)
    text = path.read_text(encoding="utf-8").replace("<head>", "<head>" + BEFORE, 1)
    text = text.replace("<body>", f'<body data-wanted="{wanted}">', 1)
    path.write_text(text.replace("</body>", AFTER + "</body>"), encoding="utf-8")
    command = [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}", path.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    found = re.search(r'<pre id="report">(.*?)</pre>', done.stdout.decode(), re.DOTALL)
    assert found, done.stderr.decode()[-2000:]
    return json.loads(unescape(found[1]))


@pytest.mark.skipif(not BROWSER, reason="no chromium here")
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


@pytest.mark.skipif(not BROWSER, reason="no chromium here")
def test_hostile_names_stay_text(tmp_path: Path) -> None:
    report = visit(hostile_schedule(), tmp_path, wanted="onerror")
    assert report["problems"] == []
    assert (report["hacked"], report["images"]) == (None, 0)
    assert report["tip"].startswith("</script><img src=x onerror")
    assert report["ink"] > 100_000
