"""The page of a report in a real browser: the chart in it, all tasks, what is folded away."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from charts.browser import BROWSER, FLAGS, NEEDED, looked_at
from cli.commands import succeed
from cli.journals import forks, write_run

PAGE = """<script>
const report = {}, rows = [...document.querySelectorAll("#tasks > tbody > tr")];
const cells = (row) => [...row.cells].map((cell) => cell.textContent);
const base = document.getElementById("base"), box = base.getBoundingClientRect();
const pixels = base.getContext("2d").getImageData(0, 0, base.width, base.height).data;
report.colours = new Set();
for (let i = 0; i < pixels.length; i += 4) {
  if (pixels[i + 3] === 255) report.colours.add(pixels.slice(i, i + 3).join());
}
report.colours = report.colours.size;
report.chart = [box.width, box.height];
report.frames = document.querySelectorAll("iframe").length;
report.wide = document.documentElement.scrollWidth > innerWidth;
report.rows = rows.map(cells);
report.folded = [...document.querySelectorAll("section > details")].map(
  (details) => [details.querySelector("h2")?.textContent, details.open]);
const wanted = document.getElementById("wanted");
wanted.value = "failed";
wanted.dispatchEvent(new Event("input"));
report.found = [rows.filter((row) => !row.hidden).length];
report.found.push(document.getElementById("shown").textContent);
const marks = document.getElementById("marks");
const wheel = new WheelEvent("wheel", { deltaY: 100, bubbles: true, cancelable: true });
marks.dispatchEvent(wheel);
report.scrolls = !wheel.defaultPrevented;  // the page, as the chart was not clicked
const search = document.getElementById("search");
search.value = "part-0";
search.dispatchEvent(new Event("input"));
search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
report.tip = document.getElementById("tip").textContent;
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
RUDE = "</script><img src=x onerror=window.hacked=1>"


def written(folder: Path) -> Path:
    """The page of a run in which a task has failed, and another could not begin."""
    content = forks(4)
    content["tasks"]["part-1"]["run"] = f"echo '{RUDE}'"
    content["tasks"][RUDE] = {"cost": 1}
    home = write_run(folder, content, fails={2: RUDE}, ended="failed")
    for attempt in range(8):  # whichever it was
        (home.logs / f"{attempt}-part-1.err").write_text(f"line\n{RUDE}\n")
    succeed("report", "last", "--html", "page.html", cwd=folder)
    return folder / "page.html"


@NEEDED
def test_the_page_of_a_report(tmp_path: Path) -> None:
    report = looked_at(written(tmp_path), PAGE)
    assert report["problems"] == []
    assert (report["hacked"], report["images"], report["frames"]) == (None, 0, 0)
    assert report["colours"] > 5
    assert report["chart"][0] > 800
    assert report["chart"][1] > 80
    assert not report["wide"]
    assert report["scrolls"]
    assert report["tip"].startswith("part-0")
    rows = {row[0]: row for row in report["rows"]}
    assert len(rows) == 7
    (failed,) = (row for row in report["rows"] if row[2] == "failed")
    assert rows["join"][2:5] == ["blocked", rows["join"][3], "0"]
    assert rows["join"][3].startswith("planned: local-")
    assert rows["split"][1:3] == ["split", "done"]
    assert rows["split"][4:] == ["1", "0 s to 1 s", "0 s to 1 s", "900 ms", "-", "-"]
    assert report["found"] == [1, "1 of 7"]
    assert failed[4] == "1"
    assert ["All tasks", True] in report["folded"]


@NEEDED
def test_the_table_of_new_plans_is_folded_away(tmp_path: Path) -> None:
    write_run(tmp_path, forks(6), factor=3.0)
    succeed("report", "last", "--html", "page.html", cwd=tmp_path)
    report = looked_at(tmp_path / "page.html", PAGE)
    assert ["New plans, and why", False] in report["folded"]


@NEEDED
def test_a_screenshot_has_the_chart(tmp_path: Path) -> None:
    """As a frame it was an empty box."""
    page, picture = written(tmp_path), tmp_path / "page.png"
    flags = [flag for flag in FLAGS if flag not in ("--dump-dom", "--window-size=1200,700")]
    more = ["--window-size=1200,2000", "--hide-scrollbars", f"--screenshot={picture}"]
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    command = [BROWSER, *flags, *more, profile, page.as_uri()]
    subprocess.run(command, capture_output=True, timeout=60, check=True)
    pixels = Image.open(picture).convert("RGB").getcolors(1 << 24)
    assert pixels is not None
    counts = {colour: count for count, colour in pixels}
    for colour in ((0x77, 0xAA, 0xDD), (0xEE, 0x88, 0x66)):  # the bars of two categories
        assert counts.get(colour, 0) > 1000


def test_commands_and_logs_are_there(tmp_path: Path) -> None:
    page = written(tmp_path).read_text()
    assert len(re.findall(r"<p class=\"quiet\">logs/\d-part-1\.err</p>", page)) == 1
    assert "<pre>line\n&lt;/script&gt;&lt;img" in page
    assert page.count("&lt;/script&gt;&lt;img src=x") >= 3


@pytest.mark.parametrize("tasks", [250])
def test_many_tasks_are_folded_away(tmp_path: Path, tasks: int) -> None:
    write_run(tmp_path, forks(tasks))
    succeed("report", "last", "--html", "page.html", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text()
    assert "<details><summary><h2>All tasks</h2>" in page
    assert page.count('<tr class="done">') == tasks + 2
