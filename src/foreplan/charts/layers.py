"""A drawing of a graph in layers: where its nodes lie, and by which points its edges go.

After Sugiyama, Tagawa, Toda (1981): layers by longest paths, points for edges that pass layers by,
an order within each layer by barycenters, then places as near to the neighbours' as there is room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST_POINTS = 30_000  # beyond these, long edges are straight lines
WORK = 400_000  # nodes and points that are looked at in ordering and placing
SWEEPS = 24
STRAIGHT = 4.0  # how much more points of long edges pull than nodes do
FREE = 0.1  # the pull of a node's own place, where it has no neighbours
POINT = 0.3  # the room that a point takes, in those of a node


@dataclass(frozen=True)
class Layers:
    """The layer of each node, its middle across the layers, and what edges pass on their way."""

    layer: list[int]
    place: list[float]  # in rooms of a node
    ways: list[list[tuple[int, float]]]  # by edge: the layers between its ends, and where

    @property
    def n_layers(self) -> int:
        """How many layers there are."""
        return max(self.layer, default=-1) + 1


def lay_out(n: int, edges: Sequence[tuple[int, int]]) -> Layers:
    """The layers of a graph of n nodes, whose edges form no cycle."""
    layer = _layers(n, edges)
    inner, points = _pointed(n, edges, layer)
    drawn = _Drawing(n, layer, inner, points)
    drawn.order_layers()
    drawn.place_all()
    ways = [[(drawn.layer[p], drawn.place[p]) for p in passed] for passed in inner.passed]
    first = min(drawn.place, default=0.0)
    return Layers(
        drawn.layer[:n],
        [x - first for x in drawn.place[:n]],
        [[(at, x - first) for at, x in way] for way in ways],
    )


def _neighbours(
    n: int, edges: Sequence[tuple[int, int]]
) -> tuple[list[list[int]], list[list[int]]]:
    """Of each node, those before and those after it."""
    before: list[list[int]] = [[] for _ in range(n)]
    after: list[list[int]] = [[] for _ in range(n)]
    for a, b in edges:
        before[b].append(a)
        after[a].append(b)
    return before, after


def _layers(n: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The longest way to each node; one with more readers than inputs is moved near to them."""
    before, after = _neighbours(n, edges)
    layer, left = [0] * n, [len(nodes) for nodes in before]
    order = [node for node in range(n) if not left[node]]
    for node in order:  # it grows
        for other in after[node]:
            layer[other] = max(layer[other], layer[node] + 1)
            left[other] -= 1
            if not left[other]:
                order.append(other)
    if len(order) < n:
        raise ValueError("the edges form a cycle")
    for node in reversed(order):
        if len(after[node]) > len(before[node]):
            layer[node] = min(layer[other] for other in after[node]) - 1
    return layer


@dataclass
class _Inner:
    """Edges between neighbouring layers, with the points of long edges as further nodes."""

    edges: list[tuple[int, int]]
    passed: list[list[int]]  # by edge of the graph: its points


def _pointed(
    n: int, edges: Sequence[tuple[int, int]], layer: list[int]
) -> tuple[_Inner, list[int]]:
    """All edges cut into pieces; what leaves one node has one way as far as it can be shared."""
    farthest = list(layer)
    for a, b in edges:
        farthest[a] = max(farthest[a], layer[b])
    if sum(max(0, far - at - 1) for far, at in zip(farthest, layer, strict=True)) > MOST_POINTS:
        near = [(a, b) for a, b in edges if layer[b] == layer[a] + 1]
        return _Inner(near, [[] for _ in edges]), []
    inner, points = _Inner([], []), list[int]()
    ways: dict[int, list[int]] = {}
    for a, far in enumerate(farthest):
        own = list(range(n + len(points), n + len(points) + max(0, far - layer[a] - 1)))
        points += range(layer[a] + 1, layer[a] + 1 + len(own))
        inner.edges += zip([a, *own], own, strict=False)
        ways[a] = own
    for a, b in edges:
        passed = ways[a][: layer[b] - layer[a] - 1]
        inner.passed.append(passed)
        inner.edges.append((passed[-1] if passed else a, b))
    return inner, points


