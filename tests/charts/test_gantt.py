from __future__ import annotations

import dataclasses
import os
import struct
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from foreplan.charts.build import chart_of
from foreplan.charts.chart import Chart, Lane
from foreplan.charts.gantt import SUFFIXES, write_chart, write_gantt
from foreplan.charts.picture import Lettering, svg
from foreplan.errors import InputError
from foreplan.model import Schedule

from .schedules import HOSTILE, chain, even, hostile_schedule, placed, random_schedule, workflow


def check_file(path: Path, most: int = 3_000_000) -> None:
    content = path.read_bytes()
    assert 1000 < len(content) < most
    if path.suffix == ".svg":
        assert ElementTree.fromstring(content).tag == "{http://www.w3.org/2000/svg}svg"
    elif path.suffix == ".png":
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", content[16:24])
        assert 800 <= width <= 3000
        assert 150 <= height <= 3000
        assert len(content) < 1_000_000
    else:
        assert content.startswith(b"<!doctype html>")


def texts(drawing: bytes) -> list[str]:
    root = ElementTree.fromstring(drawing)
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_one_task(tmp_path: Path, suffix: str) -> None:
    schedule = placed(workflow([3]), even(1), on=[0], start=[0])
    write_gantt(schedule, tmp_path / f"chart{suffix}")
    check_file(tmp_path / f"chart{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nothing_takes_any_time(tmp_path: Path, suffix: str) -> None:
    schedule = placed(workflow([0, 0], [(0, 1, 0)]), even(2), on=[0, 1], start=[0, 0])
    write_gantt(schedule, tmp_path / f"chart{suffix}")
    check_file(tmp_path / f"chart{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_tasks(tmp_path: Path, suffix: str) -> None:
    schedule = placed(workflow([]), even(2), on=[], start=[], check=False)
    write_gantt(schedule, tmp_path / f"chart{suffix}")
    check_file(tmp_path / f"chart{suffix}")


@pytest.fixture(scope="module")
def large() -> Schedule:
    return random_schedule(5000, 200, per_host=8)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_many_tasks_stay_small(tmp_path: Path, suffix: str, large: Schedule) -> None:
    write_gantt(large, tmp_path / f"chart{suffix}")
    check_file(tmp_path / f"chart{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_hostile_names(tmp_path: Path, suffix: str) -> None:
    write_gantt(hostile_schedule(), tmp_path / f"chart{suffix}")
    check_file(tmp_path / f"chart{suffix}")


def test_names_are_drawn_as_they_are_where_they_fit() -> None:
    drawn = texts(svg(chart_of(hostile_schedule())))
    assert "$x_1$" in drawn
    assert "\\frac" in drawn
    assert any("</script>" in text for text in drawn)
    assert any("\u2026" in text for text in drawn)


def test_the_same_chart_gives_the_same_bytes() -> None:
    first, second = (svg(chart_of(random_schedule(300, 8, per_host=2))) for _ in range(2))
    assert first == second
    assert b"<dc:date>" not in first


def test_drawing_leaves_the_settings_of_matplotlib_alone() -> None:
    import matplotlib

    names = [name for name in matplotlib.rcParams if not name.startswith(("backend", "_"))]
    before = {name: matplotlib.rcParams[name] for name in names}
    svg(chart_of(random_schedule(10, 2)))
    assert {name: matplotlib.rcParams[name] for name in names} == before


def test_matplotlib_is_loaded_only_to_draw_a_picture() -> None:
    program = "import sys, foreplan.charts; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_head_and_the_legend() -> None:
    drawn = texts(svg(chart_of(random_schedule(60, 4, per_host=2))))
    assert "example, planned by greedy" in drawn
    assert any("makespan" in text and "mean utilisation" in text for text in drawn)
    for word in ("align", "merge", "critical path", "transfer", "r3", "host1", "time (min)"):
        assert word in drawn


def test_upper_case_suffix_and_replacing(tmp_path: Path) -> None:
    target = tmp_path / "chart.HTML"
    target.write_text("old")
    write_gantt(random_schedule(5, 2), str(target))
    check_file(target)
    assert os.listdir(tmp_path) == ["chart.HTML"]


@pytest.mark.parametrize("name", ["chart.pdf", "chart", "chart.json"])
def test_unknown_suffix(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"known: \.html, \.png, \.svg"):
        write_gantt(random_schedule(5, 2), tmp_path / name)


def test_no_such_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no directory"):
        write_gantt(random_schedule(5, 2), tmp_path / "missing" / "chart.html")


def test_the_target_is_a_directory(tmp_path: Path) -> None:
    (tmp_path / "chart.html").mkdir()
    with pytest.raises(InputError, match="cannot write it"):
        write_gantt(random_schedule(5, 2), tmp_path / "chart.html")
    assert os.listdir(tmp_path) == ["chart.html"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_one_may_not_write(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot write it"):
        write_gantt(random_schedule(5, 2), tmp_path / "chart.html")


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "chart.html"
    target.write_text("old")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(InputError, match="permission denied"):
        write_gantt(random_schedule(5, 2), target)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["chart.html"]


def two_lanes() -> Chart:
    """The plan above, and what happened (a fifth slower) below."""
    chart = chart_of(random_schedule(30, 3))
    bars, n = chart.bars, len(chart.bars.name)
    both = dataclasses.replace(
        bars,
        name=bars.name * 2,
        row=np.tile(bars.row, 2),
        lane=np.repeat(np.array([0, 1], dtype=np.int32), n),
        start=np.concatenate([bars.start, bars.start * 1.2]),
        finish=np.concatenate([bars.finish, bars.finish * 1.2]),
        category=np.tile(bars.category, 2),
    )
    lanes = (Lane("planned", 0.0, 0.3), Lane("actual", 0.35, 0.65))
    return dataclasses.replace(chart, bars=both, lanes=lanes, end=chart.end * 1.2)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_plan_against_what_happened(tmp_path: Path, suffix: str) -> None:
    write_chart(two_lanes(), tmp_path / f"chart{suffix}")
    check_file(tmp_path / f"chart{suffix}")


def test_lettering() -> None:
    lettering = Lettering()
    for name in HOSTILE:
        clean = lettering.clean(name)
        assert clean.isprintable()
        assert lettering.width(lettering.fitted(name, 9.0)) <= 9.0
    assert lettering.fitted("abc", 0.1) == ""
    assert lettering.fitted("abcdefghijklmnop", 6.0).count("\u2026") == 1


def dark_share(path: Path) -> float:
    """The share of dark pixels in the rows of a picture."""
    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("L"))[90:-70, 60:-40]
    return float((pixels < 80).mean())


@pytest.mark.parametrize(("tasks", "processors", "most"), [(800, 1, 0.15), (801, 2, 0.25)])
def test_a_long_critical_path_is_not_black(
    tmp_path: Path, tasks: int, processors: int, most: float
) -> None:
    write_gantt(chain(tasks, processors), tmp_path / "chart.png")
    assert 0.01 < dark_share(tmp_path / "chart.png") < most


def test_narrow_bars_have_no_white_edges(tmp_path: Path) -> None:
    n = 3000
    wf = workflow([1.0] * n + [n + 1.0])  # the last one is the critical path
    schedule = placed(wf, even(2), [0] * n + [1], [*map(float, range(n)), 0.0])
    write_gantt(schedule, tmp_path / "chart.png")
    with Image.open(tmp_path / "chart.png") as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)[:, 300:-300]
    blue = (pixels[:, :, 2] > pixels[:, :, 0] + 60).mean(axis=1)  # by line of pixels
    full = np.flatnonzero(blue > 0.95)
    assert full[-1] - full[0] > 60  # both rows
