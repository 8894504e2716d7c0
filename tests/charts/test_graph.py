"""The picture of a workflow's graph: layers, nodes and edges, and the files it is drawn in."""

from __future__ import annotations

import json
import random
import re
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from foreplan import load
from foreplan.charts.graph import KINDS, LOOKS, dot, graph_of, mermaid, write_graph
from foreplan.charts.graph_picture import ARROW, PlacedGraph, page, svg
from foreplan.charts.layers import POINT, lay_out
from foreplan.errors import InputError
from foreplan.formats.dot import _tokens
from foreplan.model import Workflow

from .schedules import HOSTILE
from .test_page import Elements

NAMES = [
    'say "hi"',
    "back\\slash",
    "</script><img src=x onerror=alert(1)>",
    "a\nb\tc",
    "\u00fc\u732b",
    "#;|[]",
]


def diamond() -> Workflow:
    edges = [["a", "b"], ["a", "c"], ["b", "d"], ["c", "d"], ["a", "d"]]
    return load({"name": "diamond", "tasks": {n: {"cost": 1} for n in "abcd"}, "edges": edges})


def wide(n: int, chains: int = 2) -> Workflow:
    tasks = {"begin": {"category": "begin", "cost": 1}, "end": {"category": "end", "cost": 1}}
    edges = []
    for k in range(n):
        steps = [f"{c}-{k}" for c in range(chains)]
        tasks |= {s: {"category": f"step {c}", "cost": 2} for c, s in enumerate(steps)}
        edges += [[x, y] for x, y in pairwise(["begin", *steps, "end"])]
    return load({"name": "wide", "tasks": tasks, "edges": edges})


def hostile() -> Workflow:
    names = [*NAMES, *HOSTILE]
    names = [name for name in dict.fromkeys(names) if "\ud800" not in name]
    edges = [[a, b] for a, b in pairwise(names)]
    return load(
        {"name": NAMES[2], "tasks": {n: {"cost": 1, "category": n} for n in names}, "edges": edges}
    )


def test_layers_go_forward_and_have_room() -> None:
    chance = random.Random(1)
    for n in (1, 2, 30, 200):
        pairs = [chance.sample(range(n), 2) for _ in range(2 * n if n > 1 else 0)]
        edges = sorted({(min(pair), max(pair)) for pair in pairs})
        drawn = lay_out(n, edges)
        for (a, b), way in zip(edges, drawn.ways, strict=True):
            layers = [drawn.layer[a], *(layer for layer, _ in way), drawn.layer[b]]
            assert layers == list(range(drawn.layer[a], drawn.layer[b] + 1))
        for layer in range(drawn.n_layers):
            here = sorted(drawn.place[k] for k in range(n) if drawn.layer[k] == layer)
            assert here
            assert all(y - x >= 1 - 1e-9 for x, y in pairwise(here))
            points = {at for way in drawn.ways for on, at in way if on == layer}
            assert all(abs(p - x) >= (1 + POINT) / 2 - 1e-9 for p in points for x in here)


def test_edges_of_one_task_share_their_way() -> None:
    drawn = lay_out(5, [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (3, 4)])
    assert drawn.layer == [0, 1, 2, 3, 4]
    assert drawn.ways[3][0] == drawn.ways[4][0]


