"""What notebooks show: a picture and a short table, whatever things are called and however many."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.generators import generate, generate_platform
from foreplan.model import Estimates, Situation
from foreplan.runs import Failure

ROOT = Path(__file__).parents[2]
EVIL = "<script>alert(1)</script>\n\x1b[31m'\"&"
LARGE = 200_000  # characters that a notebook can keep
ALLOWED = {"div", "img", "table", "tr", "th", "td"}


def workflow(name: str = "w") -> foreplan.Workflow:
    tasks = {"a" + name: {"cost": 3}, "b" + name: {"cost": {"p" + name: 2, "q": 1}}}
    edges = [["a" + name, "b" + name, 1]]
    return foreplan.load({"name": name, "tasks": tasks, "edges": edges})


def platform(name: str = "w") -> foreplan.Platform:
    return foreplan.load_platform({"processors": {"p" + name: {"price": 1}, "q": {"speed": 2}}})


def things(name: str) -> list[Any]:
    wf, pf = workflow(name), platform(name)
    return [
        wf,
        foreplan.plan(wf, pf),
        foreplan.simulate(wf, pf, "slack", qoi=0.2),
        foreplan.compare(wf, pf, "static,slack", runs=2, jobs=1),
        foreplan.pareto(wf, pf, points=4),
        foreplan.what_if(wf, pf, remove="each"),
    ]


class Elements(HTMLParser):
    """The elements of a page, and what it says."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("number", range(6), ids=lambda k: ["w", "s", "r", "c", "f", "i"][k])
def test_names_of_others_are_only_names(number: int) -> None:
    thing = things(EVIL)[number]
    shown = Elements(thing._repr_html_())
    assert set(shown.tags) <= ALLOWED
    assert {name for name, _ in shown.attributes} <= {"alt", "src", "style", "colspan"}
    assert shown.tags.count("img") == 1
    assert "table" in shown.tags
    assert repr(thing).isprintable()
    assert len(repr(thing)) < 400


def test_a_flow_shows_its_graph() -> None:
    flow = foreplan.Flow(EVIL)
    assert Elements(flow._repr_html_()).tags == ["div"]
    flow.task(sum, [flow.task(abs, -1)])
    shown = Elements(flow._repr_html_())
    assert set(shown.tags) <= ALLOWED
    assert "img" in shown.tags
    assert "builtins.abs" in shown.text


def test_an_outcome_says_what_failed() -> None:
    run = foreplan.simulate(workflow(), platform(), "static")
    failures = tuple(Failure(f"task {k} {EVIL}", EVIL) for k in range(7))
    outcome = foreplan.Outcome("w-1", Path("w-1"), "failed", run, failures, warnings=(EVIL,))
    shown = Elements(outcome._repr_html_())
    assert set(shown.tags) <= ALLOWED
    assert shown.text.count("failed: task ") == 5
    assert "... and 2 more" in shown.text
    assert repr(outcome).startswith("<Outcome: run w-1 failed: 2 tasks done, 7 failed, in ")
    nothing = foreplan.Outcome("", Path("w-1"), "finished", run)
    assert repr(nothing) == "<Outcome: nothing to do: 0 tasks up to date>"


def test_a_picture_is_in_the_page_and_says_what_it_is() -> None:
    thing = foreplan.plan(workflow(), platform())
    shown = Elements(thing._repr_html_())
    picture = dict(shown.attributes)
    assert picture["alt"] == repr(thing)
    kind, _, data = str(picture["src"]).partition(";base64,")
    assert kind == "data:image/png"
    assert base64.b64decode(data).startswith(b"\x89PNG")
    assert "processor" in shown.text


def test_the_graph_is_a_picture_of_its_own() -> None:
    """Its style must not reach the page."""
    picture = dict(Elements(workflow()._repr_html_()).attributes)
    kind, _, data = str(picture["src"]).partition(";base64,")
    assert kind == "data:image/svg+xml"
    assert base64.b64decode(data).startswith(b"<svg")


def test_what_is_large_stays_small() -> None:
    wf, pf = generate("montage", images=400), generate_platform(32, cores=4)
    schedule = foreplan.plan(wf, pf)
    for thing in (wf, schedule):
        assert len(thing._repr_html_()) < LARGE


@pytest.mark.parametrize("large", ["tasks", "processors", "nodes"])
def test_what_is_too_large_has_no_picture(large: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"foreplan.charts.html.MOST_{large.upper()}", 1)
    wf, pf = workflow(), platform()
    shown: foreplan.Workflow | foreplan.Schedule = wf if large == "nodes" else foreplan.plan(wf, pf)
    found = Elements(shown._repr_html_())
    assert "img" not in found.tags
    assert repr(shown).strip("<>") in found.text


def test_a_long_table_says_how_long_it_is() -> None:
    tasks = {f"t{k}": {"cost": 1, "category": f"c{k}"} for k in range(30)}
    wf = foreplan.load({"tasks": tasks})
    assert "... and 10 more" in Elements(wf._repr_html_()).text


def test_what_has_no_name() -> None:
    wf, pf = workflow(""), platform("")
    assert repr(wf) == "<Workflow: 2 tasks, 1 dependency>"
    assert repr(foreplan.plan(wf, pf)).startswith(
        "<Schedule of a workflow by heft: 2 tasks on 2 pro"
    )


def test_reprs_are_short() -> None:
    wf = foreplan.load(ROOT / "examples" / "montage.yaml")
    pf = foreplan.load_platform(ROOT / "examples" / "cluster.yaml")
    run = foreplan.simulate(wf, pf, "slack", qoi=0.3)
    made: dict[str, Callable[[], Any]] = {
        r"<Workflow montage\S+: 123 tasks, 307 dependencies>": lambda: wf,
        r"<Platform: 7 processors on 4 hosts>": lambda: pf,
        r"<Schedule of montage\S+ by heft: 123 tasks on 7 processors, .*>": lambda: run.plans[0],
        r"<Run of montage\S+ by slack: 123 of 123 tasks done in .*>": lambda: run,
        r"<Situation of montage\S+ at 0 s: .* 123 waiting; .*>": lambda: Situation.at_start(wf, pf),
        r"<Estimates: 123 tasks on 7 processors, .*>": lambda: Estimates.declared(wf, pf),
        r"<Comparison of 1 strategy: .*>": lambda: foreplan.compare(
            wf, pf, "static", runs=1, jobs=1
        ),
        r"<Frontier: \d plans, .*>": lambda: foreplan.pareto(wf, pf, "loss3", points=3),
        r"<WhatIf of montage\S+: 7 alternatives .*>": lambda: foreplan.what_if(
            wf, pf, remove="each"
        ),
        r"<Expectation: .*>": lambda: foreplan.estimate(wf, pf),
        r"<AttemptLog: task \[123\], .*>": lambda: run.attempts,
        r"<TransferLog: item \[\d+\], .*>": lambda: run.transfers,
    }
    for pattern, make in made.items():
        said = repr(make())
        assert re.fullmatch(pattern, said), said
        assert len(said) < 200
