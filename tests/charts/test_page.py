from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from foreplan.charts.build import chart_of
from foreplan.charts.gantt import page
from foreplan.model import Schedule
from foreplan.scheduling.critical import critical_path

from .schedules import HOSTILE, hostile_schedule, random_schedule


class Elements(HTMLParser):
    """Every element of a page, and the text of the scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data


def parsed(schedule: Schedule) -> tuple[Elements, Any]:
    elements = Elements()
    elements.feed(page(chart_of(schedule)).decode())
    return elements, json.loads(elements.scripts[0])


@pytest.mark.parametrize("schedule", [random_schedule(80, 6, per_host=2), hostile_schedule()])
def test_the_data_are_the_schedule(schedule: Schedule) -> None:
    _, data = parsed(schedule)
    bars, plan = data["bars"], schedule.to_dict()
    assert bars["name"] == list(schedule.workflow.task_names)
    rows = [data["rows"][row]["name"] for row in bars["row"]]
    for name, row, start, finish in zip(
        bars["name"], rows, bars["start"], bars["finish"], strict=True
    ):
        task = plan["tasks"][name]
        assert (task["processor"], task["start"], task["finish"]) == (row, start, finish)
    assert data["end"] == schedule.makespan
    assert data["critical"]["bar"] == critical_path(schedule)
    _, producers, consumers = schedule.workflow.dependencies()
    assert data["inputs"]["source"] == producers.tolist()
    assert data["inputs"]["target"] == consumers.tolist()
    assert len(data["palette"]) == len(data["categories"])


def test_hostile_names_add_no_element() -> None:
    tame, _ = parsed(random_schedule(12, 6))
    wild, data = parsed(hostile_schedule())
    assert wild.found == tame.found
    assert len(wild.scripts) == 2
    assert data["bars"]["name"] == list(HOSTILE)
    assert wild.scripts[1] == tame.scripts[1]


def test_the_page_needs_nothing_else() -> None:
    text = page(chart_of(random_schedule(12, 3))).decode()
    elements, _ = parsed(random_schedule(12, 3))
    assert not re.search(r"https?://|@import|url\(|fetch\(|innerHTML", text)
    assert not [attrs for _, attrs in elements.found if "src" in attrs or "href" in attrs]
    assert "default-src 'none'" in text
    assert "/*STYLE*/" not in text