def test_a_tree_has_no_crossings() -> None:
    edges = [((k - 1) // 2, k) for k in range(1, 31)]
    order = list(range(31))
    random.Random(2).shuffle(order)
    drawn = lay_out(31, [(order[a], order[b]) for a, b in edges])
    lines = [
        (drawn.layer[order[a]], drawn.place[order[a]], drawn.place[order[b]]) for a, b in edges
    ]
    for one in lines:
        for other in lines:
            if one[0] == other[0] and one[1] < other[1]:
                assert one[2] < other[2]


def test_a_cycle_is_no_layout() -> None:
    with pytest.raises(ValueError, match="cycle"):
        lay_out(2, [(0, 1), (1, 0)])


def test_few_tasks_are_nodes_and_many_are_categories() -> None:
    few = graph_of(diamond())
    assert [node.name for node in few.nodes] == ["a", "b", "c", "d"]
    assert not few.grouped
    many = graph_of(wide(40))
    assert many.grouped
    assert {node.name: node.tasks for node in many.nodes} == {
        "begin": 1, "end": 1, "step 0": 40, "step 1": 40
    }  # fmt: skip
    assert sorted(edge.count for edge in many.edges) == [40, 40, 40]
    assert len(graph_of(wide(40), "tasks").nodes) == 82
    assert len(graph_of(diamond(), "categories").nodes) == 3  # levels: all are of one category


def mixed(lone: list[str], n: int = 70) -> Workflow:
    """A category of n tasks between two tasks without one, and some more of these."""
    tasks: dict[str, object] = {name: {"cost": 1} for name in ("index", "report", *lone)}
    tasks |= {f"t-{k}": {"cost": 1, "category": "t"} for k in range(n)}
    edges = [["index", f"t-{k}"] for k in range(n)] + [[f"t-{k}", "report"] for k in range(n)]
    return load({"tasks": tasks, "edges": edges})


def test_a_task_without_a_category_is_a_node() -> None:
    graph = graph_of(mixed(["t"]))  # called like a category, and yet another node
    assert [(node.name, node.tasks) for node in graph.nodes] == [
        ("index", 1), ("report", 1), ("t", 1), ("t", 70)
    ]  # fmt: skip
    assert [(e.source, e.target, e.count, e.back) for e in graph.edges] == [
        (0, 3, 70, False), (3, 1, 70, False)
    ]  # fmt: skip
    assert graph.facts == ("73 tasks", "1 category", "depth 3")
    assert graph.notes == ()
    assert graph.nodes[0].facts == (("cost", "1 s"),)  # those of the task
    few = graph_of(mixed([], 2))
    assert not any(fact == "category" for fact, _ in few.nodes[0].facts)


@pytest.mark.parametrize(
    ("names", "nodes", "note"),
    [
        (
            [f"x{k}" for k in range(99)],
            ["x", "t"],
            "101 tasks without a category are drawn by name",
        ),
        ([str(k) for k in range(99)], ["t"], "101 tasks without a category are drawn by level"),
    ],
)
def test_many_tasks_without_a_category(names: list[str], nodes: list[str], note: str) -> None:
    graph = graph_of(mixed(names))
    first = ["index", "report"] if "name" in note else ["level 1", "level 3"]
    assert [node.name for node in graph.nodes] == [*first, *nodes]
    assert sum(node.tasks for node in graph.nodes) == 171
    assert graph.notes == (note,)


def test_too_many_tasks_are_drawn_together() -> None:
    assert graph_of(wide(600), "tasks").grouped
    assert graph_of(wide(600)).notes == ()
    graph = graph_of(wide(600), "tasks")
    (note,) = graph.notes
    assert note == (
        "1,202 tasks are too many for a graph by tasks (at most 1,000): it is drawn by category"
    )
    assert note in svg(graph).decode()
    assert note in page(graph).decode()
    edges = [[str(k), str(k + 1)] for k in range(1299)]
    for category in ({}, {"category": "a"}):
        tasks = {str(k): {"cost": 1} | category for k in range(1300)}
        chain = graph_of(load({"tasks": tasks, "edges": edges}))
        assert [chain.nodes[0].name, chain.nodes[-1].name] == [
            "levels 1 to 22",
            "levels 1299 to 1300",
        ]
        assert chain.notes[0].endswith("it is drawn by level")
    tasks = {str(k): {"cost": 1, "category": f"c{k}"} for k in range(1300)}
    graph = graph_of(load({"tasks": tasks, "edges": edges}))
    assert len(graph.nodes) == 60
    assert graph.notes[0].startswith("1,300 categories are too many for a graph")


def test_arrowheads_lie_before_the_box() -> None:
    tasks = {"a1": "a", "b1": "b", "a2": "a", "b2": "b"}
    wf = load({
        "tasks": {name: {"cost": 1, "category": c} for name, c in tasks.items()},
        "edges": [["a1", "b1"], ["b1", "a2"], ["a2", "b2"]],
    })  # fmt: skip
    graph = graph_of(wf, "categories")
    placed = PlacedGraph(graph)
    assert [edge.back for edge in graph.edges] == [False, True]
    for k, edge in enumerate(graph.edges):
        points = re.findall(r"(-?[\d.]+),(-?[\d.]+)", placed.way(edge, k)[0])
        across = [float(point[0 if placed.columns else 1]) for point in points]
        x, y, width, height = placed.box(edge.target)
        near, size = (x, width) if placed.columns else (y, height)
        room = across[0] - near - size if edge.back else near - across[-1]
        assert room == pytest.approx(ARROW, abs=0.1)


def test_categories_that_need_each_other() -> None:
    tasks = {"a1": "a", "b1": "b", "a2": "a", "b2": "b"}
    wf = load({
        "tasks": {name: {"cost": 1, "category": c} for name, c in tasks.items()},
        "edges": [["a1", "b1"], ["b1", "a2"], ["a2", "b2"]],
    })  # fmt: skip
    graph = graph_of(wf, "categories")
    assert [(e.source, e.target, e.count, e.back) for e in graph.edges] == [
        (0, 1, 2, False), (1, 0, 1, True)
    ]  # fmt: skip
    assert b"stroke-dasharray" in svg(graph)


def test_states_are_told_without_colours() -> None:
    states = ["done", "running", "failed", "waiting"]
    graph = graph_of(diamond(), states=states, run="r-1")
    assert [node.state for node in graph.nodes] == states
    text = svg(graph).decode()
    for state in states:
        assert f'class="node {state}"' in text
        assert f">{LOOKS[state][3]} " in text or state == "waiting"
    grouped = graph_of(diamond(), "categories", [*states[:3], "blocked"])
    assert Counter(node.state for node in grouped.nodes) == {"done": 1, "failed": 1, "blocked": 1}


@pytest.mark.parametrize("by", ["tasks", "categories"])
def test_the_picture_is_sound_xml(by: str) -> None:
    for wf in (diamond(), wide(40), wide(200), hostile()):
        graph = graph_of(wf, by)
        root = ET.fromstring(svg(graph))
        tag = "{http://www.w3.org/2000/svg}"
        found = [g for g in root.iter(f"{tag}g") if (g.get("class") or "").startswith("node")]
        assert len(found) == len(graph.nodes)
        assert len([p for p in root.iter(f"{tag}path") if "edge" in (p.get("class") or "")]) == len(
            graph.edges
        )
        assert svg(graph) == svg(graph_of(wf, by))


def test_boxes_do_not_overlap() -> None:
    for wf in (diamond(), wide(30), wide(10, chains=20)):
        placed = PlacedGraph(graph_of(wf, "tasks"))
        boxes = [placed.box(k) for k in range(wf.n_tasks)]
        for k, (x, y, w, h) in enumerate(boxes):
            for x2, y2, w2, h2 in boxes[:k]:
                assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_dot_is_quoted() -> None:
    for by in ("tasks", "categories"):
        text = dot(graph_of(hostile(), by)).decode()
        assert text.count("\n") == len(text.splitlines())
        kinds = [token.kind for token in _tokens(text)]
        assert kinds.count("arrow") == hostile().n_tasks - 1
    text = dot(graph_of(hostile(), "tasks")).decode()
    assert '"say \\"hi\\""' in text
    assert '"back\\\\slash"' in text


def test_mermaid_is_quoted() -> None:
    text = mermaid(graph_of(hostile(), "tasks", ["done"] * hostile().n_tasks)).decode()
    for line in text.splitlines()[4:]:
        assert re.fullmatch(
            r'  n\d+\["[^"<>]*"\]:::\w+|  n\d+ (-->|-\.->)(\|"[\d,]+"\|)? n\d+|  classDef .*', line
        ), line
    assert "#34;hi#34;" in text


def test_names_stay_text_in_the_page() -> None:
    elements = Elements()
    elements.feed(page(graph_of(hostile())).decode())
    assert "img" not in {tag for tag, _ in elements.found}
    data = json.loads(elements.scripts[0])
    assert [node["name"] for node in data["nodes"]] == list(hostile().task_names)


def test_files_by_their_suffix(tmp_path: Path) -> None:
    for kind in KINDS:
        write_graph(graph_of(diamond()), tmp_path / f"g{kind}")
        assert (tmp_path / f"g{kind}").stat().st_size > 100
    with pytest.raises(InputError, match=r"known: \.svg, \.html, \.dot, \.mmd"):
        write_graph(graph_of(diamond()), tmp_path / "g.pdf")
    with pytest.raises(InputError, match="there is no directory"):
        write_graph(graph_of(diamond()), tmp_path / "no" / "g.svg")
