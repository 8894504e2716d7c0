"""A graph as a picture (SVG), and as a page with that picture to move about in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import pairwise
from unicodedata import east_asian_width

from foreplan.charts.gantt import embedded
from foreplan.charts.graph import (
    DASHED,
    LOOKS,
    STATES,
    DrawnGraph,
    DrawnNode,
    Edge,
    count_lines,
)
from foreplan.charts.layers import Layers, lay_out
from foreplan.quantities import shortened

NAMED = 300  # tasks; of more, nodes are small and their names are seen by pointing at them
LONGEST = 28  # letters of a name
LETTER = 12.0  # pixels
PAD, MARGIN, HEAD = 9.0, 24.0, 58.0
FEW_EDGES = 600  # more than these have no arrows
GAP, WIDER, WIDEST = 46.0, 78.0, 320.0  # between layers; of categories, whose edges have counts
ARROW = 8.0
WRITTEN = 0.36  # of an edge, where its count is: in their middles curves cross
ASIDE = 10.0  # from a box's middle: an edge against the order, which may run beside another
LEAST = 420.0  # pixels of a picture's width: its heading needs some
PAGE = 1.5  # width by height that is looked for
FONT = "'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif"
STYLE = """
text { font: 12px FAMILY; fill: #16181d }
.title { font-size: 16px; font-weight: bold }
.quiet { fill: #5b6370 }
.edge { fill: none; stroke: #77849a; stroke-width: 1 }
.edge.many { stroke-opacity: 0.35 }
.edge.back { stroke-dasharray: 5 4 }
.count { font-size: 10px; fill: #3c4656; stroke: #ffffff; stroke-width: 3px; paint-order: stroke }
.arrow { fill: #77849a }
.box { stroke: #55606f; stroke-width: 1 }
.small { font-size: 10px }
.running .box, .failed .box { stroke-width: 2.5 }
.waiting .box, .blocked .box { stroke-dasharray: 4 3 }
""".replace("FAMILY", FONT)


@dataclass(frozen=True)
class NodeSizes:
    """Pixels of nodes, by how they are drawn."""

    height: float
    pitch: float  # from one to the next in a layer, if layers are columns
    named: bool

    @staticmethod
    def of(graph: DrawnGraph) -> NodeSizes:
        """Categories have two lines, tasks one, and many tasks none."""
        if graph.grouped:
            return NodeSizes(48.0 if graph.with_states else 38.0, 66.0, True)
        if len(graph.nodes) <= NAMED:
            return NodeSizes(22.0, 31.0, True)
        return NodeSizes(11.0, 15.0, False)


class PlacedGraph:
    """A graph with the pixels of its nodes and edges."""

    def __init__(self, graph: DrawnGraph) -> None:
        self.graph, self.sizes = graph, NodeSizes.of(graph)
        pairs = [(e.target, e.source) if e.back else (e.source, e.target) for e in graph.edges]
        self.layers: Layers = lay_out(len(graph.nodes), pairs)
        widths = [self._width(node) for node in graph.nodes]
        self.columns = self._is_wide(widths)  # layers are columns, else rows
        self.thick = [0.0] * self.layers.n_layers  # of each layer
        for layer, width in zip(self.layers.layer, widths, strict=True):
            own = width if self.columns else self.sizes.height
            self.thick[layer] = max(self.thick[layer], own)
        by_row = max(widths, default=0.0) + 18.0 if self.sizes.named else self.sizes.pitch
        self.pitch = self.sizes.pitch if self.columns else by_row
        self.wide = widths
        self.begin = self._begins(pairs)
        along = max(self.layers.place, default=0.0) * self.pitch
        across = (self.begin[-1] + self.thick[-1]) if self.thick else 0.0
        room = self.sizes.height if self.columns else max(widths, default=0.0)
        size = (across, along + room) if self.columns else (along + room, across)
        self.width, self.height = size
        self._room = room

    def _width(self, node: DrawnNode) -> float:
        if not self.sizes.named:
            return self.sizes.height
        lines = [label(node, self.graph)]
        small = count_lines(node) if self.graph.grouped else []
        text = [width_of(lines[0]) * LETTER, *(width_of(line) * 10.0 for line in small)]
        return max(30.0, max(text) + 2 * PAD)

    def _is_wide(self, widths: list[float]) -> bool:
        """Whether the picture is nearer to a page with layers as columns than as rows."""
        layers, span = self.layers.n_layers, max(self.layers.place, default=0.0) + 1
        widest = max(widths, default=1.0)
        columns = layers * (widest + GAP) / (span * self.sizes.pitch)
        own = widest + 18.0 if self.sizes.named else self.sizes.pitch
        rows = span * own / (layers * (self.sizes.height + GAP))
        return abs(math.log(columns / PAGE)) <= abs(math.log(rows / PAGE))

    def _begins(self, pairs: list[tuple[int, int]]) -> list[float]:
        """Where each layer begins; there is more room where edges go far."""
        far = [0.0] * self.layers.n_layers
        for (a, b), way in zip(pairs, self.layers.ways, strict=True):
            ends = [(self.layers.layer[a], self.layers.place[a]), *way]
            ends.append((self.layers.layer[b], self.layers.place[b]))
            for (layer, x), (_, y) in pairwise(ends):
                far[layer] = max(far[layer], abs(y - x) * self.pitch)
        begin, at, gap = list[float](), 0.0, WIDER if self.graph.grouped else GAP
        for thick, distance in zip(self.thick, far, strict=True):
            begin.append(at)
            at += thick + max(gap, min(WIDEST, 0.22 * distance))
        return begin

    def box(self, k: int) -> tuple[float, float, float, float]:
        """Left, top, width and height of a node."""
        layer, place = self.layers.layer[k], self.layers.place[k] * self.pitch
        if self.columns:
            return self.begin[layer], place, self.thick[layer], self.sizes.height
        left = place + (self._room - self.wide[k]) / 2
        return left, self.begin[layer], self.wide[k], self.sizes.height

    def way(self, edge: Edge, number: int) -> tuple[str, tuple[float, float]]:
        """The path of an edge, and where its count is written."""
        a, b = (edge.target, edge.source) if edge.back else (edge.source, edge.target)
        layer, place = self.layers.layer, self.layers.place
        middle = self._room / 2 + (ASIDE if edge.back else 0.0)
        # the arrowhead is drawn from the end of the line on: it needs room before the box
        start, end = (ARROW, 0.0) if edge.back else (0.0, ARROW)
        at = (self.begin[layer[a]] + self.thick[layer[a]] + start, place[a] * self.pitch + middle)
        path, label_at = [f"M{self._point(*at)}"], at
        stops = [*self.layers.ways[number], (layer[b], place[b])]
        for k, (on, where) in enumerate(stops):
            last = k == len(stops) - 1
            to = (self.begin[on] - end * last, where * self.pitch + middle)
            half = (at[0] + to[0]) / 2
            ends = (self._point(half, at[1]), self._point(half, to[1]), self._point(*to))
            path.append("C" + " ".join(ends))
            written = 1 - WRITTEN if edge.back else WRITTEN
            label_at = (
                _between(at[0], half, half, to[0], written),
                _between(at[1], at[1], to[1], to[1], written),
            )
            at = (self.begin[on] + self.thick[on], to[1])
            if not last:
                path.append(f"L{self._point(*at)}")
        x, y = label_at if self.columns else (label_at[1], label_at[0])
        return "".join(path), (x, y)

    def _point(self, across: float, along: float) -> str:
        x, y = (across, along) if self.columns else (along, across)
        return f"{x:.1f},{y:.1f}"


def _between(a: float, b: float, c: float, d: float, t: float) -> float:
    """Return the point of a curve at this share of it."""
    u = 1 - t
    return a * u**3 + 3 * b * u**2 * t + 3 * c * u * t**2 + d * t**3


def label(node: DrawnNode, graph: DrawnGraph) -> str:
    """The name that stands in a node."""
    mark = LOOKS[node.state][3] if graph.with_states and not graph.grouped else ""
    return f"{mark} {shortened(_clean(node.name), LONGEST)}".strip()


def width_of(text: str) -> float:
    """About how wide a text is, in units of the size of its letters."""
    return sum(_letter(c) for c in text)


def _letter(c: str) -> float:
    if c in "iljtfrI.,:;|!'()[] /\\-":
        return 0.40
    if c in "mwMW@%" or (not c.isascii() and east_asian_width(c) in "WF"):
        return 1.0
    return 0.74 if c.isupper() else 0.64


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _text(text: str) -> str:
    return escape(_clean(text))


def svg(graph: DrawnGraph) -> bytes:
    """The picture with a heading and a legend; the same graph gives the same bytes."""
    placed = PlacedGraph(graph)
    facts = ", ".join(graph.facts)
    notes = [width_of(note) * 10.0 for note in graph.notes]
    wide = max([placed.width, LEAST, width_of(facts) * LETTER, *notes])
    legend, head = _legend(graph, wide)
    width, height = wide + 2 * MARGIN, placed.height + head + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<title>{_text(graph.title)}</title><style>{STYLE}</style>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text class="title" x="{MARGIN}" y="{MARGIN + 12}">',
        f"{_text(shortened(graph.title, int(wide / 9)))}</text>",
        f'<text class="quiet" x="{MARGIN}" y="{MARGIN + 32}">{_text(facts)}</text>',
        legend,
        f'<g transform="translate({MARGIN},{MARGIN + head:.0f})">',
        drawing(placed, told=True),
        "</g></svg>\n",
    ]
    return "\n".join(parts).encode()


def _legend(graph: DrawnGraph, room: float) -> tuple[str, float]:
    """The legend in lines below the facts, and where the picture begins."""
    entries: list[tuple[str, str, str]] = []
    if graph.with_states:
        present = [s for s in STATES if any(node.states.get(s) for node in graph.nodes)]
        entries = [(LOOKS[s][0], s, f"{LOOKS[s][3]} {s}".strip()) for s in present]
    elif not graph.grouped:
        entries = [(colour, "", name) for name, colour in graph.legend]
    parts, x, y = [], MARGIN, HEAD
    for colour, state, name in entries:
        text = shortened(name, 24)
        wide = 18 + width_of(text) * LETTER + 16
        if x > MARGIN and x + wide > room + MARGIN:
            x, y = MARGIN, y + 18
        parts.append(
            f'<g class="{state}"><rect class="box" x="{x:.0f}" y="{y + 8:.0f}" width="12" '
            f'height="12" rx="2" fill="{colour}"/><text x="{x + 18:.0f}" y="{y + 18:.0f}">'
            f"{_text(text)}</text></g>"
        )
        x += wide
    y += 18 * bool(entries)
    if graph.grouped and any(edge.count > 1 for edge in graph.edges):
        note = "Numbers on lines count dependencies between tasks."
        if any(edge.back for edge in graph.edges):
            note += " Dashed lines lead back to an earlier box."
        parts.append(_quiet_line(note, y + 16))
        y += 16
    for text in graph.notes:
        parts.append(_quiet_line(text, y + 16))
        y += 16
    return "".join(parts), y - 8


def _quiet_line(text: str, y: float) -> str:
    return f'<text class="quiet small" x="{MARGIN}" y="{y:.0f}">{_text(text)}</text>'


def drawing(placed: PlacedGraph, told: bool) -> str:
    """Edges, then nodes; `told`: with what is said of them, for whoever points at them."""
    graph = placed.graph
    dense = len(graph.edges) > FEW_EDGES
    parts = ["" if dense else _ARROW]
    counts = []
    for k, edge in enumerate(graph.edges):
        path, (x, y) = placed.way(edge, k)
        kind = "edge" + (" many" if dense else "") + (" back" if edge.back else "")
        arrow = "" if dense else f' marker-{"start" if edge.back else "end"}="url(#arrow)"'
        wide = ""
        if graph.grouped:
            wide = f' style="stroke-width:{min(3.5, 1 + 0.3 * math.log2(edge.count)):.2f}px"'
            if edge.count > 1:
                counts.append(
                    f'<text class="count" x="{x:.1f}" y="{y + 3:.1f}" text-anchor="middle">'
                    f"{edge.count:,}</text>"
                )
        parts.append(f'<path class="{kind}" data-e="{k}" d="{path}"{wide}{arrow}/>')
    parts += [_node(placed, k, node, told) for k, node in enumerate(graph.nodes)]
    return "\n".join([*parts, *counts])


_ARROW = (
    '<defs><marker id="arrow" markerUnits="userSpaceOnUse" markerWidth="8" markerHeight="8" '
    'refX="0" refY="4" orient="auto-start-reverse"><path class="arrow" d="M0,1L8,4L0,7z"/>'
    "</marker></defs>"
)


def _node(placed: PlacedGraph, k: int, node: DrawnNode, told: bool) -> str:
    graph, (x, y, width, height) = placed.graph, placed.box(k)
    fill, ink = graph.colour(node), "#16181d"
    if graph.with_states and not graph.grouped:
        fill, _, ink, _ = LOOKS[node.state]
    elif graph.with_states:
        fill = "#ffffff"
    parts = [f'<g class="node {node.state}" data-n="{k}">']
    if told:
        said = "\n".join([node.name, *(f"{a}: {b}" for a, b in node.facts)])
        inner = "".join(c if c.isprintable() or c == "\n" else " " for c in said)
        parts.append(f"<title>{escape(inner)}</title>")
    parts.append(
        f'<rect class="box" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{min(5.0, height / 4):.1f}" fill="{fill}"/>'
    )
    middle = x + width / 2
    if graph.grouped:
        parts.append(_line(middle, y + 17, label(node, graph)))
        parts.append(_line(middle, y + 31, count_lines(node)[0], "small"))
        parts.append(_shares(node, x + 6, y + height - 10, width - 12))
    elif placed.sizes.named:
        style = "" if ink == "#16181d" else f' style="fill:{ink}"'
        parts.append(_line(middle, y + 15, label(node, graph), more=style))
    return "".join([*parts, "</g>"])


def _line(x: float, y: float, text: str, kind: str = "", more: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="middle"{more}>{_text(text)}</text>'


def _shares(node: DrawnNode, x: float, y: float, width: float) -> str:
    """A bar of what the tasks of a category are."""
    parts = []
    for state in STATES:
        if count := node.states.get(state, 0):
            own = width * count / node.tasks
            fill, border, _, _ = LOOKS[state]
            dashed = ' stroke-dasharray="3 2"' if state in DASHED else ""
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{own:.1f}" height="6" fill="{fill}" '
                f'stroke="{border}" stroke-width="0.8"{dashed}/>'
            )
            x += own
    return "".join(parts)


def page(graph: DrawnGraph) -> bytes:
    """One page that needs nothing else: the picture to zoom and drag, and what is said of nodes."""
    home, placed = files("foreplan.charts"), PlacedGraph(graph)
    read = {name: home.joinpath(name).read_text(encoding="utf-8") for name in _PARTS}
    picture = (
        f'<svg id="graph" xmlns="http://www.w3.org/2000/svg" data-width="{placed.width:.0f}" '
        f'data-height="{placed.height:.0f}">{drawing(placed, told=False)}</svg>'
    )
    data = {
        "title": graph.title,
        "facts": [*graph.facts, *graph.notes],
        "nodes": [{"name": n.name, "facts": n.facts} for n in graph.nodes],
        "edges": [[e.source, e.target, e.count, list(e.items)] for e in graph.edges],
        "legend": _page_legend(graph),
    }
    style = "\n".join([read["gantt.css"], STYLE, read["graph.css"]])
    filled = read["graph.html"].replace("/*STYLE*/", style).replace("/*SCRIPT*/", read["graph.js"])
    # what others have written comes last: it is not searched for places to fill
    before, _, after = filled.partition("/*GRAPH*/")
    return (before + picture + after.replace("/*DATA*/", embedded(data))).encode()


_PARTS = ("gantt.css", "graph.css", "graph.html", "graph.js")


def _page_legend(graph: DrawnGraph) -> list[tuple[str, str]]:
    if graph.with_states:
        present = [s for s in STATES if any(node.states.get(s) for node in graph.nodes)]
        return [(f"{LOOKS[s][3]} {s}".strip(), LOOKS[s][0]) for s in present]
    return [] if graph.grouped else list(graph.legend)