class _Drawing:
    """Nodes and points while they are put in order."""

    def __init__(self, n: int, layer: list[int], inner: _Inner, points: list[int]) -> None:
        self.n, self.layer = n, layer + points
        self.before, self.after = _neighbours(len(self.layer), inner.edges)
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer, default=-1) + 1)]
        self.place = [0.0] * len(self.layer)
        self.sweeps = max(3, min(SWEEPS, WORK // max(1, len(self.layer))))
        for node in self._as_met():
            self.rows[self.layer[node]].append(node)
        self._number()

    def _as_met(self) -> list[int]:
        """All nodes in the order in which a walk along the edges meets them: trees do not cross."""
        met, seen = list[int](), [False] * len(self.layer)
        for root in range(len(self.layer)):
            waiting = [] if seen[root] or self.before[root] else [root]
            while waiting:
                node = waiting.pop()
                if not seen[node]:
                    seen[node] = True
                    met.append(node)
                    waiting += reversed(self.after[node])
        return met

    def _number(self) -> None:
        for row in self.rows:
            for at, node in enumerate(row):
                self.place[node] = float(at)

    def order_layers(self) -> None:
        """Sort each layer by the middle of its neighbours, down and up; keep the best order."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(self.sweeps):
            if not fewest:
                break
            down = sweep % 2 == 0
            for row in self.rows if down else reversed(self.rows):
                self._sort(row, down)
            if (crossings := self._crossings()) < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best
        self._number()

    def _sort(self, row: list[int], down: bool) -> None:
        middle = {node: self._wanted(node, down, not down)[0] for node in row}
        row.sort(key=middle.__getitem__)
        for at, node in enumerate(row):
            self.place[node] = float(at)

    def _wanted(self, node: int, above: bool, below: bool) -> tuple[float, float]:
        """The middle of its neighbours, and their pull; each has one, for all of its edges."""
        total = weight = 0.0
        for asked, near, back in (
            (above, self.before, self.after),
            (below, self.after, self.before),
        ):
            for other in near[node] if asked else ():
                pull = STRAIGHT if node >= self.n and other >= self.n else 1.0
                pull /= len(back[other])
                total, weight = total + pull * self.place[other], weight + pull
        return (total / weight, weight) if weight else (self.place[node], FREE)

    def _crossings(self) -> int:
        return sum(self._crossed(row) for row in self.rows[:-1])

    def _crossed(self, row: list[int]) -> int:
        """How many edges cross on their way to the next layer (a tree of sums counts them)."""
        ends = [sorted(int(self.place[b]) for b in self.after[a]) for a in row]
        size = len(self.rows[self.layer[row[0]] + 1]) if row else 0
        sums, seen, crossed = [0] * (size + 1), 0, 0
        for places in ends:
            for end in places:
                at, below = end + 1, 0
                while at:
                    below += sums[at]
                    at -= at & -at
                crossed += seen - below
            for end in places:
                at = end + 1
                while at <= size:
                    sums[at] += 1
                    at += at & -at
            seen += len(places)
        return crossed

    def place_all(self) -> None:
        """Move every layer, in its order, to where its neighbours are; first down, then up."""
        for row in self.rows:
            at = 0.0
            for a, b in zip([None, *row], row, strict=False):
                at += 0.0 if a is None else self._gap(a, b)
                self.place[b] = at
            for node in row:
                self.place[node] -= at / 2
        for sweep in range(self.sweeps):
            down = sweep % 2 == 0
            for row in self.rows if down else reversed(self.rows):
                self._settle(row, down, not down)
        for row in self.rows:
            self._settle(row, True, True)

    def _gap(self, a: int, b: int) -> float:
        """The least room between the middles of two that lie side by side."""
        return (1.0 if a < self.n else POINT) / 2 + (1.0 if b < self.n else POINT) / 2

    def _settle(self, row: list[int], above: bool, below: bool) -> None:
        """The places nearest to the wanted ones, in order and with room (pooled violators)."""
        blocks: list[tuple[float, float, int]] = []  # the mean of what is wanted, weight, count
        offsets, offset = list[float](), 0.0
        for at, node in enumerate(row):
            offset += self._gap(row[at - 1], node) if at else 0.0
            offsets.append(offset)
            wanted, weight = self._wanted(node, above, below)
            wanted, count = wanted - offset, 1
            while blocks and blocks[-1][0] >= wanted:
                mean, heavy, many = blocks.pop()
                wanted = (mean * heavy + wanted * weight) / (heavy + weight)
                weight, count = weight + heavy, count + many
            blocks.append((wanted, weight, count))
        placed = (mean for mean, _, count in blocks for _ in range(count))
        for node, offset, mean in zip(row, offsets, placed, strict=True):
            self.place[node] = mean + offset
