"""What a DAGMan file says: its jobs, the arcs between them, and where each was said."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from weft.arrays import IntArray, csr
from weft.errors import InputError
from weft.formats.dagman_files import Source

MOST_JOBS = 2_000_000
MOST_ARCS = 50_000_000
_SHOWN = 12  # jobs of a cycle that are named


class Place(NamedTuple):
    """A line of a file."""

    source: Source
    line: int

    def wrong(self, problem: str) -> InputError:
        """An error there."""
        return self.source.wrong(self.line, problem)


class Node(NamedTuple):
    """A job: its name in full, what it is (JOB, SUBDAG, FINAL, ...) and its submit file, if any."""

    name: str
    kind: str
    submit: str

    @property
    def is_job(self) -> bool:
        """Whether it is run in its turn: FINAL, PROVISIONER and SERVICE are not."""
        return self.kind in ("JOB", "SUBDAG")


@dataclass(eq=False)
class Scope:
    """A file and what it includes, where names are without a prefix; a splice is another."""

    source: Source
    prefix: str = ""
    nodes: dict[str, int] = field(default_factory=dict)  # by the name without the prefix
    jobs: dict[str, int] = field(default_factory=dict)  # those that are run in their turn
    splices: dict[str, Scope] = field(default_factory=dict)
    included: list[Source] = field(default_factory=list)
    initial: list[int] = field(default_factory=list)  # jobs without parents, when it was read
    terminal: list[int] = field(default_factory=list)
    pins_in: dict[int, list[int]] = field(default_factory=dict)
    pins_out: dict[int, list[int]] = field(default_factory=dict)


@dataclass(eq=False)
class Dag:
    """A DAGMan file with all its splices, each node by its index in the order of the files."""

    nodes: list[Node] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)  # the file's own first
    retries: dict[int, int] = field(default_factory=dict)
    categories: dict[int, str] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    priorities: dict[int, tuple[int, Place]] = field(default_factory=dict)  # by PRIORITY
    macros: dict[int, Place] = field(default_factory=dict)  # a priority by VARS
    parents: IntArray = field(default_factory=lambda: np.zeros(0, np.int32))
    children: IntArray = field(default_factory=lambda: np.zeros(0, np.int32))

    def waiting(self) -> list[int]:
        """The jobs that are run in their turn and are not done, in the order of the files."""
        return [i for i, node in enumerate(self.nodes) if node.is_job and i not in self.done]


class Arcs:
    """Arcs as they are read: every parent of a line is one of every child of it."""

    def __init__(self) -> None:
        self._parents, self._children = array("i"), array("i")
        self._places: list[Place] = []
        self._counts: list[int] = []  # arcs by place
        self._has_parent: set[int] = set()
        self._has_child: set[int] = set()

    def add(self, parents: Sequence[int], children: Sequence[int], place: Place) -> None:
        """All arcs of one line."""
        above = list(dict.fromkeys(parents)) if len(parents) > 1 else parents
        below = list(dict.fromkeys(children)) if len(children) > 1 else children
        if len(self._parents) + len(above) * len(below) > MOST_ARCS:
            problem = f"these are more than {MOST_ARCS:,} arcs; a NOOP job in between saves most"
            raise place.wrong(problem)
        for parent in above:
            self._parents.extend([parent] * len(below))
            self._children.extend(below)
        self._places.append(place)
        self._counts.append(len(above) * len(below))
        self._has_parent.update(below)
        self._has_child.update(above)

    def ends(self, scope: Scope, first: int, last: int) -> None:
        """Note which of the nodes from first to last have no parents, and which no children."""
        scope.initial = [i for i in range(first, last) if i not in self._has_parent]
        scope.terminal = [i for i in range(first, last) if i not in self._has_child]

    def arrays(self, nodes: list[Node]) -> tuple[IntArray, IntArray]:
        """Parents and children, each arc once, in the order of the lines; a cycle is an error."""
        parents = np.array(self._parents, np.int32)
        children = np.array(self._children, np.int32)
        _, kept = np.unique(parents.astype(np.int64) * len(nodes) + children, return_index=True)
        kept.sort()
        parents, children = parents[kept], children[kept]
        if not bool(np.all(parents < children)):
            lines = np.repeat(np.arange(len(self._counts), dtype=np.int32), self._counts)
            self._check(parents, children, lines[kept], nodes)
        return parents, children

    def _check(
        self, parents: IntArray, children: IntArray, lines: IntArray, nodes: list[Node]
    ) -> None:
        """No cycle; the error is at the last line of those that make one."""
        n = len(nodes)
        pointers, columns = csr(parents, children, n)
        ptr, below = pointers.tolist(), columns.tolist()
        waiting = np.bincount(children, minlength=n).tolist()
        ready = [i for i in range(n) if waiting[i] == 0]
        for i in ready:  # it grows
            for child in below[ptr[i] : ptr[i + 1]]:
                waiting[child] -= 1
                if waiting[child] == 0:
                    ready.append(child)
        if len(ready) == n:
            return
        above: dict[int, tuple[int, int]] = {}
        for parent, child, line in zip(
            parents.tolist(), children.tolist(), lines.tolist(), strict=True
        ):
            if waiting[parent] > 0 and waiting[child] > 0:
                above.setdefault(child, (parent, line))
        cycle = _cycle(above)
        names = [nodes[i].name for i in [*cycle, cycle[0]]]
        if len(names) > _SHOWN:
            names[_SHOWN // 2 : -_SHOWN // 2] = [f"... ({len(names) - _SHOWN} more) ..."]
        last = max(above[i][1] for i in cycle)
        raise self._places[last].wrong(f"the jobs form a cycle: {' -> '.join(names)}")


def _cycle(above: dict[int, tuple[int, int]]) -> list[int]:
    """A cycle, its first node first, found by going up from node to parent."""
    node, path, seen = min(above), list[int](), dict[int, int]()
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = above[node][0]
    cycle = path[seen[node] :][::-1]
    at = cycle.index(min(cycle))
    return cycle[at:] + cycle[:at]
